// Making elements; whatever comes from the content becomes text or an attribute, never markup.

const SVG = "http://www.w3.org/2000/svg";
const STAR = "M0,-9 2.6,-3.2 8.9,-2.6 4.1,1.5 5.6,7.6 0,4.4 -5.6,7.6 -4.1,1.5 -8.9,-2.6 -2.6,-3.2Z";

function byId(id) {
  return document.getElementById(id);
}

function furnish(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

function element(name, attributes = {}, ...children) {
  return furnish(document.createElement(name), attributes, children);
}

function shape(name, attributes = {}, ...children) {
  return furnish(document.createElementNS(SVG, name), attributes, children);
}

function option(value, text, selected = false) {
  return element("option", { value, selected }, text);
}

/** Calls at most once per frame, with what it was called with last. */
function oncePerFrame(act) {
  let latest = null;
  return (...given) => {
    if (!latest) requestAnimationFrame(() => { const call = latest; latest = null; act(...call); });
    latest = given;
  };
}

const themeColours = new Map();

/** A colour of the theme; known ones are kept, since asking for styles amid changes costs a layout each time. */
function themeColour(name) {
  const key = `${document.documentElement.dataset.theme} ${name}`;
  if (!themeColours.has(key)) {
    themeColours.set(key, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
  }
  return themeColours.get(key);
}

// ------------------------------------------------------------------------------------------------ text that fits

const TICK = 11;
const LABEL = 12;
/** From one line of a label to the next, in pixels. */
const LINE = 14;
const { fontFamily } = getComputedStyle(document.body);
const measures = new Map();

/** How wide a text is in pixels, at a font size. */
function textWidth(text, size = LABEL) {
  if (!measures.has(size)) {
    measures.set(size, document.createElement("canvas").getContext("2d"));
    measures.get(size).font = `${size}px ${fontFamily}`;
  }
  return measures.get(size).measureText(text).width;
}

/** A text cut to a width in pixels; its start and its end stay, for names often differ only at the end. */
function shortened(text, width, size = LABEL) {
  if (textWidth(text, size) <= width) return text;
  const letters = [...text];
  const kept = (number) => {
    const end = Math.floor(0.45 * number);
    const last = end ? letters.slice(-end).join("").trimStart() : "";
    return `${letters.slice(0, number - end).join("").trimEnd()}…${last}`;
  };
  let [fits, most] = [1, letters.length - 1];
  while (fits < most) {
    const middle = Math.ceil((fits + most) / 2);
    if (textWidth(kept(middle), size) <= width) fits = middle;
    else most = middle - 1;
  }
  return kept(fits);
}

/** The label of an objective or a feature, or only its name (without the unit, and cut) if there is less room. */
function labelWithin({ label, name }, width, size = LABEL) {
  return textWidth(label, size) <= width ? label : shortened(name, width, size);
}

/** A label in one line or, if it is too long for a width in pixels, in two alike; what is still too long is cut. */
function wrapped(label, width, size = LABEL) {
  if (textWidth(label, size) <= width) return [label];
  const words = label.split(" ");
  const breaks = words.slice(1).map((_, i) => [words.slice(0, i + 1).join(" "), words.slice(i + 1).join(" ")])
    .map((lines) => ({ lines, widths: lines.map((line) => textWidth(line, size)) }))
    .filter(({ widths }) => widths[0] <= width);
  if (breaks.length === 0) return [shortened(label, width, size)];
  const { lines } = breaks.reduce((a, b) => (Math.max(...a.widths) <= Math.max(...b.widths) ? a : b));
  return [lines[0], shortened(lines[1], width, size)];
}

/** The lines of a label, one below the other; the whole label appears where the pointer rests on them. */
function labelText(label, lines, attributes) {
  return shape("text", { class: "axis-label", ...attributes }, shape("title", {}, label),
    ...lines.map((line, i) => shape("tspan", { x: attributes.x ?? 0, dy: i ? LINE : 0 }, line)));
}

/** A name in one line; if it is too long, its middle is left out. */
function clipped(name, title = name) {
  const letters = [...name];
  const end = letters.length > 16 ? 7 : 0;
  return element("span", { class: "clipped", title },
    element("span", {}, letters.slice(0, letters.length - end).join("")),
    ...(end ? [element("span", {}, letters.slice(-end).join(""))] : []));
}

/** A tooltip next to the pointer or the focus: a title and lines. */
const tooltip = {
  show(x, y, title, lines) {
    const box = byId("tooltip");
    box.replaceChildren(element("strong", {}, title), ...lines.map((line) => element("div", {}, line)));
    box.hidden = false;
    const { width, height } = box.getBoundingClientRect();
    const left = x + 16 + width < innerWidth ? x + 16 : x - 16 - width;
    box.style.left = `${Math.max(8, left)}px`;
    box.style.top = `${Math.max(8, Math.min(innerHeight - height - 8, y + 12))}px`;
  },
  hide() {
    byId("tooltip").hidden = true;
  },
};
