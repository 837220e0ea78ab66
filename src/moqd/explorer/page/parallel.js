// Parallel axes: features of cells (with ranges to brush) or objectives of solutions (beyond three).

const AXIS_REACH = 16;

/**
 * Axes side by side over a width and height. An axis has a label, low and high, and is turned round where its sign is
 * negative, so that up is better.
 */
function parallelFrame(axes, width, height) {
  const [left, top, bottom] = [26, 30, 22];
  const right = 26;
  const gap = axes.length > 1 ? (width - left - right) / (axes.length - 1) : 0;
  const x = (axis) => (axes.length > 1 ? left + axis * gap : width / 2);
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
  return { axes, x, y, valueAt, gap, top, bottom: height - bottom, width, height };
}

function parallelAxes(frame) {
  return frame.axes.map((axis, i) => {
    const [upper, lower] = (axis.sign ?? 1) < 0 ? [axis.low, axis.high] : [axis.high, axis.low];
    const extent = axis.high - axis.low;
    const anchor = i === 0 ? "start" : i === frame.axes.length - 1 ? "end" : "middle";
    const labelX = i === 0 ? 2 : i === frame.axes.length - 1 ? frame.width - 2 : frame.x(i);
    const name = shape("text", { x: labelX, y: 11, "text-anchor": anchor, class: "axis-label" },
      shortened(axis.label, frame.gap * (anchor === "middle" ? 0.8 : 0.6) || frame.width));
    name.append(shape("title", {}, axis.label));
    const end = (value, y) =>
      shape("text", { x: labelX, y, "text-anchor": anchor, class: "tick" }, trimmed(written(value, extent)));
    return shape("g", { class: "axis", "data-axis": i }, name, end(upper, 24), end(lower, frame.height - 6),
      shape("line", { x1: frame.x(i), x2: frame.x(i), y1: frame.top, y2: frame.bottom }),
      shape("rect", { class: "reach", x: frame.x(i) - AXIS_REACH, width: 2 * AXIS_REACH, y: frame.top,
        height: frame.bottom - frame.top }));
  });
}

/** A label cut to a width in pixels. */
function shortened(label, width) {
  const most = Math.max(4, Math.floor(width / 6.4));
  return label.length > most ? `${label.slice(0, most - 1)}…` : label;
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
