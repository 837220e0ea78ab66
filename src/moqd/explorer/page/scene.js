// Drawing a robot: capsules and spheres on a canvas, from the side in its plane or in space from any side.

const GROUND_BAND = 34;
const GRID = 6;

/** Where the bodies are at a time between two frames; positions and quaternions as in gaits.py. */
function poseAt({ poses, bodies, frames }, at) {
  const size = bodies * COORDINATES;
  const first = Math.min(Math.floor(at), frames - 1);
  const next = Math.min(first + 1, frames - 1);
  const share = at - first;
  const pose = poses.slice(first * size, (first + 1) * size);
  if (share <= 0 || next === first) return pose;
  for (let body = 0; body < size; body += COORDINATES) {
    let same = 0;
    for (let i = 3; i < 7; i++) same += pose[body + i] * poses[next * size + body + i];
    for (let i = 0; i < 7; i++) {
      // A quaternion and its negative are the same rotation; mixed, they must lie on the same side.
      const after = poses[next * size + body + i] * (i > 2 && same < 0 ? -1 : 1);
      pose[body + i] += share * (after - pose[body + i]);
    }
  }
  return pose;
}

/** A point in the frame of a body, in the world. */
function placed(pose, body, [x, y, z]) {
  const at = body * COORDINATES;
  const length = Math.hypot(pose[at + 3], pose[at + 4], pose[at + 5], pose[at + 6]) || 1;
  const [w, a, b, c] = [3, 4, 5, 6].map((i) => pose[at + i] / length);
  const [tx, ty, tz] = [2 * (b * z - c * y), 2 * (c * x - a * z), 2 * (a * y - b * x)];
  return [
    pose[at] + x + w * tx + b * tz - c * ty,
    pose[at + 1] + y + w * ty + c * tx - a * tz,
    pose[at + 2] + z + w * tz + a * ty - b * tx,
  ];
}

function capsulesOf(robot, pose) {
  return robot.shapes.map(({ body, start, end, radius }) => {
    const tone = robot.planar && farSide(robot.bodies[body]) ? "far" : body === 0 ? "core" : "limb";
    return { start: placed(pose, body, start), end: placed(pose, body, end), radius, tone };
  });
}

/** In a plane two legs lie on each other; one of them is drawn behind, in another tone. */
function farSide(name) {
  return /left|^b(thigh|shin|foot)$/i.test(name);
}

/** Where the camera looks, smooth over about half a second, and how much room the gait takes. */
function framingOf(gait, robot) {
  const { frames, bodies, poses, dt } = gait;
  const size = bodies * COORDINATES;
  const reach = Math.round(0.4 / dt);
  const path = [0, 1, 2].map((axis) => Array.from({ length: frames }, (_, frame) => poses[frame * size + axis]));
  const target = path.map((values) => smoothed(values, reach));
  let [top, radius] = [0, 0];
  for (let frame = 0; frame < frames; frame += Math.max(1, Math.floor(frames / 50))) {
    const pose = poses.subarray(frame * size, (frame + 1) * size);
    for (const { start, end, radius: thick } of capsulesOf(robot, pose)) {
      top = Math.max(top, start[2] + thick, end[2] + thick);
      if (frame === 0) radius = Math.max(radius, ...[start, end].map(([x, y, z]) =>
        Math.hypot(x - pose[0], y - pose[1], z - pose[2])));
    }
  }
  return { path, target, top, radius };
}

function smoothed(values, reach) {
  return values.map((_, i) => {
    const near = values.slice(Math.max(0, i - reach), i + reach + 1);
    return near.reduce((sum, value) => sum + value, 0) / near.length;
  });
}

function valueAt(values, at) {
  const first = Math.min(Math.floor(at), values.length - 1);
  const next = Math.min(first + 1, values.length - 1);
  return values[first] + (values[next] - values[first]) * (at - first);
}

/** Sees the plane of x and z from the side. */
function sideCamera(width, height, target, { top }) {
  const scale = (height - GROUND_BAND - 12) / Math.max(top * 1.06, 0.3);
  const ground = height - GROUND_BAND;
  return {
    scale,
    ground,
    from: target[0] - (width * 0.45) / scale,
    to: target[0] + (width * 0.55) / scale,
    project: ([x, y, z]) => ({ x: width * 0.45 + (x - target[0]) * scale, y: ground - z * scale, scale, depth: -y }),
  };
}

/** Sees space in perspective, from a side (yaw) and height (pitch). */
function orbitCamera(width, height, target, { radius }, { yaw, pitch }) {
  const focal = 1.6 * Math.min(width, height * 1.3);
  const distance = 4.6 * Math.max(radius, 0.2);
  const [sy, cy, sp, cp] = [Math.sin(yaw), Math.cos(yaw), Math.sin(pitch), Math.cos(pitch)];
  const eye = [target[0] + distance * cp * cy, target[1] + distance * cp * sy, target[2] + distance * sp];
  return {
    distance,
    project([x, y, z]) {
      const [dx, dy, dz] = [x - eye[0], y - eye[1], z - eye[2]];
      const depth = -cp * cy * dx - cp * sy * dy - sp * dz;
      const scale = focal / Math.max(depth, 0.05);
      return { x: width / 2 + (cy * dy - sy * dx) * scale, y: height / 2 + (sp * (cy * dx + sy * dy) - cp * dz) * scale,
        scale, depth };
    },
  };
}

/** Draws a frame of a gait; `fit` is the room that all gaits shown together need. */
function drawScene(canvas, { robot, gait, framing, at, fit, orbit, colours }) {
  const ratio = devicePixelRatio || 1;
  const [width, height] = [canvas.width / ratio, canvas.height / ratio];
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = "11px system-ui, sans-serif";
  const target = framing.target.map((values) => valueAt(values, at));
  const capsules = capsulesOf(robot, poseAt(gait, at));
  const camera = robot.planar
    ? sideCamera(width, height, target, fit) : orbitCamera(width, height, target, fit, orbit);
  if (robot.planar) drawSideGround(context, width, height, camera, colours);
  else drawGrid(context, target, camera, colours);
  drawShadows(context, capsules, camera, robot.planar, colours);
  drawTrail(context, framing.path, at, camera, colours);
  const depth = ({ start, end, tone }) => (robot.planar
    ? (tone === "far" ? 1 : 0) : (camera.project(start).depth + camera.project(end).depth) / 2);
  for (const capsule of capsules.sort((a, b) => depth(b) - depth(a))) drawCapsule(context, capsule, camera, colours);
}

function drawSideGround(context, width, height, { ground, scale, from, to, project }, colours) {
  context.fillStyle = colours.ground;
  context.fillRect(0, ground, width, height - ground);
  const step = scale > 40 ? 1 : scale > 12 ? 5 : 10;
  context.textAlign = "center";
  for (let metre = Math.ceil(from / step) * step; metre <= to; metre += step) {
    const { x } = project([metre, 0, 0]);
    context.fillStyle = colours.line;
    context.fillRect(x - 0.5, 0, 1, ground);
    context.fillStyle = colours.muted;
    context.fillRect(x - 0.5, ground, 1, 7);
    if (x > 16 && x < width - 16) context.fillText(`${signed(String(metre))} m`, x, ground + 21);
  }
  context.fillStyle = colours.muted;
  context.fillRect(0, ground - 0.5, width, 1);
}

function drawGrid(context, target, camera, colours) {
  const [cx, cy] = [Math.round(target[0]), Math.round(target[1])];
  context.strokeStyle = colours.muted;
  context.fillStyle = colours.muted;
  context.textAlign = "center";
  const fade = (x, y) => Math.max(0, 1 - Math.hypot(x - target[0], y - target[1]) / GRID);
  const line = (x0, y0, x1, y1, wide) => {
    const [a, b] = [camera.project([x0, y0, 0]), camera.project([x1, y1, 0])];
    if (a.depth < 0.3 || b.depth < 0.3) return;
    context.globalAlpha = 0.55 * fade((x0 + x1) / 2, (y0 + y1) / 2);
    context.lineWidth = wide ? 1.6 : 0.8;
    context.beginPath();
    context.moveTo(a.x, a.y);
    context.lineTo(b.x, b.y);
    context.stroke();
  };
  for (let i = -GRID; i <= GRID; i++) {
    for (let j = -GRID; j < GRID; j++) {
      line(cx + i, cy + j, cx + i, cy + j + 1, cx + i === 0);
      line(cx + j, cy + i, cx + j + 1, cy + i, cy + i === 0);
    }
    const mark = camera.project([cx + i, cy - 1, 0]);
    context.globalAlpha = mark.depth > 0.3 ? fade(cx + i, cy - 1) : 0;
    context.fillText(`${signed(String(cx + i))} m`, mark.x, mark.y + 12);
  }
  context.globalAlpha = 1;
}

/** The light comes from above; all shadows are one shape, so that they do not darken each other. */
function drawShadows(context, capsules, camera, planar, colours) {
  context.beginPath();
  for (const { start, end, radius } of capsules) {
    const [a, b] = [start, end].map(([x, y]) => camera.project([x, y, 0]));
    if (planar) {
      const [x, wide] = [(a.x + b.x) / 2, Math.abs(a.x - b.x) / 2 + radius * a.scale];
      context.moveTo(x + wide, a.y + 4);
      context.ellipse(x, a.y + 4, wide, 3.5, 0, 0, 2 * Math.PI);
    } else hull(context, a, b, radius * a.scale, radius * b.scale);
  }
  context.globalAlpha = 0.14;
  context.fillStyle = colours.shadow;
  context.fill();
  context.globalAlpha = 1;
}

/** Where the first body has been. */
function drawTrail(context, path, at, camera, colours) {
  context.beginPath();
  for (let frame = Math.max(0, Math.floor(at) - 150); frame <= at; frame++) {
    const { x, y } = camera.project(path.map((values) => values[frame]));
    context.lineTo(x, y);
  }
  context.strokeStyle = colours.accent;
  context.globalAlpha = 0.5;
  context.lineWidth = 1.5;
  context.stroke();
  context.globalAlpha = 1;
}

/** Adds the outline of two discs and what lies between them to the path. */
function hull(context, a, b, ra, rb) {
  const distance = Math.hypot(b.x - a.x, b.y - a.y);
  if (distance <= Math.abs(ra - rb) + 1e-6) {
    const [disc, radius] = ra >= rb ? [a, ra] : [b, rb];
    context.moveTo(disc.x + radius, disc.y);
    context.arc(disc.x, disc.y, radius, 0, 2 * Math.PI);
    return;
  }
  const along = Math.atan2(b.y - a.y, b.x - a.x);
  const spread = Math.acos((ra - rb) / distance);
  context.moveTo(a.x + ra * Math.cos(along + spread), a.y + ra * Math.sin(along + spread));
  context.arc(a.x, a.y, ra, along + spread, along - spread + 2 * Math.PI);
  context.arc(b.x, b.y, rb, along - spread, along + spread);
  context.closePath();
}

/** Light comes from above: a capsule is shaded across its axis, a sphere around its upper side. */
function drawCapsule(context, { start, end, radius, tone }, camera, colours) {
  const [a, b] = [camera.project(start), camera.project(end)];
  const [ra, rb] = [radius * a.scale, radius * b.scale];
  const [mx, my, thick] = [(a.x + b.x) / 2, (a.y + b.y) / 2, Math.max(ra, rb)];
  const distance = Math.hypot(b.x - a.x, b.y - a.y);
  const [light, base, dark] = colours[tone];
  let paint;
  if (distance < 0.4 * thick) {
    paint = context.createRadialGradient(mx - 0.3 * thick, my - 0.4 * thick, 0, mx, my, thick * 1.15);
  } else {
    let [nx, ny] = [(b.y - a.y) / distance, -(b.x - a.x) / distance];
    // Across the axis, towards the light: up and a little to the left.
    if (nx + 2 * ny > 0) [nx, ny] = [-nx, -ny];
    paint = context.createLinearGradient(mx + nx * thick, my + ny * thick, mx - nx * thick, my - ny * thick);
  }
  paint.addColorStop(0, light);
  paint.addColorStop(0.5, base);
  paint.addColorStop(1, dark);
  context.beginPath();
  hull(context, a, b, ra, rb);
  context.fillStyle = paint;
  context.fill();
  context.strokeStyle = colours.outline;
  context.lineWidth = 1;
  context.stroke();
}

/** The colours of a scene in the current theme: of each tone its light, its own and its dark side. */
function sceneColours() {
  const names = ["ground", "line", "muted", "accent", "shadow", "outline"];
  const colours = Object.fromEntries(names.map((name) => [name, themeColour(name)]));
  for (const tone of ["core", "limb", "far"]) {
    const own = channels(themeColour(`robot-${tone}`));
    const mixed = (other, share) => `rgb(${own.map((value) => Math.round(value + (other - value) * share)).join(",")})`;
    colours[tone] = [mixed(255, 0.38), mixed(255, 0), mixed(0, 0.35)];
  }
  return colours;
}
