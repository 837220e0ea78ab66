// Three objectives in space: a box that is turned by dragging, seen from far away, so that parallels stay parallel.

const CORNERS = [-0.5, 0.5];

/** From which side the box is seen, in radians; dragging over `host` or arrow keys change it and call `onTurn`. */
function createTurn(host, onTurn) {
  const turn = { around: 0.7, above: 0.45 };
  const by = (around, above) => {
    turn.around += around;
    turn.above = Math.min(Math.PI / 2, Math.max(0, turn.above + above));
    later();
  };
  let from = null;
  let ended = -Infinity;
  const later = oncePerFrame(onTurn);
  host.addEventListener("pointerdown", (event) => {
    if (!host.classList.contains("space") || event.button !== 0) return;
    from = { x: event.clientX, y: event.clientY, moved: false };
  });
  host.addEventListener("pointermove", (event) => {
    // It may have been let go outside.
    if (!event.buttons) from = null;
    if (!from) return;
    const [dx, dy] = [event.clientX - from.x, event.clientY - from.y];
    if (!from.moved && Math.hypot(dx, dy) < 5) return;
    if (!from.moved) host.setPointerCapture(event.pointerId);
    from = { x: event.clientX, y: event.clientY, moved: true };
    host.classList.add("turning");
    by(dx / 120, dy / 120);
  });
  host.addEventListener("keydown", (event) => {
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!way || !host.classList.contains("space")) return;
    event.preventDefault();
    by(way[0] * TURN, way[1] * TURN);
  });
  const end = (event) => {
    if (from?.moved) ended = event.timeStamp;
    from = null;
    host.classList.remove("turning");
  };
  host.addEventListener("pointerup", end);
  host.addEventListener("pointercancel", end);
  // The click that ends a drag must not choose a solution.
  host.addEventListener("click", (event) => {
    if (event.timeStamp - ended < 100) event.stopImmediatePropagation();
  }, { capture: true });
  return turn;
}

/** The margins of the box: below it are ticks, and the names of the axes along its floor in so many lines. */
const boxMargins = (lines) => ({ top: 10, bottom: 26 + LINE * lines, side: 64 });

/** The box of the objectives: where a point of it (each coordinate from -0.5 to 0.5) is seen, and how far away. */
function boxOf({ around, above }, width, height, lines) {
  const { top, bottom, side } = boxMargins(lines);
  // Nearly its diagonals, so that no corner leaves the picture from whichever side it is seen.
  const size = Math.max(40, Math.min((width - 2 * side) / Math.SQRT2, (height - top - bottom) / 1.62));
  const [centreX, centreY] = [width / 2, (top + height - bottom) / 2];
  const [cosA, sinA, cosB, sinB] = [Math.cos(around), Math.sin(around), Math.cos(above), Math.sin(above)];
  return ([x, y, z]) => {
    const away = x * sinA + y * cosA;
    return { at: [centreX + size * (x * cosA - y * sinA), centreY - size * (z * cosB + away * sinB)],
      far: away * cosB - z * sinB };
  };
}

function along(axis, value, others) {
  const point = [...others];
  point.splice(axis, 0, value);
  return point;
}

/** The walls behind the points with their grid, and for each axis its ticks and name along an outer edge. */
function boxAxes(box, ranges, names, width, height) {
  const share = (i, value) => (value - ranges[i][0]) / (ranges[i][1] - ranges[i][0]) - 0.5;
  const ticks = ranges.map(([low, high]) => ticksOf(low, high, 4));
  const line = (name, from, to) => {
    const [[x1, y1], [x2, y2]] = [box(from).at, box(to).at];
    return shape("line", { class: name, x1, y1, x2, y2 });
  };
  const taken = [];

  function walls(axis) {
    const wall = CORNERS.reduce((a, b) => (box(along(axis, a, [0, 0])).far > box(along(axis, b, [0, 0])).far ? a : b));
    const [first, second] = [0, 1, 2].filter((other) => other !== axis);
    const lines = (name, places) => places.map((at) =>
      line(name, ...CORNERS.map((end) => along(axis, wall, at.map((value) => value ?? end)))));
    return [...lines("grid", [...ticks[first].map((tick) => [share(first, tick), null]),
      ...ticks[second].map((tick) => [null, share(second, tick)])]),
    ...lines("edge", CORNERS.flatMap((end) => [[end, null], [null, end]]))];
  }

  /** The edge that has the ticks of an axis. Upright: the one furthest to the left; on the floor: the nearer of two. */
  function edgeOf(axis) {
    const edges = axis === 2 ? CORNERS.flatMap((a) => CORNERS.map((b) => [a, b])) : CORNERS.map((a) => [a, -0.5]);
    const cost = (edge) => { const { at, far } = box(along(axis, 0, edge)); return axis === 2 ? at[0] : far; };
    return edges.reduce((a, b) => (cost(a) <= cost(b) ? a : b));
  }

  /** A tick, unless it would cover another, as where an edge is seen from its end. */
  function tickAt(axis, tick, edge, outwards) {
    // Below an edge that is level, to the side of one that is upright.
    const [[x1, y1], [x2, y2]] = CORNERS.map((end) => box(along(axis, end, edge)).at);
    const side = (outwards * Math.abs(y1 - y2)) / (Math.hypot(x1 - x2, y1 - y2) || 1);
    const text = tickText(tick, ticks[axis]);
    const wide = textWidth(text, TICK);
    const [x, y] = box(along(axis, share(axis, tick), edge)).at;
    const [left, base] = [Math.min(width - wide - 1, Math.max(1, x + 7 * side - (wide * (1 - side)) / 2)),
      y + (axis === 2 ? 4 : 16 - 4 * Math.abs(side))];
    if (taken.some((one) => left < one.right && left + wide > one.left && Math.abs(base - one.base) < TICK)) return [];
    taken.push({ left: left - 3, right: left + wide + 3, base });
    return [shape("text", { class: "tick", x: left, y: base }, text)];
  }

  const edges = [0, 1, 2].map(edgeOf);
  const middles = edges.map((edge, axis) => box(along(axis, 0, edge)).at);
  // Of the two on the floor, one is always further to the left; their names share the width below.
  const left = middles[0][0] <= middles[1][0] ? 0 : 1;
  const isLeft = (axis) => axis === 2 || axis === left;
  const texts = [2, 0, 1].flatMap((axis) => ticks[axis].flatMap((tick) =>
    tickAt(axis, tick, edges[axis], isLeft(axis) ? -1 : 1)));
  const floor = [0, 1].map((axis) => labelText(names[axis].name, names[axis].lines, { x: isLeft(axis) ? 4 : width - 4,
    y: height - 6 - LINE * (names[axis].lines.length - 1), "text-anchor": isLeft(axis) ? "start" : "end" }));
  const wide = Math.max(0, ...ticks[2].map((tick) => textWidth(tickText(tick, ticks[2]), TICK)));
  const [[, floorY], [, roofY]] = CORNERS.map((end) => box(along(2, end, edges[2])).at);
  const upright = floorY - roofY < 2 * LINE ? [] : [labelText(names[2].name, names[2].lines, { "text-anchor": "middle",
    transform: `translate(${Math.max(LABEL, middles[2][0] - wide - 16 - LINE * (names[2].lines.length - 1))},${
      height / 2 - 12 - 7 * (names[0].lines.length - 1)}) rotate(-90)` })];
  return [...[0, 1, 2].flatMap(walls), ...texts, ...floor, ...upright];
}

/** A front over the global front, in the box of three objectives. */
function spaceOf(view, rows, width, height, turn, onChoose, linesOf) {
  const { run, solution } = view;
  const ranges = rangesOf(run, rows);
  // By the name alone: units would not fit, and the table below has them.
  const names = run.objective.map(({ name }, i) =>
    ({ name, lines: wrapped(name, i < 2 ? width / 2 - 16 : height - 90) }));
  const box = boxOf(turn, width, height, Math.max(names[0].lines.length, names[1].lines.length));
  const pointOf = (row) => [0, 1, 2].map((i) =>
    (run.objectives[row * 3 + i] - ranges[i][0]) / (ranges[i][1] - ranges[i][0]) - 0.5);
  const svg = canvasOf(width, height);
  svg.append(...boxAxes(box, ranges, names, width, height));
  svg.append(shape("text", { class: "tick hint", x: width - 2, y: 10, "text-anchor": "end" }, "drag to turn"));
  if (solution !== null) svg.append(plumbLine(box, pointOf(solution)));
  drawPoints(svg, view, rows, (row) => box(pointOf(row)).at, onChoose, linesOf);
  return svg;
}

/** From the selected point down to the floor, which says where in the box it is. */
function plumbLine(box, [x, y, z]) {
  const [[x1, y1], [x2, y2]] = [box([x, y, z]).at, box([x, y, -0.5]).at];
  return shape("g", { class: "plumb" }, shape("line", { x1, y1, x2, y2 }), shape("path", { d: disc(x2, y2, 2.5) }));
}
