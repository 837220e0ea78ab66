// The page as a whole: its state, the functions that change it, and what is drawn after a change.

const content = JSON.parse(byId("content").textContent);
const lattice = arrayOf(content.lattice);
const runs = content.runs.map(runOf);
const gaitOf = gaitStore(content, runs);
const calm = matchMedia("(prefers-reduced-motion: reduce)");
const dark = matchMedia("(prefers-color-scheme: dark)");
const narrow = matchMedia("(max-width: 760px)");
/** Milliseconds until a gait that is being recorded is said to be. */
const PATIENCE = 200;
/** Stands for a gait until it is there. */
const PENDING = { kind: "pending" };

const state = {
  run: 0,
  cell: null,
  solution: null,
  preference: normalised(runs[0].objective.map(() => 1)),
  rule: "weighted",
  limits: [],
  colourBy: "hypervolume",
  /** The snapshot shown on the map; null is now. */
  snapshot: null,
  /** The gait that others are compared with: its run, row and gait. */
  pinned: null,
};
let gait = null;
/** What the actor was asked and answered last, with its gait; null where nothing, or something else is shown. */
let asked = null;
const currentRun = () => runs[state.run];

// --------------------------------------------------------------------------------------------------- choosing

const chosen = new Map();

/** The recommended row of a run: of all cells (null) or of one; null if nothing keeps to the limits. */
function recommendedOf(run, cell = null) {
  const key = `${run.index}/${cell}`;
  if (!chosen.has(key)) {
    const rows = candidates(run, run, cell === null ? run.rows : run.rowsOf[cell]);
    const found = choose(state.rule, run.scaled, rows, state.preference, lattice, content.augmentation);
    chosen.set(key, found ? found.row : null);
  }
  return chosen.get(key);
}

/** Those of some rows (of a run, or of a snapshot of it) that keep to the limits. */
function candidates(run, source, rows) {
  return withinLimits(source, run.measured, state.limits, rows);
}

// ----------------------------------------------------------------------------------------- quantities on the map

/** What the map shows: a value of every cell (NaN: empty), their scale, and how to say it. */
function quantityOf(run) {
  const by = state.colourBy;
  if (by === "difference") return differenceOf();
  const source = state.snapshot === null ? run : run.snapshots[state.snapshot];
  const values = cellValues(run, source, by);
  // The same colours over the whole training, so that it can be seen to grow.
  const all = by === "preference" ? [values] : [run, ...run.snapshots].map((one) => cellValues(run, one, by));
  const [low, most] = rangeOf(all.flatMap((own) => [...own]));
  // Colours and bars must not tell apart what only rounding does.
  const high = apart(low, most) ? most : low;
  const objective = by.startsWith("objective ") ? run.objective[Number(by.slice(10))] : null;
  const whole = by === "size";
  const fromZero = by === "hypervolume" || whole;
  const scale = scaleOf({ low: fromZero ? 0 : low, high, sign: objective?.sign });
  return {
    values,
    scale,
    sizes: source.rowsOf.map((rows) => rows.length),
    floor: fromZero ? [0, high] : floorOf(low, high, objective?.sign),
    label: labelOf(by, run),
    text: (cell) => (Number.isNaN(values[cell]) ? (source.rowsOf[cell].length ? "none within the limits" : "empty")
      : whole ? String(values[cell]) : written(values[cell], high - low)),
  };
}

/** The range of bars: the worst value still has a small one. */
function floorOf(low, high, sign = 1) {
  const below = 0.06 * (high - low);
  return sign < 0 ? [low, high + below] : [low - below, high];
}

function labelOf(by, run) {
  if (by === "hypervolume") return "hypervolume";
  if (by === "size") return "front size";
  if (by === "preference") return "value of the preference";
  return `best ${run.objective[Number(by.slice(10))].label}`;
}

function cellValues(run, source, by) {
  if (by === "preference") return preferenceValues(run, source);
  const { k, signs } = run;
  const i = Number(by.slice(10));
  return Float64Array.from(source.rowsOf, (rows, cell) => {
    if (rows.length === 0) return NaN;
    if (by === "hypervolume") return source.hypervolume[cell];
    if (by === "size") return rows.length;
    return rows.reduce((best, row) => {
      const value = source.objectives[row * k + i];
      return value * signs[i] > best * signs[i] ? value : best;
    }, -Infinity * signs[i]);
  });
}

/** The best value in each cell by the current rule; a knee is one of a whole front, so there the weighted sum. */
function preferenceValues(run, source) {
  const rule = state.rule === "knee" ? "weighted" : state.rule;
  const scaled = source === run ? run.scaled : scaledObjectives(source.objectives, run.signs, run.scale);
  return Float64Array.from(source.rowsOf, (rows) => {
    const own = candidates(run, source, rows);
    if (own.length === 0) return NaN;
    return Math.max(...valuesBy(rule, scaled, own, state.preference, lattice, content.augmentation));
  });
}

function hasSameCells({ centroid }) {
  return centroid.length === runs[0].centroid.length && centroid.every((value, i) => value === runs[0].centroid[i]);
}

/** Hypervolume of the chosen run (or the second) less that of the first. */
function differenceOf() {
  const [first, second] = [runs[0], runs[state.run || 1]];
  const sizes = second.rowsOf.map((rows) => rows.length);
  const values = Float64Array.from(sizes, (size, cell) => (size || first.rowsOf[cell].length
    ? second.hypervolume[cell] - first.hypervolume[cell] : NaN));
  const most = Math.max(...rangeOf(values).map(Math.abs)) || 1;
  const same = first.referencePoint.every((value, i) => value === second.referencePoint[i]);
  return {
    values,
    sizes,
    scale: scaleOf({ low: -most, high: most, diverging: true }),
    floor: [-most, most],
    label: "difference of hypervolume",
    hint: `${second.name} − ${first.name}${same ? "" : "; their reference points differ"}`,
    text: (cell) => (Number.isNaN(values[cell]) ? "empty" : written(values[cell], most)),
  };
}

// --------------------------------------------------------------------------------------------------- drawing

const map = createMap(byId("map"), (cell) => selectCell(cell));
const front = createFront({ plot: byId("front"), table: byId("solutions"), title: byId("front-title"),
  facts: byId("front-facts") }, (row) => watch(row));
const player = createPlayer({ panes: byId("panes"), controls: byId("controls"), play: byId("play"),
  scrub: byId("scrub"), time: byId("time"), speed: byId("speed"), loop: byId("loop") });
const showWeights = createWeights(byId("weights"), runs[0].objective, () => state.preference, setPreference);
const showLimits = createLimits(byId("limits"), runs[0].measured, setLimits);

function drawMap() {
  const run = currentRun();
  const quantity = quantityOf(run);
  map.show(run);
  map.paint(quantity);
  drawColourBar(byId("colour-bar"), quantity);
  drawMarks();
}

function drawMarks() {
  const recommended = recommendedOf(currentRun());
  map.mark(state.cell, recommended === null ? null : currentRun().cellOf[recommended]);
}

function drawFront() {
  const run = currentRun();
  const { cell, solution, limits } = state;
  const recommended = recommendedOf(run);
  const best = cell === null ? null : recommendedOf(run, cell);
  const playable = (row) => content.served || !run.visible || row in run.gaits;
  front.draw({ run, cell, solution, recommended, best, limits, playable });
  drawRecommended({ run, rule: state.rule, recommended, best, cell, limits }, watch);
}

/** What the player shows: the pinned solution, then the selected one unless it is the same. */
function shownSolutions() {
  const { pinned, solution } = state;
  const current = solution === null || isPinned(state.run, solution) ? []
    : [{ run: currentRun(), row: solution, gait: gait ?? PENDING }];
  const shown = pinned ? [{ ...pinned, run: runs[pinned.run] }, ...current] : current;
  shown.forEach((one, i) => { one.letter = pinned ? "AB"[i] : ""; });
  return shown;
}

function isPinned(run, row) {
  return state.pinned !== null && state.pinned.run === run && state.pinned.row === row;
}

function drawPlayer() {
  const { pinned } = state;
  const run = currentRun();
  const shown = asked?.gait ? shownSolutions().filter((one) => isPinned(one.run.index, one.row)) : shownSolutions();
  const panes = shown.map((one) => ({ run: one.run, gait: one.gait, note: noteOf(one.run, one.gait),
    title: titleOf(one), label: `Gait of solution ${one.row}, cell ${one.run.cellOf[one.row]}` }));
  if (asked?.gait) {
    panes.push({ run, gait: asked.gait, note: noteOf(run, asked.gait), title: `${pinned ? "B: " : ""}the actor's answer`,
      label: "Gait of the actor's answer" });
  }
  if (panes.length < (pinned ? 2 : 1)) {
    panes.push({ run, gait: null, note: noteOf(run, null), title: pinned ? "B" : "", label: "" });
  }
  document.body.classList.toggle("comparing", Boolean(pinned));
  byId("compare").setAttribute("aria-pressed", Boolean(pinned));
  byId("compare").textContent = pinned ? "End comparison" : "Compare";
  byId("player-title").textContent = run.robot ? "Gait" : "Solution";
  player.show(panes);
  drawFacts(byId("facts"), shown);
  drawCommand(byId("command"), commandText());
}

function drawActor() {
  const { asks } = currentRun();
  const ofCell = asks.includes("feature");
  byId("actor").hidden = asks.length === 0;
  byId("ask").textContent = ofCell && state.cell !== null ? `Ask the actor for cell ${state.cell}` : "Ask the actor";
  byId("ask").disabled = ofCell && state.cell === null;
  byId("ask").title = `A new policy for ${[...(asks.includes("preference") ? ["this preference"] : []),
    ...(ofCell ? ["the middle of the selected cell"] : [])].join(" and ")}`;
  drawAnswer(byId("answer"), currentRun(), asked?.answer);
}

/** How to get what the player shows last: by a command or, if that cannot be, by a call that chooses it. */
function commandText() {
  if (asked?.gait) return askCommand(currentRun(), asked.question);
  const last = shownSolutions().at(-1);
  if (!last) return "";
  const { run, row } = last;
  if (run.exportable && !run.own && run.path !== "") return exportCommand(run, row);
  const cell = run.cellOf[row];
  if (row === recommendedOf(run)) return pickCall(run, state, null);
  return row === recommendedOf(run, cell) ? pickCall(run, state, cell) : "";
}

function titleOf({ run, row, letter }) {
  const from = runs.length > 1 ? ` · ${run.name}` : "";
  return `${letter ? `${letter}: ` : ""}solution ${row} · cell ${run.cellOf[row]}${from}`;
}

function drawTraining() {
  const { snapshots } = currentRun();
  const usable = snapshots.length > 0 && state.colourBy !== "difference";
  byId("training").hidden = !usable;
  if (!usable) return;
  byId("training-at").max = snapshots.length;
  byId("training-at").value = state.snapshot ?? snapshots.length;
  const text = state.snapshot === null ? "now" : `iteration ${grouped(snapshots[state.snapshot].iteration)}`;
  byId("training-label").textContent = text;
  byId("training-at").setAttribute("aria-valuetext", text);
}

function drawChoice() {
  chosen.clear();
  byId("rule").value = state.rule;
  byId("rule-explained").textContent = content.rules[state.rule];
  showWeights(state.preference);
  showLimits(state.limits);
  if (state.colourBy === "preference") drawMap();
  else drawMarks();
  drawFront();
  drawCommand(byId("command"), commandText());
}

// ---------------------------------------------------------------------------------------------- changing the state

function setPreference(preference) {
  state.preference = normalised(preference);
  drawChoice();
}

function setRule(rule) {
  state.rule = rule;
  drawChoice();
}

function setLimits(limits) {
  state.limits = limits;
  drawChoice();
}

/** Selects a cell and, in it, the solution that suits best. */
function selectCell(cell) {
  const run = currentRun();
  return select(cell, recommendedOf(run, cell) ?? run.rowsOf[cell][0] ?? null);
}

function selectSolution(row) {
  return select(currentRun().cellOf[row], row);
}

/** Resolves when the gait is there, at its start. */
async function select(cell, solution) {
  const fresh = solution !== state.solution || gait === null || gait.kind === "error";
  state.cell = cell;
  state.solution = solution;
  const answered = asked !== null;
  asked = null;
  drawMarks();
  drawFront();
  drawActor();
  if (!fresh) {
    if (answered) drawPlayer();
    return;
  }
  gait = null;
  const { run } = state;
  const shown = () => state.run === run && state.solution === solution;
  const late = setTimeout(() => { if (shown()) showGait(PENDING); }, PATIENCE);
  const found = solution === null ? null : await gaitOf(run, solution);
  clearTimeout(late);
  // It may have been pinned meanwhile, even if another is selected by now.
  if (isPinned(run, solution)) state.pinned.gait = found;
  if (!shown()) {
    if (isPinned(run, solution)) drawPlayer();
    return;
  }
  showGait(found);
  player.restart();
}

/** Asks the actor for the preference and, if it takes one, the middle of the selected cell; shows what it answers. */
async function ask() {
  const run = currentRun();
  const text = (values) => [...values].map((value) => Number(value.toPrecision(6))).join(",");
  const question = { run: run.index,
    ...(run.asks.includes("preference") ? { preference: text(state.preference) } : {}),
    ...(run.asks.includes("feature") ? { feature: text(rowOf(run.centroid, state.cell, run.feature.length)) } : {}) };
  const here = { question, answer: null, gait: PENDING };
  asked = here;
  drawActor();
  drawPlayer();
  const answer = await served("ask", question).catch((error) => ({ error: `It could not be asked: ${error.message}` }));
  if (asked !== here) return;
  here.answer = answer;
  here.gait = answer.error ? { kind: "error", text: answer.error } : await decodedGait(run, answer.gait);
  if (asked !== here) return;
  drawActor();
  drawPlayer();
  player.restart();
  player.play();
}

function showGait(found) {
  gait = found;
  drawPlayer();
}

/** Selects a solution because one wants to see it. */
async function watch(row) {
  await selectSolution(row);
  if (narrow.matches) byId("player-title").scrollIntoView({ block: "start" });
  player.play();
}

function selectRun(index) {
  const { cell } = state;
  stopTraining();
  Object.assign(state, { run: index, cell: null, solution: null, snapshot: null });
  gait = null;
  asked = null;
  byId("run").value = index;
  drawRunFacts(currentRun());
  drawTraining();
  drawMap();
  return currentRun().rowsOf[cell]?.length ? selectCell(cell) : selectRecommended();
}

function selectRecommended() {
  const row = recommendedOf(currentRun());
  return row === null ? select(null, null) : selectSolution(row);
}

function colourBy(quantity) {
  state.colourBy = quantity;
  drawTraining();
  drawMap();
}

function showSnapshot(at) {
  state.snapshot = at >= currentRun().snapshots.length ? null : at;
  drawTraining();
  drawMap();
}

function compare() {
  const nothing = state.pinned || state.solution === null;
  state.pinned = nothing ? null : { run: state.run, row: state.solution, gait: gait ?? PENDING };
  drawPlayer();
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  player.recolour();
  drawMap();
}

// ----------------------------------------------------------------------------------------------------- handlers

function playTraining() {
  const last = currentRun().snapshots.length;
  const next = state.snapshot === null ? 0 : state.snapshot + 1;
  showSnapshot(next);
  training.timer = next < last ? setTimeout(playTraining, 500) : null;
  drawTrainingButton();
}

const training = { timer: null };

function drawTrainingButton() {
  const running = training.timer !== null;
  byId("training-play").textContent = running ? "❚❚" : "▶";
  byId("training-play").setAttribute("aria-label", running ? "Pause the training" : "Play the training");
}

function stopTraining() {
  clearTimeout(training.timer);
  training.timer = null;
  drawTrainingButton();
}

function onShortcut(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea, dialog")) return;
  const pressable = event.target.closest("button, summary, [role=option], [role=grid], iframe");
  if (event.key === " " && !pressable) player.toggle();
  else if (event.key === ",") player.stepBy(-1);
  else if (event.key === ".") player.stepBy(1);
  else if (event.key === "?") byId("help").showModal();
  else return;
  event.preventDefault();
}

function listen() {
  byId("rule").append(...Object.keys(content.rules).map((rule) => option(rule, rule)));
  byId("rule").addEventListener("change", (event) => setRule(event.target.value));
  const quantities = ["hypervolume", "size", ...runs[0].objective.map((_, i) => `objective ${i}`), "preference"];
  byId("colour-by").append(...quantities.map((by) => option(by, labelOf(by, runs[0]))),
    ...(runs.length > 1 && runs.every(hasSameCells) ? [option("difference", "difference of hypervolume")] : []));
  byId("colour-by").addEventListener("change", (event) => colourBy(event.target.value));
  byId("speed").append(...[0.25, 0.5, 1, 2, 4].map((speed) => option(speed, `${speed}×`, speed === 1)));
  byId("run").append(...runs.map((run, i) => option(i, run.name)));
  byId("run").addEventListener("change", (event) => selectRun(Number(event.target.value)));
  byId("run-choice").hidden = runs.length < 2;
  byId("run-name").hidden = runs.length > 1;
  byId("training-at").addEventListener("input", (event) => {
    stopTraining();
    showSnapshot(Number(event.target.value));
  });
  byId("training-play").addEventListener("click", () => (training.timer === null ? playTraining() : stopTraining()));
  byId("compare").addEventListener("click", compare);
  byId("ask").addEventListener("click", ask);
  byId("help-button").addEventListener("click", () => byId("help").showModal());
  byId("theme").addEventListener("click", () =>
    setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
  dark.addEventListener("change", () => setTheme(dark.matches ? "dark" : "light"));
  document.addEventListener("keydown", onShortcut);
}

async function start() {
  document.documentElement.dataset.theme = dark.matches ? "dark" : "light";
  listen();
  player.recolour();
  const partly = runs.find((run) => run.visible && !content.served && Object.keys(run.gaits).length < run.count);
  drawFrontLegend(byId("front-legend"), partly ? `no ${partly.robot ? "gait" : "picture"} in this page` : "");
  drawRunFacts(currentRun());
  drawActor();
  drawTraining();
  map.show(currentRun());
  drawMap();
  drawChoice();
  const first = selectRecommended().then(() => { if (!calm.matches) player.play(); });
  await painted();
  // A gait that is still to be recorded can come later.
  if (!content.served) await first;
  window.moqd.ready = true;
}

/** After what was drawn can be seen. */
function painted() {
  return new Promise((resolve) => { requestAnimationFrame(() => setTimeout(resolve)); });
}

window.moqd = {
  ready: false,
  state: () => ({ run: state.run, cell: state.cell, solution: state.solution, preference: [...state.preference],
    rule: state.rule, limits: state.limits.map((limit) => ({ ...limit })), frame: player.frame(),
    frames: player.frames(), playing: player.playing() }),
  shownFront: () => front.rows(),
  selectRun,
  selectCell,
  selectSolution: watch,
  setPreference,
  setRule,
  setLimits,
  ask,
  recommended: () => recommendedOf(currentRun()),
  recommendedIn: (cell) => recommendedOf(currentRun(), cell),
  pose: () => ({ positions: player.pose() }),
  seek: player.seek,
  play: player.play,
  pause: player.pause,
};
start();
