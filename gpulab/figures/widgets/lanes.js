// Bars on lanes over time, as SVG: the timeline and the machine are drawn by this file. Times are
// microseconds since the beginning; all other lengths are pixels of the picture.

import { drawn, time } from "./shared.js";

export const AXIS = 24;
// The hatch of each role, as in gpulab/core/palette.py, so that no meaning depends on colour alone.
const HATCHES = { host: "..", launch: "//", copy: "xx", wait: "\\\\" };
const TILE = 10;
const RISING = "M-1 1L1 -1M-1 11L11 -1M9 11L11 9";
const FALLING = "M-1 9L1 11M-1 -1L11 11M9 -1L11 1";
const DOT = "a1.2 1.2 0 1 0 2.4 0a1.2 1.2 0 1 0 -2.4 0";
const STROKES = {
  "//": RISING,
  "\\\\": FALLING,
  xx: RISING + FALLING,
  "..": `M1.3 2.5${DOT}M6.3 7.5${DOT}`,
};
const FONT = "13px system-ui, sans-serif";
const PLAIN = 6; // a narrower bar has no hatch, which would not be visible
const BORDERED = 5; // a border of paper would hide most of a narrower bar
const LABELLED = 26; // a narrower bar has no space for a label
const LEAST_NAME = 7; // characters; a name cut to "lau…" says less than the colour of its bar
const TICK_SPACE = 120;
const SHADES = 8; // of a pixel that is busy for a part of its time

// ---------------------------------------------------------------- which times are in view

export class Scale {
  constructor(gutter, right = 0) {
    // zoomed: pixels of the screen for each pixel of the picture, more than 1 in a presentation
    Object.assign(this, { gutter, right, from: 0, to: 1, width: 900, zoomed: 1 });
  }

  get perUs() {
    return (this.width - this.gutter - this.right) / (this.to - this.from);
  }

  x(us) {
    return this.gutter + (us - this.from) * this.perUs;
  }

  us(x) {
    return this.from + (x - this.gutter) / this.perUs;
  }

  place(from, to) {
    [this.from, this.to] = [from, to];
  }

  // Returns round times in view, from 0 on.
  ticks() {
    const step = nice((TICK_SPACE * (this.to - this.from)) / (this.width - this.gutter));
    const found = [];
    for (let n = Math.max(0, Math.ceil(this.from / step)); n * step <= this.to; n++) {
      found.push(Number((n * step).toPrecision(12)));
    }
    return found;
  }
}

// Returns the least number of the form 1, 2, 5 times a power of ten that is not less.
export function nice(step) {
  const power = 10 ** Math.floor(Math.log10(step));
  return power * [1, 2, 5, 10].find(factor => factor * power >= step * 0.999);
}

// Returns the text of a tick, a round number: without zeros at its end, and without a unit at 0.
export function tickText(us) {
  if (us === 0) return "0";
  const [number, unit] = time(us).split(" ");
  return `${Number(number)} ${unit}`;
}

// ---------------------------------------------------------------- texts that fit

const widths = new Map(); // measuring text is slow, and the same names are drawn again and again
let pen = null;

export function widthOf(text) {
  if (!widths.has(text)) {
    pen ||= document.createElement("canvas").getContext("2d");
    pen.font = FONT;
    // A bound on memory: a trace can have any number of names.
    if (widths.size > 5000) widths.clear();
    widths.set(text, pen.measureText(text).width);
  }
  return widths.get(text);
}

// Returns a text that is cut to a width; empty if too little would be left of it.
export function clipped(text, width, measure = widthOf) {
  const whole = measure(text);
  if (whole <= width) return text;
  const n = Math.floor((text.length * width) / whole) - 1;
  return n < LEAST_NAME - 1 ? "" : `${text.slice(0, n)}…`;
}

// Returns the first of several texts that fits into a width, or what fits of the last one.
export function fitting(texts, width, measure = widthOf) {
  const whole = texts.find(text => measure(text) <= width);
  return whole ?? (texts.length ? clipped(texts.at(-1), width, measure) : "");
}

export function label(x, y, text, anchor = "start") {
  return drawn("text", { class: "label", x, y, "text-anchor": anchor }, text);
}

// ---------------------------------------------------------------- the picture

// Sets the top of each lane, one below the other, and returns the height of the picture.
export function stacked(lanes) {
  let top = AXIS;
  for (const lane of lanes) {
    lane.top = top;
    top += lane.height * (lane.rows ?? 1);
  }
  return top + 4;
}

let nCharts = 0;

export class LaneChart {
  constructor(scale, attributes) {
    nCharts += 1;
    this.scale = scale;
    // An own id for each picture: a pattern that is found in a hidden picture draws nothing.
    this.id = `gpulab-lanes-${nCharts}`;
    this.svg = drawn("svg", { class: "lanes chart", tabindex: "0", ...attributes });
    this.ground = drawn("g");
    this.axis = drawn("g");
    this.shapes = drawn("svg"); // clips what is out of view
    const patterns = Object.keys(HATCHES).map(role => this.pattern(role));
    this.svg.append(drawn("defs", {}, ...patterns), this.ground, this.axis, this.shapes);
  }

  pattern(role) {
    const tile = { width: TILE, height: TILE, patternUnits: "userSpaceOnUse" };
    const lines = { d: STROKES[HATCHES[role]], style: "stroke: var(--gpulab-paper)", fill: "none" };
    return drawn(
      "pattern",
      { id: `${this.id}-${role}`, ...tile },
      drawn("rect", { width: TILE, height: TILE, style: `fill: ${colourOf(role)}` }),
      drawn("path", { ...lines, "stroke-width": 1.1 }),
    );
  }

  fillOf(role, width) {
    return width >= PLAIN && HATCHES[role] ? `url(#${this.id}-${role})` : colourOf(role);
  }

  // Takes over the lanes: each has a name, a height for each of its rows, and their number if it is
  // not 1.
  take(lanes) {
    this.height = stacked(lanes);
    this.lanes = lanes;
  }

  laneAt(y) {
    return this.lanes.find(lane => y >= lane.top && y < lane.top + lane.height * (lane.rows ?? 1));
  }

  // Draws the lanes with these shapes on them.
  draw(shapes) {
    const { scale, svg, height } = this;
    set(svg, "viewBox", `0 0 ${scale.width} ${height}`);
    set(svg, "height", `${height * scale.zoomed}`);
    this.drawGround();
    const ticks = scale.ticks().filter(us => scale.x(us) >= scale.gutter);
    this.axis.replaceChildren(
      ...ticks.flatMap(us => {
        const x = scale.x(us);
        const isCut = x > scale.width - 16;
        const text = isCut ? [] : [label(x, AXIS - 8, tickText(us), "middle")];
        return [drawn("path", { class: "grid", d: `M${x} ${AXIS}V${height}` }), ...text];
      }),
    );
    const left = scale.gutter - 9; // a mark at 0 has room
    const width = Math.max(1, scale.width - left);
    const box = { x: left, y: 0, width, height, viewBox: `${left} 0 ${width} ${height}` };
    for (const [name, value] of Object.entries(box)) set(this.shapes, name, `${value}`);
    this.shapes.replaceChildren(...shapes);
  }

  // Draws the lanes anew only if they have changed: texts are the slowest part of a picture.
  drawGround() {
    const { scale } = this;
    const key = JSON.stringify([scale.width, scale.gutter, this.lanes]);
    if (key === this.groundKey) return;
    this.groundKey = key;
    const parts = this.lanes.map((lane, number) => this.laneGround(lane, number));
    this.ground.replaceChildren(...parts.flat());
  }

  laneGround(lane, number) {
    const { scale } = this;
    const size = { x: 0, y: lane.top, width: scale.width, height: lane.height * (lane.rows ?? 1) };
    const kind = `lane ${lane.kind ?? (number % 2 ? "" : "even")}`;
    const middle = lane.top + lane.height / 2 + 4.5;
    return [
      drawn("rect", { class: kind, ...size, "data-lane": lane.name }),
      label(8, middle, clipped(lane.name, scale.gutter - 16)),
      ...(lane.note ? [label(scale.gutter + 8, middle, lane.note)] : []),
    ];
  }

  // Returns the shapes of a bar: its body, and the first of its labels that fits.
  bar({ x, right, top, height, role, labels = [], opacity = 1 }) {
    const width = Math.max(1, right - x);
    const kind = width < BORDERED ? "body narrow" : "body";
    const style = `fill: ${this.fillOf(role, width)}; opacity: ${opacity}`;
    const body = drawn("rect", { class: kind, x, y: top, width, height, rx: 2, style });
    return [body, ...this.plate({ x, right, top, height, labels })];
  }

  // Returns a label on a rectangle of paper, in the middle of the part of its bar that is in view.
  plate({ x, right, top, height, labels }) {
    const from = Math.max(x, this.scale.gutter);
    const room = Math.min(right, this.scale.width) - from;
    const text = room < LABELLED ? "" : fitting(labels, room - 10);
    if (!text) return [];
    const width = widthOf(text);
    const [x0, y0] = [from + room / 2, top + height / 2];
    const tall = Math.min(16, height - 4);
    const box = { x: x0 - width / 2 - 2, y: y0 - tall / 2, width: width + 4, height: tall };
    return [
      drawn("rect", { class: "plate", ...box, rx: 2 }),
      label(x0, y0 + 4.5, text, "middle"),
    ];
  }
}

function colourOf(role) {
  return `var(--gpulab-${role})`;
}

// Sets an attribute only if it differs, because the browser lays out again what is set.
export function set(element, name, value) {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

// Returns bars in view with their places on the screen. Neighbours that are narrower than a pixel
// and alike become one, so that a picture of thousands of bars has few elements. A bar of more than
// 400 pixels is not extended.
export function merged(bars, scale, isLike) {
  const found = [];
  for (const bar of bars) {
    const [x, right] = [scale.x(bar.start), scale.x(bar.end)];
    if (right < scale.gutter - 40 || x > scale.width + 40) continue;
    const last = found.at(-1);
    const isNear = last && right - x < 1.2 && x - last.right < 1 && last.right - last.x < 400;
    if (isNear && isLike(last.bar, bar)) {
      last.right = Math.max(last.right, right);
      last.n += 1;
    } else found.push({ bar, x, right, n: 1 });
  }
  return found;
}

// Returns bars of less than a pixel: the busier a pixel, the denser its colour. Each is
// { x, covered, role }, with the share of the pixel that it covers, in the order of x.
export function slivers(bars, top, height) {
  const paths = new Map();
  for (const { x, role, covered } of onPixels(bars)) {
    const opacity = Math.ceil(SHADES * density(covered)) / SHADES;
    const key = `${role} ${opacity}`;
    paths.set(key, `${paths.get(key) ?? ""}M${x} ${top}h1v${height}h-1z`);
  }
  return [...paths].map(([key, d]) => {
    const [role, opacity] = key.split(" ");
    return drawn("path", { d, style: `fill: ${colourOf(role)}; opacity: ${opacity}` });
  });
}

// Returns one bar for each pixel, in the role that covers most of it.
function onPixels(bars) {
  const found = [];
  for (const bar of bars) {
    const x = Math.floor(bar.x);
    const last = found.at(-1);
    if (last?.x !== x) found.push({ x, role: bar.role, covered: bar.covered, most: bar.covered });
    else {
      last.covered += bar.covered;
      if (bar.covered > last.most) [last.most, last.role] = [bar.covered, bar.role];
    }
  }
  return found;
}

// Returns the opacity for a share of busy time; a very small share must still be visible.
export function density(share) {
  return 0.3 + 0.7 * Math.min(1, share);
}

// Returns an arrow from the lower or upper edge of one bar to that of another.
export function arrow({ from, to, kind = "", head = true }) {
  const [x0, y0] = from;
  const [x1, y1] = to;
  const down = y1 >= y0 ? 1 : -1;
  const bend = Math.max(6, Math.abs(y1 - y0) / 2) * down;
  const d = `M${x0} ${y0}C${x0} ${y0 + bend} ${x1} ${y1 - bend} ${x1} ${y1}`;
  const tip = `M${x1 - 3} ${y1 - 6 * down}L${x1} ${y1}L${x1 + 3} ${y1 - 6 * down}`;
  return drawn("path", { class: `arrow ${kind}`, d: head ? d + tip : d });
}

// Returns a frame around a bar, on paper so that it is visible on any background.
export function frame({ x, top, width, height, stroke = 2, dashes = "none" }) {
  const box = { x: x - 3, y: top - 3, width: width + 6, height: height + 6, rx: 3 };
  const inner = { class: "frame", ...box, "stroke-width": stroke, "stroke-dasharray": dashes };
  const outer = { ...inner, "stroke-width": stroke + 2.5, style: "stroke: var(--gpulab-paper)" };
  return drawn("g", {}, drawn("rect", outer), drawn("rect", inner));
}

// Returns a sign for a moment, such as an event, which has no length.
export function moment(x, top, height) {
  const middle = top + height / 2;
  const d = `M${x} ${top}L${x + 5} ${middle}L${x} ${top + height}L${x - 5} ${middle}z`;
  return drawn("path", { class: "body", d, style: `fill: ${colourOf("event")}` });
}
