// The timeline in the browser: everything after the first picture happens here, so that zooming
// needs no answer from the kernel. Times are microseconds since the first span.

const STYLE = `
.gpulab-timeline { color: var(--jp-ui-font-color1, CanvasText); font: 13px/1.4 var(--jp-ui-font-family, system-ui, sans-serif); position: relative; padding: 2px; }
.gpulab-timeline .bar { display: flex; flex-wrap: wrap; gap: 4px 10px; align-items: center; margin: 2px 0 4px; }
.gpulab-timeline .title { font-weight: 600; margin-right: auto; }
.gpulab-timeline button { font: inherit; color: inherit; min-width: 28px; height: 26px; padding: 0 8px; cursor: pointer;
  background: var(--jp-layout-color1, Canvas); border: 1px solid var(--jp-border-color1, GrayText); border-radius: 3px; }
.gpulab-timeline button:hover { background: var(--jp-layout-color2, ButtonFace); }
.gpulab-timeline .group { display: inline-flex; gap: 3px; }
.gpulab-timeline label { display: inline-flex; gap: 4px; align-items: center; cursor: pointer; }
.gpulab-timeline .stage { max-height: 70vh; overflow: hidden auto; position: relative; border: 1px solid var(--jp-border-color2, GrayText); border-radius: 3px; }
.gpulab-timeline canvas.chart { display: block; width: 100%; cursor: grab; touch-action: pan-y; outline: none; }
.gpulab-timeline canvas.chart.dragging { cursor: grabbing; }
.gpulab-timeline .stage:focus-within { outline: 2px solid var(--jp-brand-color1, #1976d2); outline-offset: 1px; }
.gpulab-timeline .tip { position: absolute; z-index: 5; pointer-events: none; max-width: 360px; padding: 4px 8px; white-space: pre-line;
  background: var(--jp-layout-color1, Canvas); border: 1px solid var(--jp-border-color1, GrayText); border-radius: 3px; box-shadow: 0 2px 6px rgb(0 0 0 / 30%); overflow-wrap: anywhere; }
.gpulab-timeline .told { min-height: 1.4em; margin: 4px 0 0; overflow-wrap: anywhere; }
.gpulab-timeline .headline { white-space: pre-line; margin: 2px 0 4px; }
.gpulab-timeline .quiet, .gpulab-timeline .keys { color: var(--jp-ui-font-color2, GrayText); }
.gpulab-timeline .legend { display: flex; flex-wrap: wrap; gap: 2px 14px; list-style: none; margin: 4px 0 0; padding: 0; }
.gpulab-timeline .legend li { display: inline-flex; gap: 5px; align-items: center; margin: 0; }
.gpulab-timeline pre { font: 12px/1.45 var(--jp-code-font-family, monospace); white-space: pre-wrap; margin: 4px 0; color: inherit; background: none; }
.gpulab-timeline .unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.gpulab-timeline [hidden] { display: none; }
`;

const KEYS = [
  ["← →", "span before, span after"],
  ["↑ ↓", "lane above, lane below"],
  ["Shift + ← →", "move the picture"],
  ["+ −", "zoom"],
  ["0", "fit all"],
  ["Enter", "zoom to the span"],
  ["L", "follow an arrow"],
  ["Home End", "first, last span of the lane"],
  ["Esc", "leave the span"],
];
const AXIS = 24, ROW = 24, BAR = 18, LANE_GAP = 5, SERIES = 30;
const MAX_ARROWS = 250;
const SHORTEST_VIEW_US = 0.02;
const ZOOM_STEP = 1.6;
const GLIDE_MS = 140;
const LABEL_PX = 40; // below this width no name has room

export default { render };

function render({ model, el }) {
  const chart = new Chart(el, model);
  return () => chart.close();
}

function decode(drawing) {
  const floats = view => new Float64Array(bytes(view));
  const whole = view => new Int32Array(bytes(view));
  const series = drawing.series.map(one => ({ ...one, times: floats(one.times), values: floats(one.values) }));
  return {
    ...drawing, series,
    start: floats(drawing.start), end: floats(drawing.end), size: floats(drawing.size), busy: floats(drawing.busy),
    row: whole(drawing.row), kind: whole(drawing.kind), name: whole(drawing.name), count: whole(drawing.count),
    arrows: whole(drawing.arrows),
  };
}

function bytes(view) {
  return view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength);
}

function time(us) {
  const size = Math.abs(us);
  const [scale, unit] = size >= 999500 ? [1e-6, "s"] : size >= 999.5 ? [1e-3, "ms"] : size >= 0.9995 ? [1, "µs"] : [1e3, "ns"];
  const value = us * scale;
  if (value === 0) return "0 µs";
  const decimals = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(Number(value.toPrecision(3))))));
  return `${value.toFixed(unit === "ns" ? Math.min(decimals, 0) : decimals)} ${unit}`;
}

function sizeText(size) {
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (size < 1023.5) return `${unit === "B" ? size : Number(size.toPrecision(3))} ${unit}`;
    size /= 1024;
  }
  return `${Number(size.toPrecision(3))} TiB`;
}

function tag(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children); // strings become text: nothing of a name is ever markup
  return element;
}

// First place in a sorted column whose value is not less than the given one.
function lower(column, value, from, to) {
  while (from < to) {
    const middle = (from + to) >> 1;
    if (column[middle] < value) from = middle + 1; else to = middle;
  }
  return from;
}

class Chart {
  constructor(el, model) {
    this.model = model;
    this.root = tag("div", { class: "gpulab-timeline", role: "group" });
    el.append(this.root);
    this.calm = window.matchMedia("(prefers-reduced-motion: reduce)");
    this.undo = [];
    this.load();
    this.on(model, "change:drawing", () => this.load());
  }

  on(target, name, action, options) {
    if (target === this.model) {
      model_on(target, name, action, this.undo);
      return;
    }
    target.addEventListener(name, action, options);
    this.undo.push(() => target.removeEventListener(name, action, options));
  }

  close() {
    cancelAnimationFrame(this.frame);
    for (const action of this.undo.splice(0)) action();
    this.root.remove();
  }

  load() {
    this.shown = decode(this.model.get("drawing"));
    this.root.replaceChildren(tag("style", {}, STYLE));
    this.root.setAttribute("aria-label", `Timeline of ${this.shown.place}`);
    this.root.append(this.toolbar());
    if (!this.shown.start.length) {
      this.root.append(tag("p", { class: "empty" }, this.shown.summary));
      return;
    }
    this.arrange();
    this.selected = this.hovered = -1;
    [this.from, this.to] = this.whole();
    this.build();
    this.colours();
    this.resize();
  }

  toolbar() {
    const bar = tag("div", { class: "bar" });
    bar.append(tag("span", { class: "title" }, `Timeline (${this.shown.place})`));
    if (!this.shown.start.length) return bar;
    const buttons = [
      ["+", "Zoom in", () => this.zoom(1 / ZOOM_STEP)],
      ["−", "Zoom out", () => this.zoom(ZOOM_STEP)],
      ["◀", "Move to earlier times", () => this.pan(-0.4)],
      ["▶", "Move to later times", () => this.pan(0.4)],
      ["Fit", "Show all of the timeline", () => this.fit()],
    ].map(([text, label, action]) => {
      const button = tag("button", { type: "button", title: label, "aria-label": label }, text);
      button.addEventListener("click", action);
      return button;
    });
    this.arrowsBox = tag("input", { type: "checkbox" });
    this.arrowsBox.checked = true;
    this.arrowsBox.addEventListener("change", () => this.paint());
    this.range = tag("span", { class: "quiet" });
    bar.append(this.range, tag("span", { class: "group" }, ...buttons), tag("label", {}, this.arrowsBox, "arrows"));
    return bar;
  }

  // Where each row lies, which spans are in it, and which arrows begin or end at a span.
  arrange() {
    const { start, end, row, arrows, lanes, series, kind } = this.shown;
    const nRows = lanes.reduce((sum, lane) => sum + lane.rows, 0);
    this.top = [];
    let y = AXIS + LANE_GAP;
    this.laneOf = [];
    for (const [place, lane] of lanes.entries()) {
      lane.top = y;
      for (let n = 0; n < lane.rows; n++) { this.top.push(y); this.laneOf.push(place); y += ROW; }
      y += LANE_GAP;
    }
    for (const one of series) {
      one.top = y + 3;
      y += SERIES;
      one.largest = one.values.reduce((most, value) => Math.max(most, value), 0);
    }
    this.height = y + 4;
    const longest = Math.max(...[...lanes, ...series].map(one => one.name.length));
    this.gutter = Math.min(180, Math.max(84, 7 * longest + 22));
    // Bars come sorted by row and start; moments may lie inside of bars, so ends are not sorted.
    this.first = new Int32Array(nRows + 1);
    for (let place = 0; place < row.length; place++) this.first[row[place] + 1] = place + 1;
    for (let n = 1; n <= nRows; n++) this.first[n] = Math.max(this.first[n], this.first[n - 1]);
    this.reach = new Float64Array(end.length);
    for (let place = 0; place < end.length; place++) {
      const before = place && row[place] === row[place - 1] ? this.reach[place - 1] : -Infinity;
      this.reach[place] = Math.max(before, end[place]);
    }
    this.linked = new Map();
    for (let n = 0; n < arrows.length; n += 3) {
      for (const place of [arrows[n + 1], arrows[n + 2]]) {
        if (!this.linked.has(place)) this.linked.set(place, []);
        this.linked.get(place).push(n);
      }
    }
    this.event = this.shown.kinds.findIndex(one => one.name === "event");
    this.used = [...new Set(kind)].sort();
    this.length = end.reduce((most, value) => Math.max(most, value), start[0]);
  }

  build() {
    const keys = KEYS.map(([key, what]) => `${key}: ${what}`).join("; ");
    this.canvas = tag("canvas", {
      class: "chart", tabindex: "0", role: "application",
      "aria-label": `Timeline with ${this.shown.lanes.length} lanes, ${this.shown.n_spans.toLocaleString("en")} spans. Use the arrow keys to go from span to span.`,
      // JupyterLab would take keys such as 0 and Enter for commands of the notebook.
      "data-lm-suppress-shortcuts": "true",
    });
    this.stage = tag("div", { class: "stage" }, this.canvas);
    this.tip = tag("div", { class: "tip", hidden: "" });
    this.told = tag("p", { class: "told", role: "status", "aria-live": "polite" });
    const legend = tag("ul", { class: "legend", "aria-label": "Kinds of spans" });
    this.swatches = this.used.map(kind => {
      const swatch = tag("canvas", { width: "44", height: "24", style: "width:22px;height:12px", "aria-hidden": "true" });
      legend.append(tag("li", {}, swatch, this.shown.kinds[kind].name));
      return [swatch, kind];
    });
    this.summary = tag("details", {}, tag("summary", {}, "Summary: shares, gaps and their causes"), tag("pre", {}, this.shown.summary));
    const help = tag("details", {}, tag("summary", {}, "Keys"), tag("p", { class: "keys" }, keys));
    const headline = tag("p", { class: "headline" }, this.shown.headline);
    this.root.append(this.stage, this.tip, legend, this.told, headline, this.summary, help);
    if (this.shown.note) this.stage.before(tag("p", { class: "note" }, this.shown.note));
    this.context = this.canvas.getContext("2d");
    this.tell("");
    this.listen();
  }

  listen() {
    const canvas = this.canvas;
    this.on(canvas, "wheel", event => this.wheel(event), { passive: false });
    this.on(canvas, "keydown", event => this.key(event));
    this.on(canvas, "pointerdown", event => this.press(event));
    this.on(canvas, "pointermove", event => this.move(event));
    this.on(canvas, "pointerup", event => this.release(event));
    this.on(canvas, "pointercancel", () => { this.drag = null; });
    this.on(canvas, "pointerleave", () => this.hover(-1));
    this.on(canvas, "dblclick", event => this.open(event));
    this.on(canvas, "focus", () => { if (this.selected < 0) this.tell(""); this.paint(); });
    this.on(canvas, "blur", () => this.paint());
    const sizes = new ResizeObserver(() => this.resize());
    sizes.observe(this.root);
    const repaint = () => { this.colours(); this.paint(); };
    const themes = new MutationObserver(repaint);
    themes.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "data-jp-theme-name", "class"] });
    this.undo.push(() => sizes.disconnect(), () => themes.disconnect());
    this.on(window.matchMedia("(prefers-color-scheme: dark)"), "change", repaint);
  }

  // ---------------------------------------------------------------- what is in view

  whole() {
    const margin = 0.01 * (this.length || 1);
    return [-margin, (this.length || 1) + margin];
  }

  x(us) { return this.gutter + (us - this.from) * this.scale; }

  us(x) { return this.from + (x - this.gutter) / this.scale; }

  show(from, to, glide = true) {
    const [least, most] = this.whole();
    const length = Math.min(Math.max(to - from, SHORTEST_VIEW_US), most - least);
    from = Math.min(Math.max((from + to - length) / 2, least), most - length);
    this.goal = [from, from + length];
    if (!glide || this.calm.matches) {
      [this.from, this.to] = this.goal;
      this.goal = null;
    } else {
      this.origin = [this.from, this.to];
      this.began = performance.now();
    }
    this.paint();
    clearTimeout(this.announcing);
    this.announcing = setTimeout(() => this.announce(), 400);
  }

  zoom(factor, about = (this.from + this.to) / 2, glide = true) {
    const [from, to] = glide && this.goal ? this.goal : [this.from, this.to];
    this.show(about - (about - from) * factor, about + (to - about) * factor, glide);
  }

  pan(share) {
    const [from, to] = this.goal || [this.from, this.to];
    const step = share * (to - from);
    this.show(from + step, to + step);
  }

  fit() { this.show(...this.whole()); }

  inWords() { return `${time(Math.max(0, this.from))} to ${time(Math.min(this.to, this.length))}`; }

  announce() {
    // Only what the keyboard did is told; who drags sees it.
    if (document.activeElement === this.canvas && this.selected < 0) this.tell(`From ${this.inWords()}.`);
  }

  // ---------------------------------------------------------------- pointer and keys

  wheel(event) {
    const focused = document.activeElement === this.canvas;
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      const step = event.deltaX / this.scale;
      this.show(this.from + step, this.to + step, false);
    } else if (focused || event.ctrlKey || event.metaKey) {
      event.preventDefault();
      const lines = event.deltaMode === 1 ? 16 : 1;
      this.zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY * lines * 0.0022))), this.us(this.at(event)[0]), false);
    } else {
      // The page scrolls on, so that nobody is caught in a picture.
      this.tell("Click the timeline first, or hold Ctrl, to zoom with the wheel.");
    }
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  press(event) {
    if (event.button) return;
    this.canvas.focus({ preventScroll: true });
    this.canvas.setPointerCapture(event.pointerId);
    const [x, y] = this.at(event);
    this.drag = { x, y, from: this.from, to: this.to, moved: false };
  }

  move(event) {
    const [x, y] = this.at(event);
    if (!this.drag) {
      this.hover(this.hit(x, y), x, y);
      return;
    }
    if (Math.abs(x - this.drag.x) > 3) this.drag.moved = true;
    if (!this.drag.moved) return;
    this.canvas.classList.add("dragging");
    this.hover(-1);
    const step = (this.drag.x - x) / this.scale;
    this.show(this.drag.from + step, this.drag.to + step, false);
  }

  release(event) {
    this.canvas.classList.remove("dragging");
    const drag = this.drag;
    this.drag = null;
    if (drag && !drag.moved) this.select(this.hit(...this.at(event)), false);
  }

  open(event) {
    const place = this.hit(...this.at(event));
    if (place < 0) this.fit(); else this.zoomTo(place);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const actions = {
      ArrowLeft: () => (event.shiftKey ? this.pan(-0.2) : this.step(-1)),
      ArrowRight: () => (event.shiftKey ? this.pan(0.2) : this.step(1)),
      ArrowUp: () => this.change(-1),
      ArrowDown: () => this.change(1),
      "+": () => this.zoom(1 / ZOOM_STEP, this.middle()),
      "=": () => this.zoom(1 / ZOOM_STEP, this.middle()),
      "-": () => this.zoom(ZOOM_STEP, this.middle()),
      0: () => this.fit(),
      Home: () => this.edge(false),
      End: () => this.edge(true),
      Enter: () => this.selected >= 0 && this.zoomTo(this.selected),
      l: () => this.follow(),
      Escape: () => this.select(-1),
    };
    const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!action) return;
    event.preventDefault();
    event.stopPropagation();
    this.hover(-1);
    action();
  }

  // Zooming by keys keeps the selected span where it is.
  middle() {
    const place = this.selected;
    if (place < 0) return (this.from + this.to) / 2;
    const middle = (this.shown.start[place] + this.shown.end[place]) / 2;
    return Math.min(Math.max(middle, this.from), this.to);
  }

  // ---------------------------------------------------------------- from span to span

  // Bars of one lane by start; its rows are drawn below each other but are one sequence.
  sequence(lane) {
    this.sequences ||= new Map();
    if (!this.sequences.has(lane)) {
      const places = [];
      this.laneOf.forEach((one, row) => {
        if (one === lane) for (let n = this.first[row]; n < this.first[row + 1]; n++) places.push(n);
      });
      const { start, end } = this.shown;
      places.sort((a, b) => start[a] - start[b] || end[a] - end[b] || a - b);
      this.sequences.set(lane, places);
    }
    return this.sequences.get(lane);
  }

  step(by) {
    if (this.selected < 0) return this.enter();
    const places = this.sequence(this.laneOf[this.shown.row[this.selected]]);
    const next = places[places.indexOf(this.selected) + by];
    if (next === undefined) this.tell(by < 0 ? "This is the first span of the lane." : "This is the last span of the lane.");
    else this.select(next);
  }

  enter() {
    for (let lane = 0; lane < this.shown.lanes.length; lane++) {
      const visible = this.sequence(lane).find(place => this.shown.end[place] >= this.from && this.shown.start[place] <= this.to);
      if (visible !== undefined) return this.select(visible);
    }
    return this.select(this.sequence(0)[0]);
  }

  change(by) {
    if (this.selected < 0) return this.enter();
    const { start, end, row, lanes } = this.shown;
    const lane = this.laneOf[row[this.selected]] + by;
    if (lane < 0 || lane >= lanes.length) return this.tell(by < 0 ? "This is the first lane." : "This is the last lane.");
    const middle = (start[this.selected] + end[this.selected]) / 2;
    const distance = place => Math.max(start[place] - middle, middle - end[place], 0);
    let best = -1;
    for (const place of this.sequence(lane)) if (best < 0 || distance(place) < distance(best)) best = place;
    return this.select(best);
  }

  edge(last) {
    const lane = this.selected < 0 ? 0 : this.laneOf[this.shown.row[this.selected]];
    this.select(this.sequence(lane).at(last ? -1 : 0));
  }

  follow() {
    const found = this.linked.get(this.selected) || [];
    if (!found.length) return this.tell("No arrow begins or ends here.");
    const { arrows } = this.shown;
    const ends = found.map(n => (arrows[n + 1] === this.selected ? arrows[n + 2] : arrows[n + 1]));
    // Pressed again at the other end it goes on, not back, as long as there is somewhere to go.
    const onward = ends.filter(place => place !== this.cameFrom);
    this.cameFrom = this.selected;
    return this.select(onward.length ? onward[0] : ends[0]);
  }

  zoomTo(place) {
    const { start, end } = this.shown;
    const length = Math.max((end[place] - start[place]) * 1.3, SHORTEST_VIEW_US * 50);
    const middle = (start[place] + end[place]) / 2;
    this.select(place);
    this.show(middle - length / 2, middle + length / 2);
  }

  select(place, reveal = true) {
    this.selected = place;
    this.tell(place < 0 ? "" : this.describe(place));
    if (place >= 0 && reveal) this.reveal(place);
    this.paint();
  }

  reveal(place) {
    const { start, end, row } = this.shown;
    const [from, to] = this.goal || [this.from, this.to];
    if (end[place] < from || start[place] > to || (start[place] < from && end[place] < to) || (end[place] > to && start[place] > from)) {
      const middle = (start[place] + end[place]) / 2;
      this.show(middle - (to - from) / 2, middle + (to - from) / 2);
    }
    const top = this.top[row[place]];
    if (top < this.stage.scrollTop + AXIS || top + ROW > this.stage.scrollTop + this.stage.clientHeight) this.stage.scrollTop = top - AXIS;
  }

  describe(place) {
    const { start, end, row, kind, name, names, lanes, kinds, arrows, size, count } = this.shown;
    const [of, called] = [kinds[kind[place]].name, names[name[place]]];
    const what = called.startsWith(of) ? called : `${of} ${called}`;
    const lane = lanes[this.laneOf[row[place]]].name;
    const length = end[place] - start[place];
    const when = length ? `from ${time(start[place])}, ${time(length)} long` : `at ${time(start[place])}`;
    const words = [count[place] > 1 ? called : what, `on ${lane}`, when];
    if (!Number.isNaN(size[place])) words.push(`${sizeText(size[place])} at ${(size[place] / length / 1000).toPrecision(3)} GB/s`);
    const ends = (this.linked.get(place) || []).slice(0, 3).map(n => {
      const [which, source, target] = [arrows[n], arrows[n + 1], arrows[n + 2]];
      const other = source === place ? target : source;
      const there = `${names[name[other]]} on ${lanes[this.laneOf[row[other]]].name}`;
      if (which === 2) return source === place ? `${there} waits for it` : `waits for ${there}`;
      if (source === place) return which === 0 ? `starts ${there} after ${time(start[target] - end[source] > 0 ? start[target] - end[source] : 0)}` : `puts ${there}`;
      return `called by ${names[name[other]]} at ${time(start[other])}`;
    });
    const more = (this.linked.get(place) || []).length - ends.length;
    if (more > 0) ends.push(`and ${more.toLocaleString("en")} more`);
    return `${[...words, ...ends].join(", ")}.`;
  }

  tell(text) {
    const nothing = "Point at a span, or focus the picture and use the arrow keys.";
    this.told.textContent = text || nothing;
    this.told.classList.toggle("quiet", !text);
  }

  hit(x, y) {
    if (x < this.gutter) return -1;
    const row = this.top.findIndex(top => y >= top && y < top + ROW);
    if (row < 0) return -1;
    const { start, end } = this.shown;
    const slack = 3 / this.scale, us = this.us(x);
    let best = -1, distance = slack;
    for (let n = lower(this.reach, us - slack, this.first[row], this.first[row + 1]); n < this.first[row + 1]; n++) {
      if (start[n] > us + slack) break;
      const away = Math.max(start[n] - us, us - end[n], 0);
      // Of several under the pointer the shortest is the hardest to reach, so it wins.
      if (away < distance || (away === distance && best >= 0 && end[n] - start[n] < end[best] - start[best])) [best, distance] = [n, away];
    }
    return best;
  }

  hover(place, x, y) {
    if (place !== this.hovered) {
      this.hovered = place;
      this.paint();
    }
    this.tip.hidden = place < 0;
    if (place < 0) return;
    this.tip.textContent = this.describe(place);
    const box = this.root.getBoundingClientRect(), canvas = this.canvas.getBoundingClientRect();
    const left = Math.min(x + canvas.left - box.left + 14, box.width - this.tip.offsetWidth - 4);
    this.tip.style.left = `${Math.max(0, left)}px`;
    this.tip.style.top = `${y + canvas.top - box.top + 18}px`;
  }

  // ---------------------------------------------------------------- painting

  colours() {
    const style = getComputedStyle(this.root);
    const variable = (name, fallback) => style.getPropertyValue(name).trim() || fallback;
    const dark = variable("--jp-layout-color0", "") ? document.body.dataset.jpThemeLight === "false" : window.matchMedia("(prefers-color-scheme: dark)").matches;
    this.paper = variable("--jp-layout-color0", dark ? "#111" : "#fff");
    this.ink = variable("--jp-ui-font-color1", dark ? "#eee" : "#222");
    this.faint = dark ? "rgba(255,255,255,.14)" : "rgba(0,0,0,.10)";
    this.band = dark ? "rgba(255,255,255,.05)" : "rgba(0,0,0,.035)";
    this.area = dark ? "rgba(255,255,255,.42)" : "rgba(64,64,64,.45)";
    this.fills = this.shown.kinds.map(kind => hatched(kind, window.devicePixelRatio || 1));
    for (const [swatch, kind] of this.swatches) {
      const context = swatch.getContext("2d");
      context.setTransform(2, 0, 0, 2, 0, 0);
      context.fillStyle = hatched(this.shown.kinds[kind], 2).pattern(context);
      context.fillRect(0, 0, 22, 12);
    }
  }

  resize() {
    const width = this.stage.clientWidth;
    if (!width) return;
    const ratio = window.devicePixelRatio || 1;
    this.width = width;
    this.canvas.style.height = `${this.height}px`;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.paint();
  }

  paint() {
    if (!this.width) return;
    this.frame ||= requestAnimationFrame(now => {
      this.frame = 0;
      this.glide(now);
      this.draw();
      if (this.goal) this.paint();
    });
  }

  glide(now) {
    if (!this.goal) return;
    const share = Math.min(1, Math.max(0, (now - this.began) / GLIDE_MS));
    const eased = 1 - (1 - share) ** 3;
    [this.from, this.to] = [0, 1].map(side => this.origin[side] + (this.goal[side] - this.origin[side]) * eased);
    if (share === 1) this.goal = null;
  }

  draw() {
    const { context, width, height } = this;
    const ratio = window.devicePixelRatio || 1;
    this.scale = (width - this.gutter) / (this.to - this.from);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = this.paper;
    context.fillRect(0, 0, width, height);
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    this.drawLanes();
    this.drawAxis();
    context.save();
    context.beginPath();
    context.rect(this.gutter, 0, width - this.gutter, height);
    context.clip();
    for (let row = 0; row < this.top.length; row++) this.drawRow(row);
    for (const one of this.shown.series) this.drawSeries(one);
    this.drawArrows();
    for (const place of [this.hovered, this.selected]) if (place >= 0) this.drawFrame(place);
    context.restore();
    this.range.textContent = this.inWords();
    Object.assign(this.root.dataset, { fromUs: this.from, toUs: this.to, selected: this.selected });
  }

  drawLanes() {
    const { context, width } = this;
    this.shown.lanes.forEach((lane, place) => {
      if (place % 2 === 0) {
        context.fillStyle = this.band;
        context.fillRect(0, lane.top - LANE_GAP / 2, width, lane.rows * ROW + LANE_GAP);
      }
      this.label(lane.name, lane.top + ROW / 2);
    });
    for (const one of this.shown.series) {
      this.label(one.name, one.top + 8);
      this.label(`≤ ${one.most}`, one.top + 20, true);
    }
  }

  label(text, y, small = false) {
    const { context } = this;
    context.fillStyle = this.ink;
    context.textAlign = "right";
    if (small) context.font = "10px system-ui, sans-serif";
    context.fillText(clipped(context, text, this.gutter - 16), this.gutter - 8, y);
    if (small) context.font = "12px system-ui, sans-serif";
    context.textAlign = "left";
  }

  drawAxis() {
    const { context, width, height } = this;
    const step = nice(((this.to - this.from) * 110) / (width - this.gutter));
    context.textAlign = "center";
    context.lineWidth = 1;
    const [scale, unit] = step >= 1e6 ? [1e-6, "s"] : step >= 1e3 ? [1e-3, "ms"] : step >= 1 ? [1, "µs"] : [1e3, "ns"];
    for (let n = Math.ceil(this.from / step); n * step <= this.to; n++) {
      const x = Math.round(this.x(n * step)) + 0.5;
      if (x < this.gutter) continue;
      context.strokeStyle = this.faint;
      context.beginPath();
      context.moveTo(x, AXIS - 4);
      context.lineTo(x, height);
      context.stroke();
      context.fillStyle = this.ink;
      const value = Number((n * step * scale).toPrecision(12)).toLocaleString("en", { maximumFractionDigits: 6 });
      if (x > this.gutter && x < width - 20) context.fillText(`${value} ${unit}`, x, AXIS / 2);
    }
    context.textAlign = "left";
  }

  drawRow(row) {
    const { start, end, kind, name, names, busy, count } = this.shown;
    const { context } = this;
    const top = this.top[row] + (ROW - BAR) / 2;
    const last = this.first[row + 1];
    // What falls on one pixel is drawn once, as dense as the pixel is busy.
    let pixel = -1, covered = 0, most = 0, ofKind = 0;
    const flush = () => {
      if (pixel < 0) return;
      context.globalAlpha = density(covered);
      context.fillStyle = this.fills[ofKind].colour;
      context.fillRect(pixel, top, 1, BAR);
      context.globalAlpha = 1;
    };
    const written = [];
    for (let n = lower(this.reach, this.from, this.first[row], last); n < last && start[n] <= this.to; n++) {
      const left = Math.max(this.x(start[n]), this.gutter - 4), stop = Math.min(this.x(end[n]), this.width + 4);
      const wide = stop - left;
      if (kind[n] === this.event) {
        this.drawMoment(this.x(start[n]), top);
      } else if (wide < 1.5) {
        const here = Math.floor(left), cover = busy[n] * this.scale;
        if (here !== pixel) { flush(); [pixel, covered, most] = [here, 0, -1]; }
        covered += cover;
        if (cover > most) [most, ofKind] = [cover, kind[n]];
      } else {
        // A hatch in a narrow bar costs much and shows nothing.
        context.fillStyle = wide < 6 ? this.fills[kind[n]].colour : this.fills[kind[n]].pattern(context);
        if (count[n] > 1) context.globalAlpha = density(busy[n] / (end[n] - start[n]));
        context.fillRect(left, top, wide > 4 ? wide - 1 : wide, BAR);
        context.globalAlpha = 1;
        if (wide > LABEL_PX) written.push(n, left, wide);
      }
    }
    flush();
    for (let n = 0; n < written.length; n += 3) this.write(names[name[written[n]]], written[n + 1], written[n + 2], top);
  }

  drawMoment(x, top) {
    const { context } = this;
    context.fillStyle = this.fills[this.event].colour;
    context.strokeStyle = this.paper;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(x, top);
    context.lineTo(x + 5, top + BAR / 2);
    context.lineTo(x, top + BAR);
    context.lineTo(x - 5, top + BAR / 2);
    context.closePath();
    context.fill();
    context.stroke();
  }

  write(text, left, wide, top) {
    const { context } = this;
    const shown = clipped(context, text, Math.min(wide - 12, 0.65 * wide));
    if (!shown) return;
    const size = widthOf(context, shown);
    const x = left + (wide - size) / 2;
    context.fillStyle = this.paper;
    context.fillRect(x - 2, top + 1.5, size + 4, BAR - 3);
    context.fillStyle = this.ink;
    context.fillText(shown, x, top + BAR / 2 + 0.5);
  }

  drawSeries(one) {
    const { context } = this;
    const bottom = one.top + SERIES - 7, high = SERIES - 9;
    const { times, values } = one;
    context.fillStyle = this.area;
    context.beginPath();
    context.moveTo(this.x(this.from), bottom);
    let n = Math.max(0, lower(times, this.from, 0, times.length) - 1);
    let most = times.length && times[n] <= this.from ? values[n] : 0;
    let x = this.x(this.from);
    const level = () => bottom - (high * most) / (one.largest || 1);
    context.lineTo(x, level());
    for (n = lower(times, this.from, 0, times.length); n < times.length && times[n] <= this.to; n++) {
      const next = this.x(times[n]);
      context.lineTo(next, level());
      most = values[n];
      // Of all that falls on one pixel the highest is shown.
      while (n + 1 < times.length && this.x(times[n + 1]) < next + 0.5) most = Math.max(most, values[++n]);
      context.lineTo(next, level());
      most = values[n];
      context.lineTo(next, level());
    }
    context.lineTo(this.x(Math.min(this.to, this.length)), level());
    context.lineTo(this.x(Math.min(this.to, this.length)), bottom);
    context.closePath();
    context.fill();
    context.strokeStyle = this.faint;
    context.beginPath();
    context.moveTo(this.gutter, bottom + 0.5);
    context.lineTo(this.width, bottom + 0.5);
    context.stroke();
  }

  drawArrows() {
    const { arrows } = this.shown;
    const marked = new Set([...(this.linked.get(this.selected) || []), ...(this.linked.get(this.hovered) || [])]);
    const visible = [];
    if (this.arrowsBox.checked) {
      for (let n = 0; n < arrows.length && visible.length <= MAX_ARROWS; n += 3) if (arrows[n] !== 1 && this.inView(n)) visible.push(n);
    }
    const crowded = visible.length > MAX_ARROWS;
    if (!crowded) for (const n of visible) if (!marked.has(n)) this.drawArrow(n, false);
    for (const n of marked) this.drawArrow(n, true);
    this.arrowsBox.parentElement.title = crowded ? "Too many arrows in view: zoom in, or select a span to see its own" : "From launches to what they started, and from what was waited for";
    this.arrowsBox.parentElement.classList.toggle("quiet", crowded);
  }

  inView(n) {
    const { arrows, start, end } = this.shown;
    const [source, target] = [arrows[n + 1], arrows[n + 2]];
    return Math.max(end[source], end[target]) >= this.from && Math.min(start[source], start[target]) <= this.to;
  }

  drawArrow(n, strong) {
    const { arrows, start, end, row } = this.shown;
    const { context } = this;
    const [which, source, target] = [arrows[n], arrows[n + 1], arrows[n + 2]];
    const head = which === 2 ? end[target] : start[target];
    const down = this.top[row[target]] >= this.top[row[source]];
    const x0 = Math.max(Math.min(this.x(Math.min(end[source], head)), 1e5), -1e5);
    const x1 = Math.max(Math.min(this.x(head), 1e5), -1e5);
    const y0 = this.top[row[source]] + (ROW - BAR) / 2 + (down ? BAR : 0);
    const y1 = this.top[row[target]] + (ROW - BAR) / 2 + (down ? 0 : BAR);
    const bend = Math.max(6, Math.abs(y1 - y0) / 2) * (down ? 1 : -1);
    context.strokeStyle = context.fillStyle = this.ink;
    // One from far away would only cross what is in view.
    context.globalAlpha = strong ? 1 : x0 < this.gutter || x0 > this.width ? 0.2 : 0.6;
    context.lineWidth = strong ? 2 : 1;
    context.setLineDash(which === 2 ? [5, 3] : []);
    context.beginPath();
    context.moveTo(x0, y0);
    context.bezierCurveTo(x0, y0 + bend, x1, y1 - bend, x1, y1);
    context.stroke();
    context.setLineDash([]);
    const size = strong ? 6 : 4.5;
    context.beginPath();
    context.moveTo(x1, y1);
    context.lineTo(x1 - size / 1.6, y1 - size * Math.sign(bend) * 1.3);
    context.lineTo(x1 + size / 1.6, y1 - size * Math.sign(bend) * 1.3);
    context.closePath();
    context.fill();
    context.globalAlpha = 1;
  }

  drawFrame(place) {
    const { start, end, row, kind } = this.shown;
    const { context } = this;
    const isMoment = kind[place] === this.event;
    const left = Math.max(this.x(start[place]) - (isMoment ? 7 : 1.5), this.gutter - 10);
    const right = Math.min(this.x(end[place]) + (isMoment ? 7 : 0.5), this.width + 10);
    const top = this.top[row[place]] + (ROW - BAR) / 2 - 1.5;
    // Two lines, so that one of them stands out from whatever is around.
    for (const [colour, line] of [[this.paper, 5], [this.ink, place === this.selected ? 2.5 : 1.5]]) {
      context.strokeStyle = colour;
      context.lineWidth = line;
      context.strokeRect(left, top, Math.max(right - left, 3), BAR + 3);
    }
  }
}

function model_on(model, name, action, undo) {
  model.on(name, action);
  undo.push(() => model.off(name, action));
}

// A colour with signs on it, so that colour is never alone; the signs are those of the static picture.
function hatched({ colour, hatch }, ratio) {
  let made = null;
  const pattern = context => {
    if (!hatch) return colour;
    if (made) return made;
    const size = 10;
    const tile = document.createElement("canvas");
    tile.width = tile.height = size * ratio;
    const pen = tile.getContext("2d");
    pen.scale(ratio, ratio);
    pen.fillStyle = colour;
    pen.fillRect(0, 0, size, size);
    pen.strokeStyle = pen.fillStyle = "rgba(255,255,255,.85)";
    pen.lineWidth = 1.1;
    const lines = {
      "//": [[-1, 1, 1, -1], [-1, size + 1, size + 1, -1], [size - 1, size + 1, size + 1, size - 1]],
      "\\\\": [[-1, size - 1, 1, size + 1], [-1, -1, size + 1, size + 1], [size - 1, -1, size + 1, 1]],
      "--": [[0, size / 4, size, size / 4], [0, (3 * size) / 4, size, (3 * size) / 4]],
    };
    lines.xx = [...lines["//"], ...lines["\\\\"]];
    for (const [x0, y0, x1, y1] of lines[hatch] || []) {
      pen.beginPath();
      pen.moveTo(x0, y0);
      pen.lineTo(x1, y1);
      pen.stroke();
    }
    if (hatch === "..") {
      for (const [x, y] of [[size / 4, size / 4], [(3 * size) / 4, (3 * size) / 4]]) {
        pen.beginPath();
        pen.arc(x, y, 1.2, 0, 7);
        pen.fill();
      }
    }
    made = context.createPattern(tile, "repeat");
    made.setTransform(new DOMMatrix().scale(1 / ratio));
    return made;
  };
  return { colour, pattern };
}

// Little must still be seen.
function density(share) {
  return 0.3 + 0.7 * Math.min(1, share);
}

function nice(step) {
  const power = 10 ** Math.floor(Math.log10(step));
  return power * [1, 2, 5, 10].find(factor => factor * power >= step * 0.999);
}

const widths = new Map(); // measuring text is slow, and the same names come again and again

function widthOf(context, text) {
  const key = text + context.font;
  if (!widths.has(key)) {
    if (widths.size > 5000) widths.clear();
    widths.set(key, context.measureText(text).width);
  }
  return widths.get(key);
}

function clipped(context, text, width) {
  const whole = widthOf(context, text);
  if (whole <= width) return text;
  const n = Math.floor((text.length * width) / whole) - 1;
  return n < 3 ? "" : `${text.slice(0, n)}…`;
}
