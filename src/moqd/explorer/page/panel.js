// The preference and what it recommends, the facts of the run, and those of the solution that is played.

function drawRunFacts(run) {
  const occupied = run.rowsOf.filter((rows) => rows.length).length;
  const share = `${((100 * occupied) / run.cells).toFixed(occupied === run.cells ? 0 : 1)} %`;
  const facts = [
    ["solutions", grouped(run.count)],
    ["coverage", `${share} (${occupied} of ${run.cells})`],
    ["global front", grouped(run.front.length)],
    ["evaluations", grouped(run.facts.evaluations)],
    ["iterations", iterationsText(run.facts)],
    ...((run.facts.seed ?? null) === null ? [] : [["seed", String(run.facts.seed)]]),
  ];
  byId("task").textContent = run.task;
  byId("algorithm").textContent = run.algorithm;
  byId("run-name").textContent = run.name === run.task ? "" : run.name;
  byId("facts-of-run").replaceChildren(...facts.map(([name, value]) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, value))));
}

/** How many there were, and of how many if it was to be more. */
function iterationsText({ iteration, iterations }) {
  const reached = iteration ?? iterations;
  return reached === iterations ? grouped(iterations) : `${grouped(reached)} of ${grouped(iterations)}`;
}

/** The sliders; moving one leaves the others in proportion. */
function createWeights(host, objectives, current, onPreference) {
  const change = oncePerFrame((i, weight) => onPreference(withWeight(current(), i, weight)));
  const rows = objectives.map(({ name, label, sign }, i) => {
    const id = `weight-${i}`;
    const input = element("input", { id, type: "range", min: 0, max: 1, step: 0.01, disabled: objectives.length < 2,
      oninput: (event) => change(i, Number(event.target.value)) });
    const output = element("output", { for: id });
    const goal = sign < 0 ? "less is better" : "more is better";
    host.append(element("div", { class: "weight" },
      element("label", { for: id }, clipped(`${sign < 0 ? "↓" : "↑"} ${name}`, `${label}: ${goal}`)), input, output));
    return { input, output };
  });
  return (preference) => preference.forEach((weight, i) => {
    const { input, output } = rows[i];
    input.value = weight;
    input.style.setProperty("--share", weight);
    output.textContent = `${(100 * weight).toFixed(0)} %`;
  });
}

/** The limits; one without a number does not count yet. */
function createLimits(host, measured, onLimits) {
  const rows = [];
  const parts = [...new Set(measured.map(({ part }) => part))];

  function read() {
    return rows.map(({ name, relation, value }) => ({ name: name.value, relation: relation.value,
      value: value.matches("select") ? value.value : value.valueAsNumber })).filter(({ value }) => !Number.isNaN(value));
  }

  function namesOf(part, chosen) {
    const names = measured.filter((one) => one.part === part).map(({ name }) => option(name, name, name === chosen));
    return element("optgroup", { label: part }, ...names);
  }

  function add(limit = {}) {
    const changed = () => onLimits(read());
    const name = element("select", { "aria-label": "What to limit", onchange: () => { show(); changed(); } },
      ...parts.map((part) => namesOf(part, limit.name)));
    // A browser would show only the start of a long name.
    const named = element("div", { class: "named-select" }, name);
    const drop = () => {
      rows.splice(rows.indexOf(row), 1);
      row.element.remove();
      changed();
      byId("add-limit").focus();
    };
    const remove = element("button",
      { type: "button", class: "icon", "aria-label": "Remove this limit", onclick: drop }, "×");
    const row = { name, element: element("div", { class: "limit" }) };

    /** A number is at least or at most something; a choice is an option or is not. */
    function show(given = { relation: row.relation.value, value: row.value.value }) {
      const { options } = measured.find((one) => one.name === name.value);
      const relations = options ? { "==": "=", "!=": "≠" } : { ">=": "≥", "<=": "≤" };
      name.title = name.value;
      named.replaceChildren(name, clipped(name.value));
      row.relation = element("select", { "aria-label": "Relation", onchange: changed },
        ...Object.entries(relations).map(([relation, sign]) => option(relation, sign, relation === given.relation)));
      row.value = options
        ? element("select", { "aria-label": "Limit", onchange: changed },
          ...options.map((text) => option(text, text, text === given.value)))
        : element("input", { type: "number", step: "any", "aria-label": "Limit", placeholder: "number",
          value: given.value ?? null, oninput: changed });
      row.element.replaceChildren(named, row.relation, row.value, remove);
      name.focus();
    }

    show(limit);
    rows.push(row);
    host.append(row.element);
    return row;
  }

  byId("add-limit").addEventListener("click", () => add().value.focus());
  /** Shows limits that were set from elsewhere; what one is just typing stays. */
  return (limits) => {
    if (JSON.stringify(read()) === JSON.stringify(limits)) return;
    rows.splice(0);
    host.replaceChildren();
    limits.forEach(add);
  };
}

/** The recommended solution of all cells and of the selected one, each with its objectives. */
function drawRecommended({ run, rule, recommended, best, cell, limits }, onShow) {
  byId("chosen-by").textContent = `by the rule “${rule}”`;
  const host = byId("recommended");
  const pressed = [...host.querySelectorAll("button")].indexOf(document.activeElement);
  if (recommended === null) {
    host.replaceChildren(element("p", { class: "nothing" }, nothingWithin(run, limits)));
    announce(nothingWithin(run, limits));
    return;
  }
  const head = (glyph, where, row) => element("th", { scope: "col" },
    element("b", { class: "accent", "aria-hidden": "true" }, glyph), ` ${where} `,
    ...(row === null ? [] : [element("button", { type: "button", class: glyph === "★" ? "strong" : "quiet",
      onclick: () => onShow(row), "aria-label": `Show solution ${row}, cell ${run.cellOf[row]}` }, "Show")]));
  const values = objectivesOf(run, recommended);
  const own = best === null ? null : objectivesOf(run, best);
  const none = () => element("td", { rowspan: run.k, class: "muted" },
    run.rowsOf[cell].length ? "none within the limits" : "empty");
  const lines = run.objective.map(({ name, label }, i) => element("tr", {},
    element("th", { scope: "row" }, clipped(name, label)), element("td", {}, values[i]),
    ...(own ? [element("td", {}, own[i])] : cell !== null && i === 0 ? [none()] : [])));
  host.replaceChildren(element("table", {}, element("thead", {}, element("tr", {}, element("td"),
    head("★", `cell ${run.cellOf[recommended]}`, recommended),
    ...(cell === null ? [] : [head("☆", "this cell", best)]))), element("tbody", {}, ...lines)));
  // The button that was pressed is drawn anew, and must keep the focus.
  host.querySelectorAll("button")[pressed]?.focus();
  const spoken = objectivesOf(run, recommended).map((value, i) => `${run.objective[i].label} ${value}`).join(", ");
  announce(`Recommended by the rule ${rule}: solution ${recommended} of cell ${run.cellOf[recommended]}: ${spoken}`);
}

/** What the actor answered: what its policy achieves, and what was asked for. */
function drawAnswer(host, run, answer) {
  if (!answer) return host.replaceChildren();
  if (answer.error) return host.replaceChildren(element("p", { class: "nothing" }, answer.error));
  const line = (label, value) => element("tr", {}, element("th", { scope: "row" }, label), element("td", {}, value));
  const objectives = run.objective.map(({ name, label }, i) =>
    line(clipped(name, label), written(answer.objectives[i], extentOf(run, i))));
  const features = run.feature.map(({ name, label, low, high }, i) => {
    const asked = answer.asked.length ? ` (asked ${written(answer.asked[i], high - low)})` : "";
    return line(clipped(name, label), `${written(answer.features[i], high - low)}${asked}`);
  });
  host.replaceChildren(element("table", {}, element("tbody", {}, ...objectives, ...features)),
    element("p", { class: "muted small" }, `Not in the archive: ${answer.verdict}.`));
}

/** For those who listen to the page; once only. */
function announce(text) {
  if (byId("announcement").textContent !== text) byId("announcement").textContent = text;
}

function nothingWithin(run, limits) {
  if (run.count === 0) return "The archive is empty; there is nothing to choose from.";
  const limited = run.measured.filter(({ name }) => limits.some((limit) => limit.name === name));
  const ranges = limited.map(({ name, part, width, at, options }) => {
    const own = numbersOf(run, part).filter((_, i) => i % width === at);
    if (options) return `${name} is ${options.filter((_, i) => own.includes(i)).join(" or ")}`;
    const [low, high] = rangeOf(own);
    const text = (value) => trimmed(written(value, high - low));
    return `${name} ranges from ${text(low)} to ${text(high)}`;
  });
  return `No solution is within all limits; in the archive ${ranges.join(", ")}: relax a limit.`;
}

// ------------------------------------------------------------------------------------------- facts of a solution

/** A table with archived and replayed objectives, features, constraints, preference and parameters of each shown. */
function drawFacts(host, shown) {
  if (!shown.length) return host.replaceChildren();
  const [{ run }] = shown;
  // Only robots replay their solutions.
  const columns = shown.some((one) => one.run.robot) ? ["archived", "replayed"] : ["archived"];
  const wide = (label, textOf) => element("tr", {}, element("th", { scope: "row" }, label),
    ...shown.map((one) => element("td", { colspan: columns.length }, textOf(one))));
  const head = shown.length > 1 ? [element("tr", {}, element("td"), ...shown.map(({ letter }) =>
    element("th", { colspan: columns.length, scope: "colgroup" }, letter)))] : [];
  const kinds = element("tr", {}, element("td"), ...shown.flatMap(() =>
    columns.map((name) => element("th", { scope: "col" }, name))));
  const objectives = run.objective.map(({ label }, i) => element("tr", {}, element("th", { scope: "row" }, label),
    ...shown.flatMap((one) => objectiveCells(one, i).slice(0, columns.length))));
  const features = run.feature.map(({ label, low, high }, i) => wide(label, (one) =>
    written(one.run.features[one.row * run.feature.length + i], high - low)));
  const preference = shown.some((one) => one.run.preferences)
    ? [wide("made for preference", (one) => preferenceText(one.run, one.row))] : [];
  const namedRows = (kind) => [...new Set(shown.flatMap((one) => one.run[kind]?.names ?? []))].map((name) =>
    wide(name, (one) => namedText(one.run[kind], one.row, name)));
  const body = element("tbody", {}, ...objectives, ...features, ...namedRows("constraints"), ...preference,
    ...namedRows("parameters"));
  host.replaceChildren(
    element("div", { class: "rows", tabindex: 0, role: "region", "aria-label": "Facts of the solution" },
      element("table", {}, element("thead", {}, ...head, kinds), body)));
}

function namedText(columns, row, name) {
  const at = columns ? columns.names.indexOf(name) : -1;
  return at < 0 ? "–" : columns.of(row)[at];
}

function objectiveCells({ run, row, gait }, i) {
  const replayed = gait?.objectives?.[i];
  return [element("td", {}, written(run.objectives[row * run.k + i], extentOf(run, i))),
    element("td", {}, replayed === undefined ? "–" : written(replayed, extentOf(run, i)))];
}

function preferenceText(run, row) {
  if (!run.preferences) return "–";
  const weights = rowOf(run.preferences, row, run.k);
  const any = weights.every(Number.isFinite) && weights.some((weight) => weight !== 0);
  return any ? weights.map((weight) => weight.toFixed(2)).join(" : ") : "–";
}

/** How to get the solution out of the archive, in a box to copy it from; nothing if no text says how. */
function drawCommand(host, text) {
  if (host.dataset.text === text) return;
  host.dataset.text = text;
  host.replaceChildren(...(text ? [commandBox(text)] : []));
}

/** The command that writes a policy to a file. */
function exportCommand(run, row) {
  return `moqd pick ${quoted(run.path)} --solution ${row} --export policy.npz${run.again}`;
}

/** The command that asks the actor and writes its policy to a file. */
function askCommand(run, { preference, feature }) {
  const asked = [...(preference ? [`--preference ${preference}`] : []), ...(feature ? [`--feature ${feature}`] : [])];
  return `moqd pick ${quoted(run.path)} --actor ${asked.join(" ")} --export policy.npz${run.again}`;
}

/** The call in Python that chooses by a preference, a rule and limits: in the archive, or in one cell of it. */
function pickCall(run, { preference, rule, limits }, cell) {
  const list = (values) => `[${values.map((value) => Number(value.toPrecision(12))).join(", ")}]`;
  const texts = limits.map(({ name, relation, value }) => pythonText(`${name}${relation}${value}`));
  const features = cell === null ? [] : rowOf(run.centroid, cell, run.feature.length);
  return `moqd.pick(${["run", list(preference),
    ...(features.length ? [`feature=${list(features)}`] : []),
    ...(limits.length ? [`limits=[${texts.join(", ")}]`] : []),
    ...(rule === "weighted" ? [] : [`rule=${pythonText(rule)}`])].join(", ")})`;
}

/** A string as Python and JSON write it. */
function pythonText(text) {
  return JSON.stringify(text);
}

function commandBox(text) {
  const words = text.split(" ").map((word) => (word.startsWith("--") ? element("span", {}, word) : word));
  const code = element("code", {}, ...words.flatMap((word, i) => (i ? [" ", word] : [word])));
  const button = element("button", { type: "button", class: "quiet", onclick: async () => {
    await copied(text, code);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  } }, "Copy");
  return element("div", { class: "command" }, code, button);
}

/** As a shell takes one word (shlex.quote). */
function quoted(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`;
}

async function copied(text, code) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Without the right to the clipboard, the old way needs a selection.
    getSelection().selectAllChildren(code);
    document.execCommand("copy");
  }
}

/** What to say where there is no gait. */
function noteOf(run, gait) {
  const code = (text) => element("code", {}, text);
  if (run.count === 0) return ["The archive is empty: there is nothing to show."];
  if (gait === null) return ["Choose a solution to see it here."];
  if (gait.kind === "pending") return [run.robot ? "Recording its gait…" : "Drawing it…"];
  if (gait.kind === "error") return [gait.text];
  if (gait.kind === "none") {
    return [run.visible ? "The task has no picture of this solution."
      : "This task has no pictures of its solutions."];
  }
  const thing = run.robot ? "gait" : "picture";
  const some = Object.keys(run.gaits).length > 0;
  const missing = some ? `This page has no ${thing} of this solution; those with a filled point have one. `
    : `This page has no ${thing}s. `;
  const all = " writes a page with all of them.";
  if (run.own || run.path === "") {
    return [missing, "In Python, ", code('write_explorer([run], "explorer.html", gaits="all")'), " of ",
      code("moqd.explorer"), all];
  }
  const command = `moqd explore ${quoted(run.path)}`;
  return [missing, code(`${command} --serve${run.again}`), ` ${run.robot ? "records" : "draws"} any ${thing} on demand, `,
    code(`${command} --gaits all${run.again}`), all];
}
