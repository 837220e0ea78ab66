// Parallel axes: features of cells (with ranges to brush) or objectives of solutions (beyond three).

const AXIS_REACH = 16;

/**
 * Axes side by side over a width and height. An axis has a label, a name (its label without the unit), low and high,
 * and is turned round where its sign is negative, so that up is better. Labels that are too long for one row alternate
 * between two.
 */
function parallelFrame(axes, width, height) {
  const side = 26;
  const gap = axes.length > 1 ? (width - 2 * side) / (axes.length - 1) : 0;
  const isLong = ({ label }, i) => textWidth(label) > parallelRoom(axes, i, gap, width, 1);
  const rows = axes.length > 2 && axes.some(isLong) ? 2 : 1;
  const [top, bottom] = [16 + LINE * rows, 22];
  const x = (axis) => (axes.length > 1 ? side + axis * gap : width / 2);
  const share = (axis, value) => {
    const { low, high, sign = 1 } = axes[axis];
    const part = high > low ? (value - low) / (high - low) : 0.5;
    return sign < 0 ? 1 - part : part;
  };
  const y = (axis, value) => top + (1 - share(axis, value)) * (height - top - bottom);
  const valueAt = (axis, at) => {
    const { low, high, sign = 1 } = axes[axis];
    const part = Math.min(1, Math.max(0, 1 - (at - top) / (height - top - bottom)));
    return low + (sign < 0 ? 1 - part : part) * (high - low);
  };
  return { axes, x, y, valueAt, gap, rows, top, bottom: height - bottom, width, height };
}

/** How wide the label of an axis may be if labels are in so many rows. The outer ones begin and end at the rim. */
function parallelRoom(axes, i, gap, width, rows) {
  if (axes.length < 3) return width / axes.length - 8;
  const isOuter = i === 0 || i === axes.length - 1;
  // Between two neighbours in a row there must be room for the line that leads to the other row.
  return isOuter ? rows * gap * 0.5 + 20 : rows * gap - (rows > 1 ? 10 : 6);
}

function parallelAxes(frame) {
  const { axes, gap, rows, width } = frame;
  const last = axes.length - 1;
  return axes.map((axis, i) => {
    const [upper, lower] = (axis.sign ?? 1) < 0 ? [axis.low, axis.high] : [axis.high, axis.low];
    const anchor = last === 0 ? "middle" : i === 0 ? "start" : i === last ? "end" : "middle";
    const labelX = anchor === "start" ? 2 : anchor === "end" ? width - 2 : frame.x(i);
    const raised = rows > 1 && i % 2 === 0;
    const labelY = frame.top - (raised ? 19 + LINE : 19);
    const label = labelWithin(axis, parallelRoom(axes, i, gap, width, rows));
    const room = last === 0 ? width : gap - 4;
    const end = (value, y) => shape("text", { x: labelX, y, "text-anchor": anchor, class: "tick" },
      endText(value, axis.high - axis.low, room));
    const lead = { class: "lead", x1: frame.x(i), x2: frame.x(i), y1: labelY + 3, y2: frame.top - 17 };
    return shape("g", { class: "axis", "data-axis": i },
      labelText(axis.label, [label], { x: labelX, y: labelY, "text-anchor": anchor }),
      ...(raised ? [shape("line", lead)] : []),
      end(upper, frame.top - 6), end(lower, frame.height - 6),
      shape("line", { x1: frame.x(i), x2: frame.x(i), y1: frame.top, y2: frame.bottom }),
      shape("rect", { class: "reach", x: frame.x(i) - AXIS_REACH, width: 2 * AXIS_REACH, y: frame.top,
        height: frame.bottom - frame.top }));
  });
}

/** The end of an axis, with as many decimals as there is room for. */
function endText(value, extent, room) {
  const texts = [1, 10, 100].map((coarser) => trimmed(written(value, extent * coarser)));
  return texts.find((text) => textWidth(text, TICK) <= room) ?? texts.at(-1);
}

function parallelLine(frame, values) {
  return `M${values.map((value, i) => `${frame.x(i).toFixed(1)},${frame.y(i, value).toFixed(1)}`).join("L")}`;
}

/** How far a point is from a line through the axes, measured upright. */
function parallelDistance(frame, values, px, py) {
  const last = values.length - 1;
  const at = frame.gap ? Math.min(last, Math.max(0, (px - frame.x(0)) / frame.gap)) : 0;
  const first = Math.min(Math.floor(at), Math.max(0, last - 1));
  const next = Math.min(first + 1, last);
  const from = frame.y(first, values[first]);
  return Math.abs(from + (frame.y(next, values[next]) - from) * (at - first) - py);
}

/** The axis at a place, if it is near one. */
function axisAt(frame, px) {
  const nearest = frame.gap ? Math.round((px - frame.x(0)) / frame.gap) : 0;
  const axis = Math.min(frame.axes.length - 1, Math.max(0, nearest));
  return Math.abs(frame.x(axis) - px) <= AXIS_REACH ? axis : null;
}

/** Dragging along an axis gives a range; a touch that does not move stays a click. */
function brushable(svg, frame, onRange) {
  let drag = null;
  let ended = -Infinity;
  const point = (event) => {
    const box = svg.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  svg.addEventListener("pointerdown", (event) => {
    const [px, py] = point(event);
    const axis = axisAt(frame, px);
    if (axis !== null && event.button === 0) drag = { axis, from: py, moved: false };
  });
  svg.addEventListener("pointermove", (event) => {
    if (!drag) return;
    const [, py] = point(event);
    if (!drag.moved && Math.abs(py - drag.from) < 5) return;
    if (!drag.moved) svg.setPointerCapture(event.pointerId);
    drag.moved = true;
    const ends = [frame.valueAt(drag.axis, drag.from), frame.valueAt(drag.axis, py)];
    onRange(drag.axis, [Math.min(...ends), Math.max(...ends)]);
  });
  const end = (event) => {
    if (drag?.moved) ended = event.timeStamp;
    drag = null;
  };
  // The click that ends a drag must not select a cell.
  svg.addEventListener("click", (event) => {
    if (event.timeStamp - ended < 100) event.stopImmediatePropagation();
  }, { capture: true });
  svg.addEventListener("pointerup", end);
  svg.addEventListener("pointercancel", end);
}
