// Three objectives in space: a box that is turned by dragging, seen from far away, so that parallels stay parallel.

const CORNERS = [-0.5, 0.5];

/** From which side the box is seen, in radians; dragging over `host` changes it and calls `onTurn`. */
function createTurn(host, onTurn) {
  const turn = { around: 0.7, above: 0.45 };
  let from = null;
  let ended = -Infinity;
  const later = oncePerFrame(onTurn);
  host.addEventListener("pointerdown", (event) => {
    if (host.classList.contains("space") && event.button === 0) from = { x: event.clientX, y: event.clientY, moved: false };
  });
  host.addEventListener("pointermove", (event) => {
    if (!from) return;
    const [dx, dy] = [event.clientX - from.x, event.clientY - from.y];
    if (!from.moved && Math.hypot(dx, dy) < 5) return;
    if (!from.moved) host.setPointerCapture(event.pointerId);
    turn.around += dx / 120;
    turn.above = Math.min(Math.PI / 2, Math.max(0, turn.above + dy / 120));
    from = { x: event.clientX, y: event.clientY, moved: true };
    host.classList.add("turning");
    later();
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

/** The box of the objectives: where a point of it (each coordinate from -0.5 to 0.5) is seen, and how far away. */
function boxOf({ around, above }, width, height) {
  const size = Math.min((width - 130) / Math.SQRT2, (height - 84) / 1.45);
  const [centreX, centreY] = [width / 2, height / 2 - 6];
  return ([x, y, z]) => {
    const across = x * Math.cos(around) - y * Math.sin(around);
    const away = x * Math.sin(around) + y * Math.cos(around);
    const up = z * Math.cos(above) + away * Math.sin(above);
    return { at: [centreX + size * across, centreY - size * up], far: away * Math.cos(above) - z * Math.sin(above) };
  };
}

function along(axis, value, others) {
  const point = [...others];
  point.splice(axis, 0, value);
  return point;
}

/** The walls behind the points with their grid, and for each axis its ticks and name along an outer edge. */
function boxAxes(box, run, ranges, width, height) {
  const share = (i, value) => (value - ranges[i][0]) / (ranges[i][1] - ranges[i][0]) - 0.5;
  const ticks = ranges.map(([low, high]) => ticksOf(low, high, 4));
  const line = (from, to) => {
    const [[x1, y1], [x2, y2]] = [box(from).at, box(to).at];
    return shape("line", { class: "grid", x1, y1, x2, y2 });
  };
  const [, middleY] = box([0, 0, 0]).at;
  return [0, 1, 2].flatMap((axis) => {
    const wall = CORNERS.reduce((a, b) => (box(along(axis, a, [0, 0])).far > box(along(axis, b, [0, 0])).far ? a : b));
    const [first, second] = [0, 1, 2].filter((other) => other !== axis);
    const grid = CORNERS.flatMap((end) => [[end, null], [null, end]])
      .concat(ticks[first].map((tick) => [share(first, tick), null]), ticks[second].map((tick) => [null, share(second, tick)]))
      .map((at) => line(...CORNERS.map((end) => along(axis, wall, at.map((value) => value ?? end)))));
    return [...grid, ...edgeTexts(axis)];
  });

  function edgeTexts(axis) {
    // Upright: the edge furthest to the left; on the floor: the nearer of two.
    const edges = axis === 2 ? CORNERS.flatMap((a) => CORNERS.map((b) => [a, b])) : CORNERS.map((a) => [a, -0.5]);
    const cost = (edge) => { const { at, far } = box(along(axis, 0, edge)); return axis === 2 ? at[0] : far; };
    const edge = edges.reduce((a, b) => (cost(a) <= cost(b) ? a : b));
    const [x, y] = box(along(axis, 0, edge)).at;
    const side = axis === 2 || Math.abs(x - width / 2) > 8 ? Math.sign(x - width / 2) : 0;
    const anchor = side < 0 ? "end" : side > 0 ? "start" : "middle";
    const text = (name, at, dx, dy, content, where = anchor) =>
      shape("text", { class: name, x: at[0] + dx, y: at[1] + dy, "text-anchor": where }, content);
    const values = ticks[axis].map((tick) =>
      text("tick", box(along(axis, share(axis, tick), edge)).at, 6 * side, axis === 2 ? 4 : 14, tickText(tick, ticks[axis])));
    // By the name alone: units would not fit, and the table below has them.
    const { name } = run.objective[axis];
    if (axis === 2) {
      const turned = `translate(${Math.max(12, x - 50)},${middleY}) rotate(-90)`;
      return [...values, shape("text", { class: "axis-label", "text-anchor": "middle", transform: turned },
        shortened(name, 0.7 * height))];
    }
    // Within the picture, whatever its length: below the lowest corner, at the side on which the edge is.
    const label = shortened(name, width / 2 - 12);
    const place = side < 0 ? [4, "start"] : side > 0 ? [width - 4, "end"] : [width / 2, "middle"];
    return [...values, shape("text", { class: "axis-label", x: place[0], y: height - 8, "text-anchor": place[1] }, label)];
  }
}

/** A front over the global front, in the box of three objectives. */
function spaceOf(view, rows, width, height, turn, onChoose, linesOf) {
  const { run } = view;
  const ranges = rangesOf(run, rows);
  const box = boxOf(turn, width, height);
  const placeOf = (row) => box(rowOf(run.objectives, row, 3).map((value, i) =>
    (value - ranges[i][0]) / (ranges[i][1] - ranges[i][0]) - 0.5)).at;
  const svg = canvasOf(width, height);
  svg.append(...boxAxes(box, run, ranges, width, height));
  drawPoints(svg, view, rows, placeOf, onChoose, linesOf);
  return svg;
}
