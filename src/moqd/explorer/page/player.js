// The player: one gait, or two side by side on the same clock.

const TURN = Math.PI / 24;

function createPlayer(parts) {
  // Whether it should play is kept beside whether it does: a solution without a gait only interrupts.
  const clock = { time: 0, wanted: false, running: false, last: 0 };
  const orbit = { yaw: -1.15, pitch: 0.42 };
  let colours = sceneColours();
  let panes = [];
  let duration = 0;
  let fit = { top: 1, radius: 1 };

  /** Each of `given` has title, label, run, gait and note (what to say instead of a gait). */
  function show(given) {
    while (panes.length > given.length) panes.pop().figure.remove();
    while (panes.length < given.length) {
      panes.push(createPane(seek, turn, draw));
      parts.panes.append(panes.at(-1).figure);
    }
    panes.forEach((pane, i) => pane.show(given[i]));
    parts.panes.classList.toggle("bare", panes.every((pane) => pane.bare));
    const framings = panes.map((pane) => pane.framing).filter(Boolean);
    const most = (name) => Math.max(...framings.map((framing) => framing[name]));
    fit = { top: most("top"), radius: most("radius") };
    duration = Math.max(0, ...panes.map((pane) => pane.duration));
    parts.scrub.max = Math.round(duration / step());
    parts.controls.classList.toggle("off", duration === 0);
    parts.controls.hidden = duration === 0 && !given.some(({ run }) => run.robot);
    clock.time = Math.min(clock.time, duration);
    draw();
    run();
  }

  const step = () => panes.at(-1)?.dt ?? 0.05;

  function draw() {
    for (const pane of panes) pane.draw(clock.time, fit, orbit, colours);
    parts.scrub.value = Math.round(clock.time / step());
    parts.time.textContent = `${clock.time.toFixed(2)} s`;
    parts.scrub.setAttribute("aria-valuetext", `frame ${frame()}, ${clock.time.toFixed(2)} seconds`);
  }

  function frame() {
    const pane = panes.at(-1);
    return pane?.frames ? Math.min(pane.frames - 1, Math.floor(clock.time / pane.dt + 1e-6)) : 0;
  }

  function run() {
    if (clock.running || !playing()) return;
    clock.running = true;
    clock.last = performance.now();
    requestAnimationFrame(tick);
  }

  function tick(now) {
    clock.running = playing();
    if (!clock.running) return;
    // After a pause of the whole page it goes on where it was.
    clock.time += (Math.min(100, Math.max(0, now - clock.last)) / 1000) * Number(parts.speed.value);
    clock.last = now;
    if (clock.time > duration && parts.loop.checked) clock.time %= duration;
    if (clock.time > duration) seek(Infinity);
    else draw();
    requestAnimationFrame(tick);
  }

  const playing = () => clock.wanted && duration > 0;

  function play() {
    if (clock.time >= duration) clock.time = 0;
    clock.wanted = true;
    showPlaying();
    run();
  }

  function pause() {
    clock.wanted = false;
    showPlaying();
  }

  function showPlaying() {
    parts.play.textContent = clock.wanted ? "❚❚" : "▶";
    parts.play.setAttribute("aria-label", clock.wanted ? "Pause" : "Play");
  }

  /** To a frame; there it stays. */
  function seek(to) {
    pause();
    clock.time = Math.min(duration, Math.max(0, to * step()));
    draw();
  }

  function turn(yaw, pitch) {
    orbit.yaw += yaw;
    orbit.pitch = Math.min(1.5, Math.max(0.03, orbit.pitch + pitch));
    draw();
  }

  function restart() {
    clock.time = 0;
    draw();
  }

  function recolour() {
    colours = sceneColours();
    panes.forEach((pane) => pane.drawStrip());
    draw();
  }

  const toggle = () => (clock.wanted ? pause() : play());
  parts.play.addEventListener("click", toggle);
  parts.scrub.addEventListener("input", () => seek(Number(parts.scrub.value)));
  return {
    show, play, pause, toggle, seek, restart, recolour, frame, playing,
    stepBy: (frames) => seek(frame() + frames),
    frames: () => panes.at(-1)?.frames ?? 0,
    pose: () => panes.at(-1)?.positions(frame()) ?? null,
  };
}

/** One gait: its picture, and below it when each foot is on the ground. */
function createPane(onSeek, onTurn, onResize) {
  const caption = element("figcaption");
  const stage = element("div", { class: "stage" });
  const strip = element("div", { class: "strip" });
  const cursor = element("div", { class: "cursor" });
  const figure = element("figure", {}, caption, stage, strip);
  const pane = { figure, framing: null, duration: 0, frames: 0, dt: 0.05, bare: false };
  let shown = null;
  let canvas = null;
  let contacts = null;
  let image = null;

  pane.show = (given) => {
    caption.textContent = given.title;
    if (shown && shown.gait === given.gait && shown.run === given.run) return;
    shown = given;
    const { gait, run } = given;
    const moving = gait?.kind === "robot" || gait?.kind === "images";
    pane.frames = moving ? gait.frames : 0;
    pane.dt = gait?.dt ?? run.robot?.dt ?? 0.05;
    pane.duration = moving ? (gait.frames - 1) * pane.dt : 0;
    pane.framing = gait?.kind === "robot" ? framingOf(gait, run.robot) : null;
    canvas = image = contacts = null;
    pane.bare = gait?.kind === "parameters";
    stage.hidden = pane.bare;
    stage.replaceChildren(...contentOf(given));
    layStrip();
    resize();
  };

  function contentOf({ gait, run, label, note }) {
    if (gait?.kind === "robot") return robotStage(run.robot, label);
    if (gait?.kind === "images") return [(image = element("img", { alt: label }))];
    if (gait?.kind === "html") return [element("iframe", { sandbox: "", srcdoc: gait.html, title: label })];
    // Parameters are among the facts, which then take the place of a picture.
    if (gait?.kind === "parameters") return [];
    return [element("div", { class: "note" }, ...note)];
  }

  function robotStage(robot, label) {
    const hint = robot.planar ? "" : "; arrow keys turn the view";
    canvas = element("canvas", { role: "img", tabindex: robot.planar ? null : 0, "aria-label": label + hint });
    canvas.style.touchAction = robot.planar ? "auto" : "none";
    if (robot.planar) return [canvas];
    orbitable(canvas, onTurn);
    const button = (glyph, name, yaw) => element("button",
      { type: "button", class: "icon", "aria-label": name, title: name, onclick: () => onTurn(yaw, 0) }, glyph);
    return [canvas, element("div", { class: "turn" },
      button("⟲", "Turn left", -3 * TURN), button("⟳", "Turn right", 3 * TURN))];
  }

  function layStrip() {
    const feet = shown.gait?.kind === "robot" ? shown.run.robot.feet : [];
    strip.hidden = feet.length === 0;
    if (!feet.length) return;
    contacts = element("canvas", { "aria-hidden": "true" });
    const names = shortLabels(feet).map((name, i) => element("span", { title: feet[i] }, name));
    strip.replaceChildren(element("div", { class: "feet" }, ...names),
      element("div", { class: "contacts" }, contacts, cursor));
    contacts.parentElement.addEventListener("pointerdown", (event) => {
      const box = contacts.getBoundingClientRect();
      onSeek(Math.round(((event.clientX - box.left) / box.width) * (pane.frames - 1)));
    });
  }

  pane.drawStrip = () => {
    if (!contacts) return;
    const feet = shown.run.robot.feet.length;
    const context = contacts.getContext("2d");
    const [width, height] = [contacts.width, contacts.height / feet];
    context.clearRect(0, 0, width, contacts.height);
    context.fillStyle = themeColour("series");
    for (let foot = 0; foot < feet; foot++) {
      for (let at = 1; at < pane.frames; at++) {
        if (!shown.gait.contact[at * feet + foot]) continue;
        const from = ((at - 1) / (pane.frames - 1)) * width;
        context.fillRect(from, foot * height + height * 0.2, width / (pane.frames - 1) + 0.6, height * 0.6);
      }
    }
  };

  pane.draw = (time, fit, orbit, colours) => {
    const at = Math.min(pane.frames - 1, time / pane.dt);
    if (canvas?.width) {
      drawScene(canvas, { robot: shown.run.robot, gait: shown.gait, framing: pane.framing, at, fit, orbit, colours });
    }
    if (image && image.at !== Math.floor(at)) {
      image.at = Math.floor(at);
      image.src = shown.gait.images[image.at];
    }
    if (contacts) cursor.style.left = `${(100 * at) / Math.max(1, pane.frames - 1)}%`;
  };

  pane.positions = (frame) => {
    if (!pane.framing) return null;
    const { poses, bodies } = shown.gait;
    return Array.from({ length: bodies }, (_, body) =>
      Array.from(poses.subarray((frame * bodies + body) * COORDINATES, (frame * bodies + body) * COORDINATES + 3)));
  };

  function resize() {
    const ratio = devicePixelRatio || 1;
    for (const one of [canvas, contacts]) {
      if (!one) continue;
      one.width = Math.round(one.clientWidth * ratio);
      one.height = Math.round(one.clientHeight * ratio);
    }
    pane.drawStrip();
  }

  new ResizeObserver(() => { if (shown) { resize(); onResize(); } }).observe(pane.figure);
  return pane;
}

function orbitable(canvas, onTurn) {
  canvas.addEventListener("pointerdown", (event) => canvas.setPointerCapture(event.pointerId));
  canvas.addEventListener("pointermove", (event) => {
    if (event.buttons) onTurn(-event.movementX * 0.01, event.movementY * 0.01);
  });
  canvas.addEventListener("keydown", (event) => {
    const way = { ArrowLeft: [-TURN, 0], ArrowRight: [TURN, 0], ArrowUp: [0, TURN], ArrowDown: [0, -TURN] }[event.key];
    if (!way) return;
    event.preventDefault();
    onTurn(...way);
  });
}
