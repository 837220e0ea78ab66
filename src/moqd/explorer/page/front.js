// The front of a cell: a plot of its objectives over the global front, and a table of its solutions.

const CONFIG = { displayModeBar: false };

/** Text for Plotly, which takes some tags for markup. */
function plain(text) {
  return String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** The same for its axes in space, which know tags but no entities: no tag begins with a space of no width. */
function plainInSpace(text) {
  return text.replaceAll("<", "<\u200b");
}

/** Draws the front of a cell; `onChoose` gets the row of a solution that was clicked. */
function createFront(parts, onChoose) {
  let drawn = null;
  let rows = [];
  let lines = new Map();
  let marked = [];
  let plotted = false;
  let begun = false;

  /** `view` has run, cell, solution, recommended (of all), best (of the cell), limits and playable (has a gait). */
  function draw(view) {
    const same = (...names) => drawn !== null && names.every((name) => drawn[name] === view[name]);
    const known = same("run", "cell");
    // While a slider moves, what it recommends often stays.
    if (known && same("solution", "recommended", "best", "limits")) return;
    drawn = view;
    if (!known) rows = view.cell === null ? [] : sortedRows(view.run, view.run.rowsOf[view.cell]);
    if (view.run.k === 3) redrawLater();
    else redraw();
    if (!known) fillTable();
    markTable();
    if (!known) describe();
  }

  function describe() {
    const { run, cell } = drawn;
    const n = run.feature.length;
    parts.title.textContent = cell === null ? "Front" : `Front of cell ${cell}`;
    const labels = shortLabels(run.feature.map(({ name }) => name));
    const features = cell === null ? [] : run.feature.map(({ low, high }, i) =>
      `${labels[i]} ${written(run.centroid[cell * n + i], 10 * (high - low))}`);
    const number = rows.length === 1 ? "1 solution" : `${rows.length} solutions`;
    parts.facts.textContent = [number, ...features].join(" · ");
    parts.facts.title = parts.facts.textContent;
  }

  /** What is said of a solution beside the pointer: a title, and lines. */
  function hoverLines(row) {
    const { run, recommended, best } = drawn;
    const values = objectivesOf(run, row);
    const lines = run.objective.map(({ label }, i) => `${label}: ${values[i]}`);
    const notes = [row === recommended && "★ recommended", row === best && row !== recommended && "☆ best of the cell"];
    return [`solution ${row}, cell ${run.cellOf[row]}`, [...lines, ...notes.filter(Boolean)]];
  }

  function drawPlane() {
    const { clientWidth: width, clientHeight: height } = parts.plot;
    parts.plot.replaceChildren(scatterOf(drawn, rows, width, height, onChoose, hoverLines));
  }

  // ------------------------------------------------------------------------------- three objectives: space, by Plotly

  function drawSpace() {
    Plotly.react(parts.plot, solidTraces(), solidLayout(), CONFIG);
    if (plotted) return;
    plotted = true;
    parts.plot.on("plotly_click", (event) => {
      const row = event.points.map((point) => point.customdata).find(Number.isInteger);
      if (row !== undefined) onChoose(row);
    });
  }

  function traceOf(own, extra) {
    const { run } = drawn;
    const [x, y, z] = [0, 1, 2].map((i) => own.map((row) => run.objectives[row * run.k + i]));
    const text = own.map((row) => hoverLines(row).flat().map(plain).join("<br>"));
    return { type: "scatter3d", x, y, z, customdata: own, text, hoverinfo: "text", ...extra };
  }

  function solidTraces() {
    const { run, solution, recommended, best, playable } = drawn;
    const [ink, quiet, accent] = ["series", "quiet", "accent"].map(themeColour);
    const starred = [...new Set([recommended, best])].filter((row) => row !== null);
    const glyphs = (own) => own.map((row) => (row === recommended ? "★" : "☆"));
    return [
      traceOf([...run.front], { mode: "markers", marker: { color: quiet, size: 2.5 } }),
      traceOf(rows, { mode: "markers", marker: { color: ink, size: 4.5, line: { color: ink, width: 1 },
        symbol: rows.map((row) => (playable(row) ? "circle" : "circle-open")) } }),
      traceOf(solution === null ? [] : [solution], { mode: "markers",
        marker: { symbol: "circle-open", size: 11, color: accent, line: { color: accent, width: 4 } } }),
      traceOf(starred, { mode: "text", hoverinfo: "skip", text: glyphs(starred), textposition: "middle center",
        textfont: { color: accent, size: 20 } }),
    ];
  }

  function solidLayout() {
    const { run } = drawn;
    const [ink, muted, card, line] = ["ink", "muted", "card", "line"].map(themeColour);
    // By the name alone: units would not fit, and the table below has them.
    const [xaxis, yaxis, zaxis] = run.objective.map(({ name }) => ({ color: muted, gridcolor: line, linecolor: line,
      zeroline: false, showbackground: false, nticks: 5, tickfont: { size: 11 },
      title: { text: plainInSpace(shortened(name, 150)), font: { size: 11 } } }));
    return {
      showlegend: false,
      hovermode: "closest",
      uirevision: "kept",
      paper_bgcolor: "rgba(0,0,0,0)",
      font: { family: "system-ui, sans-serif", size: 12, color: ink },
      hoverlabel: { bgcolor: card, bordercolor: line, font: { color: ink, size: 12 }, align: "left" },
      margin: { l: 0, r: 0, t: 0, b: 0 },
      scene: { xaxis, yaxis, zaxis, aspectmode: "cube", dragmode: "turntable", uirevision: "kept",
        camera: { eye: { x: 1.5, y: 1.5, z: 0.85 }, center: { x: 0, y: 0, z: -0.14 } } },
    };
  }

  // -------------------------------------------------------------------------------- beyond three: parallel axes

  function drawParallel() {
    const { run, solution, recommended, best } = drawn;
    const { clientWidth: width, clientHeight: height } = parts.plot;
    const axes = run.objective.map(({ label, sign }, i) => {
      const [low, high] = objectiveRange(run, i);
      return { label, sign, low, high };
    });
    const frame = parallelFrame(axes, width, height);
    const valuesOf = (row) => rowOf(run.objectives, row, run.k);
    const line = (row, name) => shape("path", { d: parallelLine(frame, valuesOf(row)), class: name });
    const svg = canvasOf(width, height);
    svg.setAttribute("aria-hidden", "true");
    svg.append(shape("g", { class: "quiet-lines" }, ...Array.from(run.front, (row) => line(row, ""))),
      shape("g", { class: "own-lines" }, ...rows.map((row) => line(row, ""))),
      ...[solution].filter((row) => row !== null).flatMap((row) => [line(row, "halo"), line(row, "chosen")]),
      ...parallelAxes(frame));
    for (const [row, name] of [[best, "star hollow"], [recommended, "star"]]) {
      if (row === null) continue;
      const [x, y] = [frame.x(0), frame.y(0, valuesOf(row)[0])];
      svg.append(shape("path", { d: STAR, class: name, transform: `translate(${x},${y})` }));
    }
    svg.addEventListener("click", (event) => {
      const box = svg.getBoundingClientRect();
      const [x, y] = [event.clientX - box.left, event.clientY - box.top];
      const far = rows.map((row) => parallelDistance(frame, valuesOf(row), x, y));
      const nearest = far.indexOf(Math.min(...far));
      if (far[nearest] < 24) onChoose(rows[nearest]);
    });
    parts.plot.replaceChildren(svg);
  }

  // ------------------------------------------------------------------------------------------------------ table

  function fillTable() {
    const { run, playable } = drawn;
    const head = element("tr", {}, element("th", { class: "mark" }, element("span", { class: "unseen" }, "Mark")),
      ...run.objective.map(({ label }) => element("th", { scope: "col" }, label)),
      element("th", { scope: "col", class: "number", title: "Row among all solutions" }, "no."));
    lines = new Map(rows.map((row) => [row, element("tr",
      { "data-row": row, tabindex: -1, class: playable(row) ? "playable" : "" },
      element("td", { class: "mark" }),
      ...objectivesOf(run, row).map((value) => element("td", {}, value)),
      element("td", { class: "number" }, String(row)))]));
    const body = element("tbody", { onclick: onPress, onkeydown: onKey }, ...lines.values());
    const label = drawn.cell === null ? "Solutions" : `Solutions of cell ${drawn.cell}; Enter plays`;
    const empty = element("p", { class: "muted nothing" }, nothingIn(run, drawn.cell));
    parts.table.replaceChildren(rows.length ? element("table", { role: "grid", "aria-label": label },
      element("thead", {}, head), body) : empty);
    parts.table.scrollTop = 0;
  }

  /** Marks the lines that changed: those that were marked and those that are. */
  function markTable() {
    const now = [drawn.solution, drawn.recommended, drawn.best, rows[0]];
    for (const row of new Set([...marked, ...now])) {
      if (lines.has(row)) markLine(lines.get(row), row);
    }
    marked = now;
  }

  function markLine(line, row) {
    const { solution, recommended, best } = drawn;
    const reachable = lines.has(solution) ? solution : rows[0];
    const [glyph, spoken] = row === recommended ? ["★", "recommended"]
      : row === best ? ["☆", "best of the cell"] : ["", ""];
    line.setAttribute("aria-selected", row === solution);
    line.tabIndex = row === reachable ? 0 : -1;
    line.firstChild.replaceChildren(element("b", { class: "accent", "aria-hidden": "true" }, glyph),
      element("span", { class: "unseen" }, spoken));
    if (row === solution) keepInSight(line);
  }

  function keepInSight(line) {
    const { table } = parts;
    const above = line.offsetTop - table.querySelector("thead").offsetHeight < table.scrollTop;
    const below = line.offsetTop + line.offsetHeight > table.scrollTop + table.clientHeight;
    if (above || below) table.scrollTop = line.offsetTop - table.clientHeight / 2;
  }

  function onPress(event) {
    const line = event.target.closest("tr");
    if (line) onChoose(Number(line.dataset.row));
  }

  function onKey(event) {
    const line = event.target.closest("tr");
    const at = rows.indexOf(Number(line.dataset.row));
    const step = { ArrowUp: -1, ArrowDown: 1, Home: -rows.length, End: rows.length }[event.key];
    if (event.key === "Enter" || event.key === " ") onChoose(rows[at]);
    else if (step) lines.get(rows[Math.min(rows.length - 1, Math.max(0, at + step))]).focus();
    else return;
    event.preventDefault();
  }

  function redraw() {
    if (!drawn) return;
    if (drawn.run.k > 3) drawParallel();
    else if (drawn.run.k < 3) drawPlane();
    else if (begun) drawSpace();
  }

  // After a frame in which the map, the table and the recommendation answer: Plotly takes longer than these.
  const redrawLater = oncePerFrame(() => setTimeout(redraw));

  /** From now on Plotly may draw. It takes a second or two to load, so the rest of the page comes before it. */
  function begin() {
    if (drawn.run.k !== 3) return;
    begun = true;
    document.head.append(element("script", {}, byId("plotly").textContent));
    redraw();
  }

  new ResizeObserver(oncePerFrame(() => {
    if (plotted) Plotly.Plots.resize(parts.plot);
    else redraw();
  })).observe(parts.plot);
  return { begin, draw, redraw, rows: () => [...rows] };
}

function sortedRows(run, rows) {
  return [...rows].sort((a, b) => run.scaled[b * run.k] - run.scaled[a * run.k]);
}

function objectiveRange(run, i) {
  return rangeOf(run.objectives.filter((_, at) => at % run.k === i));
}

/** The objectives of a solution, as they are written. */
function objectivesOf(run, row) {
  return rowOf(run.objectives, row, run.k).map((value, i) => written(value, extentOf(run, i)));
}

const extents = new WeakMap();

/** How far an objective reaches over the whole archive, which decides on decimals. */
function extentOf(run, i) {
  if (!extents.has(run)) {
    extents.set(run, run.objective.map((_, at) => { const [low, high] = objectiveRange(run, at); return high - low; }));
  }
  return extents.get(run)[i];
}

function nothingIn(run, cell) {
  if (run.count === 0) return "The archive is empty: no solution was found yet.";
  return cell === null ? "No cell is selected." : "This cell is empty: no policy behaves like this yet.";
}

/** `missing` says what some solutions lack; empty if none lacks anything. */
function drawFrontLegend(host, missing) {
  const items = [["swatch dot", "", "this cell"], ...(missing ? [["swatch dot open", "", missing]] : []),
    ["swatch dot quiet", "", "global front"], ["swatch dot ring", "", "selected"], ["", "★", "recommended"],
    ["", "☆", "best of the cell"]];
  host.replaceChildren(...items.map(([name, glyph, text]) =>
    element("li", {}, name ? element("i", { class: name }) : element("b", { class: "accent" }, glyph), text)));
}
