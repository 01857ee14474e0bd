// The timeline in the browser. Python sends all spans once; everything after that happens here, so
// that zooming needs no answer from the kernel. Times are microseconds since the first span. A
// *place* is the index of a bar in the columns that Python sends.
//
// Each class has one task and depends only on the classes above it:
//
//   Spans      the data: columns, rows and lanes, arrows, and the description of a span
//   Viewport   which times are in view, with the ends of the record as limits
//   Page       the elements around the picture, and the status line
//   Selection  the span under the pointer and the selected span
//   Painter    chooses the bars, arrows and series in view; lanes.js draws them
//   Pointer    mouse, wheel and touch
//   Keyboard   keys, which go from span to span
//   TimelineView  creates the others and draws at most once per frame

import {
  AXIS,
  arrow,
  density,
  frame,
  LaneChart,
  moment,
  Scale,
  slivers,
  stacked,
} from "../figures/widgets/lanes.js";
import { keepKeys } from "../figures/widgets/keys.js";
import LANES_STYLE from "../figures/widgets/lanes.css";
import { drawn, Presentation, tag, time } from "../figures/widgets/shared.js";
import STYLE from "./timeline.css";

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
const ROW = 28,
  BAR = 20,
  SERIES = 30;
const MAX_ARROWS = 250; // with more in view, only those of the selected span are drawn
const SHORTEST_VIEW_US = 0.02; // 20 ns: times are whole nanoseconds
const ZOOM_STEP = 1.6;
const GLIDE_MS = 140;
const TYPE_PX = 13; // of a text in the picture; a presentation enlarges it to the type of the page

// ---------------------------------------------------------------- the data

class Spans {
  constructor(drawing) {
    Object.assign(this, decode(drawing));
    this.event = this.kinds.indexOf("event");
    this.used = [...new Set(this.kind)].sort();
    this.length = this.end.reduce((most, value) => Math.max(most, value), this.start[0]);
    this.sequences = new Map();
    this.stack();
    this.index();
    this.link();
  }

  // Computes the y position of each row and each series. They fill a height that leaves room.
  stack(height = 0) {
    for (const lane of this.lanes) lane.height = ROW;
    for (const series of this.series) series.height = SERIES;
    this.allLanes = [...this.lanes, ...this.series];
    this.least = stacked(this.allLanes);
    const taller = Math.max(1, (height - AXIS) / (this.least - AXIS));
    for (const lane of this.allLanes) lane.height *= taller;
    stacked(this.allLanes);
    this.rowHeight = ROW * taller;
    this.barHeight = BAR * taller;
    this.top = []; // of each row
    this.laneOf = []; // the lane of each row
    for (const [number, lane] of this.lanes.entries()) {
      for (let row = 0; row < lane.rows; row++) {
        this.top.push(lane.top + row * lane.height);
        this.laneOf.push(number);
      }
    }
    const longest = Math.max(...this.allLanes.map(lane => lane.name.length));
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
    for (const one of this.arrows) {
      for (const place of [one.source, one.target]) {
        if (!this.linked.has(place)) this.linked.set(place, []);
        this.linked.get(place).push(one);
      }
    }
  }

  arrowsAt(place) {
    return this.linked.get(place) || [];
  }

  role(place) {
    return this.kinds[this.kind[place]];
  }

  lane(place) {
    return this.laneOf[this.row[place]];
  }

  middle(place) {
    return (this.start[place] + this.end[place]) / 2;
  }

  // Returns the first bar of a row that can end at a time or later.
  firstEnding(us, row) {
    return lower(this.reach, us, this.first[row], this.first[row + 1]);
  }

  // Returns the bars of a lane by start: for the keyboard, the rows of a lane are one sequence.
  sequence(lane) {
    if (!this.sequences.has(lane)) {
      const places = [];
      this.laneOf.forEach((one, row) => {
        if (one === lane)
          for (let n = this.first[row]; n < this.first[row + 1]; n++) places.push(n);
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
    let best = -1,
      distance = slack;
    for (let n = this.firstEnding(us - slack, row); n < last && start[n] <= us + slack; n++) {
      const away = Math.max(start[n] - us, us - end[n], 0);
      // If several are under the pointer, the shortest wins, because it is the hardest to reach.
      if (
        away < distance ||
        (away === distance && best >= 0 && end[n] - start[n] < end[best] - start[best])
      )
        [best, distance] = [n, away];
    }
    return best;
  }

  describe(place) {
    const { start, end, name, names, size, count } = this;
    const [of, called] = [this.role(place), names[name[place]]];
    const what = called.startsWith(of) ? called : `${of} ${called}`;
    const length = end[place] - start[place];
    const when = length
      ? `from ${time(start[place])}, ${time(length)} long`
      : `at ${time(start[place])}`;
    const words = [
      count[place] > 1 ? called : what,
      `on ${this.lanes[this.lane(place)].name}`,
      when,
    ];
    if (!Number.isNaN(size[place]))
      words.push(
        `${sizeText(size[place])} at ${(size[place] / length / 1000).toPrecision(3)} GB/s`,
      );
    const found = this.arrowsAt(place);
    const ends = found.slice(0, 3).map(one => this.describeArrow(one, place));
    const more = found.length - ends.length;
    if (more > 0) ends.push(`and ${more.toLocaleString("en")} more`);
    return `${[...words, ...ends].join(", ")}.`;
  }

  // Describes an arrow as seen from one of its ends.
  describeArrow({ kind, source, target }, place) {
    const { start, end, name, names } = this;
    const other = source === place ? target : source;
    const there = `${names[name[other]]} on ${this.lanes[this.lane(other)].name}`;
    if (kind === "wait") return source === place ? `${there} waits for it` : `waits for ${there}`;
    if (source === place)
      return kind === "launch"
        ? `starts ${there} after ${time(Math.max(0, start[target] - end[source]))}`
        : `puts ${there}`;
    return `called by ${names[name[other]]} at ${time(start[other])}`;
  }
}

// ---------------------------------------------------------------- the part that is in view

class Viewport extends Scale {
  // Calls `moved` whenever the part in view changes or begins to glide.
  constructor(length, gutter, moved) {
    super(gutter);
    this.length = length;
    this.moved = moved;
    this.calm = window.matchMedia("(prefers-reduced-motion: reduce)");
    this.isMeasured = false; // whether the width of the page is known
    this.goal = null; // the part in view at the end of a glide
    this.place(...this.whole());
  }

  whole() {
    const margin = 0.01 * (this.length || 1);
    return [-margin, (this.length || 1) + margin];
  }

  resize(width, zoomed) {
    Object.assign(this, { width: width / zoomed, zoomed, isMeasured: true });
  }

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
  ahead() {
    return this.goal || [this.from, this.to];
  }

  zoom(factor, about = (this.from + this.to) / 2, glide = true) {
    const [from, to] = glide ? this.ahead() : [this.from, this.to];
    this.show(about - (about - from) * factor, about + (to - about) * factor, glide);
  }

  pan(share) {
    const [from, to] = this.ahead();
    const step = share * (to - from);
    this.show(from + step, to + step);
  }

  centre(us, length, glide = true) {
    this.show(us - length / 2, us + length / 2, glide);
  }

  fit() {
    this.show(...this.whole());
  }

  // Makes one step of a glide, and returns whether there is another one.
  glide(now) {
    if (!this.goal) return false;
    const share = Math.min(1, Math.max(0, (now - this.began) / GLIDE_MS));
    const eased = 1 - (1 - share) ** 3;
    this.place(
      ...[0, 1].map(side => this.origin[side] + (this.goal[side] - this.origin[side]) * eased),
    );
    if (share === 1) this.goal = null;
    return this.goal !== null;
  }

  inWords() {
    return `${this.from > 0 ? time(this.from) : "0"} to ${time(Math.min(this.to, this.length))}`;
  }
}

// ---------------------------------------------------------------- the elements

class Page {
  constructor(root, drawing, spans, view, presentation) {
    Object.assign(this, { root, view, presentation });
    this.build(drawing, spans, view);
    root.append(
      this.toolbar(drawing, view),
      this.stage,
      this.tip,
      this.legend,
      this.told,
      ...this.folded(drawing),
    );
    if (drawing.note) this.stage.before(tag("p", { class: "note" }, drawing.note));
    this.tell("");
  }

  build(drawing, spans, view) {
    const what = `${spans.lanes.length} lanes, ${drawing.n_spans.toLocaleString("en")} spans`;
    const how = "Use the arrow keys to go from span to span.";
    this.chart = new LaneChart(view, {
      role: "application",
      "aria-label": `Timeline with ${what}. ${how}`,
    });
    this.chart.take(spans.allLanes);
    this.svg = this.chart.svg;
    this.stage = tag("div", { class: "stage" }, this.svg);
    this.tip = tag("div", { class: "tip", hidden: "" });
    this.told = tag("p", { class: "told", role: "status", "aria-live": "polite" });
    this.legend = tag("ul", { class: "legend", "aria-label": "Kinds of spans" });
    for (const kind of spans.used) {
      const role = spans.kinds[kind];
      const colour = { width: 22, height: 12, style: `fill: ${this.chart.fillOf(role, 22)}` };
      const swatch = drawn(
        "svg",
        { width: 22, height: 12, "aria-hidden": "true" },
        drawn("rect", colour),
      );
      this.legend.append(tag("li", {}, swatch, role));
    }
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
    this.arrowsLabel = tag("label", {}, this.arrowsBox, "arrows");
    this.range = tag("span", { class: "quiet" });
    return tag(
      "div",
      { class: "bar" },
      tag("span", { class: "title" }, drawing.title),
      this.range,
      tag("span", { class: "group" }, ...buttons),
      this.arrowsLabel,
      this.presentation.button(),
    );
  }

  folded(drawing) {
    const keys = KEYS.map(([key, what]) => `${key}: ${what}`).join("; ");
    return [
      tag("p", { class: "headline" }, drawing.headline),
      tag(
        "details",
        { class: "gpulab-controls" },
        tag("summary", {}, "Summary: shares, gaps and their causes"),
        tag("pre", {}, drawing.summary),
      ),
      tag(
        "details",
        { class: "gpulab-controls" },
        tag("summary", {}, "Keys"),
        tag("p", { class: "keys" }, keys),
      ),
    ];
  }

  get hasFocus() {
    return document.activeElement === this.svg;
  }

  tell(text) {
    const nothing = "Point at a span, or focus the picture and use the arrow keys.";
    this.told.textContent = text || nothing;
    this.told.classList.toggle("quiet", !text);
  }

  // Shows a hint beside a point of the picture, or hides it if the text is empty.
  hint(text, x, y) {
    this.tip.hidden = !text;
    if (!text) return;
    this.tip.textContent = text;
    const box = this.root.getBoundingClientRect(),
      svg = this.svg.getBoundingClientRect();
    const { zoomed } = this.view;
    const left = Math.min(
      x * zoomed + svg.left - box.left + 14,
      box.width - this.tip.offsetWidth - 4,
    );
    this.tip.style.left = `${Math.max(0, left)}px`;
    this.tip.style.top = `${y * zoomed + svg.top - box.top + 18}px`;
  }

  // Scrolls until a row is fully visible.
  scrollTo(top, height) {
    const { stage } = this,
      { zoomed } = this.view;
    const [from, length] = [stage.scrollTop / zoomed, stage.clientHeight / zoomed];
    if (top < from + AXIS || top + height > from + length) stage.scrollTop = (top - AXIS) * zoomed;
  }

  tellArrows(crowded) {
    this.arrowsLabel.title = crowded
      ? "Too many arrows in view: zoom in, or select a span to see its own"
      : "From launches to what they started, and from what was waited for";
    this.arrowsLabel.classList.toggle("quiet", crowded);
  }

  tellView(view, selected) {
    this.range.textContent = view.inWords();
    Object.assign(this.root.dataset, { fromUs: view.from, toUs: view.to, selected });
  }
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
    const { start, end, row, top, rowHeight } = this.spans;
    const [from, to] = this.view.ahead();
    if (
      end[place] < from ||
      start[place] > to ||
      (start[place] < from && end[place] < to) ||
      (end[place] > to && start[place] > from)
    ) {
      this.view.centre(this.spans.middle(place), to - from);
    }
    this.page.scrollTo(top[row[place]], rowHeight);
  }

  zoomTo(place) {
    const { start, end } = this.spans;
    this.select(place);
    this.view.centre(
      this.spans.middle(place),
      Math.max((end[place] - start[place]) * 1.3, SHORTEST_VIEW_US * 50),
    );
  }
}

// ---------------------------------------------------------------- drawing

class Painter {
  constructor(spans, view, page, selection) {
    Object.assign(this, { spans, view, page, selection });
  }

  draw() {
    const { spans, view, selection, page } = this;
    const rows = spans.top.map((_, row) => this.row(row));
    const framed = [selection.hovered, selection.selected].filter(place => place >= 0);
    page.chart.draw([
      ...rows.flatMap(row => row.bars),
      ...spans.series.map(series => this.area(series)),
      ...this.arrows(),
      // Names come after the arrows, which would otherwise cross them out.
      ...rows.flatMap(row => row.names),
      ...framed.map(place => this.frame(place)),
    ]);
    page.tellView(view, selection.selected);
  }

  // Returns the bars of a row that are in view, and their names.
  row(row) {
    const { spans, view, page } = this;
    const { start, end, busy, count } = spans;
    const size = { top: barTop(spans, row), height: spans.barHeight };
    const bars = [],
      narrow = [],
      names = [];
    for (
      let n = spans.firstEnding(view.from, row);
      n < spans.first[row + 1] && start[n] <= view.to;
      n++
    ) {
      const x = Math.max(view.x(start[n]), view.gutter - 4);
      const right = Math.min(view.x(end[n]), view.width + 4);
      const role = spans.role(n);
      if (role === "event") bars.push(moment(x, size.top, size.height));
      else if (right - x < 1.5) narrow.push({ x, role, covered: busy[n] * view.perUs });
      else {
        const opacity = count[n] > 1 ? density(busy[n] / (end[n] - start[n])) : 1;
        bars.push(...page.chart.bar({ x, right, ...size, role, opacity }));
        names.push(
          ...page.chart.plate({ x, right, ...size, labels: [spans.names[spans.name[n]]] }),
        );
      }
    }
    return { bars: [...slivers(narrow, size.top, size.height), ...bars], names };
  }

  // Returns the area under the steps of a series; of several on one pixel the highest is drawn.
  area({ times, values, top, height }) {
    const { view } = this;
    const largest = values.reduce((most, value) => Math.max(most, value), 0);
    const bottom = top + height - 4;
    const y = value => bottom - ((height - 9) * value) / (largest || 1);
    const first = Math.max(0, lower(times, view.from, 0, times.length) - 1);
    const isBefore = times.length && times[first] <= view.from;
    let d = `M${view.x(view.from)} ${bottom}V${y(isBefore ? values[first] : 0)}`;
    for (let n = first; n < times.length && times[n] <= view.to; n++) {
      const x = view.x(Math.max(times[n], view.from));
      let most = values[n];
      for (; n + 1 < times.length && view.x(times[n + 1]) < x + 0.5; n++) {
        most = Math.max(most, values[n + 1]);
      }
      d += `H${x}V${y(most)}V${y(values[n])}`;
    }
    d += `H${view.x(Math.min(view.to, view.length))}V${bottom}z`;
    return drawn("path", { class: "area", d });
  }

  arrows() {
    const { spans, selection, page } = this;
    const marked = new Set([
      ...spans.arrowsAt(selection.selected),
      ...spans.arrowsAt(selection.hovered),
    ]);
    const inView = page.arrowsBox.checked ? this.arrowsInView() : [];
    const isCrowded = inView.length > MAX_ARROWS;
    page.tellArrows(isCrowded);
    const others = isCrowded ? [] : inView.filter(one => !marked.has(one));
    return [
      ...others.map(one => this.arrow(one, false)),
      ...[...marked].map(one => this.arrow(one, true)),
    ];
  }

  // Stops at one more than can be drawn, which is enough to know that there are too many.
  arrowsInView() {
    const { arrows, start, end } = this.spans;
    const { from, to } = this.view;
    const visible = [];
    for (const one of arrows) {
      const { kind, source, target } = one;
      const isInView =
        Math.max(end[source], end[target]) >= from && Math.min(start[source], start[target]) <= to;
      if (kind !== "record" && isInView) visible.push(one);
      if (visible.length > MAX_ARROWS) break;
    }
    return visible;
  }

  arrow({ kind, source, target }, isStrong) {
    const { spans, view } = this;
    const { start, end, row, barHeight } = spans;
    const head = kind === "wait" ? end[target] : start[target];
    const tops = [source, target].map(place => barTop(spans, row[place]));
    const isDown = tops[1] >= tops[0];
    const near = us => Math.max(Math.min(view.x(us), 1e5), -1e5);
    const from = [near(Math.min(end[source], head)), tops[0] + (isDown ? barHeight : 0)];
    // An arrow that begins out of view is faint, because it only crosses the spans in view.
    const isFaint = from[0] < view.gutter || from[0] > view.width;
    const kinds = [isStrong ? "strong" : isFaint ? "faint" : "", kind === "wait" ? "dashed" : ""];
    const to = [near(head), tops[1] + (isDown ? 0 : barHeight)];
    return arrow({ from, to, kind: kinds.join(" ") });
  }

  frame(place) {
    const { spans, view } = this;
    const margin = spans.kind[place] === spans.event ? 5 : 0;
    const x = Math.max(view.x(spans.start[place]) - margin, view.gutter - 10);
    const right = Math.min(view.x(spans.end[place]) + margin, view.width + 10);
    const size = {
      x,
      width: Math.max(right - x, 2),
      top: barTop(spans, spans.row[place]),
      height: spans.barHeight,
    };
    return frame({ ...size, stroke: place === this.selection.selected ? 2.5 : 1.5 });
  }
}

function barTop(spans, row) {
  return spans.top[row] + (spans.rowHeight - spans.barHeight) / 2;
}

// ---------------------------------------------------------------- mouse and wheel

class Pointer {
  constructor(spans, view, page, selection) {
    Object.assign(this, { spans, view, page, selection });
    this.drag = null;
  }

  listen() {
    const { svg } = this.page;
    // Only a listener that is not passive can keep the page from scrolling.
    svg.addEventListener("wheel", event => this.wheel(event), { passive: false });
    svg.addEventListener("pointerdown", event => this.press(event));
    svg.addEventListener("pointermove", event => this.move(event));
    svg.addEventListener("pointerup", event => this.release(event));
    svg.addEventListener("pointercancel", () => {
      this.drag = null;
    });
    svg.addEventListener("pointerleave", () => this.selection.hover(-1));
    svg.addEventListener("dblclick", event => this.open(event));
  }

  wheel(event) {
    const { view, page } = this;
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      const step = event.deltaX / view.perUs;
      view.show(view.from + step, view.to + step, false);
    } else if (page.hasFocus || event.ctrlKey || event.metaKey) {
      event.preventDefault();
      // Some browsers count lines of text instead of pixels.
      const lines = event.deltaMode === 1 ? 16 : 1;
      view.zoom(
        Math.exp(Math.max(-1, Math.min(1, event.deltaY * lines * 0.0022))),
        view.us(this.at(event)[0]),
        false,
      );
    } else {
      // Without the focus the page scrolls on, so that a reader is not caught in the picture.
      page.tell("Click the timeline first, or hold Ctrl, to zoom with the wheel.");
    }
  }

  at(event) {
    const box = this.page.svg.getBoundingClientRect();
    const { zoomed } = this.view;
    return [(event.clientX - box.left) / zoomed, (event.clientY - box.top) / zoomed];
  }

  hit(x, y) {
    const { spans, view } = this;
    if (x < view.gutter) return -1;
    const row = spans.top.findIndex(top => y >= top && y < top + spans.rowHeight);
    // Three pixels of tolerance, because a bar may be narrower than one pixel.
    return row < 0 ? -1 : spans.at(view.us(x), row, 3 / view.perUs);
  }

  press(event) {
    if (event.button) return;
    const { svg } = this.page;
    svg.focus({ preventScroll: true });
    svg.setPointerCapture(event.pointerId);
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
    this.page.svg.classList.add("dragging");
    selection.hover(-1);
    const step = (drag.x - x) / view.perUs;
    view.show(drag.from + step, drag.to + step, false);
  }

  release(event) {
    this.page.svg.classList.remove("dragging");
    const drag = this.drag;
    this.drag = null;
    if (drag && !drag.moved) this.selection.select(this.hit(...this.at(event)), false);
  }

  open(event) {
    const place = this.hit(...this.at(event));
    if (place < 0) this.view.fit();
    else this.selection.zoomTo(place);
  }
}

// ---------------------------------------------------------------- keys

class Keyboard {
  constructor(spans, view, page, selection) {
    Object.assign(this, { spans, view, page, selection });
    this.cameFrom = -1; // the span from which the last arrow was followed
  }

  listen() {
    this.page.svg.addEventListener("keydown", event => this.press(event));
  }

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
    return this.page.tell(
      by < 0 ? "This is the first span of the lane." : "This is the last span of the lane.",
    );
  }

  // Selects the first span in view.
  enter() {
    const { spans, view } = this;
    for (let lane = 0; lane < spans.lanes.length; lane++) {
      const visible = spans
        .sequence(lane)
        .find(place => spans.end[place] >= view.from && spans.start[place] <= view.to);
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
    if (lane < 0 || lane >= lanes.length)
      return this.page.tell(by < 0 ? "This is the first lane." : "This is the last lane.");
    const middle = this.spans.middle(selected);
    const distance = place => Math.max(start[place] - middle, middle - end[place], 0);
    let best = -1;
    for (const place of this.spans.sequence(lane))
      if (best < 0 || distance(place) < distance(best)) best = place;
    return this.selection.select(best);
  }

  edge(last) {
    const { selected } = this.selection;
    const lane = selected < 0 ? 0 : this.spans.lane(selected);
    this.selection.select(this.spans.sequence(lane).at(last ? -1 : 0));
  }

  follow() {
    const { selected } = this.selection;
    const found = this.spans.arrowsAt(selected);
    if (!found.length) return this.page.tell("No arrow begins or ends here.");
    const ends = found.map(one => (one.source === selected ? one.target : one.source));
    // If the key is pressed again at the other end, it goes on to another span; back only if there
    // is no other.
    const onward = ends.filter(place => place !== this.cameFrom);
    this.cameFrom = selected;
    return this.selection.select(onward.length ? onward[0] : ends[0]);
  }
}

// ---------------------------------------------------------------- the chart

export class TimelineView {
  constructor(host, drawing) {
    const names = { class: "gpulab-timeline", role: "group", "aria-label": drawing.title };
    this.root = tag("div", names, tag("style", {}, LOOK + LANES_STYLE + STYLE));
    host.replaceChildren(this.root);
    keepKeys(this.root);
    this.presentation = new Presentation(this.root, () => this.resize());
    const spans = new Spans(drawing);
    this.spans = spans;
    this.view = new Viewport(spans.length, spans.gutter, () => this.moved());
    this.page = new Page(this.root, drawing, spans, this.view, this.presentation);
    this.selection = new Selection(spans, this.view, this.page, () => this.paint());
    const parts = [spans, this.view, this.page, this.selection];
    this.painter = new Painter(...parts);
    new Pointer(...parts).listen();
    new Keyboard(...parts).listen();
    this.listen();
    this.resize();
  }

  listen() {
    const { svg, arrowsBox } = this.page;
    arrowsBox.addEventListener("change", () => this.paint());
    svg.addEventListener("focus", () => {
      if (this.selection.selected < 0) this.page.tell("");
    });
    new ResizeObserver(() => this.resize()).observe(this.page.stage);
  }

  // In a presentation the lanes fill the window, and the type is as large as they allow.
  resize() {
    const { spans, page, view } = this;
    const { clientWidth: width, clientHeight: height } = page.stage;
    if (!width) return;
    const { isOn } = this.presentation;
    const large = isOn ? parseFloat(getComputedStyle(this.root).fontSize) / TYPE_PX : 1;
    const zoomed = Math.max(1, Math.min(large, height / spans.least));
    view.resize(width, zoomed);
    spans.stack(isOn ? height / zoomed : 0);
    page.chart.take(spans.allLanes);
    this.paint();
  }

  moved() {
    this.paint();
    clearTimeout(this.announcing);
    this.announcing = setTimeout(() => this.announce(), 400);
  }

  // Announces a change only while the picture has the focus: whoever drags it sees the change.
  announce() {
    if (this.page.hasFocus && this.selection.selected < 0)
      this.page.tell(`From ${this.view.inWords()}.`);
  }

  paint() {
    if (!this.view.isMeasured) return;
    this.frame ||= requestAnimationFrame(now => {
      this.frame = 0;
      const goesOn = this.view.glide(now);
      this.painter.draw();
      if (goesOn) this.paint();
    });
  }
}

// ---------------------------------------------------------------- helpers

function decode(drawing) {
  const floats = text => new Float64Array(bytes(text));
  const whole = text => new Int32Array(bytes(text));
  const series = drawing.series.map(one => ({
    name: nameOf(one),
    times: floats(one.times),
    values: floats(one.values),
  }));
  const lanes = drawing.lanes.map(lane => ({ ...lane }));
  const { names, kinds } = drawing;
  const [source, target] = [whole(drawing.arrows.source), whole(drawing.arrows.target)];
  const arrows = Array.from(drawing.arrows.kind, (kind, n) => ({
    kind,
    source: source[n],
    target: target[n],
  }));
  return {
    names,
    kinds,
    lanes,
    series,
    arrows,
    start: floats(drawing.start),
    end: floats(drawing.end),
    size: floats(drawing.size),
    busy: floats(drawing.busy),
    row: whole(drawing.row),
    kind: whole(drawing.kind),
    name: whole(drawing.name),
    count: whole(drawing.count),
  };
}

function bytes(text) {
  return Uint8Array.from(atob(text), letter => letter.charCodeAt(0)).buffer;
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
    if (column[middle] < value) from = middle + 1;
    else to = middle;
  }
  return from;
}
