// The archive map: a strip, a mosaic or parallel axes of cells, coloured by a quantity.

const MOST_PAIRED = 4;
const PAIR_COLUMNS = 3;
const RANGES_HEIGHT = 40;

/**
 * Draws the cells of a run and lets one choose among them. A view of a number of features says how: `cells` are its
 * elements, `outlines` and `centres` where marks go (in which SVG), `at` which cell is at a place, `next` which one an
 * arrow key leads to, and `paint` colours it.
 */
function createMap(host, onSelect) {
  let run = null;
  let view = null;
  let shown = null;
  let marks = { selected: null, recommended: null };
  let focused = 0;
  let ranges = [];
  let size = "";

  function show(newRun) {
    if (newRun === run) return;
    // A range that was brushed holds for the same features of another run.
    if (run?.feature.length !== newRun.feature.length) ranges = newRun.feature.map(() => null);
    run = newRun;
    // What was marked or painted belongs to the cells of the other run.
    view = shown = null;
    marks = { selected: null, recommended: null };
    focused = 0;
    build();
  }

  function build() {
    const { clientWidth: width, clientHeight: height } = host;
    if (!run || !width || !height) return;
    size = `${width}x${height}`;
    const kind = Math.min(run.feature.length, 3);
    const views = [singleView, stripView, mosaicView, parallelView];
    view = views[kind](run, width, height, { ranges, brush });
    view.svgs[0].setAttribute("role", "listbox");
    view.svgs[0].setAttribute("aria-label", "Cells of the archive; arrow keys lead to the next, Enter selects");
    for (const svg of view.svgs) {
      svg.marks = svg.appendChild(shape("g", { class: "marks" }));
      listen(svg);
    }
    const held = hasFocus();
    host.replaceChildren(...view.parts);
    if (shown) paint(shown);
    focusOn(focused);
    if (held) view.cells[focused].focus();
  }

  function listen(svg) {
    svg.addEventListener("pointermove", (event) =>
      hover(event.buttons ? null : cellAt(svg, event), event.clientX, event.clientY));
    svg.addEventListener("pointerleave", tooltip.hide);
    svg.addEventListener("click", (event) => {
      const cell = cellAt(svg, event);
      if (cell !== null) onSelect(cell);
    });
  }

  function cellAt(svg, event) {
    const own = event.target.closest?.("[data-cell]");
    if (own) return Number(own.dataset.cell);
    const box = svg.getBoundingClientRect();
    return view.at(svg, event.clientX - box.left, event.clientY - box.top);
  }

  function hover(cell, x, y) {
    if (cell === null || !shown) tooltip.hide();
    else tooltip.show(x, y, titleOf(cell), linesOf(cell));
  }

  function titleOf(cell) {
    const notes = [cell === marks.recommended && "recommended", cell === marks.selected && "selected"].filter(Boolean);
    return `Cell ${cell}${notes.length ? ` (${notes.join(", ")})` : ""}`;
  }

  function linesOf(cell) {
    const n = run.feature.length;
    const features = run.feature.map(({ label, low, high }, i) =>
      `${label}: ${written(run.centroid[cell * n + i], high - low)}`);
    return [`${shown.label}: ${shown.text(cell)}`, `solutions: ${shown.sizes[cell]}`, ...features];
  }

  function onFocus(target) {
    if (!target.matches(".cell")) return;
    focusOn(Number(target.dataset.cell));
    if (!target.matches(":focus-visible")) return;
    drawMarks();
    const { left, top } = view.svgs[0].getBoundingClientRect();
    const [, x, y] = view.centres(focused)[0];
    hover(focused, left + x, top + y);
  }

  function onKey(event) {
    if (!event.target.matches(".cell")) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      onSelect(focused);
    } else if (event.key.startsWith("Arrow")) {
      event.preventDefault();
      const next = view.next(focused, event.key.slice(5));
      if (next !== null) view.cells[next].focus();
    }
  }

  /** The one cell that Tab leads to. */
  function focusOn(cell) {
    view.cells[focused]?.setAttribute("tabindex", -1);
    focused = cell;
    view.cells[cell]?.setAttribute("tabindex", 0);
  }

  const hasFocus = () => document.activeElement.matches("#map .cell");

  function brush(axis, range) {
    ranges[axis] = range;
    view.dim(ranges);
  }

  function paint(quantity) {
    shown = quantity;
    if (!view) return;
    const held = hasFocus();
    view.paint(quantity);
    // What is painted may be in another order, and a moved element loses the focus.
    if (held) view.cells[focused].focus();
    view.cells.forEach((_, cell) => describe(cell));
    drawMarks();
  }

  function describe(cell) {
    view.cells[cell]?.setAttribute("aria-label", [titleOf(cell), ...linesOf(cell)].join(", "));
    view.cells[cell]?.setAttribute("aria-selected", cell === marks.selected);
  }

  function mark(selected, recommended) {
    const changed = [...Object.values(marks), selected, recommended];
    marks = { selected, recommended };
    if (!view) return;
    if (!hasFocus()) focusOn(selected ?? 0);
    if (shown) changed.filter((cell) => cell !== null).forEach(describe);
    drawMarks();
  }

  function drawMarks() {
    if (!view) return;
    const focus = host.querySelector(".cell:focus-visible") ? focused : null;
    for (const svg of view.svgs) svg.marks.replaceChildren();
    const outline = (cell, name) => {
      for (const [svg, d] of cell === null ? [] : view.outlines(cell)) {
        svg.marks.append(shape("path", { d, class: "halo" }), shape("path", { d, class: name }));
      }
    };
    outline(marks.selected, "chosen");
    outline(focus, "focused");
    for (const [svg, x, y] of marks.recommended === null ? [] : view.centres(marks.recommended)) {
      svg.marks.append(shape("path", { d: STAR, class: "star", transform: `translate(${x},${y})` }));
    }
  }

  // Not on the SVG, which would itself take the focus if it listened for it.
  host.addEventListener("keydown", onKey);
  host.addEventListener("focusin", (event) => onFocus(event.target));
  host.addEventListener("focusout", () => { tooltip.hide(); drawMarks(); });
  new ResizeObserver(() => {
    if (size !== `${host.clientWidth}x${host.clientHeight}`) build();
  }).observe(host);

  return { show, paint, mark };
}

function canvasOf(width, height) {
  return shape("svg", { width, height, viewBox: `0 0 ${width} ${height}` });
}

function cellShape(cell, attributes, ...children) {
  return shape("g", { class: "cell", role: "option", tabindex: -1, "data-cell": cell, ...attributes }, ...children);
}

function rectangle(x0, y0, x1, y1) {
  return `M${x0},${y0}H${x1}V${y1}H${x0}Z`;
}

function disc(x, y, radius) {
  return `M${x - radius},${y}a${radius},${radius} 0 1 0 ${2 * radius},0a${radius},${radius} 0 1 0 ${-2 * radius},0Z`;
}

/** Of cells at places on the screen, the nearest in the direction of an arrow key. */
function nearestTowards(places, from, direction) {
  const [dx, dy] = { Left: [-1, 0], Right: [1, 0], Up: [0, -1], Down: [0, 1] }[direction];
  let [best, least] = [null, Infinity];
  places.forEach(([x, y], cell) => {
    const along = (x - places[from][0]) * dx + (y - places[from][1]) * dy;
    const aside = Math.abs((x - places[from][0]) * dy) + Math.abs((y - places[from][1]) * dx);
    if (along > 1e-6 && along + 2 * aside < least) [best, least] = [cell, along + 2 * aside];
  });
  return best;
}

// ------------------------------------------------------------------------------------------- no feature: one cell

function singleView(run, width, height) {
  const side = Math.min(width, height, 220);
  const [x, y] = [(width - side) / 2, (height - side) / 2];
  const svg = canvasOf(width, height);
  const d = rectangle(x, y, x + side, y + side);
  const path = shape("path", { d });
  svg.append(cellShape(0, {}, path),
    shape("text", { x: width / 2, y: y + side + 22, "text-anchor": "middle", class: "axis-label" },
      "one cell: no features"));
  return {
    parts: [svg],
    svgs: [svg],
    cells: [...svg.querySelectorAll(".cell")],
    outlines: () => [[svg, d]],
    centres: () => [[svg, width / 2, height / 2]],
    at: () => 0,
    next: () => null,
    paint: ({ values, scale }) => path.setAttribute("fill", fillOf(values[0], scale)),
  };
}

function fillOf(value, scale) {
  return Number.isNaN(value) ? "var(--empty)" : scale.colour(value);
}

// ---------------------------------------------------------------------------------------------- one feature: strip

function stripView(run, width, height) {
  const [left, right, top] = [54, 10, 22];
  const below = lowerAxis(run.feature[0], width - left - right, width - left - right);
  const bottom = height - below.height;
  const { low, high } = run.feature[0];
  const svg = canvasOf(width, height);
  const x = (value) => left + ((value - low) / (high - low)) * (width - left - right);
  const order = [...run.centroid.keys()].sort((a, b) => run.centroid[a] - run.centroid[b]);
  const edges = order.map((cell, i) => (i === 0 ? low : (run.centroid[order[i - 1]] + run.centroid[cell]) / 2));
  const spans = new Array(run.cells);
  order.forEach((cell, i) => { spans[cell] = [x(edges[i]), x(edges[i + 1] ?? high)]; });
  const bars = spans.map(() => shape("path"));
  const cells = spans.map(([from, to], cell) =>
    cellShape(cell, {}, shape("path", { d: rectangle(from, top, to, bottom), fill: "transparent" }), bars[cell]));
  const axis = shape("g");
  const group = shape("g", { class: "bars" }, ...cells);
  svg.append(axis, group, ...axisBelow(below, x, bottom, (left + width - right) / 2, width));
  let tops = spans.map(() => top);
  let base = bottom;

  function paint({ values, scale, label: name, floor }) {
    const y = (value) => bottom - heightOf(value) * (bottom - top);
    const [from, to] = floor;
    const heightOf = (value) => (scale.sign < 0 ? (to - value) / (to - from || 1) : (value - from) / (to - from || 1));
    base = scale.diverging ? y(0) : bottom;
    tops = spans.map((_, cell) => (Number.isNaN(values[cell]) ? bottom : Math.min(y(values[cell]), base - 1.5)));
    spans.forEach(([x0, x1], cell) => {
      const empty = Number.isNaN(values[cell]);
      const [y0, y1] = empty ? [top, bottom] : [Math.min(y(values[cell]), base - 1.5), Math.max(y(values[cell]), base)];
      bars[cell].setAttribute("d", rectangle(x0, y0, Math.max(x0 + 0.7, x1 - 0.5), y1));
      bars[cell].setAttribute("fill", empty ? "var(--empty)" : scale.colour(values[cell]));
    });
    const ticks = ticksOf(...floor);
    axis.replaceChildren(
      labelText(name, [shortened(name, width - 4)], { x: 2, y: 12 }),
      ...ticks.flatMap((tick) => [
        shape("line", { class: "grid", x1: left, x2: width - right, y1: y(tick), y2: y(tick) }),
        shape("text", { class: "tick", x: left - 6, y: y(tick) + 4, "text-anchor": "end" },
          narrowText(tick, tickText(tick, ticks), left - 8)),
      ]));
  }

  return {
    parts: [svg],
    svgs: [svg],
    cells,
    paint,
    outlines: (cell) => [[svg, rectangle(spans[cell][0] - 1, top - 2, spans[cell][1] + 0.5, bottom + 2)]],
    centres: (cell) => [[svg, (spans[cell][0] + spans[cell][1]) / 2, Math.max(top - 2, tops[cell] - 9)]],
    at: (_, px) => order.find((cell, i) => px < spans[cell][1] || i === order.length - 1),
    next: (cell, direction) => {
      const step = { Left: -1, Right: 1, Up: 1, Down: -1 }[direction];
      return order[order.indexOf(cell) + step] ?? null;
    },
  };
}

/** A number as it is written or, if that is wider than its room, by its power of ten. */
function narrowText(value, text, room) {
  if (textWidth(text, TICK) <= room) return text;
  const [digits, power] = value.toExponential(1).split("e");
  return `${signed(trimmed(digits))}·10${superscript(Number(power))}`;
}

// ------------------------------------------------------------------------------------------------ axes with ticks

/** Ticks of an axis, as many as a length in pixels has room for, each with its text. */
function fittingTicks(low, high, length, most = 5) {
  for (let number = most; ; number--) {
    const ticks = ticksOf(low, high, number);
    const texts = ticks.map((tick) => tickText(tick, ticks));
    const wide = Math.max(0, ...texts.map((text) => textWidth(text, TICK)));
    if (number === 1 || texts.length * (wide + 8) <= length) return { ticks, texts, wide };
  }
}

/** The axis below a plot of some length, whose label may be as wide as `room`; `height` is what it needs. */
function lowerAxis({ low, high, label }, length, room) {
  const lines = wrapped(label, room);
  return { ...fittingTicks(low, high, length), label, lines, height: 26 + LINE * lines.length };
}

/** Its elements: `x` places a value, and nothing goes beyond `width`. */
function axisBelow({ ticks, texts, label, lines }, x, bottom, centre, width) {
  const within = (at, text) => Math.min(width - 1 - textWidth(text, TICK) / 2, at);
  return [
    ...ticks.map((tick, i) => shape("text", { class: "tick", x: within(x(tick), texts[i]), y: bottom + 16,
      "text-anchor": "middle" }, texts[i])),
    labelText(label, lines, { x: centre, y: bottom + 34, "text-anchor": "middle" }),
  ];
}

/** The axis to the left of a plot of some length; `width` is what it needs. */
function leftAxis({ low, high, label }, length) {
  const lines = wrapped(label, length);
  const ticks = ticksOf(low, high);
  const texts = ticks.map((tick) => tickText(tick, ticks));
  const wide = Math.max(0, ...texts.map((text) => textWidth(text, TICK)));
  return { ticks, texts, label, lines, width: LINE * lines.length + wide + 17 };
}

/** Its elements, for a plot that begins at `left`; `y` places a value. */
function axisLeft({ ticks, texts, label, lines, width }, left, y, middle) {
  return [
    ...ticks.map((tick, i) => shape("text", { class: "tick", x: left - 6, y: y(tick) + 4, "text-anchor": "end" },
      texts[i])),
    labelText(label, lines, { "text-anchor": "middle",
      transform: `translate(${left - width + LABEL},${middle}) rotate(-90)` }),
  ];
}

// -------------------------------------------------------------------------------------------- two features: mosaic

function mosaicView(run, width, height) {
  const rim = 10;
  const [first, second] = run.feature;
  const aside = leftAxis(second, height - 60);
  const below = lowerAxis(first, width - aside.width - rim, width - aside.width - rim);
  const [left, under] = [aside.width, below.height];
  const tall = Math.max(120, Math.min(height - under - rim, 1.3 * (width - left - rim)));
  const wide = Math.max(120, Math.min(width - left - rim, 1.3 * tall));
  const from = left + Math.max(0, (width - left - rim - wide) / 2);
  const top = rim + Math.max(0, (height - under - rim - tall) / 2);
  const svg = canvasOf(width, height);
  const x = (value) => from + ((value - first.low) / (first.high - first.low)) * wide;
  const y = (value) => top + tall - ((value - second.low) / (second.high - second.low)) * tall;
  const places = run.rowsOf.map((_, cell) => [x(run.centroid[2 * cell]), y(run.centroid[2 * cell + 1])]);
  const outline = run.polygons.map((corners) => {
    const along = Array.from(corners, (value, i) => (i % 2 ? y(value) : x(value)).toFixed(1));
    return `M${along.join(" ")}Z`;
  });
  const paths = outline.map((d) => shape("path", { d }));
  const cells = paths.map((path, cell) => cellShape(cell, {}, path));
  svg.append(shape("g", { class: "mosaic" }, ...cells),
    ...axisBelow(below, x, top + tall, from + wide / 2, width), ...axisLeft(aside, from, y, top + tall / 2));
  return {
    parts: [svg],
    svgs: [svg],
    cells,
    outlines: (cell) => [[svg, outline[cell]]],
    centres: (cell) => [[svg, ...places[cell]]],
    at: () => null,
    next: (cell, direction) => nearestTowards(places, cell, direction),
    paint: ({ values, scale }) => paths.forEach((path, cell) => path.setAttribute("fill", fillOf(values[cell], scale))),
  };
}

// ------------------------------------------------------------------------------- more features: parallel axes, pairs

function parallelView(run, width, height, { ranges, brush }) {
  const n = run.feature.length;
  const [labels, names] = ["label", "name"].map((kind) => shortLabels(run.feature.map((feature) => feature[kind])));
  const axes = run.feature.map((feature, i) => ({ ...feature, label: labels[i], name: names[i] }));
  const centres = Array.from({ length: run.cells }, (_, cell) => rowOf(run.centroid, cell, n));
  const paired = n <= MOST_PAIRED;
  const controls = rangeInputs(run.feature, ranges, (axis, range) => brush(axis, range));
  const room = height - RANGES_HEIGHT;
  const lower = paired ? Math.min(0.54 * room, (n === 3 ? 1 : 2) * (width / PAIR_COLUMNS)) : 0;
  const upper = Math.round(room - lower);
  controls.element.style.setProperty("--room", `${upper}px`);
  const frame = parallelFrame(axes, width, upper);
  const svg = canvasOf(width, upper);
  const lines = centres.map((centre) => shape("path", { d: parallelLine(frame, centre) }));
  const cells = lines.map((line, cell) => cellShape(cell, { class: "cell line" }, line));
  const group = shape("g", {}, ...cells);
  const spans = shape("g", { class: "ranges" });
  svg.append(group, ...parallelAxes(frame), spans);
  brushable(svg, frame, (axis, range) => { controls.set(axis, range); brush(axis, range); });
  const pairs = paired ? pairsOf(axes, centres, width, lower) : null;
  let occupied = centres.map(() => true);
  let axis = 0;
  pointAtAxis();

  function pointAtAxis() {
    svg.querySelectorAll(".axis").forEach((one, i) => one.classList.toggle("current", i === axis));
  }

  function dim(newRanges) {
    const inside = centres.map((centre) =>
      centre.every((value, i) => !newRanges[i] || (value >= newRanges[i][0] && value <= newRanges[i][1])));
    inside.forEach((within, cell) => {
      cells[cell].classList.toggle("outside", !within);
      pairs?.dots.forEach((dots) => dots[cell].classList.toggle("outside", !within));
    });
    spans.replaceChildren(...newRanges.flatMap((range, i) => (range ? [spanOf(i, range)] : [])));
    controls.count(inside.filter((within, cell) => within && occupied[cell]).length, newRanges.some(Boolean));
  }

  function spanOf(i, range) {
    const ends = range.map((value) => frame.y(i, value));
    const [y, height] = [Math.min(...ends), Math.abs(ends[0] - ends[1])];
    return shape("rect", { x: frame.x(i) - 7, width: 14, y, height, rx: 3 });
  }

  function paint({ values, scale }) {
    occupied = Array.from(values, (value) => !Number.isNaN(value));
    // The best lie on top; empty cells have no line, only a grey dot in the pairs.
    const order = [...occupied.keys()].sort((a, b) => (values[a] || 0) * scale.sign - (values[b] || 0) * scale.sign);
    group.append(...order.map((cell) => cells[cell]));
    lines.forEach((line, cell) => {
      cells[cell].style.display = occupied[cell] ? "" : "none";
      line.setAttribute("stroke", fillOf(values[cell], scale));
    });
    pairs?.paint(values, scale, occupied);
    dim(ranges);
  }

  function along(cell, direction) {
    const ahead = (other) => (centres[other][axis] - centres[cell][axis]) * direction;
    const beyond = [...centres.keys()].filter((other) => occupied[other] && ahead(other) > 0);
    return beyond.sort((a, b) => ahead(a) - ahead(b))[0] ?? null;
  }

  return {
    parts: paired ? [svg, controls.element, pairs.svg] : [svg, controls.element],
    svgs: paired ? [svg, pairs.svg] : [svg],
    cells,
    paint,
    dim,
    outlines: (cell) => [[svg, parallelLine(frame, centres[cell])],
      ...(pairs?.places(cell).map(([x, y]) => [pairs.svg, disc(x, y, 6)]) ?? [])],
    centres: (cell) => [[svg, frame.x(0), frame.y(0, centres[cell][0])],
      ...(pairs?.places(cell).map(([x, y]) => [pairs.svg, x, y]) ?? [])],
    at: (where, x, y) => {
      if (where !== svg) return pairs.at(x, y, occupied);
      const far = centres.map((centre, cell) => (occupied[cell] ? parallelDistance(frame, centre, x, y) : Infinity));
      const nearest = far.indexOf(Math.min(...far));
      return far[nearest] < 24 ? nearest : null;
    },
    next: (cell, direction) => {
      if (direction === "Up" || direction === "Down") return along(cell, direction === "Up" ? 1 : -1);
      axis = Math.min(n - 1, Math.max(0, axis + (direction === "Right" ? 1 : -1)));
      pointAtAxis();
      return null;
    },
  };
}

/** Labels without the words that all of them end with. */
function shortLabels(labels) {
  const words = labels.map((label) => label.split(" "));
  const alike = () => words.length > 1 && words.every((own) => own.length > 1 && own.at(-1) === words[0].at(-1));
  while (alike()) words.forEach((own) => own.pop());
  return words.map((own) => own.join(" "));
}

/** The keyboard's way to brush: the lowest and the highest of each feature. */
function rangeInputs(features, ranges, onRange) {
  const count = element("span", { class: "muted" });
  const clear = element("button", { type: "button", class: "quiet" }, "Clear");
  const rows = features.map(({ label, low, high }, i) => {
    const inputs = ["least", "most"].map((end, at) => element("input", {
      type: "number", step: "any", min: low, max: high, placeholder: written([low, high][at], high - low),
      "aria-label": `${label}: ${end}`, value: ranges[i] ? ranges[i][at] : null, onchange: () => changed(),
    }));
    const changed = () => {
      const ends = inputs.map((input, at) => (input.value === "" ? [low, high][at] : Number(input.value)));
      onRange(i, inputs.every((input) => input.value === "") ? null : ends);
    };
    return { inputs, element: element("div", { class: "range" }, element("span", {}, label), ...inputs) };
  });
  const set = (axis, range) => rows[axis].inputs.forEach((input, at) => {
    input.value = range ? Number(range[at].toPrecision(4)) : "";
  });
  clear.addEventListener("click", () => features.forEach((_, axis) => { set(axis, null); onRange(axis, null); }));
  const summary = element("summary", {}, "Ranges ", count);
  return {
    set,
    element: element("details", { class: "range-inputs" }, summary,
      element("div", { class: "sheet" }, ...rows.map((row) => row.element), clear)),
    count: (number, any) => { count.textContent = any ? `${number} cells within` : "drag along an axis"; },
  };
}

/** The centres of all cells in the plane of every two features. */
function pairsOf(axes, centres, width, height) {
  const pairs = axes.flatMap((_, i) => axes.slice(i + 1).map((__, j) => [i, i + 1 + j]));
  const [wide, high] = [width / PAIR_COLUMNS, height / Math.ceil(pairs.length / PAIR_COLUMNS)];
  const svg = canvasOf(width, height);
  svg.setAttribute("aria-hidden", "true");
  const share = (axis, value) => (value - axes[axis].low) / (axes[axis].high - axes[axis].low);
  const boxes = pairs.map((_, p) => {
    const [x, y] = [(p % PAIR_COLUMNS) * wide + 18, Math.floor(p / PAIR_COLUMNS) * high + 4];
    return { x, y, width: wide - 24, height: high - 22 };
  });
  const placeOf = (p, cell) => {
    const [i, j] = pairs[p];
    return [boxes[p].x + share(i, centres[cell][i]) * boxes[p].width,
      boxes[p].y + (1 - share(j, centres[cell][j])) * boxes[p].height];
  };
  const dots = pairs.map((_, p) => centres.map((__, cell) => {
    const [cx, cy] = placeOf(p, cell);
    return shape("circle", { cx, cy, r: 3.2, class: "dot" });
  }));
  const groups = dots.map((own) => shape("g", {}, ...own));
  pairs.forEach(([i, j], p) => {
    const box = boxes[p];
    svg.append(shape("rect", { class: "plane", ...box, rx: 3 }), groups[p],
      shape("text", { class: "tick", x: box.x + box.width / 2, y: box.y + box.height + 13, "text-anchor": "middle" },
        labelWithin(axes[i], box.width, TICK)),
      shape("text", { class: "tick", "text-anchor": "middle",
        transform: `translate(${box.x - 6},${box.y + box.height / 2}) rotate(-90)` },
        labelWithin(axes[j], box.height, TICK)));
  });
  const places = (cell) => pairs.map((_, p) => placeOf(p, cell));
  return {
    svg,
    dots,
    places,
    paint(values, scale, occupied) {
      const order = [...occupied.keys()].sort((a, b) => (occupied[a] ? scale.share(values[a]) : -1) -
        (occupied[b] ? scale.share(values[b]) : -1));
      dots.forEach((own, p) => {
        groups[p].append(...order.map((cell) => own[cell]));
        own.forEach((dot, cell) => dot.setAttribute("fill", fillOf(values[cell], scale)));
      });
    },
    at(px, py, occupied) {
      let [best, least] = [null, 14];
      centres.forEach((_, cell) => {
        if (!occupied[cell]) return;
        for (const [x, y] of places(cell)) {
          const distance = Math.hypot(x - px, y - py);
          if (distance < least) [best, least] = [cell, distance];
        }
      });
      return best;
    },
  };
}

// ---------------------------------------------------------------------------------------------------- colour bar

function drawColourBar(host, { scale, label, hint }) {
  const { low, high } = scale;
  const stops = Array.from({ length: 25 }, (_, i) => scale.colour(low + (i / 24) * (high - low)));
  const share = (value) => (high > low ? (value - low) / (high - low) : 0.5);
  const round = high > low ? ticksOf(low, high, 5) : [];
  const ends = (high > low ? [low, high] : [low]).map((value) => [value, trimmed(written(value, high - low))]);
  const reach = 0.05 + 0.024 * Math.max(...ends.map(([, text]) => text.length));
  const inner = round.filter((tick) => share(tick) > reach && share(tick) < 1 - reach);
  const ticks = [ends[0], ...inner.map((tick) => [tick, tickText(tick, round)]), ...ends.slice(1)];
  host.replaceChildren(
    element("div", { class: "bar", style: `background: linear-gradient(90deg, ${stops.join(", ")})` }),
    element("div", { class: "ticks" }, ...ticks.map(([value, text]) =>
      element("span", { style: `left: ${100 * share(value)}%` }, text))),
    element("div", { class: "key" }, element("span", { class: "quantity" }, label, hint ? ` (${hint})` : ""),
      element("span", { class: "marks-key" },
        element("span", {}, element("i", { class: "swatch ring" }), "selected"),
        element("span", {}, element("b", { class: "accent" }, "★"), "recommended"),
        element("span", {}, element("i", { class: "swatch empty" }), "empty"))));
}
