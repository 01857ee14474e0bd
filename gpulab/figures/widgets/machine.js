// The machine in the browser: it draws what Python has simulated, and sends edits to Python. The
// program is in Python. Only what needs no answer is here: the view, the selection, and the preview
// of a drag. Times are microseconds since the start of the program. A *place* is the index of an
// operation.
//
// This is one file, because a widget's script reaches the browser as one module. Each class has one
// task and depends only on the classes above it:
//
//   Scale      which times are in view, and where they are on the screen
//   Chart      lanes, bars, marks and arrows as SVG
//   Side       readings, sliders, the fields of an operation, and texts
//   Hand       mouse and keyboard
//   Machine    creates the others, and exchanges messages with Python

const STYLE = `${LOOK}
.gpulab-machine { padding: 4px 2px 8px; container-type: inline-size; --gm-on-copy: light-dark(var(--gpulab-ink), var(--gpulab-paper)); --gpulab-sleep: var(--gpulab-muted); }
.gpulab-machine .gm-row { display: flex; flex-wrap: wrap; gap: 4px 6px; align-items: center; margin: 4px 0; }
.gpulab-machine .gm-row .push { margin-left: auto; }
.gpulab-machine button, .gpulab-machine select { padding: 0 9px; margin: 0; }
.gpulab-machine input[type=number], .gpulab-machine input[type=text] { font: inherit; min-height: 26px; padding: 0 9px; min-width: 0;
  color: var(--gpulab-ink); background: var(--gpulab-paper); border: 1px solid var(--gpulab-muted); border-radius: 4px; }
.gpulab-machine [aria-invalid] { outline: 2px dashed var(--gpulab-ink); outline-offset: 1px; }
.gpulab-machine button:disabled { opacity: .5; cursor: default; }
.gpulab-machine .palette { column-gap: 3px; }
.gpulab-machine .palette button { touch-action: none; display: inline-flex; gap: 4px; align-items: center; padding: 0 5px; font-size: 13px; }
.gpulab-machine .palette i { width: 10px; height: 10px; border-radius: 2px; display: inline-block; }
.gpulab-machine .stage { border: 1px solid var(--gpulab-muted); border-radius: 4px; position: relative; touch-action: pan-y; }
.gpulab-machine svg.chart { display: block; width: 100%; user-select: none; }
.gpulab-machine svg text { fill: var(--gpulab-ink); font-size: 13px; }
.gpulab-machine svg .grid { stroke: var(--gpulab-faint); stroke-width: 1; }
.gpulab-machine svg .lane { fill: transparent; }
.gpulab-machine svg .lane.free { fill: var(--gpulab-faint); opacity: .45; }
.gpulab-machine svg .lane.over { fill: var(--gpulab-muted); opacity: .3; }
.gpulab-machine svg .task { cursor: grab; }
.gpulab-machine svg rect.body { stroke: var(--gpulab-paper); stroke-width: 1; }
.gpulab-machine svg rect.body.narrow { stroke: none; }
.gpulab-machine svg .end { cursor: ew-resize; fill: transparent; }
.gpulab-machine svg .chosen .dial { stroke-width: 3.5; }
.gpulab-machine svg .chosen rect.body, .gpulab-machine svg .chosen path.body { stroke: var(--gpulab-ink); stroke-width: 3; }
.gpulab-machine svg .doubt { fill: none; stroke: var(--gpulab-ink); stroke-width: 2; stroke-dasharray: 5 3; }
.gpulab-machine svg .link { fill: none; stroke: var(--gpulab-launch); stroke-width: 1; opacity: .6; }
.gpulab-machine svg .link.strong { opacity: 1; stroke-width: 2; }
.gpulab-machine svg .order { fill: none; stroke: var(--gpulab-event); stroke-width: 1.6; stroke-dasharray: 5 3; }
.gpulab-machine svg .ghost { opacity: .6; pointer-events: none; }
.gpulab-machine .below { display: grid; grid-template-columns: minmax(0, 1.5fr) minmax(0, 1fr); gap: 8px 26px; margin-top: 8px; }
.gpulab-machine.gpulab-presents .below { grid-template-columns: minmax(0, 1fr); }
@container (max-width: 720px) { .gpulab-machine .below { grid-template-columns: minmax(0, 1fr); } }
.gpulab-machine .title { font-size: 1em; font-weight: 600; margin: 2px 0 4px; }
.gpulab-machine .readings { display: grid; grid-template-columns: auto minmax(70px, 1fr) auto auto; gap: 3px 10px; align-items: center; position: relative; margin: 0; padding: 0; list-style: none; }
.gpulab-machine .readings li { display: contents; }
.gpulab-machine .readings li > :first-child { white-space: nowrap; }
.gpulab-machine .readings .own { font-weight: 600; }
.gpulab-machine .track { position: relative; height: 1.15em; }
.gpulab-machine .track b { position: absolute; inset: 1px auto 1px 0; border-radius: 2px; min-width: 2px; box-sizing: border-box; background: var(--gpulab-muted); }
.gpulab-machine .track b.wrong { border: 1px solid var(--gpulab-muted); background: repeating-linear-gradient(135deg, var(--gpulab-muted) 0 2px, transparent 2px 7px); }
.gpulab-machine .track b.beyond { border-radius: 2px 0 0 2px; clip-path: polygon(0 0, calc(100% - 7px) 0, 100% 50%, calc(100% - 7px) 100%, 0 100%); }
.gpulab-machine .track u { position: absolute; top: -3px; bottom: -3px; width: 2px; margin-left: -1px; background: var(--gpulab-ink); }
.gpulab-machine .readings .number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.gpulab-machine .readings .why { white-space: nowrap; }
.gpulab-machine .fields { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 5px 10px; align-items: center; }
.gpulab-machine .fields .wide { grid-column: 1 / -1; }
.gpulab-machine .fields input[type=range] { width: 100%; accent-color: var(--gpulab-host); }
.gpulab-machine .slide { display: grid; grid-template-columns: minmax(0, 1fr) 62px; gap: 8px; align-items: center; }
.gpulab-machine .problem { border-left: 4px solid var(--gpulab-ink); padding: 2px 8px; margin: 6px 0; }
.gpulab-machine .remarks { margin: 6px 0 0; padding: 0; list-style: none; }
.gpulab-machine .remarks li { border-left: 4px solid var(--gpulab-muted); padding: 1px 8px; margin: 4px 0; }
.gpulab-machine .remarks li.race, .gpulab-machine .remarks li.deadlock { border-color: var(--gpulab-ink); font-weight: 600; }
.gpulab-machine .goal { border: 1px solid var(--gpulab-muted); border-radius: 4px; padding: 6px 10px; margin: 4px 0; }
.gpulab-machine .goal.solved { border: 3px double var(--gpulab-ink); }
.gpulab-machine .told { min-height: 1.45em; margin: 0; }
.gpulab-machine .quiet { color: var(--gpulab-muted); }
.gpulab-machine details { margin: 4px 0; }
.gpulab-machine pre { font: 13px/1.45 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; max-height: 320px; overflow: auto; margin: 4px 0; color: inherit; background: none; }
.gpulab-machine [hidden] { display: none; }
`;

const KEYS = [
  ["← →", "operation before, after"],
  ["Shift + ← →", "shorter, longer"],
  ["↑ ↓", "to another stream"],
  ["Alt + ← →", "called earlier, later"],
  ["K C U O G L", "drop in a kernel, a copy in, one from pageable (unpinned) memory, a copy out, a graph, a sleep"],
  ["E W S T", "drop in an event, a wait, a synchronize, a reading of the clock"],
  ["Delete", "take it out"],
  ["Ctrl + Z, Ctrl + Y", "undo, redo"],
  ["+ − 0", "zoom in, zoom out, show all"],
  ["Enter", "to its fields"],
  ["P", "show it alone, in large type; there D changes light and dark, Esc ends it"],
];
const PALETTE = [
  ["k", "Kernel", "kernel", true, "kernel"],
  ["c", "Copy, pinned", "copy in", true, "copy"],
  ["u", "Copy, pageable", "copy in", false, "copy"],
  ["o", "Copy out", "copy out", true, "copy"],
  ["g", "Graph", "graph", true, "kernel"],
  ["l", "Sleep", "sleep", true, "sleep"],
  ["e", "Event", "record", true, "event"],
  ["w", "Wait", "wait", true, "wait"],
  ["s", "Synchronize", "synchronize", true, "host"],
  ["t", "Clock", "clock", true, "host"],
];
const DEPTHS = [4, 8, 16, 32, 64, 128, 256, 512, 1022];
const TURNS = [1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 500, 1000];
const ON_HOST = ["synchronize", "clock"], TIMED = ["kernel", "copy in", "copy out", "sleep", "graph"];
const LEFT = 92, RIGHT = 14, AXIS = 24, ROW = 38, BAR = 24, ENGINE = 22, THIN = 12, FREE = 26;
const END_PX = 7, MOVED_PX = 5, LETTER_PX = 7.4, TYPE_PX = 14;
const ZOOM = 1.6, MOST_LINKS = 24, GAP_US = 2, THIN_PX = 5, SAID_MS = 3000, MOST_STEPS = 4, MOST_HURRIES = 3;
// The role whose colour a kind of task has, and the colour of the text on it.
const ROLE = { "copy in": "copy", "copy out": "copy", record: "event" };

export default { render };

function render({ model, el }) {
  const machine = new Machine(el, model);
  return () => machine.close();
}

// Returns the text of a tick, a round number: without the zeros at its end, and without a unit at 0.
function tickText(us) {
  if (us === 0) return "0";
  const [number, unit] = time(us).split(" ");
  return `${Number(number)} ${unit}`;
}

// These set a text or an attribute only if it differs, because the browser lays out again what is set.
function set(element, name, value) { if (element.getAttribute(name) !== value) element.setAttribute(name, value); }

function say(element, text) { if (element.textContent !== text) element.textContent = text; }

function times(n, words) { return n > 1 ? `${n.toLocaleString("en")} × ${words}` : words; }

function fillOf(kind) { return `var(--gpulab-${ROLE[kind] ?? kind})`; }

// A border of paper separates neighbours, but would hide most of a bar of few pixels.
function bodyOf(width) { return width < THIN_PX ? "body narrow" : "body"; }

function inkOn(kind) { return ROLE[kind] === "copy" ? "var(--gm-on-copy)" : "var(--gpulab-paper)"; }

let nCharts = 0;

// ---------------------------------------------------------------- which times are in view

class Scale {
  constructor() {
    Object.assign(this, { from: 0, to: 1, width: 900, fits: true, zoomed: 1 }); // zoomed: scale of the type in a presentation
  }

  fit(end) {
    if (this.fits) Object.assign(this, { from: 0, to: Math.max(end, 1) * 1.03 });
  }

  x(us) { return LEFT + (this.width - LEFT - RIGHT) * (us - this.from) / (this.to - this.from); }

  us(x) { return this.from + (x - LEFT) * (this.to - this.from) / (this.width - LEFT - RIGHT); }

  zoom(factor, around) {
    this.fits = false;
    this.from = around - (around - this.from) / factor;
    this.to = around + (this.to - around) / factor;
  }

  pan(share) {
    this.fits = false;
    const by = share * (this.to - this.from);
    this.from += by;
    this.to += by;
  }

  ticks() {
    const rough = (this.to - this.from) / Math.max(2, this.width / 130);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].find(each => each * power >= rough) * power;
    const found = [];
    for (let us = Math.ceil(this.from / step) * step; us <= this.to; us += step) found.push(Number(us.toPrecision(8)));
    return found.filter(us => us >= 0);
  }
}

// ---------------------------------------------------------------- the picture

class Chart {
  constructor(scale) {
    this.scale = scale;
    this.svg = drawn("svg", { class: "chart", role: "group", tabindex: "0" });
    nCharts += 1;
    this.hatching = `gm-hatch-${nCharts}`; // An own id for each picture: a pattern that is found in a hidden picture draws nothing.
    this.defs = drawn("defs", {}, drawn("pattern", { id: this.hatching, width: 7, height: 7, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
      drawn("rect", { width: 7, height: 7, style: "fill: var(--gpulab-wait)", "fill-opacity": 0.35 }), drawn("rect", { width: 3, height: 7, style: "fill: var(--gpulab-wait)" })));
    this.ground = drawn("g");
    this.layer = drawn("g");
    this.svg.append(this.defs, this.ground, this.layer);
  }

  take(view) {
    this.view = view;
    const engines = ["compute", "copy in", "copy out"].filter(name => view.tasks.some(task => task[4] === name));
    const lanes = [{ name: "host", kind: "host", height: ROW }];
    for (let number = 0; number < view.n_streams; number++) lanes.push({ name: `stream ${number}`, kind: "stream", number, height: ROW });
    if (view.n_streams < view.limits.streams) lanes.push({ name: "+ stream", kind: "free", number: view.n_streams, height: FREE });
    lanes.push(...engines.map(name => ({ name, kind: "engine", height: ENGINE })));
    let top = AXIS;
    for (const lane of lanes) { lane.top = top; top += lane.height; }
    this.lanes = lanes;
    this.height = top + 4;
    this.scale.fit(view.end);
    this.doubted = new Set(view.remarks.flatMap(each => each.places));
  }

  lane(kind, name) { return this.lanes.find(lane => lane.kind === kind && (name === undefined || lane.number === name || lane.name === name)); }

  laneAt(y) { return this.lanes.find(lane => y >= lane.top && y < lane.top + lane.height); }

  draw(chosen) {
    const { svg, scale, view } = this;
    set(svg, "viewBox", `0 0 ${scale.width} ${this.height}`);
    set(svg, "height", `${this.height * scale.zoomed}`);
    this.drawLanes();
    const parts = [];
    for (const us of scale.ticks()) {
      const x = scale.x(us);
      parts.push(drawn("path", { class: "grid", d: `M${x} ${AXIS}V${this.height}` }), label(x, 16, tickText(us), "middle"));
    }
    const left = LEFT - 9, wide = Math.max(1, scale.width - left); // a mark at 0 has room
    const clip = drawn("svg", { x: left, y: 0, width: wide, height: this.height, viewBox: `${left} 0 ${wide} ${this.height}` });
    clip.append(...this.links(chosen), ...this.calls(chosen), ...this.tasks(chosen), ...this.orders());
    parts.push(clip);
    this.layer.replaceChildren(...parts);
    const shown = [...view.words, ...view.readings.map(each => each.text)].join(" ");
    svg.setAttribute("aria-label", `The machine, ${view.operations.length} operations. ${shown.slice(0, 600)}`);
  }

  // Draws the lanes anew only if they have changed: texts are the slowest part of a picture.
  drawLanes() {
    const { scale, view } = this;
    for (const lane of this.lanes) lane.isIdle = lane.kind === "stream" && !view.tasks.some(task => task[3] === lane.number);
    const key = JSON.stringify([scale.width, this.lanes]);
    if (key === this.laneKey) return;
    this.laneKey = key;
    this.ground.replaceChildren(...this.lanes.flatMap(lane => [
      drawn("rect", { class: `lane ${lane.kind}`, x: 0, y: lane.top, width: scale.width, height: lane.height, "data-lane": lane.name }),
      drawn("path", { class: "grid", d: `M0 ${lane.top}H${scale.width}` }),
      label(8, lane.top + lane.height / 2 + 4.5, lane.name),
      ...(lane.isIdle ? [label(LEFT + 8, lane.top + lane.height / 2 + 4.5, "no work")] : []),
    ]));
  }

  // Draws neighbours that are narrower than a pixel as one bar. Otherwise a loop of 1,000 launches
  // would need thousands of elements in each frame. A bar of more than 400 pixels is not extended.
  merged(items, start, end, same) {
    const found = [];
    for (const item of items) {
      const [x, right] = [this.scale.x(start(item)), this.scale.x(end(item))];
      if (right < LEFT - 40 || x > this.scale.width + 40) continue;
      const last = found.at(-1);
      if (last && right - x < 1.2 && x - last.right < 1 && last.right - last.x < 400 && same(last.item, item)) Object.assign(last, { right: Math.max(last.right, right), n: last.n + 1 });
      else found.push({ item, x, right, n: 1 });
    }
    return found;
  }

  calls(chosen) {
    const { view } = this, top = this.lane("host").top + (ROW - BAR) / 2;
    const bars = this.merged(view.calls, call => call[2], call => call[3], (one, other) => one[0] === other[0] && !one[4] === !other[4]);
    return bars.map(({ item: [place, turn, , end, waited, room, stuck], x, right, n }) => {
      const width = Math.max(2, right - x), { kind } = view.operations[place];
      const group = drawn("g", { class: `task call${place === chosen ? " chosen" : ""}`, "data-place": place, "data-turn": turn, "data-role": "call" });
      group.append(drawn("rect", { class: bodyOf(width), x, y: top, width, height: BAR, rx: 2, style: `fill: ${fillOf("host")}` }));
      if (waited || stuck) {
        const from = stuck ? x : this.scale.x(end - waited);
        group.append(drawn("rect", { x: from, y: top, width: Math.max(1, right - from), height: BAR, style: `fill: url(#${this.hatching}); stroke: ${fillOf("wait")}` }));
      }
      if (kind === "clock") group.append(...clock(x, top));
      const words = times(n, stuck ? "never comes back" : room ? "queue full" : waited ? "waits" : kind);
      const from = waited && !stuck ? Math.max(x, this.scale.x(end - waited)) : x;
      if (right - from > words.length * LETTER_PX + 8) group.append(...plate(Math.max(from, LEFT), top, words, waited || stuck ? "wait" : "host", Boolean(waited || stuck)));
      group.append(drawn("title", {}, view.operations[place].text));
      return group;
    });
  }

  tasks(chosen) {
    const { view } = this, found = [];
    for (const lane of this.lanes) {
      if (lane.kind !== "stream" && lane.kind !== "engine") continue;
      const own = view.tasks.filter(task => (lane.kind === "stream" ? task[3] === lane.number : task[4] === lane.name));
      for (const bar of this.merged(own, task => task[6], task => task[7], (one, other) => one[0] === other[0] && one[2] === other[2])) {
        found.push(lane.kind === "stream" ? this.task(lane, bar, chosen) : this.thin(lane, bar));
      }
    }
    if (this.drag) found.push(this.ghost(this.drag));
    return found.filter(Boolean);
  }

  task(lane, { item: [place, turn, kind, , , , start, end, stuck], x, right, n }, chosen) {
    const { view } = this, operation = view.operations[place], top = lane.top + (ROW - BAR) / 2;
    const group = drawn("g", { class: `task${place === chosen ? " chosen" : ""}`, "data-place": place, "data-turn": turn, "data-role": "task", "data-kind": kind });
    group.append(drawn("title", {}, `${operation.text}\n${stuck ? "can never run" : `${time(start)} to ${time(end)}`}`));
    if ((kind === "record" || kind === "wait") && !stuck) {
      const y = top + BAR;
      const shape = kind === "record" ? `M${x} ${y}V${top - 4}l11 5l-11 5` : `M${x - 6} ${top}h12l-12 ${BAR}h12z`;
      group.append(drawn("path", { class: "body", d: shape, style: `fill: ${fillOf(kind)}; stroke-width: 1.5`, stroke: "currentColor" }), drawn("rect", { x: x - 8, y: top - 4, width: 18, height: BAR + 6, fill: "transparent" }));
      if (operation.event.length < 6) group.append(label(x + 8, y, operation.event));
      if (this.doubted.has(place)) group.append(frame(x - 6, top, 12));
      return group;
    }
    const width = Math.max(2, right - x);
    group.append(drawn("rect", { class: bodyOf(width), x, y: top, width, height: BAR, rx: 2, style: `fill: ${stuck ? `url(#${this.hatching})` : fillOf(kind)}` }));
    if (this.doubted.has(place)) group.append(frame(x, top, width));
    if (kind === "copy in" || kind === "copy out") group.append(drawn("path", { d: operation.is_pinned ? `M${x} ${top + BAR - 3}h${width}` : `M${x} ${top + 2}h${width}M${x} ${top + BAR - 3}h${width}`, style: `stroke: ${inkOn(kind)}`, "stroke-width": 2, "stroke-dasharray": operation.is_pinned ? "none" : "3 3", "pointer-events": "none" }));
    const words = this.name(operation, kind, stuck, width, n);
    if (words) group.append(...plate(Math.max(x, LEFT), top, words, kind, Boolean(stuck)));
    if (TIMED.includes(operation.kind) && !stuck) {
      const wide = Math.min(END_PX, width / 2);
      group.append(drawn("rect", { class: "end", x: right - wide, y: top, width: wide + END_PX, height: BAR }));
    }
    return group;
  }

  name(operation, kind, stuck, width, n) {
    const names = stuck ? [`${kind}: stuck`, "stuck"]
      : kind === "kernel" ? [`kernel ${operation.buffer}  ${time(operation.duration_us)}`, `kernel ${operation.buffer}`, operation.buffer]
      : kind === "sleep" ? [`sleep  ${time(operation.duration_us)}`, "sleep"]
      : [`${kind} ${operation.buffer}, ${operation.is_pinned ? "pinned" : "pageable"}  ${time(operation.duration_us)}`, `${kind} ${operation.buffer}`, operation.buffer];
    return names.map(words => times(n, words)).find(words => words.length * LETTER_PX + 8 < width);
  }

  thin(lane, { item: [, , kind, , , , , , stuck], x, right }) {
    if (stuck) return null;
    return drawn("rect", { x, y: lane.top + (ENGINE - THIN) / 2, width: Math.max(1, right - x), height: THIN, style: `fill: ${fillOf(kind)}` });
  }

  // Returns lines from the end of each call to the task that it starts on the GPU. If there are many,
  // only those of the selected operation are drawn.
  links(chosen) {
    const { view, scale } = this, host = this.lane("host").top + (ROW + BAR) / 2;
    const shown = view.tasks.filter(task => view.tasks.length <= MOST_LINKS || task[0] === chosen);
    return shown.slice(0, 2 * MOST_LINKS).map(([place, , , stream, , called, start]) => {
      const to = this.lane("stream", stream).top + (ROW - BAR) / 2;
      return drawn("path", { class: `link${place === chosen ? " strong" : ""}`, d: `M${scale.x(called)} ${host}L${scale.x(start)} ${to}` });
    });
  }

  // Returns lines from the record of an event to the waits in other streams that depend on it.
  orders() {
    const { view, scale } = this, recorded = new Map(), found = [];
    for (const [place, , kind, stream, , , start, , stuck] of view.tasks) {
      const event = view.operations[place].event;
      if (kind === "record") recorded.set(event, [stream, start]);
      else if (kind === "wait" && !stuck && recorded.has(event) && found.length < MOST_LINKS) {
        const [from, at] = recorded.get(event);
        if (from !== stream) found.push(drawn("path", { class: "order", d: `M${scale.x(at)} ${this.lane("stream", from).top + ROW / 2}L${scale.x(start)} ${this.lane("stream", stream).top + ROW / 2}` }));
      }
    }
    return found;
  }

  ghost({ x, y, width, text, kind }) {
    const role = ON_HOST.includes(kind) ? "host" : kind === "graph" ? "kernel" : kind;
    const wide = Math.max(width, text.length * LETTER_PX + 10);
    const group = drawn("g", { class: "ghost" }, drawn("rect", { x, y, width: wide, height: BAR, rx: 2, style: `fill: ${fillOf(role)}` }));
    group.append(...plate(x, y, text, role, role === "wait"));
    return group;
  }
}

function label(x, y, text, anchor = "start") {
  return drawn("text", { x, y, "text-anchor": anchor, "pointer-events": "none" }, text);
}

// Returns a frame around an operation that a remark is about.
function frame(x, top, width) {
  return drawn("rect", { class: "doubt", x: x - 3, y: top - 3, width: width + 6, height: BAR + 6, rx: 3 });
}

// Returns a stopwatch on a line: a reading of the clock takes almost no time, so it has no bar.
function clock(x, top) {
  const look = { fill: "none", stroke: "currentColor", "stroke-width": 1.8 };
  return [drawn("rect", { x: x - 7, y: top - 7, width: 14, height: BAR + 8, fill: "transparent" }),
    drawn("path", { d: `M${x} ${top + BAR}V${top + 3}`, ...look }), drawn("circle", { class: "dial", cx: x, cy: top - 1, r: 4.5, ...look })];
}

// Returns a text, with a rectangle of paper behind it where hatching would make it unreadable.
function plate(x, top, words, kind, hasPaper) {
  const text = label(x + 5, top + BAR / 2 + 4.5, words);
  text.setAttribute("style", `fill: ${hasPaper ? "var(--gpulab-ink)" : inkOn(kind)}`);
  if (!hasPaper) return [text];
  return [drawn("rect", { x: x + 2, y: top + 3, width: words.length * LETTER_PX + 4, height: BAR - 6, rx: 2, style: "fill: var(--gpulab-paper)", "pointer-events": "none" }), text];
}

// ---------------------------------------------------------------- beside the picture

class Side {
  constructor(machine) {
    this.machine = machine;
    this.readings = tag("ul", { class: "readings", "aria-label": "Readings" });
    this.truth = tag("p", { class: "title" });
    this.remarks = tag("ul", { class: "remarks", "aria-label": "Remarks" });
    this.fields = tag("div", { class: "fields" });
    this.heading = tag("p", { class: "title" });
    this.problem = tag("p", { class: "problem", role: "alert", hidden: "" });
    this.sliders = tag("div", { class: "fields" });
    this.goal = tag("div", { class: "goal", hidden: "" });
    this.words = tag("ul");
    this.code = tag("pre", { tabindex: "0" });
    this.link = tag("pre", { tabindex: "0" });
    this.slides = {};
    this.filled = [];
    this.slide("launch_us", "Launch of a kernel", { min: 1, max: 50, step: 0.5 }, value => value, value => `${value} µs`);
    this.slide("queue_depth", "Launch queue", { min: 0, max: DEPTHS.length - 1, step: 1 }, index => DEPTHS[index], value => `${value}`, DEPTHS);
    this.slide("repetitions", "Repetitions n", { min: 0, max: TURNS.length - 1, step: 1 }, index => TURNS[index], value => `${value}`, TURNS);
    this.element = tag("div", {}, this.goal,
      tag("div", { class: "below" }, tag("div", {}, this.truth, this.readings, this.remarks),
        tag("div", { class: "gpulab-controls" }, this.heading, this.fields, this.problem, tag("p", { class: "title" }, "Host"), this.sliders)),
      tag("div", { class: "gpulab-controls" }, details("As PyTorch code", tag("div", { class: "gm-row" }, copier("Copy the code", this.code)), this.code),
      details("In words", this.words),
      details("Link: one line that puts this program on a machine", tag("div", { class: "gm-row" }, copier("Copy the line", this.link)), this.link),
      details("Keys, once the picture has the focus", tag("ul", {}, ...KEYS.map(([key, text]) => tag("li", {}, tag("b", {}, key), ` ${text}`))))));
    for (const each of [this.words, this.code, this.link]) each.closest("details").addEventListener("toggle", () => this.showTexts());
  }

  slide(field, text, range, read, write, known) {
    const id = `gm-${field}-${Math.random().toString(36).slice(2)}`;
    const input = tag("input", { type: "range", id, "data-field": field, ...range }), shown = tag("output", { for: id });
    const turn = value => (known ? nearest(known, value) : value);
    input.addEventListener("input", () => {
      shown.textContent = write(read(Number(input.value)));
      input.setAttribute("aria-valuetext", shown.textContent);
      this.machine.ask({ do: "tune", field, value: read(Number(input.value)), gesture: this.machine.gesture(input) });
    });
    input.addEventListener("change", () => this.machine.newGesture());
    input.addEventListener("keydown", event => {
      const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, Home: -Infinity, End: Infinity }[event.key];
      if (!step) return;
      event.preventDefault(); // by hand, because JupyterLab keeps these keys from the browser
      event.stopPropagation();
      const wanted = Number(input.value) + step * range.step;
      input.value = Math.min(range.max, Math.max(range.min, wanted));
      input.dispatchEvent(new Event("input"));
      this.machine.newGesture();
    });
    this.sliders.append(tag("label", { for: id }, text), tag("span", { class: "slide" }, input, shown));
    this.slides[field] = value => {
      if (this.machine.isBusy || this.machine.next) return; // an older answer must not move the slider back
      if (Number(input.value) !== turn(value)) input.value = turn(value);
      say(shown, write(value));
      input.setAttribute("aria-valuetext", shown.textContent);
    };
  }

  show(view) {
    this.view = view;
    for (const field of Object.keys(this.slides)) this.slides[field](view[field]);
    this.showReadings();
    const remarks = JSON.stringify(view.remarks);
    if (remarks !== this.remarked) this.remarks.replaceChildren(...view.remarks.map(each => tag("li", { class: each.kind }, each.text)));
    this.remarked = remarks;
    this.showTexts();
    this.showGoal();
    this.showFields();
    this.showProblem(view.problem);
  }

  showProblem({ text, field }) {
    this.problem.hidden = !text;
    say(this.problem, text || "");
    for (const input of this.element.querySelectorAll("[data-field]")) {
      if (text && input.dataset.field === field) input.setAttribute("aria-invalid", "true");
      else input.removeAttribute("aria-invalid");
    }
  }

  forget() { this.showProblem(this.view.problem = {}); }

  // Fills only texts whose box is open: a drag must not wait for texts that nobody sees.
  showTexts() {
    const { view } = this;
    for (const [element, fill] of [
      [this.words, () => this.words.replaceChildren(...view.words.map(line => tag("li", {}, line)))],
      [this.code, () => { this.code.textContent = view.code; }],
      [this.link, () => { this.link.textContent = view.link; }],
    ]) if (element.closest("details").open) fill();
  }

  showReadings() {
    const { readings } = this.view;
    say(this.truth, readings.length ? `What each method reads; the truth is ${readings[0].truth_shown}` : "No readings");
    if (!readings.length) { this.nameReadings([]); return; }
    const { truth } = readings[0];
    // A bar ends at three times the truth; otherwise one far reading would make all others too
    // short.
    const most = Math.min(Math.max(truth, ...readings.map(each => each.value || 0)), 3 * truth) * 1.02;
    this.nameReadings(readings.map(each => each.name));
    readings.forEach((each, number) => {
      const { bar, line, shown, why } = this.rows[number];
      bar.hidden = each.value === null;
      bar.style.width = `${100 * Math.min(1, (each.value || 0) / most)}%`;
      bar.className = `${each.right ? "" : "wrong"} ${(each.value || 0) > most ? "beyond" : ""}`;
      line.style.left = `${100 * truth / most}%`;
      say(shown, each.shown);
      say(why, each.right ? "✓ right" : `✗ ${each.reason}`);
    });
  }

  // Makes a row for each method; rows of the same methods stay, which is faster than new ones.
  nameReadings(names) {
    const key = names.join();
    if (key === this.names) return;
    this.names = key;
    this.rows = names.map(name => ({ name, bar: tag("b"), line: tag("u"), shown: tag("span", { class: "number" }), why: tag("span", { class: "why" }) }));
    this.readings.replaceChildren(...this.rows.map(({ name, bar, line, shown, why }) => tag("li", { "data-name": name },
      tag("span", { class: name.startsWith("your") ? "own" : "" }, name), tag("span", { class: "track", "aria-hidden": "true" }, bar, line), shown, why)));
  }

  showGoal() {
    const { goal, said, tried } = this.view, key = JSON.stringify([goal, said, tried]);
    if (key === this.goalKey) return; // also for screen readers, which would say it again
    this.goalKey = key;
    this.goal.hidden = !goal;
    this.goal.classList.toggle("solved", Boolean(goal) && !said);
    const log = tag("ol", {}, ...tried.map(text => tag("li", {}, text || "Solved.")));
    this.goal.replaceChildren(tag("b", {}, goal), tag("div", { class: "said", role: "status" }, said ? `Not yet. ${said}` : "✓ Solved."),
      ...(tried.length ? [details(`Tried: ${tried.length}`, log, this.isLogOpen, open => { this.isLogOpen = open; })] : []));
  }

  showFields() {
    const { machine, view } = this, place = machine.chosen, operation = view.operations[place];
    const key = JSON.stringify([place, operation, view.n_streams, view.operations.length, view.operations.map(each => each.event)]);
    if (key === this.key && !view.problem.text) return;
    if (view.problem.text && this.fields.contains(document.activeElement)) return; // keep what was typed, beside the message about it
    this.key = key;
    say(this.heading, operation ? `Operation ${operation.text}` : "Choose an operation, or drop one in");
    const form = JSON.stringify([operation?.kind, view.n_streams, operation?.kind === "wait" && this.events(operation)]);
    if (form !== this.form) this.makeFields(form, operation);
    for (const [input, value] of this.filled) if (input.value !== value(operation)) input.value = value(operation);
  }

  // Makes the fields of a kind of operation. They stay while others of the kind are chosen, because
  // new fields are slow.
  makeFields(form, operation) {
    const active = this.fields.contains(document.activeElement) ? document.activeElement.dataset.field : null;
    this.form = form;
    this.filled = [];
    this.fields.replaceChildren(...(operation ? this.inputs(operation) : []));
    if (active) this.fields.querySelector(`[data-field="${active}"]`)?.focus();
  }

  events(operation) {
    return [...new Set([operation.event, ...this.view.operations.filter(each => each.kind === "record").map(each => each.event)])];
  }

  inputs(operation) {
    const { machine, view, form } = this, found = [];
    const add = (text, input, field, read, value = each => String(each[field])) => {
      const id = `gm-${field}-${Math.random().toString(36).slice(2)}`;
      input.id = id;
      input.dataset.field = field;
      // A field that is removed while it has the focus reports a change, for a program that is gone.
      const send = () => {
        if (this.form !== form) return;
        const value = read(input);
        if (value === machine.view.operations[machine.chosen][field]) this.forget();
        else machine.ask({ do: "set", place: machine.chosen, field, value });
      };
      input.addEventListener("change", send);
      input.addEventListener("keydown", event => {
        if (event.key !== "Enter") return;
        event.preventDefault(); // JupyterLab would take the key, and the browser would report no change
        event.stopPropagation();
        send();
      });
      this.filled.push([input, value]);
      found.push(tag("label", { for: id }, text), input);
    };
    const { kind } = operation;
    if (TIMED.includes(kind)) add(kind === "graph" ? "Each kernel, µs" : "Length, µs", tag("input", { type: "number", step: "any" }), "duration_us", fieldNumber);
    if (kind === "graph") add("Kernels", tag("input", { type: "number" }), "n_kernels", fieldNumber);
    if (!ON_HOST.includes(kind)) {
      const streams = Math.min(view.n_streams + 1, view.limits.streams);
      add("Stream", choice([...Array(streams).keys()].map(String)), "stream", input => Number(input.value));
    }
    if (["kernel", "copy in", "copy out", "graph"].includes(kind)) add("Buffer", choice(view.buffers), "buffer", input => input.value);
    if (kind.startsWith("copy")) add("Host memory", choice(["pinned", "pageable"]), "is_pinned", input => input.value === "pinned", each => (each.is_pinned ? "pinned" : "pageable"));
    if (kind === "record") add("Event", tag("input", { type: "text", size: 8 }), "event", input => input.value.trim());
    if (kind === "wait") add("Event", choice(this.events(operation)), "event", input => input.value);
    const buttons = [["Called earlier", () => machine.shift(-1)], ["Called later", () => machine.shift(1)], ["Remove", () => machine.remove()]];
    found.push(tag("span", { class: "gm-row wide" }, ...buttons.map(([text, action]) => {
      const button = tag("button", { type: "button", "data-field": text }, text);
      button.addEventListener("click", action);
      return button;
    })));
    return found;
  }
}

// Returns a button that copies a text, and says so. A page that is not from this computer and without
// https may not use the clipboard: then the text is selected, for the reader's own key.
function copier(name, text) {
  const button = tag("button", { type: "button", "aria-live": "polite" }, name);
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(text);
      button.textContent = "Selected: press Ctrl + C";
    }
    setTimeout(() => { button.textContent = name; }, SAID_MS);
  });
  return button;
}

function nearest(known, value) {
  const distance = index => Math.abs(Math.log(known[index] / value));
  return known.reduce((best, _, index) => (distance(index) < distance(best) ? index : best), 0);
}

function fieldNumber(input) { return input.value === "" ? null : Number(input.value); }

function choice(options) {
  return tag("select", {}, ...options.map(option => tag("option", { value: option }, option)));
}

function details(text, ...children) {
  const told = typeof children.at(-1) === "function" ? children.splice(-2) : null;
  const element = tag("details", told?.[0] ? { open: "" } : {}, tag("summary", {}, text), ...children);
  if (told) element.addEventListener("toggle", () => told[1](element.open));
  return element;
}

// ---------------------------------------------------------------- mouse and keyboard

class Hand {
  constructor(machine) {
    this.machine = machine;
    this.svg = machine.chart.svg;
    this.svg.addEventListener("pointerdown", event => this.down(event));
    this.svg.addEventListener("pointermove", event => this.move(event));
    this.svg.addEventListener("pointerup", event => this.up(event));
    this.svg.addEventListener("pointercancel", () => this.leave());
    this.svg.addEventListener("wheel", event => this.wheel(event), { passive: false });
    this.svg.addEventListener("keydown", event => this.press(event));
    // Undo and redo work everywhere but in a field, where they are about its text.
    machine.root.addEventListener("keydown", event => {
      const isTyping = event.target.matches("input:not([type=range]), select");
      if (!isTyping && (event.ctrlKey || event.metaKey)) this.press(event);
    });
  }

  at(event) {
    const box = this.svg.getBoundingClientRect();
    const { zoomed } = this.machine.scale;
    return [(event.clientX - box.left) / zoomed, (event.clientY - box.top) / zoomed];
  }

  down(event) {
    if (event.button) return;
    const { machine } = this, [x, y] = this.at(event), group = event.target.closest(".task");
    this.svg.setPointerCapture(event.pointerId);
    this.svg.focus({ preventScroll: true });
    this.start = { x, y, from: machine.scale.from, to: machine.scale.to };
    if (!group) { this.what = "pan"; return; }
    const place = Number(group.dataset.place), turn = Number(group.dataset.turn);
    machine.choose(place);
    const operation = machine.view.operations[place];
    this.place = place;
    const own = machine.view.tasks.filter(task => task[0] === place);
    this.task = own.find(task => task[1] === turn);
    this.what = event.target.classList.contains("end") ? "end" : group.dataset.role === "task" || ON_HOST.includes(operation.kind) ? "body" : "none";
    if (this.what === "end") {
      this.duration = operation.duration_us;
      this.shared = inARow(own, machine.scale.us(x));
      machine.newGesture();
      this.hadFit = machine.scale.fits;
      machine.scale.fits = false; // otherwise the scale would change under the pointer
    }
  }

  move(event) {
    if (!this.what || !this.start) return;
    const { machine } = this, [x, y] = this.at(event), by = x - this.start.x;
    if (this.what === "end") this.lengthen(by);
    else if (Math.hypot(by, y - this.start.y) < MOVED_PX && !this.moved) return;
    else if (this.what === "pan") this.pan(by);
    else if (this.what === "body") machine.carry(this.carried(x, y));
    this.moved = true;
  }

  pan(by) {
    const { scale } = this.machine, us = by * (this.start.to - this.start.from) / (scale.width - LEFT - RIGHT);
    Object.assign(scale, { from: this.start.from - us, to: this.start.to - us, fits: false });
    this.machine.redraw();
  }

  lengthen(by) {
    const { machine } = this, { scale, view } = machine;
    const us = by * (scale.to - scale.from) / (scale.width - LEFT - RIGHT) / this.shared;
    const wanted = Math.min(view.limits.longest, Math.max(view.limits.shortest, this.duration + us));
    const step = (scale.to - scale.from) / 900 > 1 ? 1 : 0.5;
    const value = Math.max(view.limits.shortest, Math.round(wanted / step) * step);
    machine.ask({ do: "set", place: this.place, field: "duration_us", value, gesture: machine.gesture("end") });
  }

  carried(x, y) {
    const { view } = this.machine, operation = view.operations[this.place];
    const width = this.task ? this.machine.scale.x(this.task[7]) - this.machine.scale.x(this.task[6]) : 40;
    return { x: x - Math.min(width, 60) / 2, y: y - BAR / 2, width, at: [x, y], text: operation.kind, kind: operation.kind };
  }

  up(event) {
    const { machine } = this, [x, y] = this.at(event), { what, moved } = this;
    this.leave();
    if (what === "end") {
      machine.scale.fits = this.hadFit;
      machine.newGesture();
      machine.fit();
    } else if (what === "body" && moved) machine.drop(this.place, x, y);
  }

  leave() {
    this.what = this.start = null;
    this.moved = false;
    this.machine.carry(null);
  }

  wheel(event) {
    if (!event.ctrlKey && document.activeElement !== this.svg) return; // without the focus the page scrolls
    event.preventDefault();
    const [x] = this.at(event);
    this.machine.scale.zoom(Math.exp(-event.deltaY / 300), this.machine.scale.us(x));
    this.machine.redraw();
  }

  press(event) {
    const { machine } = this, { key } = event;
    if (machine.isBusy && this.knows(event)) { // the operation that the key is about may not be in the view yet
      event.preventDefault();
      event.stopPropagation();
      if (!event.repeat) machine.afterwards.push(() => this.press(event));
      return;
    }
    const letter = PALETTE.find(([each]) => each === key.toLowerCase());
    const back = event.ctrlKey || event.metaKey;
    if (back && key.toLowerCase() === "z") machine.ask({ do: event.shiftKey ? "redo" : "undo" });
    else if (back && key.toLowerCase() === "y") machine.ask({ do: "redo" });
    else if (back) return;
    else if (key === "ArrowLeft" || key === "ArrowRight") this.across(event, key === "ArrowRight" ? 1 : -1);
    else if (key === "ArrowUp" || key === "ArrowDown") machine.toStream(key === "ArrowDown" ? 1 : -1);
    else if (key === "Home") machine.choose(0);
    else if (key === "End") machine.choose(machine.view.operations.length - 1);
    else if (key === "Delete" || key === "Backspace") machine.remove();
    else if (key === "+" || key === "=") machine.zoom(ZOOM);
    else if (key === "-") machine.zoom(1 / ZOOM);
    else if (key === "0") machine.showAll();
    else if (key === "Enter") machine.side.fields.querySelector("input, select")?.focus();
    else if (letter) machine.add(letter);
    else return;
    event.preventDefault();
    event.stopPropagation(); // otherwise the notebook takes the key as a command
  }

  knows({ key, ctrlKey, metaKey }) {
    if (ctrlKey || metaKey) return "zy".includes(key.toLowerCase());
    return key.startsWith("Arrow") || ["Home", "End", "Delete", "Backspace", "Enter"].includes(key) || PALETTE.some(([each]) => each === key.toLowerCase());
  }

  across(event, step) {
    const { machine } = this;
    if (event.shiftKey) machine.stretch(step);
    else if (event.altKey) machine.shift(step);
    else machine.choose(machine.chosen + step);
  }
}

// Returns how many tasks of an operation run one after the other up to the end that is nearest to a
// time. If each becomes longer by a share of a drag, this end follows the pointer.
function inARow(own, us) {
  const tasks = own.toSorted((one, other) => one[6] - other[6]);
  const nearest = tasks.reduce((best, task, index) => (Math.abs(task[7] - us) < Math.abs(tasks[best][7] - us) ? index : best), 0);
  let first = nearest;
  while (first > 0 && tasks[first][6] - tasks[first - 1][7] < GAP_US) first -= 1;
  return nearest - first + 1;
}

// ---------------------------------------------------------------- all of it

class Machine {
  constructor(el, model) {
    this.model = model;
    this.scale = new Scale();
    this.chart = new Chart(this.scale);
    this.side = new Side(this);
    this.chosen = 0;
    this.number = 0;
    this.turns = 0;
    this.isBusy = false;
    this.afterwards = [];
    this.build(el);
    this.hand = new Hand(this);
    this.changed = () => this.take();
    model.on("change:view", this.changed);
    this.messages = model.widget_manager?.kernel?.iopubMessage; // JupyterLab and Notebook have it
    this.heard = (_, message) => this.hurry(message);
    this.messages?.connect(this.heard);
    this.watch = new ResizeObserver(() => this.resize());
    this.watch.observe(this.stage);
    this.take();
  }

  build(el) {
    this.challenge = choice([]);
    this.challenge.setAttribute("aria-label", "Challenge");
    this.challenge.addEventListener("change", () => this.ask({ do: "begin", name: this.challenge.value }));
    this.undo = this.button("Undo", () => this.ask({ do: "undo" }));
    this.redo = this.button("Redo", () => this.ask({ do: "redo" }));
    const reset = this.button("Reset", () => this.ask({ do: "reset" }));
    const zooms = [this.button("−", () => this.zoom(1 / ZOOM), "Zoom out"), this.button("+", () => this.zoom(ZOOM), "Zoom in"), this.button("Show all", () => this.showAll())];
    this.palette = tag("div", { class: "gm-row palette gpulab-controls", role: "group", "aria-label": "Drop in" }, ...PALETTE.map(entry => this.source(entry)));
    this.told = tag("p", { class: "told", "aria-live": "polite" });
    this.stage = tag("div", { class: "stage" }, this.chart.svg);
    this.own = tag("style");
    this.root = tag("div", { class: "gpulab-machine", "data-lm-suppress-shortcuts": "true" });
    this.presentation = new Presentation(this.root, isOn => this.present(isOn));
    this.origin = tag("span", { class: "push quiet" });
    this.root.append(tag("style", {}, STYLE), this.own,
      tag("div", { class: "gm-row gpulab-controls" }, this.challenge, this.undo, this.redo, reset, tag("span", { class: "push" }), ...zooms, this.presentation.button()),
      this.palette, this.stage, tag("div", { class: "gm-row quiet" }, this.told, this.origin), this.side.element);
    el.append(this.root);
  }

  button(text, action, name = text) {
    const button = tag("button", { type: "button", "aria-label": name }, text);
    button.addEventListener("click", action);
    return button;
  }

  // Returns a button of the palette: a click adds its operation, or you drag it into a lane.
  source(entry) {
    const [key, text, kind, , colour] = entry;
    const button = tag("button", { type: "button", title: `Click, drag into a lane, or press ${key.toUpperCase()} in the picture`, "data-kind": kind, "data-key": key }, tag("i", { style: `background: ${fillOf(colour)}` }), text);
    let from = null;
    button.addEventListener("pointerdown", event => { from = [event.clientX, event.clientY]; button.setPointerCapture(event.pointerId); });
    button.addEventListener("pointermove", event => {
      if (!from || Math.hypot(event.clientX - from[0], event.clientY - from[1]) < MOVED_PX) return;
      const [x, y] = this.hand.at(event);
      this.carry({ x: x - 20, y: y - BAR / 2, width: 60, at: [x, y], text: kind, kind });
    });
    button.addEventListener("pointerup", event => {
      const [x, y] = this.hand.at(event), isDragged = Boolean(this.chart.drag);
      from = null;
      this.carry(null);
      // The browser sends a click after the drag, too, because the pointer was captured.
      if (!isDragged) return;
      this.skipClick = true;
      this.chart.svg.focus({ preventScroll: true }); // so that the next key is about what was dropped
      this.addAt(entry, x, y);
    });
    button.addEventListener("click", () => {
      if (!this.skipClick) this.add(entry);
      this.skipClick = false;
    });
    return button;
  }

  // ------------------------------------------------ answers of Python

  take() {
    const view = this.model.get("view");
    this.view = view;
    if (view.answer >= this.number) this.isBusy = false;
    this.chosen = Math.max(0, Math.min(this.chosen, view.operations.length - 1));
    // A dropped operation is selected at its new place, but only once the answer contains it.
    if (this.wanted !== undefined && !this.isBusy) { this.chosen = Math.min(this.wanted, view.operations.length - 1); this.wanted = undefined; }
    this.chart.take(view);
    this.paint();
    this.chart.draw(this.chosen);
    this.side.show(view);
    this.tell();
    this.undo.disabled = !view.can_undo;
    this.redo.disabled = !view.can_redo;
    if (this.presentation.isOn) this.present(true); // there may be more lanes or remarks
    this.root.dataset.answer = view.answer;
    this.root.dataset.n = view.operations.length;
    if (this.next && !this.isBusy) { const next = this.next; this.next = null; this.ask(next); }
    while (this.afterwards.length && !this.isBusy) this.afterwards.shift()();
  }

  paint() {
    const { view } = this, key = JSON.stringify([view.challenges, view.challenge, view.still, view.source]);
    if (key === this.painted) return;
    this.painted = key;
    this.challenge.replaceChildren(tag("option", { value: "" }, "Free play"), ...view.challenges.map(name => tag("option", { value: name }, `Challenge: ${name}`)));
    this.challenge.value = view.challenge;
    this.origin.textContent = view.source;
    // The still picture is for pages without a kernel; it is hidden while the widget is alive. The
    // whole output is hidden, because an empty one would still take space.
    this.own.textContent = `.jp-OutputArea-child:has(#${view.still}), #${view.still} { display: none !important; }`;
  }

  // ------------------------------------------------ requests to Python

  // Sends one request of a gesture at a time. Of those made before its answer only the last is sent,
  // so that a fast drag does not leave a queue of old ones.
  ask(message) {
    if (this.isBusy && message.gesture) { this.next = message; return; }
    this.isBusy = true;
    this.number += 1;
    this.hurries = 0;
    this.model.send({ ...message, number: this.number });
  }

  // A server on this computer sends the answer only when the browser has acknowledged the messages
  // before it, which say that the kernel is busy, and idle again (Nagle's algorithm). The browser's
  // system puts an acknowledgement off by 40 ms or more, unless there is something to send: so we
  // send something.
  hurry({ header }) {
    if (!this.isBusy || header.msg_type !== "status" || this.hurries >= MOST_HURRIES) return;
    this.hurries += 1;
    this.model.send({ do: "hurry" });
  }

  gesture(owner) {
    this.owner = owner;
    return `${this.turns}`;
  }

  newGesture() { this.turns += 1; }

  choose(place) {
    const last = this.view.operations.length - 1, chosen = Math.max(0, Math.min(place, last));
    if (chosen !== this.chosen) this.side.forget(); // what was wrong with another operation
    this.chosen = chosen;
    this.redraw();
    this.side.showFields();
    this.tell();
  }

  tell() {
    const text = this.view.operations[this.chosen]?.text ?? "The program is empty. Drop in an operation.";
    say(this.told, text);
  }

  carry(drag) {
    this.chart.drag = drag;
    this.redraw();
    const lane = drag && this.chart.laneAt(drag.at[1]);
    for (const rect of this.chart.svg.querySelectorAll(".lane")) rect.classList.toggle("over", rect.dataset.lane === lane?.name && lane.kind !== "engine");
  }

  // Returns the place in the program, and the stream, for an operation dropped at a point of the
  // picture: before the first operation of the lane whose middle is later.
  //
  // An operation that is moved keeps its place if the lane allows it: a drag straight down into an
  // empty stream changes the stream and not the order of the calls.
  target(x, y, kind, moved = -1) {
    const lane = this.chart.laneAt(y), us = this.scale.us(x), { view } = this;
    if (!lane || lane.kind === "engine") return null;
    const isHost = ON_HOST.includes(kind) || lane.kind === "host";
    const bars = isHost ? view.calls.map(call => [call[0], call[1], call[2], call[3]])
      : view.tasks.filter(task => task[3] === lane.number).map(task => [task[0], task[1], task[6], task[7]]);
    const later = bars.find(([place, turn, start, end]) => turn === 0 && place !== moved && (start + end) / 2 > us);
    const before = bars.filter(([place, , start, end]) => place !== moved && (start + end) / 2 <= us).map(([place]) => place);
    const least = Math.max(-1, ...before) + 1, most = later ? later[0] : view.operations.length;
    const place = moved >= 0 ? Math.max(least, Math.min(moved, most)) : later || !before.length ? most : least;
    return { place, stream: lane.kind === "host" ? null : lane.number };
  }

  drop(place, x, y) {
    const operation = this.view.operations[place], target = this.target(x, y, operation.kind, place);
    if (!target) return;
    const stream = ON_HOST.includes(operation.kind) ? operation.stream : target.stream ?? operation.stream;
    const to = target.place > place ? target.place - 1 : target.place;
    // Nothing to do if the operation was dropped where it was.
    if (to === place && stream === operation.stream) return;
    this.wanted = to;
    this.ask({ do: "move", place, to, stream });
  }

  add([, , kind, is_pinned]) {
    const { operations } = this.view, here = operations[this.chosen];
    this.put(kind, is_pinned, operations.length ? this.chosen + 1 : 0, here && !ON_HOST.includes(here.kind) ? here.stream : 0);
  }

  addAt([, , kind, is_pinned], x, y) {
    const target = this.target(x, y, kind);
    if (target) this.put(kind, is_pinned, target.place, target.stream ?? 0);
  }

  put(kind, is_pinned, place, stream) {
    this.wanted = place;
    this.ask({ do: "add", kind, is_pinned, place, stream });
  }

  remove() {
    if (this.view.operations.length) this.ask({ do: "remove", place: this.chosen });
  }

  stretch(step) {
    const operation = this.view.operations[this.chosen];
    if (!operation || !TIMED.includes(operation.kind)) return;
    // Half of the power of ten below, in steps of 0.5 µs: a key changes any length noticeably.
    const size = Math.max(0.5, 10 ** Math.floor(Math.log10(operation.duration_us)) / 2);
    const raw = Math.round((operation.duration_us + step * size) * 2) / 2;
    const value = Math.min(this.view.limits.longest, Math.max(this.view.limits.shortest, raw));
    this.ask({ do: "set", place: this.chosen, field: "duration_us", value });
  }

  toStream(step) {
    const operation = this.view.operations[this.chosen];
    if (!operation || ON_HOST.includes(operation.kind)) return;
    const stream = operation.stream + step;
    if (stream >= 0 && stream < this.view.limits.streams) this.ask({ do: "set", place: this.chosen, field: "stream", value: stream });
  }

  shift(step) {
    const to = this.chosen + step, operation = this.view.operations[this.chosen];
    if (!operation || to < 0 || to >= this.view.operations.length) return;
    this.wanted = to;
    this.ask({ do: "move", place: this.chosen, to, stream: operation.stream });
  }

  // ------------------------------------------------ the view, without Python

  zoom(factor) {
    this.scale.zoom(factor, (this.scale.from + this.scale.to) / 2);
    this.redraw();
  }

  showAll() {
    this.scale.fits = true;
    this.fit();
  }

  fit() {
    this.scale.fit(this.view.end);
    this.redraw();
  }

  resize() {
    if (this.presentation.isOn) this.present(true);
    else if (this.measure()) this.redraw();
  }

  // Takes over the size of the type and of the picture, and returns whether they have changed.
  measure() {
    const zoomed = parseFloat(getComputedStyle(this.root).fontSize) / TYPE_PX, width = Math.round(this.stage.clientWidth / zoomed);
    if (!width || (width === this.scale.width && zoomed === this.scale.zoomed)) return false;
    Object.assign(this.scale, { width, zoomed });
    return true;
  }

  // In a lecture hall nobody scrolls: the type is as large as the window allows.
  present(isOn) {
    this.root.style.fontSize = "";
    this.measure();
    this.chart.draw(this.chosen);
    // Borders and gaps do not shrink with the type, so one step is not enough.
    for (let step = 0; isOn && step < MOST_STEPS && this.root.scrollHeight > window.innerHeight; step++) {
      const share = window.innerHeight / this.root.scrollHeight;
      this.root.style.fontSize = `${Math.max(TYPE_PX, 0.99 * share * TYPE_PX * this.scale.zoomed)}px`;
      this.measure();
      this.chart.draw(this.chosen);
    }
  }

  // Draws at most once in a frame, however many events arrive.
  redraw() {
    if (this.isAsked) return;
    this.isAsked = true;
    requestAnimationFrame(() => {
      this.isAsked = false;
      if (!this.closed) this.chart.draw(this.chosen);
      this.root.dataset.drawn = Number(this.root.dataset.drawn || 0) + 1;
    });
  }

  close() {
    this.closed = true;
    this.presentation.close();
    this.watch.disconnect();
    this.model.off("change:view", this.changed);
    this.messages?.disconnect(this.heard);
    this.root.remove();
  }
}
