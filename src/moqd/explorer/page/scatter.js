// Two objectives in a plane (or one along a line): a front over the global front.

const REACH = 24;

/** The plane: where values are, over a width and height, with the ranges of the axes. */
function planeOf(axes, ranges, width, height) {
  const [left, right, top, bottom] = [axes.length > 1 ? 62 : 24, 12, 8, height - 46];
  const share = (i, value) => (value - ranges[i][0]) / (ranges[i][1] - ranges[i][0]);
  const x = (value) => left + share(0, value) * (width - right - left);
  const y = (value) => (axes.length > 1 ? bottom - share(1, value) * (bottom - top) : (top + bottom) / 2);
  return { axes, ranges, x, y, left, right: width - right, top, bottom, width };
}

function planeAxes(plane) {
  const { axes, ranges, x, y, left, right, top, bottom, width } = plane;
  const across = ticksOf(...ranges[0]);
  const below = { label: axes[0], low: ranges[0][0], high: ranges[0][1] };
  const parts = [
    ...across.map((tick) => shape("line", { class: "grid", x1: x(tick), x2: x(tick), y1: top, y2: bottom })),
    ...axisBelow(below, x, bottom, width, left, width - right),
  ];
  if (axes.length < 2) return parts;
  const ticks = ticksOf(...ranges[1]);
  return [
    ...parts,
    ...ticks.flatMap((tick) => [
      shape("line", { class: "grid", x1: left, x2: right, y1: y(tick), y2: y(tick) }),
      shape("text", { class: "tick", x: left - 6, y: y(tick) + 4, "text-anchor": "end" }, tickText(tick, ticks)),
    ]),
    shape("text", { class: "axis-label", "text-anchor": "middle",
      transform: `translate(13,${(top + bottom) / 2}) rotate(-90)` }, shortened(axes[1], bottom - top)),
  ];
}

function linePath(places) {
  return places.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)},${y.toFixed(1)}`).join("");
}

/** Many dots as one path. */
function dotsPath(places, radius) {
  const round = `a${radius},${radius} 0 1 0 ${2 * radius},0a${radius},${radius} 0 1 0 ${-2 * radius},0`;
  return places.map(([x, y]) => `M${(x - radius).toFixed(1)},${y.toFixed(1)}${round}`).join("");
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
 * the cell; `linesOf` says what is shown beside the pointer, and `onChoose` gets the row that is clicked.
 */
function drawPoints(svg, view, rows, placeOf, onChoose, linesOf) {
  const { run, solution, recommended, best, playable } = view;
  const candidates = [...rows, ...run.front];
  const places = new Map(candidates.map((row) => [row, placeOf(row)]));
  svg.setAttribute("aria-hidden", "true");
  svg.append(shape("path", { class: "behind dots", d: dotsPath(Array.from(run.front, (row) => places.get(row)), 2.5) }),
    ...rows.map((row) => {
      const [cx, cy] = places.get(row);
      return shape("circle", { "data-point": row, class: playable(row) ? "point" : "point open", cx, cy, r: 4.5 });
    }));
  const marks = [[best !== recommended ? best : null, STAR, "star hollow"], [recommended, STAR, "star"],
    [solution, dotsPath([[0, 0]], 11), "chosen"]];
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
  return limits.flatMap(({ objective, value }) => {
    const i = run.objective.findIndex(({ name }) => name === objective);
    if (value <= ranges[i][0] || value >= ranges[i][1]) return [];
    const ends = i === 0 ? { x1: x(value), x2: x(value), y1: top, y2: bottom }
      : { x1: left, x2: right, y1: y(value), y2: y(value) };
    return [shape("line", { class: "limit", ...ends })];
  });
}
