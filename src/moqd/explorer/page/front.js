// The front of a cell: a plot of its objectives over the global front, and a table of its solutions.

/** Draws the front of a cell; `onChoose` gets the row of a solution that was clicked. */
function createFront(parts, onChoose) {
  let drawn = null;
  let rows = [];
  let lines = new Map();
  let marked = [];
  const turn = createTurn(parts.plot, () => redraw());

  /** `view` has run, cell, solution, recommended (of all), best (of the cell), limits and playable (has a gait). */
  function draw(view) {
    const same = (...names) => drawn !== null && names.every((name) => drawn[name] === view[name]);
    const known = same("run", "cell");
    // While a slider moves, what it recommends often stays.
    if (known && same("solution", "recommended", "best", "limits")) return;
    drawn = view;
    if (!known) rows = view.cell === null ? [] : sortedRows(view.run, view.run.rowsOf[view.cell]);
    redraw();
    if (!known) fillTable();
    markTable();
    if (!known) describe();
  }

  function describe() {
    const { run, cell } = drawn;
    const n = run.feature.length;
    parts.title.textContent = cell === null ? "Front" : `Front of cell ${cell}`;
    const labels = shortLabels(run.feature.map(({ name }) => name));
    const values = cell === null ? [] : run.feature.map(({ low, high }, i) =>
      written(run.centroid[cell * n + i], 10 * (high - low)));
    const number = rows.length === 1 ? "1 solution" : `${rows.length} solutions`;
    const textOf = (room) => [number, ...values.map((value, i) => `${shortened(labels[i], room)} ${value}`)].join(" · ");
    // As much of the names as there is room for; if that is next to nothing, none of them.
    const room = parts.facts.parentElement.clientWidth - parts.title.offsetWidth - 14;
    const each = (room - textWidth(textOf(0))) / values.length + textWidth(shortened("feature", 0));
    parts.facts.textContent = each > 60 ? textOf(each) : number;
    parts.facts.title = textOf(Infinity);
  }

  /** The tooltip of a solution: a title, and lines. */
  function hoverLines(row) {
    const { run, recommended, best } = drawn;
    const values = objectivesOf(run, row);
    const lines = run.objective.map(({ label }, i) => `${label}: ${values[i]}`);
    const notes = [row === recommended && "★ recommended", row === best && row !== recommended && "☆ best of the cell"];
    return [`solution ${row}, cell ${run.cellOf[row]}`, [...lines, ...notes.filter(Boolean)]];
  }

  /** One objective along a line, two in a plane, three in space. */
  function drawScatter() {
    const { clientWidth: width, clientHeight: height } = parts.plot;
    const scatter = drawn.run.k < 3 ? scatterOf(drawn, rows, width, height, onChoose, hoverLines)
      : spaceOf(drawn, rows, width, height, turn, onChoose, hoverLines);
    if (drawn.run.k === 3) {
      const label = "Front of three objectives; arrow keys turn it, and the table below lists its solutions";
      furnish(parts.plot, { tabindex: 0, role: "img", "aria-label": label }, []);
      parts.plot.classList.add("space");
    }
    parts.plot.replaceChildren(scatter);
  }

  // -------------------------------------------------------------------------------- beyond three: parallel axes

  function drawParallel() {
    const { run, solution, recommended, best } = drawn;
    const { clientWidth: width, clientHeight: height } = parts.plot;
    const axes = run.objective.map((objective, i) => {
      const [low, high] = objectiveRange(run, i);
      return { ...objective, low, high };
    });
    const frame = parallelFrame(axes, width, height);
    const valuesOf = (row) => rowOf(run.objectives, row, run.k);
    const line = (row, name) => shape("path", { d: parallelLine(frame, valuesOf(row)), class: name });
    const svg = canvasOf(width, height);
    svg.setAttribute("aria-hidden", "true");
    svg.append(shape("g", { class: "quiet-lines" }, ...bundlesOf(run.front).map((bundle) =>
      shape("path", { d: bundle.map((row) => parallelLine(frame, valuesOf(row))).join("") }))),
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
    // Names may take three lines of a column.
    const room = 2.3 * Math.max(54, (parts.table.clientWidth - 90) / run.k - 16);
    const head = element("tr", {}, element("th", { class: "mark" }, element("span", { class: "unseen" }, "Mark")),
      ...run.objective.map((objective) => element("th", { scope: "col", title: objective.label },
        labelWithin(objective, room, TICK))),
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
    else drawScatter();
  }

  new ResizeObserver(oncePerFrame(redraw)).observe(parts.plot);
  return { draw, redraw, rows: () => [...rows] };
}

function sortedRows(run, rows) {
  return [...rows].sort((a, b) => run.scaled[b * run.k] - run.scaled[a * run.k]);
}

/** Rows in at most so many bundles: thousands of lines would be slow to draw one by one. */
function bundlesOf(rows, most = 32) {
  const each = Math.max(1, Math.ceil(rows.length / most));
  return Array.from({ length: Math.ceil(rows.length / each) }, (_, i) => [...rows.slice(i * each, (i + 1) * each)]);
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
  return cell === null ? "No cell is selected." : "This cell is empty: no solution with these features was found yet.";
}

/** `missing` says what some solutions lack; empty if none lacks anything. */
function drawFrontLegend(host, missing) {
  const items = [["swatch dot", "", "this cell"], ...(missing ? [["swatch dot open", "", missing]] : []),
    ["swatch dot quiet", "", "global front"], ["swatch dot ring", "", "selected"], ["", "★", "recommended"],
    ["", "☆", "best of the cell"]];
  host.replaceChildren(...items.map(([name, glyph, text]) =>
    element("li", {}, name ? element("i", { class: name }) : element("b", { class: "accent" }, glyph), text)));
}
