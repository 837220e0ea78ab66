// Two objectives in a plane (or one along a line): a front over the global front.

const REACH = 24;

/** The plane: where values are, over a width and height, with the ranges of the axes. */
function planeOf(axes, ranges, width, height) {
  const [first, second] = axes.map((label, i) => ({ label, low: ranges[i][0], high: ranges[i][1] }));
  const [rim, top] = [12, 8];
  const aside = second ? leftAxis(second, height - 66) : null;
  const [left, right] = [aside?.width ?? 24, width - rim];
  const below = lowerAxis(first, right - left, right - left);
  const bottom = height - below.height - 4;
  const share = (i, value) => (value - ranges[i][0]) / (ranges[i][1] - ranges[i][0]);
  const x = (value) => left + share(0, value) * (right - left);
  const y = (value) => (second ? bottom - share(1, value) * (bottom - top) : (top + bottom) / 2);
  return { aside, below, ranges, x, y, left, right, top, bottom, width };
}

function planeAxes({ aside, below, x, y, left, right, top, bottom, width }) {
  const grid = (ends) => shape("line", { class: "grid", ...ends });
  return [
    ...below.ticks.map((tick) => grid({ x1: x(tick), x2: x(tick), y1: top, y2: bottom })),
    ...axisBelow(below, x, bottom, (left + right) / 2, width),
    ...(aside?.ticks ?? []).map((tick) => grid({ x1: left, x2: right, y1: y(tick), y2: y(tick) })),
    ...(aside ? axisLeft(aside, left, y, (top + bottom) / 2) : []),
  ];
}

function linePath(places) {
  return places.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)},${y.toFixed(1)}`).join("");
}

/** Many dots as one path: lines of no length with round ends, which is quick even for thousands while one drags. */
function dotsPath(places) {
  let path = "";
  for (const [x, y] of places) path += `M${Math.round(10 * x) / 10} ${Math.round(10 * y) / 10}h0`;
  return path;
}

/** The ranges of the objectives over the global front and the rows of a cell, with a margin. */
function rangesOf(run, rows) {
  return run.objective.map((_, i) => {
    const [low, high] = rangeOf([...run.front, ...rows].map((row) => run.objectives[row * run.k + i]));
    const margin = 0.06 * (high - low) || 1;
    return [low - margin, high + margin];
  });
}

function scatterOf(view, rows, width, height, onChoose, linesOf) {
  const { run, limits } = view;
  const plane = planeOf(run.objective.map(({ label }) => label), rangesOf(run, rows), width, height);
  const placeOf = (row) => {
    const [x, y] = rowOf(run.objectives, row, run.k);
    return [plane.x(x), plane.y(y)];
  };
  const svg = canvasOf(width, height);
  svg.append(...planeAxes(plane), ...limitLines(plane, run, limits),
    shape("path", { class: "behind", d: linePath(sortedRows(run, run.front).map(placeOf)) }));
  drawPoints(svg, view, rows, placeOf, onChoose, linesOf);
  return svg;
}

/**
 * The points of a front over the global front, at `placeOf(row)`. `view` is what the front draws, `rows` are those of
 * the cell; `linesOf` gives the lines of the tooltip, and `onChoose` gets the row that is clicked.
 */
function drawPoints(svg, view, rows, placeOf, onChoose, linesOf) {
  const { run, solution, recommended, best, playable } = view;
  const candidates = [...rows, ...run.front];
  const places = new Map(candidates.map((row) => [row, placeOf(row)]));
  svg.setAttribute("aria-hidden", "true");
  // Many would otherwise be one area.
  const size = run.front.length > 1000 ? 2.4 : run.front.length > 300 ? 3.6 : 5;
  svg.append(shape("path", { class: "behind dots", "stroke-width": size,
    d: dotsPath(Array.from(run.front, (row) => places.get(row))) }),
    ...rows.map((row) => {
      const [cx, cy] = places.get(row);
      return shape("circle", { "data-point": row, class: playable(row) ? "point" : "point open", cx, cy, r: 4.5 });
    }));
  const marks = [[best !== recommended ? best : null, STAR, "star hollow"], [recommended, STAR, "star"],
    [solution, disc(0, 0, 11), "chosen"]];
  for (const [row, d, name] of marks) {
    if (row !== null) svg.append(shape("path", { d, class: name, transform: `translate(${placeOf(row).join()})` }));
  }
  const nearest = (event) => {
    const box = svg.getBoundingClientRect();
    let [found, least] = [null, REACH];
    for (const [row, [x, y]] of places) {
      const far = Math.hypot(x - event.clientX + box.left, y - event.clientY + box.top);
      if (far < least) [found, least] = [row, far];
    }
    return found;
  };
  svg.addEventListener("pointermove", (event) => {
    const row = event.buttons ? null : nearest(event);
    svg.style.cursor = row === null ? "" : "pointer";
    if (row === null) tooltip.hide();
    else tooltip.show(event.clientX, event.clientY, ...linesOf(row));
  });
  svg.addEventListener("pointerleave", tooltip.hide);
  svg.addEventListener("click", (event) => {
    const row = nearest(event);
    if (row !== null) onChoose(row);
  });
}

/** Where a limit is within sight. */
function limitLines({ ranges, x, y, left, right, top, bottom }, run, limits) {
  return limits.flatMap((limit) => {
    const { value } = limit;
    const i = run.objective.findIndex(({ name }) => name === limit.name);
    if (i < 0 || value <= ranges[i][0] || value >= ranges[i][1]) return [];
    const ends = i === 0 ? { x1: x(value), x2: x(value), y1: top, y2: bottom }
      : { x1: left, x2: right, y1: y(value), y2: y(value) };
    return [shape("line", { class: "limit-line", ...ends })];
  });
}
