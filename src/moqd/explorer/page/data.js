// What the page holds: arrays and gaits out of the JSON document, and the solutions of every run by their cells.

const TYPES = { f4: Float32Array, f8: Float64Array, i4: Int32Array };
const LENGTH = 2000;
const ANGLE = 16384;
const COORDINATES = 7;
const MOST_DECODED = 64;

function bytesOf(base64) {
  return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
}

function arrayOf(packed) {
  const [type] = Object.keys(packed);
  return new TYPES[type](bytesOf(packed[type]).buffer);
}

/** A run as the page uses it; what belongs to many solutions or cells is a flat array, row by row. */
function runOf(raw, index) {
  const k = raw.objectives.length;
  const hypervolume = arrayOf(raw.hypervolume);
  const objectives = arrayOf(raw.solutions.objectives);
  const signs = raw.objectives.map((objective) => objective.sign);
  const cellOf = arrayOf(raw.solutions.cell);
  return {
    index,
    k,
    signs,
    cellOf,
    objectives,
    hypervolume,
    name: raw.name,
    path: raw.path ?? "",
    task: raw.task,
    algorithm: raw.algorithm,
    facts: raw.facts,
    objective: raw.objectives,
    feature: raw.features,
    referencePoint: raw.reference_point,
    cells: hypervolume.length,
    count: cellOf.length,
    centroid: arrayOf(raw.centroid),
    polygons: raw.polygons ? raw.polygons.map(arrayOf) : null,
    features: arrayOf(raw.solutions.features),
    measured: measuredOf(raw),
    /** What each was made for; null if solutions were made for no preference. */
    preferences: raw.solutions.preference ? arrayOf(raw.solutions.preference) : null,
    rows: [...cellOf.keys()],
    rowsOf: rowsByCell(cellOf, hypervolume.length),
    front: arrayOf(raw.front),
    scale: raw.scale,
    scaled: scaledObjectives(objectives, signs, raw.scale),
    snapshots: raw.snapshots.map((snapshot) => snapshotOf(snapshot, hypervolume.length)),
    parameters: parametersOf(raw.parameters),
    constraints: parametersOf(raw.constraints),
    robot: raw.robot ?? null,
    /** Whether there is something to see of a solution: a gait, or what its task draws. */
    visible: Boolean(raw.robot || raw.drawable),
    exportable: Boolean(raw.exportable),
    own: Boolean(raw.own),
    again: raw.again ?? "",
    gaits: raw.gaits,
    /** What its actor may be asked for, where the page comes from a server: "preference", "feature", both or nothing. */
    asks: raw.asks ?? [],
  };
}

/** What limits can be on: each with its place in a row of its part, and the options of a choice. */
function measuredOf(raw) {
  const isTaken = (part, name) => part === "features" && raw.objectives.some((objective) => objective.name === name);
  const columns = (part) => raw[part].map(({ name }) => ({ name: isTaken(part, name) ? `${name} (feature)` : name }));
  const named = (part) => (raw[part]?.headers ?? []).map((name, at) =>
    ({ name, options: raw[part].options[at].length ? raw[part].options[at] : null }));
  const parts = { objectives: columns("objectives"), features: columns("features"),
    constraints: named("constraints"), parameters: named("parameters") };
  return Object.entries(parts).flatMap(([part, all]) =>
    all.map((column, at) => ({ ...column, part, at, width: all.length })));
}

/** The numbers of a part of a run or a snapshot, if it has them. */
function numbersOf(source, part) {
  return source[part]?.numbers ?? source[part];
}

/** The names of the parameters, and those of a solution by its row, as they are written. */
function parametersOf(raw) {
  if (!raw?.names.length) return null;
  const numbers = arrayOf(raw.values);
  const text = (value, at) => raw.options[at][value] ?? trimmed(written(value));
  return { names: raw.names, numbers, of: (row) => rowOf(numbers, row, raw.names.length).map(text) };
}

function snapshotOf(raw, cells) {
  return {
    iteration: raw.iteration,
    objectives: arrayOf(raw.objectives),
    features: arrayOf(raw.features),
    hypervolume: arrayOf(raw.hypervolume),
    rowsOf: rowsByCell(arrayOf(raw.cell), cells),
  };
}

function rowsByCell(cellOf, cells) {
  const rows = Array.from({ length: cells }, () => []);
  cellOf.forEach((cell, row) => rows[cell].push(row));
  return rows;
}

/** One row of a flat array. */
function rowOf(values, row, width) {
  return Array.from(values.subarray(row * width, (row + 1) * width));
}

// ---------------------------------------------------------------------------------------------------------- gaits

/** Gives gaits on demand; those looked at last stay decoded. */
function gaitStore(content, runs) {
  const decoded = new Map();

  async function fresh(run, row) {
    const packed = run.gaits[row] ?? (content.served && run.visible
      ? await served("gait", { run: run.index, solution: row }) : null);
    return decodedGait(run, packed);
  }

  return async function gaitOf(runIndex, row) {
    const key = `${runIndex}/${row}`;
    if (!decoded.has(key)) {
      decoded.set(key, fresh(runs[runIndex], row).catch((error) =>
        ({ kind: "error", text: `It could not be recorded: ${error.message}` })));
      if (decoded.size > MOST_DECODED) decoded.delete(decoded.keys().next().value);
    }
    const gait = await decoded.get(key);
    // The next time it may succeed.
    if (gait.kind === "error") decoded.delete(key);
    return gait;
  };
}

/** A gait as the player takes it, out of what the page or the server has of a solution. */
async function decodedGait(run, packed) {
  if (!packed && run.visible) return { kind: "missing" };
  if (packed?.error) return { kind: "error", text: packed.error };
  if (packed?.html !== undefined) return { kind: "html", html: packed.html };
  if (packed?.images?.length) {
    const { images, dt } = packed;
    return { kind: "images", images, frames: images.length, dt: dt > 0 ? dt : 0.05 };
  }
  if (!packed?.data || !run.robot) return { kind: run.parameters ? "parameters" : "none" };
  return { kind: "robot", dt: run.robot.dt, objectives: packed.objectives, ...(await posesOf(packed, run.robot)) };
}

/** What the server of the page answers to a question. */
async function served(what, question) {
  const token = new URLSearchParams(location.search).get("token") ?? "";
  const answer = await fetch(`${what}?${new URLSearchParams({ ...question, token })}`);
  return answer.json();
}

/** Undoes what gaits.py does: gzip, planes of bytes, differences between frames. */
async function posesOf({ frames, data }, robot) {
  const stream = new Blob([bytesOf(data)]).stream().pipeThrough(new DecompressionStream("gzip"));
  const planes = new Uint8Array(await new Response(stream).arrayBuffer());
  const size = planes.length / 4;
  const bodies = robot.bodies.length;
  const coordinates = bodies * COORDINATES;
  const poses = new Float64Array(frames * coordinates);
  const contact = new Uint8Array(frames * robot.feet.length);
  for (let i = 0, row = 0; i < size; row++) {
    const unit = row % COORDINATES < 3 ? LENGTH : ANGLE;
    for (let frame = 0, value = 0; frame < frames; frame++, i++) {
      value += planes[i] | (planes[i + size] << 8) | (planes[i + 2 * size] << 16) | (planes[i + 3 * size] << 24);
      if (row < coordinates) poses[frame * coordinates + row] = value / unit;
      else contact[frame * robot.feet.length + row - coordinates] = value;
    }
  }
  return { frames, bodies, poses, contact };
}
