// The timeline in the browser. Python sends all spans once; everything after that happens here, so
// that zooming needs no answer from the kernel. Times are microseconds since the first span. A
// *place* is the index of a bar in the columns that Python sends.
//
// This is one file, because a widget's script reaches the browser as one module, which cannot
// import files beside it. If Python joined several files, a reader could not see where a name comes
// from. The exceptions are themeOf and Presentation, which all widgets share: gpulab/figures/widgets puts
// them before this file. Each class has one task and depends only on the classes above it:
//
//   Spans      the data: columns, rows and lanes, arrows, and the description of a span
//   Viewport   which times are in view, and their position on the screen
//   Page       the elements around the picture, and the status line
//   Selection  the span under the pointer and the selected span
//   Painter    draws lanes, bars, arrows and series on the canvas
//   Pointer    mouse, wheel and touch
//   Keyboard   keys, which go from span to span
//   Chart      creates the others and draws at most once per frame

const STYLE = `${LOOK}
.gpulab-timeline { position: relative; padding: 2px; }
.gpulab-timeline .bar { display: flex; flex-wrap: wrap; gap: 4px 10px; align-items: center; margin: 2px 0 4px; }
.gpulab-timeline .title { font-weight: 600; margin-right: auto; }
.gpulab-timeline button { min-width: 28px; padding: 0 8px; }
.gpulab-timeline .group { display: inline-flex; gap: 3px; }
.gpulab-timeline label { display: inline-flex; gap: 4px; align-items: center; cursor: pointer; }
.gpulab-timeline .stage { max-height: 70vh; overflow: hidden auto; position: relative; border: 1px solid var(--gpulab-faint); border-radius: 3px; }
.gpulab-timeline.gpulab-presents .stage { max-height: none; }
.gpulab-timeline canvas.chart { display: block; width: 100%; cursor: grab; touch-action: pan-y; outline: none; }
.gpulab-timeline canvas.chart.dragging { cursor: grabbing; }
.gpulab-timeline .stage:focus-within { outline: 2px solid var(--gpulab-cold); outline-offset: 1px; }
.gpulab-timeline .tip { position: absolute; z-index: 5; pointer-events: none; max-width: 26em; padding: 4px 8px; white-space: pre-line;
  background: var(--gpulab-paper); border: 1px solid var(--gpulab-muted); border-radius: 3px; box-shadow: 0 2px 6px rgb(0 0 0 / 30%); overflow-wrap: anywhere; }
.gpulab-timeline .told { min-height: 1.4em; margin: 4px 0 0; overflow-wrap: anywhere; }
.gpulab-timeline .headline { white-space: pre-line; margin: 2px 0 4px; }
.gpulab-timeline .quiet, .gpulab-timeline .keys { color: var(--gpulab-muted); }
.gpulab-timeline .legend { display: flex; flex-wrap: wrap; gap: 2px 14px; list-style: none; margin: 4px 0 0; padding: 0; }
.gpulab-timeline .legend li { display: inline-flex; gap: 5px; align-items: center; margin: 0; }
.gpulab-timeline pre { font: 13px/1.45 var(--jp-code-font-family, monospace); white-space: pre-wrap; margin: 4px 0; color: inherit; background: none; }
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
  ["P", "present: alone, in large type; there D turns light and dark"],
];
const AXIS = 24, ROW = 26, BAR = 20, LANE_GAP = 5, SERIES = 30;
const FONT = "13px system-ui, sans-serif";
const MAX_ARROWS = 250; // with more in view, only those of the selected span are drawn
const SHORTEST_VIEW_US = 0.02; // 20 ns: times are whole nanoseconds, so closer there is nothing to see
const ZOOM_STEP = 1.6;
const GLIDE_MS = 140;
const LABEL_PX = 40; // a narrower bar has no space for a name
const LEAST_NAME = 7; // characters; a name cut to "lau…" says less than the colour of the bar does
const PRESENTED = 1.8; // scale of the picture in presentation mode
const LAUNCH = 0, RECORD = 1, WAIT = 2; // kinds of arrows, as Python numbers them

export default { render };

function render({ model, el }) {
  const chart = new Chart(el, model);
  return () => chart.close();
}

// ---------------------------------------------------------------- the data

class Spans {
  constructor(drawing) {
    Object.assign(this, decode(drawing));
    this.event = this.kinds.findIndex(kind => kind.name === "event");
    this.used = [...new Set(this.kind)].sort();
    this.length = this.end.reduce((most, value) => Math.max(most, value), this.start[0]);
    this.sequences = new Map();
    this.stack();
    this.index();
    this.link();
  }

  // Computes the y position of each row and each series.
  stack() {
    this.top = [];
    this.laneOf = []; // the lane of each row
    let y = AXIS + LANE_GAP;
    for (const [number, lane] of this.lanes.entries()) {
      lane.top = y;
      for (let n = 0; n < lane.rows; n++) { this.top.push(y); this.laneOf.push(number); y += ROW; }
      y += LANE_GAP;
    }
    for (const one of this.series) {
      one.top = y + 3;
      y += SERIES;
      one.largest = one.values.reduce((most, value) => Math.max(most, value), 0);
    }
    this.height = y + 4;
    const longest = Math.max(...[...this.lanes, ...this.series].map(one => nameOf(one).length));
    this.gutter = Math.min(200, Math.max(84, 8.2 * longest + 24));
  }

  // Bars are sorted by row and start. Their ends are not sorted, because an event may be inside
  // another bar. So `reach` has the latest end of all bars of the row so far, for binary search.
  index() {
    const { end, row } = this;
    const nRows = this.top.length;
    this.first = new Int32Array(nRows + 1);
    for (let place = 0; place < row.length; place++) this.first[row[place] + 1] = place + 1;
    for (let n = 1; n <= nRows; n++) this.first[n] = Math.max(this.first[n], this.first[n - 1]);
    this.reach = new Float64Array(end.length);
    for (let place = 0; place < end.length; place++) {
      const before = place && row[place] === row[place - 1] ? this.reach[place - 1] : -Infinity;
      this.reach[place] = Math.max(before, end[place]);
    }
  }

  // Finds the arrows that begin or end at each span.
  link() {
    this.linked = new Map();
    for (let n = 0; n < this.arrows.length; n += 3) {
      for (const place of [this.arrows[n + 1], this.arrows[n + 2]]) {
        if (!this.linked.has(place)) this.linked.set(place, []);
        this.linked.get(place).push(n);
      }
    }
  }

  arrowsAt(place) { return this.linked.get(place) || []; }

  lane(place) { return this.laneOf[this.row[place]]; }

  middle(place) { return (this.start[place] + this.end[place]) / 2; }

  // Returns the first bar of a row that can end at a time or later.
  firstEnding(us, row) { return lower(this.reach, us, this.first[row], this.first[row + 1]); }

  // Returns the bars of a lane by start: for the keyboard, the rows of a lane are one sequence.
  sequence(lane) {
    if (!this.sequences.has(lane)) {
      const places = [];
      this.laneOf.forEach((one, row) => {
        if (one === lane) for (let n = this.first[row]; n < this.first[row + 1]; n++) places.push(n);
      });
      const { start, end } = this;
      places.sort((a, b) => start[a] - start[b] || end[a] - end[b] || a - b);
      this.sequences.set(lane, places);
    }
    return this.sequences.get(lane);
  }

  // Returns the bar of a row at a time, or the nearest one within `slack`; -1 if there is none.
  at(us, row, slack) {
    const { start, end } = this;
    const last = this.first[row + 1];
    let best = -1, distance = slack;
    for (let n = this.firstEnding(us - slack, row); n < last && start[n] <= us + slack; n++) {
      const away = Math.max(start[n] - us, us - end[n], 0);
      // If several are under the pointer, the shortest wins, because it is the hardest to reach.
      if (away < distance || (away === distance && best >= 0 && end[n] - start[n] < end[best] - start[best])) [best, distance] = [n, away];
    }
    return best;
  }

  describe(place) {
    const { start, end, kind, name, names, kinds, size, count } = this;
    const [of, called] = [kinds[kind[place]].name, names[name[place]]];
    const what = called.startsWith(of) ? called : `${of} ${called}`;
    const length = end[place] - start[place];
    const when = length ? `from ${time(start[place])}, ${time(length)} long` : `at ${time(start[place])}`;
    const words = [count[place] > 1 ? called : what, `on ${this.lanes[this.lane(place)].name}`, when];
    if (!Number.isNaN(size[place])) words.push(`${sizeText(size[place])} at ${(size[place] / length / 1000).toPrecision(3)} GB/s`);
    const found = this.arrowsAt(place);
    const ends = found.slice(0, 3).map(n => this.describeArrow(n, place));
    const more = found.length - ends.length;
    if (more > 0) ends.push(`and ${more.toLocaleString("en")} more`);
    return `${[...words, ...ends].join(", ")}.`;
  }

  // Describes an arrow as seen from one of its ends.
  describeArrow(n, place) {
    const { start, end, name, names } = this;
    const [which, source, target] = [this.arrows[n], this.arrows[n + 1], this.arrows[n + 2]];
    const other = source === place ? target : source;
    const there = `${names[name[other]]} on ${this.lanes[this.lane(other)].name}`;
    if (which === WAIT) return source === place ? `${there} waits for it` : `waits for ${there}`;
    if (source === place) return which === LAUNCH ? `starts ${there} after ${time(Math.max(0, start[target] - end[source]))}` : `puts ${there}`;
    return `called by ${names[name[other]]} at ${time(start[other])}`;
  }
}

// ---------------------------------------------------------------- the part that is in view

class Viewport {
  // Calls `moved` whenever the part in view changes or begins to glide.
  constructor(length, gutter, moved) {
    this.length = length;
    this.gutter = gutter;
    this.moved = moved;
    this.calm = window.matchMedia("(prefers-reduced-motion: reduce)");
    this.width = 0;
    this.size = 1; // CSS pixels for each pixel of the picture
    this.goal = null; // the part in view at the end of a glide
    [this.from, this.to] = this.whole();
  }

  whole() {
    const margin = 0.01 * (this.length || 1);
    return [-margin, (this.length || 1) + margin];
  }

  place(from, to) {
    [this.from, this.to] = [from, to];
    this.scale = (this.width - this.gutter) / (to - from); // pixels per microsecond
  }

  resize(width, size) {
    this.width = width / size;
    this.size = size;
    this.place(this.from, this.to);
  }

  x(us) { return this.gutter + (us - this.from) * this.scale; }

  us(x) { return this.from + (x - this.gutter) / this.scale; }

  show(from, to, glide = true) {
    const [least, most] = this.whole();
    const length = Math.min(Math.max(to - from, SHORTEST_VIEW_US), most - least);
    from = Math.min(Math.max((from + to - length) / 2, least), most - length);
    if (!glide || this.calm.matches) {
      this.place(from, from + length);
      this.goal = null;
    } else {
      this.goal = [from, from + length];
      this.origin = [this.from, this.to];
      this.began = performance.now();
    }
    this.moved();
  }

  // Returns the part that will be in view when the glide ends, so that a second key adds to it.
  ahead() { return this.goal || [this.from, this.to]; }

  zoom(factor, about = (this.from + this.to) / 2, glide = true) {
    const [from, to] = glide ? this.ahead() : [this.from, this.to];
    this.show(about - (about - from) * factor, about + (to - about) * factor, glide);
  }

  pan(share) {
    const [from, to] = this.ahead();
    const step = share * (to - from);
    this.show(from + step, to + step);
  }

  centre(us, length, glide = true) { this.show(us - length / 2, us + length / 2, glide); }

  fit() { this.show(...this.whole()); }

  // Makes one step of a glide, and returns whether there is another one.
  glide(now) {
    if (!this.goal) return false;
    const share = Math.min(1, Math.max(0, (now - this.began) / GLIDE_MS));
    const eased = 1 - (1 - share) ** 3;
    this.place(...[0, 1].map(side => this.origin[side] + (this.goal[side] - this.origin[side]) * eased));
    if (share === 1) this.goal = null;
    return this.goal !== null;
  }

  inWords() { return `${this.from > 0 ? time(this.from) : "0"} to ${time(Math.min(this.to, this.length))}`; }
}

// ---------------------------------------------------------------- the elements

class Page {
  constructor(root, drawing, spans, view, presentation) {
    Object.assign(this, { root, view, presentation });
    this.build(drawing, spans);
    root.append(this.toolbar(drawing, view), this.stage, this.tip, this.legend, this.told, ...this.folded(drawing));
    if (drawing.note) this.stage.before(tag("p", { class: "note" }, drawing.note));
    this.tell("");
  }

  build(drawing, spans) {
    this.canvas = tag("canvas", {
      class: "chart", tabindex: "0", role: "application",
      "aria-label": `Timeline with ${spans.lanes.length} lanes, ${drawing.n_spans.toLocaleString("en")} spans. Use the arrow keys to go from span to span.`,
      // Without this, JupyterLab takes keys such as 0 and Enter as commands of the notebook.
      "data-lm-suppress-shortcuts": "true",
    });
    this.stage = tag("div", { class: "stage" }, this.canvas);
    this.tip = tag("div", { class: "tip", hidden: "" });
    this.told = tag("p", { class: "told", role: "status", "aria-live": "polite" });
    this.legend = tag("ul", { class: "legend", "aria-label": "Kinds of spans" });
    this.swatches = spans.used.map(kind => {
      const swatch = tag("canvas", { width: "44", height: "24", style: "width:22px;height:12px", "aria-hidden": "true" });
      this.legend.append(tag("li", {}, swatch, spans.kinds[kind].name));
      return [swatch, spans.kinds[kind]];
    });
  }

  toolbar(drawing, view) {
    const buttons = [
      ["+", "Zoom in", () => view.zoom(1 / ZOOM_STEP)],
      ["−", "Zoom out", () => view.zoom(ZOOM_STEP)],
      ["◀", "Move to earlier times", () => view.pan(-0.4)],
      ["▶", "Move to later times", () => view.pan(0.4)],
      ["Fit", "Show all of the timeline", () => view.fit()],
    ].map(([text, label, action]) => {
      const button = tag("button", { type: "button", title: label, "aria-label": label }, text);
      button.addEventListener("click", action);
      return button;
    });
    this.arrowsBox = tag("input", { type: "checkbox" });
    this.arrowsBox.checked = true;
    this.arrowsLabel = tag("label", { class: "gpulab-controls" }, this.arrowsBox, "arrows");
    this.range = tag("span", { class: "quiet" });
    const bar = titleBar(drawing);
    bar.append(this.range, tag("span", { class: "group gpulab-controls" }, ...buttons), this.arrowsLabel, this.presentation.button());
    return bar;
  }

  folded(drawing) {
    const keys = KEYS.map(([key, what]) => `${key}: ${what}`).join("; ");
    return [
      tag("p", { class: "headline" }, drawing.headline),
      tag("details", { class: "gpulab-controls" }, tag("summary", {}, "Summary: shares, gaps and their causes"), tag("pre", {}, drawing.summary)),
      tag("details", { class: "gpulab-controls" }, tag("summary", {}, "Keys"), tag("p", { class: "keys" }, keys)),
    ];
  }

  get hasFocus() { return document.activeElement === this.canvas; }

  tell(text) {
    const nothing = "Point at a span, or focus the picture and use the arrow keys.";
    this.told.textContent = text || nothing;
    this.told.classList.toggle("quiet", !text);
  }

  // Shows a hint beside a point of the canvas, or hides it if the text is empty.
  hint(text, x, y) {
    this.tip.hidden = !text;
    if (!text) return;
    this.tip.textContent = text;
    const box = this.root.getBoundingClientRect(), canvas = this.canvas.getBoundingClientRect();
    const { size } = this.view;
    const left = Math.min(x * size + canvas.left - box.left + 14, box.width - this.tip.offsetWidth - 4);
    this.tip.style.left = `${Math.max(0, left)}px`;
    this.tip.style.top = `${y * size + canvas.top - box.top + 18}px`;
  }

  // Scrolls until a row is fully visible.
  scrollTo(top) {
    const { stage } = this, { size } = this.view;
    const [from, length] = [stage.scrollTop / size, stage.clientHeight / size];
    if (top < from + AXIS || top + ROW > from + length) stage.scrollTop = (top - AXIS) * size;
  }

  tellArrows(crowded) {
    this.arrowsLabel.title = crowded ? "Too many arrows in view: zoom in, or select a span to see its own" : "From launches to what they started, and from what was waited for";
    this.arrowsLabel.classList.toggle("quiet", crowded);
  }

  tellView(view, selected) {
    this.range.textContent = view.inWords();
    Object.assign(this.root.dataset, { fromUs: view.from, toUs: view.to, selected });
  }
}

function titleBar(drawing) {
  return tag("div", { class: "bar" }, tag("span", { class: "title" }, `Timeline (${drawing.place})`));
}

// ---------------------------------------------------------------- the selected span

class Selection {
  // Calls `changed` when another span is selected or under the pointer.
  constructor(spans, view, page, changed) {
    Object.assign(this, { spans, view, page, changed });
    this.selected = this.hovered = -1;
  }

  select(place, reveal = true) {
    this.selected = place;
    this.page.tell(place < 0 ? "" : this.spans.describe(place));
    if (place >= 0 && reveal) this.reveal(place);
    this.changed();
  }

  hover(place, x, y) {
    if (place !== this.hovered) {
      this.hovered = place;
      this.changed();
    }
    this.page.hint(place < 0 ? "" : this.spans.describe(place), x, y);
  }

  reveal(place) {
    const { start, end, row, top } = this.spans;
    const [from, to] = this.view.ahead();
    if (end[place] < from || start[place] > to || (start[place] < from && end[place] < to) || (end[place] > to && start[place] > from)) {
      this.view.centre(this.spans.middle(place), to - from);
    }
    this.page.scrollTo(top[row[place]]);
  }

  zoomTo(place) {
    const { start, end } = this.spans;
    this.select(place);
    this.view.centre(this.spans.middle(place), Math.max((end[place] - start[place]) * 1.3, SHORTEST_VIEW_US * 50));
  }
}

// ---------------------------------------------------------------- drawing

class Painter {
  constructor(spans, view, page, selection) {
    Object.assign(this, { spans, view, page, selection });
    this.context = page.canvas.getContext("2d");
  }

  // Reads the colours of the page's theme.
  colours() {
    const { isDark: dark, colour } = themeOf(this.page.root);
    [this.paper, this.ink] = [colour("paper"), colour("ink")];
    this.faint = dark ? "rgba(255,255,255,.14)" : "rgba(0,0,0,.10)";
    this.band = dark ? "rgba(255,255,255,.05)" : "rgba(0,0,0,.035)";
    this.area = dark ? "rgba(255,255,255,.42)" : "rgba(64,64,64,.45)";
    const shown = ({ light, dark: deep, hatch }) => ({ colour: dark ? deep : light, hatch, line: this.paper });
    this.fills = this.spans.kinds.map(kind => hatched(shown(kind), window.devicePixelRatio || 1));
    for (const [swatch, kind] of this.page.swatches) {
      const context = swatch.getContext("2d");
      context.setTransform(2, 0, 0, 2, 0, 0);
      context.fillStyle = hatched(shown(kind), 2).pattern(context);
      context.fillRect(0, 0, 22, 12);
    }
  }

  resize(width) {
    const { canvas } = this.page;
    const ratio = window.devicePixelRatio || 1;
    const { size } = this.view;
    canvas.style.height = `${this.spans.height * size}px`;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(this.spans.height * size * ratio);
  }

  draw() {
    const { context, spans, view, selection } = this;
    const ratio = (window.devicePixelRatio || 1) * view.size;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = this.paper;
    context.fillRect(0, 0, view.width, spans.height);
    context.font = FONT;
    context.textBaseline = "middle";
    this.drawLanes();
    this.drawAxis();
    context.save();
    context.beginPath();
    context.rect(view.gutter, 0, view.width - view.gutter, spans.height);
    context.clip();
    const written = spans.top.map((_, row) => this.drawRow(row));
    for (const one of spans.series) this.drawSeries(one);
    this.drawArrows();
    // Names are drawn after the arrows, which would otherwise cross them out.
    for (const [row, names] of written.entries()) this.drawNames(names, row);
    for (const place of [selection.hovered, selection.selected]) if (place >= 0) this.drawFrame(place);
    context.restore();
    this.page.tellView(view, selection.selected);
  }

  drawLanes() {
    const { context, spans } = this;
    spans.lanes.forEach((lane, number) => {
      if (number % 2 === 0) {
        context.fillStyle = this.band;
        context.fillRect(0, lane.top - LANE_GAP / 2, this.view.width, lane.rows * ROW + LANE_GAP);
      }
      this.label(lane.name, lane.top + ROW / 2);
    });
    for (const one of spans.series) this.label(nameOf(one), one.top + SERIES / 2);
  }

  label(text, y) {
    const { context } = this;
    const { gutter } = this.view;
    context.fillStyle = this.ink;
    context.textAlign = "right";
    context.fillText(clipped(context, text, gutter - 16), gutter - 8, y);
    context.textAlign = "left";
  }

  drawAxis() {
    const { context, view } = this;
    const { gutter, width } = view;
    const step = nice(((view.to - view.from) * 110) / (width - gutter));
    context.textAlign = "center";
    context.lineWidth = 1;
    const [scale, unit] = step >= 1e6 ? [1e-6, "s"] : step >= 1e3 ? [1e-3, "ms"] : step >= 1 ? [1, "µs"] : [1e3, "ns"];
    for (let n = Math.ceil(view.from / step); n * step <= view.to; n++) {
      const x = Math.round(view.x(n * step)) + 0.5;
      if (x < gutter) continue;
      context.strokeStyle = this.faint;
      context.beginPath();
      context.moveTo(x, AXIS - 4);
      context.lineTo(x, this.spans.height);
      context.stroke();
      context.fillStyle = this.ink;
      const value = Number((n * step * scale).toPrecision(12)).toLocaleString("en", { maximumFractionDigits: 6 });
      if (x > gutter && x < width - 20) context.fillText(`${value} ${unit}`, x, AXIS / 2);
    }
    context.textAlign = "left";
  }

  drawRow(row) {
    const { context, spans, view } = this;
    const { start, end, kind, busy, count } = spans;
    const top = barTop(spans, row);
    const last = spans.first[row + 1];
    const sliver = new Sliver(context, top, this.fills);
    const written = [];
    for (let n = spans.firstEnding(view.from, row); n < last && start[n] <= view.to; n++) {
      const left = Math.max(view.x(start[n]), view.gutter - 4), stop = Math.min(view.x(end[n]), view.width + 4);
      const wide = stop - left;
      if (kind[n] === spans.event) {
        this.drawMoment(view.x(start[n]), top);
      } else if (wide < 1.5) {
        sliver.add(Math.floor(left), busy[n] * view.scale, kind[n]);
      } else {
        // A narrow bar is filled without its hatch, which takes long to draw and is not visible.
        context.fillStyle = wide < 6 ? this.fills[kind[n]].colour : this.fills[kind[n]].pattern(context);
        if (count[n] > 1) context.globalAlpha = density(busy[n] / (end[n] - start[n]));
        context.fillRect(left, top, wide > 4 ? wide - 1 : wide, BAR);
        context.globalAlpha = 1;
        if (wide > LABEL_PX) written.push(n, left, wide);
      }
    }
    sliver.flush();
    return written;
  }

  // `written` has three numbers for each name: the place, the left end and the width of its bar.
  drawNames(written, row) {
    const { name, names } = this.spans;
    for (let n = 0; n < written.length; n += 3) this.write(names[name[written[n]]], written[n + 1], written[n + 2], barTop(this.spans, row));
  }

  drawMoment(x, top) {
    const { context } = this;
    context.fillStyle = this.fills[this.spans.event].colour;
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
    // A name covers at most two thirds of its bar, so that the hatch stays visible beside it.
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
    const { context, view } = this;
    const { times, values } = one;
    const bottom = one.top + SERIES - 7, high = SERIES - 9;
    const end = view.x(Math.min(view.to, view.length));
    context.fillStyle = this.area;
    context.beginPath();
    context.moveTo(view.x(view.from), bottom);
    const first = lower(times, view.from, 0, times.length);
    const before = Math.max(0, first - 1);
    let most = times.length && times[before] <= view.from ? values[before] : 0;
    const level = () => bottom - (high * most) / (one.largest || 1);
    context.lineTo(view.x(view.from), level());
    for (let n = first; n < times.length && times[n] <= view.to; n++) {
      const next = view.x(times[n]);
      context.lineTo(next, level());
      most = values[n];
      // If several values fall on one pixel, the highest is drawn.
      while (n + 1 < times.length && view.x(times[n + 1]) < next + 0.5) most = Math.max(most, values[++n]);
      context.lineTo(next, level());
      most = values[n];
      context.lineTo(next, level());
    }
    context.lineTo(end, level());
    context.lineTo(end, bottom);
    context.closePath();
    context.fill();
    context.strokeStyle = this.faint;
    context.beginPath();
    context.moveTo(view.gutter, bottom + 0.5);
    context.lineTo(view.width, bottom + 0.5);
    context.stroke();
  }

  drawArrows() {
    const { spans, selection, page } = this;
    const marked = new Set([...spans.arrowsAt(selection.selected), ...spans.arrowsAt(selection.hovered)]);
    const visible = page.arrowsBox.checked ? this.arrowsInView() : [];
    const crowded = visible.length > MAX_ARROWS;
    if (!crowded) for (const n of visible) if (!marked.has(n)) this.drawArrow(n, false);
    for (const n of marked) this.drawArrow(n, true);
    page.tellArrows(crowded);
  }

  // Stops at one more than can be drawn, which is enough to know that there are too many.
  arrowsInView() {
    const { arrows, start, end } = this.spans;
    const { from, to } = this.view;
    const visible = [];
    for (let n = 0; n < arrows.length && visible.length <= MAX_ARROWS; n += 3) {
      const [which, source, target] = [arrows[n], arrows[n + 1], arrows[n + 2]];
      const isInView = Math.max(end[source], end[target]) >= from && Math.min(start[source], start[target]) <= to;
      if (which !== RECORD && isInView) visible.push(n);
    }
    return visible;
  }

  drawArrow(n, strong) {
    const { context, spans, view } = this;
    const { arrows, start, end, row, top } = spans;
    const [which, source, target] = [arrows[n], arrows[n + 1], arrows[n + 2]];
    const head = which === WAIT ? end[target] : start[target];
    const down = top[row[target]] >= top[row[source]];
    const x0 = Math.max(Math.min(view.x(Math.min(end[source], head)), 1e5), -1e5);
    const x1 = Math.max(Math.min(view.x(head), 1e5), -1e5);
    const y0 = barTop(spans, row[source]) + (down ? BAR : 0);
    const y1 = barTop(spans, row[target]) + (down ? 0 : BAR);
    const bend = Math.max(6, Math.abs(y1 - y0) / 2) * (down ? 1 : -1);
    context.strokeStyle = context.fillStyle = this.ink;
    // An arrow that begins out of view is faint, because it only crosses the spans in view.
    context.globalAlpha = strong ? 1 : x0 < view.gutter || x0 > view.width ? 0.2 : 0.6;
    context.lineWidth = strong ? 2 : 1;
    context.setLineDash(which === WAIT ? [5, 3] : []);
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
    const { context, spans, view } = this;
    const isMoment = spans.kind[place] === spans.event;
    const left = Math.max(view.x(spans.start[place]) - (isMoment ? 7 : 1.5), view.gutter - 10);
    const right = Math.min(view.x(spans.end[place]) + (isMoment ? 7 : 0.5), view.width + 10);
    const top = barTop(spans, spans.row[place]) - 1.5;
    // Two lines in different colours, so that one of them is visible on any background.
    for (const [colour, line] of [[this.paper, 5], [this.ink, place === this.selection.selected ? 2.5 : 1.5]]) {
      context.strokeStyle = colour;
      context.lineWidth = line;
      context.strokeRect(left, top, Math.max(right - left, 3), BAR + 3);
    }
  }
}

function barTop(spans, row) { return spans.top[row] + (ROW - BAR) / 2; }

// Draws all bars on one pixel of a row at once; the busier the pixel, the denser its colour.
class Sliver {
  constructor(context, top, fills) {
    Object.assign(this, { context, top, fills });
    this.pixel = -1;
  }

  add(pixel, cover, kind) {
    if (pixel !== this.pixel) {
      this.flush();
      [this.pixel, this.covered, this.most] = [pixel, 0, -1];
    }
    this.covered += cover;
    if (cover > this.most) [this.most, this.kind] = [cover, kind];
  }

  flush() {
    if (this.pixel < 0) return;
    this.context.globalAlpha = density(this.covered);
    this.context.fillStyle = this.fills[this.kind].colour;
    this.context.fillRect(this.pixel, this.top, 1, BAR);
    this.context.globalAlpha = 1;
  }
}

// ---------------------------------------------------------------- mouse and wheel

class Pointer {
  constructor(spans, view, page, selection) {
    Object.assign(this, { spans, view, page, selection });
    this.drag = null;
  }

  listen(listeners) {
    const { canvas } = this.page;
    // Only a listener that is not passive can keep the page from scrolling.
    listeners.on(canvas, "wheel", event => this.wheel(event), { passive: false });
    listeners.on(canvas, "pointerdown", event => this.press(event));
    listeners.on(canvas, "pointermove", event => this.move(event));
    listeners.on(canvas, "pointerup", event => this.release(event));
    listeners.on(canvas, "pointercancel", () => { this.drag = null; });
    listeners.on(canvas, "pointerleave", () => this.selection.hover(-1));
    listeners.on(canvas, "dblclick", event => this.open(event));
  }

  wheel(event) {
    const { view, page } = this;
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      const step = event.deltaX / view.scale;
      view.show(view.from + step, view.to + step, false);
    } else if (page.hasFocus || event.ctrlKey || event.metaKey) {
      event.preventDefault();
      // Some browsers count lines of text instead of pixels.
      const lines = event.deltaMode === 1 ? 16 : 1;
      view.zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY * lines * 0.0022))), view.us(this.at(event)[0]), false);
    } else {
      // Without the focus the page scrolls on, so that a reader is not caught in the picture.
      page.tell("Click the timeline first, or hold Ctrl, to zoom with the wheel.");
    }
  }

  at(event) {
    const box = this.page.canvas.getBoundingClientRect();
    const { size } = this.view;
    return [(event.clientX - box.left) / size, (event.clientY - box.top) / size];
  }

  hit(x, y) {
    const { spans, view } = this;
    if (x < view.gutter) return -1;
    const row = spans.top.findIndex(top => y >= top && y < top + ROW);
    // Three pixels of tolerance, because a bar may be narrower than one pixel.
    return row < 0 ? -1 : spans.at(view.us(x), row, 3 / view.scale);
  }

  press(event) {
    if (event.button) return;
    const { canvas } = this.page;
    canvas.focus({ preventScroll: true });
    canvas.setPointerCapture(event.pointerId);
    const [x, y] = this.at(event);
    this.drag = { x, y, from: this.view.from, to: this.view.to, moved: false };
  }

  move(event) {
    const { drag, view, selection } = this;
    const [x, y] = this.at(event);
    if (!drag) {
      selection.hover(this.hit(x, y), x, y);
      return;
    }
    // A hand moves a little in a click, so a drag begins after three pixels.
    if (Math.abs(x - drag.x) > 3) drag.moved = true;
    if (!drag.moved) return;
    this.page.canvas.classList.add("dragging");
    selection.hover(-1);
    const step = (drag.x - x) / view.scale;
    view.show(drag.from + step, drag.to + step, false);
  }

  release(event) {
    this.page.canvas.classList.remove("dragging");
    const drag = this.drag;
    this.drag = null;
    if (drag && !drag.moved) this.selection.select(this.hit(...this.at(event)), false);
  }

  open(event) {
    const place = this.hit(...this.at(event));
    if (place < 0) this.view.fit(); else this.selection.zoomTo(place);
  }
}

// ---------------------------------------------------------------- keys

class Keyboard {
  constructor(spans, view, page, selection) {
    Object.assign(this, { spans, view, page, selection });
    this.cameFrom = -1; // the span from which the last arrow was followed
  }

  listen(listeners) { listeners.on(this.page.canvas, "keydown", event => this.press(event)); }

  press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { view, selection } = this;
    const actions = {
      ArrowLeft: () => (event.shiftKey ? view.pan(-0.2) : this.step(-1)),
      ArrowRight: () => (event.shiftKey ? view.pan(0.2) : this.step(1)),
      ArrowUp: () => this.change(-1),
      ArrowDown: () => this.change(1),
      "+": () => view.zoom(1 / ZOOM_STEP, this.middle()),
      "=": () => view.zoom(1 / ZOOM_STEP, this.middle()),
      "-": () => view.zoom(ZOOM_STEP, this.middle()),
      0: () => view.fit(),
      Home: () => this.edge(false),
      End: () => this.edge(true),
      Enter: () => selection.selected >= 0 && selection.zoomTo(selection.selected),
      l: () => this.follow(),
      Escape: () => selection.select(-1),
    };
    const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    // If no span is selected, Escape is passed on, and ends the presentation.
    if (!action || (event.key === "Escape" && selection.selected < 0)) return;
    event.preventDefault();
    event.stopPropagation();
    selection.hover(-1);
    action();
  }

  // Returns the time about which keys zoom: a selected span stays where it is.
  middle() {
    const { view, selection } = this;
    if (selection.selected < 0) return (view.from + view.to) / 2;
    return Math.min(Math.max(this.spans.middle(selection.selected), view.from), view.to);
  }

  step(by) {
    const { selected } = this.selection;
    if (selected < 0) return this.enter();
    const places = this.spans.sequence(this.spans.lane(selected));
    const next = places[places.indexOf(selected) + by];
    if (next !== undefined) return this.selection.select(next);
    return this.page.tell(by < 0 ? "This is the first span of the lane." : "This is the last span of the lane.");
  }

  // Selects the first span in view.
  enter() {
    const { spans, view } = this;
    for (let lane = 0; lane < spans.lanes.length; lane++) {
      const visible = spans.sequence(lane).find(place => spans.end[place] >= view.from && spans.start[place] <= view.to);
      if (visible !== undefined) return this.selection.select(visible);
    }
    return this.selection.select(spans.sequence(0)[0]);
  }

  // Goes to the lane above or below, to the span that is nearest in time.
  change(by) {
    const { start, end, lanes } = this.spans;
    const { selected } = this.selection;
    if (selected < 0) return this.enter();
    const lane = this.spans.lane(selected) + by;
    if (lane < 0 || lane >= lanes.length) return this.page.tell(by < 0 ? "This is the first lane." : "This is the last lane.");
    const middle = this.spans.middle(selected);
    const distance = place => Math.max(start[place] - middle, middle - end[place], 0);
    let best = -1;
    for (const place of this.spans.sequence(lane)) if (best < 0 || distance(place) < distance(best)) best = place;
    return this.selection.select(best);
  }

  edge(last) {
    const { selected } = this.selection;
    const lane = selected < 0 ? 0 : this.spans.lane(selected);
    this.selection.select(this.spans.sequence(lane).at(last ? -1 : 0));
  }

  follow() {
    const { arrows } = this.spans;
    const { selected } = this.selection;
    const found = this.spans.arrowsAt(selected);
    if (!found.length) return this.page.tell("No arrow begins or ends here.");
    const ends = found.map(n => (arrows[n + 1] === selected ? arrows[n + 2] : arrows[n + 1]));
    // If the key is pressed again at the other end, it goes on to another span; back only if there
    // is no other.
    const onward = ends.filter(place => place !== this.cameFrom);
    this.cameFrom = selected;
    return this.selection.select(onward.length ? onward[0] : ends[0]);
  }
}

// ---------------------------------------------------------------- the chart

class Chart {
  constructor(el, model) {
    this.model = model;
    this.root = tag("div", { class: "gpulab-timeline", role: "group" });
    el.append(this.root);
    this.presentation = new Presentation(this.root, () => this.present());
    this.listeners = new Listeners();
    this.reload = () => this.load();
    this.load();
    model.on("change:drawing", this.reload);
  }

  close() {
    this.model.off("change:drawing", this.reload);
    this.leave();
    this.presentation.close();
    this.root.remove();
  }

  leave() {
    cancelAnimationFrame(this.frame);
    clearTimeout(this.announcing);
    this.frame = 0;
    this.listeners.close();
  }

  load() {
    this.leave();
    const drawing = this.model.get("drawing");
    this.root.replaceChildren(tag("style", {}, STYLE));
    this.root.setAttribute("aria-label", `Timeline of ${drawing.place}`);
    if (drawing.start.byteLength) this.build(drawing);
    else this.root.append(titleBar(drawing), tag("p", { class: "empty" }, drawing.summary));
  }

  build(drawing) {
    const spans = new Spans(drawing);
    this.view = new Viewport(spans.length, spans.gutter, () => this.moved());
    this.page = new Page(this.root, drawing, spans, this.view, this.presentation);
    this.selection = new Selection(spans, this.view, this.page, () => this.paint());
    const parts = [spans, this.view, this.page, this.selection];
    this.painter = new Painter(...parts);
    new Pointer(...parts).listen(this.listeners);
    new Keyboard(...parts).listen(this.listeners);
    this.listen();
    this.painter.colours();
    this.resize();
  }

  listen() {
    const { canvas, arrowsBox } = this.page;
    const repaint = () => { this.painter.colours(); this.paint(); };
    this.listeners.on(arrowsBox, "change", () => this.paint());
    this.listeners.on(canvas, "focus", () => { if (this.selection.selected < 0) this.page.tell(""); this.paint(); });
    this.listeners.on(canvas, "blur", () => this.paint());
    this.listeners.on(window.matchMedia("(prefers-color-scheme: dark)"), "change", repaint);
    const themes = { attributes: true, attributeFilter: ["data-jp-theme-light", "data-jp-theme-name", "class"] };
    this.listeners.observe(new ResizeObserver(() => this.resize()), this.root);
    this.listeners.observe(new MutationObserver(repaint), document.body, themes);
  }

  resize() {
    const width = this.page.stage.clientWidth;
    if (!width) return;
    if (!this.view.width) this.painter.colours(); // the first time on the page, with its style
    this.view.resize(width, this.presentation.isOn ? PRESENTED : 1);
    this.painter.resize(width);
    this.paint();
  }

  present() {
    if (!this.page) return;
    this.painter.colours();
    this.resize();
  }

  moved() {
    this.paint();
    clearTimeout(this.announcing);
    this.announcing = setTimeout(() => this.announce(), 400);
  }

  // Announces a change only while the picture has the focus: whoever drags it sees the change.
  announce() {
    if (this.page.hasFocus && this.selection.selected < 0) this.page.tell(`From ${this.view.inWords()}.`);
  }

  paint() {
    if (!this.view.width) return;
    this.frame ||= requestAnimationFrame(now => {
      this.frame = 0;
      const goesOn = this.view.glide(now);
      this.painter.draw();
      if (goesOn) this.paint();
    });
  }
}

// Keeps all listeners and observers, so that they can be removed together.
class Listeners {
  constructor() { this.undo = []; }

  on(target, name, action, options) {
    target.addEventListener(name, action, options);
    this.undo.push(() => target.removeEventListener(name, action, options));
  }

  observe(observer, ...what) {
    observer.observe(...what);
    this.undo.push(() => observer.disconnect());
  }

  close() { for (const action of this.undo.splice(0)) action(); }
}

// ---------------------------------------------------------------- helpers

function decode(drawing) {
  const floats = view => new Float64Array(bytes(view));
  const whole = view => new Int32Array(bytes(view));
  const series = drawing.series.map(one => ({ ...one, times: floats(one.times), values: floats(one.values) }));
  const lanes = drawing.lanes.map(lane => ({ ...lane }));
  const { names, kinds } = drawing;
  return {
    names, kinds, lanes, series,
    start: floats(drawing.start), end: floats(drawing.end), size: floats(drawing.size), busy: floats(drawing.busy),
    row: whole(drawing.row), kind: whole(drawing.kind), name: whole(drawing.name), count: whole(drawing.count),
    arrows: whole(drawing.arrows),
  };
}

function bytes(view) {
  // A copy, because a Float64Array must begin at a multiple of 8 bytes, and a view may begin
  // anywhere.
  return view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength);
}

function sizeText(size) {
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (size < 1023.5) return `${unit === "B" ? size : Number(size.toPrecision(3))} ${unit}`;
    size /= 1024;
  }
  return `${Number(size.toPrecision(3))} TiB`;
}

// Returns the label of a lane, or of a series with its greatest value.
function nameOf({ name, most }) {
  return most === undefined ? name : `${name} ≤ ${most}`;
}

// Returns the first index in a sorted column whose value is not less than the given one.
function lower(column, value, from, to) {
  while (from < to) {
    const middle = (from + to) >> 1;
    if (column[middle] < value) from = middle + 1; else to = middle;
  }
  return from;
}

// Returns a colour with a hatch, so that a kind is never shown by colour alone. The hatches are
// those of the static picture.
function hatched({ colour, hatch, line }, ratio) {
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
    pen.strokeStyle = pen.fillStyle = line;
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

// Returns the opacity for a share of busy time; a very small share must still be visible.
function density(share) {
  return 0.3 + 0.7 * Math.min(1, share);
}

function nice(step) {
  const power = 10 ** Math.floor(Math.log10(step));
  return power * [1, 2, 5, 10].find(factor => factor * power >= step * 0.999);
}

const widths = new Map(); // measuring text is slow, and the same names are drawn again and again

function widthOf(context, text) {
  const key = text + context.font;
  if (!widths.has(key)) {
    // A bound on memory: a trace can have any number of names.
    if (widths.size > 5000) widths.clear();
    widths.set(key, context.measureText(text).width);
  }
  return widths.get(key);
}

function clipped(context, text, width) {
  const whole = widthOf(context, text);
  if (whole <= width) return text;
  const n = Math.floor((text.length * width) / whole) - 1;
  return n < LEAST_NAME - 1 ? "" : `${text.slice(0, n)}…`;
}
