// Axes on which you draw a curve before anything is measured, with the pointer or by keys. A curve has
// one point at each place of the x axis. It works without a kernel, which alone keeps what was drawn.
//
// Its view has `question`, `axes` (see SketchAxes.view in gpulab/exercises/_drawings.py), `curves` (the
// `name`, `colour` and `values` of each, null where nothing is drawn), and `answer`, the number of the
// last message that the kernel has heard, and `said`, a remark on the drawing. It sends { drawn: [[name, values], ...], number }.

import { Axis } from "../chart/axis.js";
import { button } from "../chart/controls.js";
import { Frame } from "../chart/frame.js";
import { lineNames } from "../chart/line_names.js";
import { Layer } from "../chart/marks.js";
import { Patience } from "../chart/patience.js";
import { Plane, clamp } from "../chart/plane.js";
import { decadeTick, ratioText, timeText, timeTick } from "../chart/quantities.js";
import { drawn } from "../shared.js";
import style from "./look.css";

const FINE = 0.1,
  COARSE = 1; // decades that a key moves a point
const SIDE = 0.03; // of the x axis
const SETTLE_MS = 300; // without a key, before the drawing is sent to the kernel
const MOVES = { ArrowUp: FINE, ArrowDown: -FINE, PageUp: COARSE, PageDown: -COARSE, Home: -99, End: 99 };
const SIDES = { ArrowLeft: -1, ArrowRight: 1 };
const HOW =
  "Draw with mouse or finger; or by keys, from the ring: ← → choose a point, ↑ ↓ move it, Page Up and Page Down tenfold, Delete takes it away.";
const ALONE = "Without a kernel nobody keeps or compares what you draw: run the cell again.";

export class Sketch {
  constructor(host, view) {
    const { axes, question, said } = view;
    this.model = null;
    this.said = said;
    this.axes = axes;
    this.curves = copied(view.curves);
    this.active = 0;
    this.chosen = 0; // the place of the point that keys move
    this.last = null; // last position of the pointer while it draws
    this.sent = 0; // the number of the last message, which the kernel's answer to it repeats
    this.isAnswered = true;
    this.choices = this.curves.map(({ name }, i) =>
      button(`Draw ${name}`, "", () => {
        this.active = i;
        this.draw();
        this.sayPoint();
      }),
    );
    const clear = button("Clear", "", () => this.clear());
    this.frame = new Frame({
      kind: "sketch",
      style,
      name: () => "drawing",
      rows: () => this.rows(),
      buttons: [...(this.choices.length > 1 ? this.choices : []), clear],
    });
    this.root = this.frame.root;
    this.patience = new Patience(sentence => this.frame.say(sentence));
    const { x, y } = axesOf(axes);
    this.plane = new Plane(this.frame.stage, {
      label: question,
      x,
      y,
      redraw: () => this.draw(),
      canZoom: false,
    });
    this.makeHandle();
    this.listen();
    this.show(question);
    host.replaceChildren(this.root);
  }

  // The point that keys move: a slider, of which a screen reader says the place and the value.
  makeHandle() {
    const { low, high } = this.axes;
    this.plane.root.removeAttribute("tabindex"); // the handle is the only stop of Tab
    this.handle = drawn("g", {
      role: "slider",
      tabindex: 0,
      "aria-orientation": "vertical",
      "aria-valuemin": Math.log10(low),
      "aria-valuemax": Math.log10(high),
    });
    this.ring = new Layer(this.handle, "ring");
    this.plane.root.append(this.handle);
    this.handle.addEventListener("keydown", event => this.key(event));
    this.handle.addEventListener("focusout", () => this.flush());
  }

  listen() {
    const { root } = this.plane;
    root.addEventListener("pointerdown", event => this.press(event));
    root.addEventListener("pointermove", event => this.move(event));
    for (const name of ["pointerup", "pointercancel"]) root.addEventListener(name, () => this.release());
  }

  connect(model) {
    this.model = model;
    this.show();
  }

  disconnect() {
    this.flush();
    this.patience.end();
    this.model = null;
    this.show();
  }

  show(question = this.frame.title.textContent) {
    this.frame.show({ title: question, detail: HOW, note: this.model ? this.said : ALONE });
  }

  // Shows what was drawn in another view of the question, but nothing older than what was drawn here.
  receive({ curves, answer, said }) {
    this.said = said;
    this.show();
    if (answer === this.sent) {
      this.patience.end();
      this.isAnswered = true;
    }
    if (!this.isAnswered || this.last !== null || this.timer) return;
    this.curves = copied(curves);
    this.draw();
  }

  press(event) {
    if (event.button !== 0) return;
    event.preventDefault();
    this.plane.root.setPointerCapture(event.pointerId);
    this.last = this.plane.place(event);
    this.stroke(this.last, this.last);
  }

  move(event) {
    if (this.last === null) return;
    const now = this.plane.place(event);
    this.stroke(this.last, now);
    this.last = now;
  }

  release() {
    if (this.last === null) return;
    this.last = null;
    this.handle.focus({ preventScroll: true });
    this.tell();
    this.sayPoint();
  }

  // Sets a point at each place between two positions of the pointer: a fast pointer passes several
  // places from one event to the next.
  stroke(from, to) {
    const { x, y } = this.plane,
      { low, high } = this.axes;
    const [a, b] = [this.nearest(from[0]), this.nearest(to[0])];
    const step = a <= b ? 1 : -1;
    for (let i = a; i !== b + step; i += step) {
      const at = x.to(this.axes.x[i]);
      const share = to[0] === from[0] ? 1 : clamp((at - from[0]) / (to[0] - from[0]), 0, 1);
      this.values[i] = clamp(y.from(from[1] + share * (to[1] - from[1])), low, high);
    }
    this.chosen = b;
    this.draw();
  }

  nearest(pixel) {
    const far = value => Math.abs(this.plane.x.to(value) - pixel);
    return this.axes.x.reduce((best, value, i, all) => (far(value) < far(all[best]) ? i : best), 0);
  }

  get values() {
    return this.curves[this.active].values;
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in SIDES)
      this.chosen = clamp(this.chosen + SIDES[event.key], 0, this.axes.x.length - 1);
    else if (event.key in MOVES) this.shift(MOVES[event.key]);
    else if (event.key === "Delete" || event.key === "Backspace") this.values[this.chosen] = null;
    else {
      // Shift+Enter reaches the notebook and runs a cell, which may need the drawing.
      if (event.key === "Enter") this.flush();
      return;
    }
    event.preventDefault();
    this.draw();
    this.sayPoint();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.tell(), SETTLE_MS);
  }

  // Moves the chosen point. A new point begins at the height of the nearest one before it, or in the
  // middle of the axis.
  shift(decades) {
    const { low, high } = this.axes;
    const before = this.values.slice(0, this.chosen).findLast(value => value !== null);
    const from = this.values[this.chosen] ?? before ?? Math.sqrt(low * high);
    this.values[this.chosen] = clamp(from * 10 ** decades, low, high);
  }

  clear() {
    this.values.fill(null);
    this.draw();
    this.tell();
    this.frame.say(`${this.curves[this.active].name} is empty.`);
  }

  flush() {
    if (this.timer) this.tell();
  }

  tell() {
    clearTimeout(this.timer);
    this.timer = 0;
    if (!this.model) return;
    this.sent = Date.now();
    this.isAnswered = false;
    this.patience.begin();
    this.model.send({
      drawn: this.curves.map(({ name, values }) => [name, values]),
      number: this.sent,
    });
  }

  sayPoint() {
    this.frame.say(`${this.label()}: ${this.text(this.values[this.chosen])}`);
  }

  label() {
    return `${this.curves[this.active].name}, ${this.axes.x_name} ${this.axes.x_texts[this.chosen]}`;
  }

  text(value) {
    if (value === null) return "not drawn";
    return this.axes.unit === "s" ? timeText(value) : `${ratioText(value)} ${this.axes.unit}`;
  }

  draw() {
    const { plane } = this;
    for (const [i, choice] of this.choices.entries())
      choice.setAttribute("aria-pressed", i === this.active);
    this.frame.table.renew();
    if (!plane.width) return;
    plane.drawAxes();
    const shown = this.curves.map((curve, i) => ({
      key: curve.name,
      name: curve.name,
      role: i === this.active ? "active" : "",
      style: `--role: ${curve.colour}`,
      places: this.places(curve),
    }));
    const pixels = shown.map(({ places }) => places.map(({ at }) => at));
    plane.layers.lines.draw(shown.map((curve, i) => lineMark(curve, pixels[i])));
    plane.layers.points.draw(shown.flatMap(pointMarks));
    plane.layers.above.draw(lineNames(plane, shown, pixels));
    this.drawHandle();
  }

  // Where the points of a curve are that are drawn.
  places({ values }) {
    const { x, y } = this.plane;
    return values.flatMap((value, i) =>
      value === null ? [] : [{ i, at: [x.to(this.axes.x[i]), y.to(value)] }],
    );
  }

  drawHandle() {
    const { plane, axes } = this,
      value = this.values[this.chosen];
    const cy = value === null ? plane.bottom : plane.y.to(value);
    this.ring.draw([
      { key: "ring", tag: "circle", cx: plane.x.to(axes.x[this.chosen]), cy, r: 11 },
    ]);
    this.handle.setAttribute("aria-label", this.label());
    this.handle.setAttribute("aria-valuenow", Math.log10(value ?? axes.low));
    this.handle.setAttribute("aria-valuetext", this.text(value));
  }

  rows() {
    return this.axes.x_texts.map((text, i) => ({
      [this.axes.x_name]: text,
      ...Object.fromEntries(
        this.curves.map(({ name, values }) => [`${name} (${this.axes.unit})`, values[i] ?? ""]),
      ),
    }));
  }

  close() {
    this.disconnect();
    this.frame.close();
  }
}

// The axes of the picture, with some paper on both sides of the first and the last place.
function axesOf({ x, x_ticks, x_label, is_log, y_label, low, high, unit }) {
  const across = new Axis({ base: is_log ? 10 : 0, name: x_label, marked: x_ticks }),
    tick = unit === "s" ? timeTick : value => `${decadeTick(value)} ${unit}`,
    up = new Axis({ base: 10, name: y_label, tick });
  const [first, last] = [x[0], x.at(-1)].map(across.place),
    beside = SIDE * (last - first || 1);
  across.fit([first - beside, last + beside].map(across.value));
  up.fit([low, high]);
  return { x: across, y: up };
}

function lineMark({ key, role, style }, pixels) {
  return { key, tag: "polyline", class: `curve ${role}`, style, points: pixels.flat() };
}

function pointMarks({ key, role, style, places }) {
  return places.map(({ i, at: [cx, cy] }) => ({
    key: `${key} ${i}`,
    tag: "circle",
    class: `point ${role}`,
    style,
    cx,
    cy,
    r: role ? 5 : 3,
  }));
}

function copied(curves) {
  return curves.map(curve => ({ ...curve, values: [...curve.values] }));
}
