// How a solution is chosen: the rules of moqd/choose/pick.py with the same operations, so that both agree to the last bit.

function normalised(preference) {
  const total = preference.reduce((sum, weight) => sum + weight, 0);
  return preference.map((weight) => weight / total);
}

/** Objectives as they are maximised, from 0 to 1 over the global front. */
function scaledObjectives(objectives, signs, scale) {
  const k = signs.length;
  const extent = scale.high.map((high, i) => (high - scale.low[i] > 0 ? high - scale.low[i] : 1));
  return Float64Array.from(objectives, (value, i) => (value * signs[i % k] - scale.low[i % k]) / extent[i % k]);
}

/** Those of some rows of a source that keep to all limits; `measured` says where its numbers are. */
function withinLimits(source, measured, limits, rows) {
  const checks = limits.map((limit) => isWithin(source, measured.find(({ name }) => name === limit.name), limit));
  return rows.filter((row) => checks.every((check) => check(row)));
}

/** Whether a row keeps to a limit; a snapshot has no parameters and constraints, so that limits on these pass. */
function isWithin(source, column, { relation, value }) {
  if (!column) return () => false;
  const { part, width, at, options } = column;
  const numbers = numbersOf(source, part);
  if (!numbers) return () => true;
  const own = (row) => numbers[row * width + at];
  if (options) return (row) => (options[own(row)] === value) === (relation === "==");
  return relation === ">=" ? (row) => own(row) >= value : (row) => own(row) <= value;
}

/** What each of some rows is worth by a rule; more is better. */
function valuesBy(rule, scaled, rows, weights, lattice, augmentation) {
  if (rule === "weighted") return weightedSums(scaled, rows, weights);
  if (rule === "achievement") return achievements(scaled, rows, weights, augmentation);
  return marginalUtilities(scaled, rows, weights.length, lattice);
}

function weightedSums(scaled, rows, weights) {
  const k = weights.length;
  const values = new Float64Array(rows.length);
  for (let i = 0; i < rows.length; i++) {
    let total = 0;
    for (let j = 0; j < k; j++) total += scaled[rows[i] * k + j] * weights[j];
    values[i] = total;
  }
  return values;
}

function achievements(scaled, rows, weights, augmentation) {
  const k = weights.length;
  const values = new Float64Array(rows.length);
  for (let i = 0; i < rows.length; i++) {
    let most = -Infinity;
    let total = 0;
    for (let j = 0; j < k; j++) {
      const regret = weights[j] * (1 - scaled[rows[i] * k + j]);
      most = Math.max(most, regret);
      total += regret;
    }
    values[i] = -(most + augmentation * total);
  }
  return values;
}

/** The utility that is lost without a solution, as a mean over the lattice of preferences. */
function marginalUtilities(scaled, rows, k, lattice) {
  const values = new Float64Array(rows.length);
  const number = lattice.length / k;
  const own = new Float64Array(rows.length * k);
  rows.forEach((row, i) => own.set(scaled.subarray(row * k, (row + 1) * k), i * k));
  for (let w = 0; w < lattice.length; w += k) {
    let [best, most, second] = [0, -Infinity, -Infinity];
    for (let i = 0; i < rows.length; i++) {
      let utility = 0;
      for (let j = 0; j < k; j++) utility += own[i * k + j] * lattice[w + j];
      if (utility > most) {
        second = most;
        most = utility;
        best = i;
      } else if (utility > second) second = utility;
    }
    values[best] += rows.length > 1 ? most - second : 1;
  }
  const best = Array.from({ length: k }, (_, j) => rows.reduce((most, _row, i) => Math.max(most, own[i * k + j]), -Infinity));
  const isExtreme = (i) => best.some((most, j) => own[i * k + j] === most);
  return values.map((value, i) => value / number - (isExtreme(i) ? 1 : 0));
}

/** The place of the largest value; of equals, the first of those with the largest sum of scaled objectives. */
function bestOf(values, scaled, rows, k) {
  const ones = new Array(k).fill(1);
  let best = -1;
  let sum = -Infinity;
  for (let i = 0; i < rows.length; i++) {
    if (best >= 0 && !(values[i] >= values[best])) continue;
    const [ownSum] = weightedSums(scaled, [rows[i]], ones);
    if (best >= 0 && values[i] === values[best] && !(ownSum > sum)) continue;
    best = i;
    sum = ownSum;
  }
  return best;
}

/** The chosen row and its value, or null where there is nothing to choose from. */
function choose(rule, scaled, rows, weights, lattice, augmentation) {
  if (rows.length === 0) return null;
  const values = valuesBy(rule, scaled, rows, weights, lattice, augmentation);
  const best = bestOf(values, scaled, rows, weights.length);
  return { row: rows[best], value: values[best] };
}

/** A preference after one of its weights was moved: the others keep their proportions, and all sum to 1. */
function withWeight(preference, moved, weight) {
  const others = preference.reduce((sum, value, i) => (i === moved ? sum : sum + value), 0);
  const rest = 1 - weight;
  return preference.map((value, i) => {
    if (i === moved) return weight;
    return others > 0 ? (value * rest) / others : rest / (preference.length - 1);
  });
}
