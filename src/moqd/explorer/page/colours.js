// Colours of quantities, and how numbers are written.

const VIRIDIS = [
  "#440154", "#481a6c", "#472f7d", "#414487", "#39568c", "#31688e", "#2a788e", "#23888e",
  "#1f988b", "#22a884", "#35b779", "#54c568", "#7ad151", "#a5db36", "#d2e21b", "#fde725",
].map(channels);
/** Blue, white, brown: "vik" of Crameri, which is even to the eye and safe for colour-blind readers. */
const DIVERGING = [
  "#001261", "#033e7d", "#1e6f9d", "#71a8c4", "#c9dde7", "#f2efec",
  "#eacebd", "#d39774", "#be6533", "#8b2706", "#590008",
].map(channels);

function channels(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

function between(table, share) {
  const at = Math.min(1, Math.max(0, share)) * (table.length - 1);
  const first = Math.min(Math.floor(at), table.length - 2);
  const mixed = table[first].map((value, i) => Math.round(value + (table[first + 1][i] - value) * (at - first)));
  return `rgb(${mixed.join(",")})`;
}

/** The scale of a quantity: from a value to its share of the range (1 is best) and its colour. */
function scaleOf({ low, high, diverging = false, sign = 1 }) {
  const extent = high > low ? high - low : 1;
  const share = (value) => (sign < 0 ? (high - value) / extent : (value - low) / extent);
  const table = diverging ? DIVERGING : VIRIDIS;
  // The darkest third of the colours cannot be told from a dark page.
  const first = !diverging && document.documentElement.dataset.theme === "dark" ? 1 / 3 : 0;
  const colour = (value) => between(table, first + (1 - first) * share(value));
  return { low, high, sign, diverging, share, colour };
}

/** The least and the most of some values; those that are not there (NaN) do not count. */
function rangeOf(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : [0, 1];
}

/** A number with as many decimals as tell apart a thousandth of the extent that it is one of. */
function written(value, extent = Math.abs(value)) {
  if (!Number.isFinite(value)) return "–";
  // Where nothing else is there to tell it from, its own size is the extent.
  const size = extent ? Math.max(Math.abs(extent), Math.abs(value) / 1e4) : Math.abs(value);
  if (value !== 0 && (Math.abs(value) >= 1e7 || size < 1e-5)) {
    const [digits, power] = value.toExponential(2).split("e");
    return `${signed(digits)}·10${superscript(Number(power))}`;
  }
  const decimals = size > 0 ? Math.min(7, Math.max(0, Math.ceil(3 - Math.log10(size)))) : 0;
  return signed(spaced(value.toFixed(decimals)));
}

/** Without zeros at the end of its decimals. */
function trimmed(text) {
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

/** Digits in groups of three, from five digits on. */
function spaced(text) {
  return /\d{5}/.test(text.split(".")[0]) ? text.replace(/\d(?=(\d{3})+(\.|$))/g, "$&\u202f") : text;
}

/** With a true minus sign, and none before zero. */
function signed(text) {
  return /[1-9]/.test(text) ? text.replace("-", "−") : text.replace("-", "");
}

function superscript(power) {
  return [...String(power)].map((letter) => (letter === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[letter])).join("");
}

function grouped(whole) {
  return spaced(String(whole));
}

/** Whether two values differ by more than rounding. */
function apart(low, high) {
  return high - low > 1e-12 * Math.max(Math.abs(low), Math.abs(high));
}

/** Round numbers for the ticks of an axis. */
function ticksOf(low, high, number = 5) {
  if (!apart(low, high)) return [low];
  const step = 10 ** Math.floor(Math.log10((high - low) / number));
  const good = [1, 2, 5, 10].map((factor) => factor * step).find((size) => (high - low) / size <= number);
  const first = Math.ceil(low / good - 1e-9);
  const last = Math.floor(high / good + 1e-9);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => (first + i) * good);
}

/** A tick with no more decimals than its neighbours need. */
function tickText(tick, ticks) {
  const step = ticks.length > 1 ? ticks[1] - ticks[0] : Math.abs(tick) || 1;
  if (step >= 1e6 || step < 1e-5) return written(tick, step);
  return signed(spaced(tick.toFixed(Math.max(0, -Math.floor(Math.log10(step) + 1e-9)))));
}
