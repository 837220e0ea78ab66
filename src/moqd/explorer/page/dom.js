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

/** A small text beside the pointer or the focus: a title and lines. */
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
