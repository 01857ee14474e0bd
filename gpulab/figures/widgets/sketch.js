// Empty axes on which you draw a curve before anything is measured, with the pointer or by keys. A
// curve has one point at each place of the x axis. The y axis is logarithmic.

import { keepKeys } from "./keys.js";
import { Presentation, drawn, tag } from "./shared.js";

const STYLE = `
.gpulab-sketch svg { display: block; width: 100%; height: auto; max-width: max(900px, 170vh); touch-action: none; user-select: none;
  cursor: crosshair; border: 1px solid var(--gpulab-faint); box-sizing: border-box; }
.gpulab-sketch text { fill: currentColor; font-size: 14px; }
.gpulab-sketch .name { paint-order: stroke; stroke: var(--gpulab-paper); stroke-width: 4px; }
.gpulab-sketch .grid { stroke: var(--gpulab-faint); stroke-width: 1; }
.gpulab-sketch [role=slider] { outline: none; }
.gpulab-sketch [role=slider]:focus .focus { stroke: currentColor; stroke-width: 2; }
.gpulab-sketch .focus { fill: transparent; stroke: none; }
.gpulab-sketch .bar { display: flex; flex-wrap: wrap; gap: 4px 10px; align-items: center; margin: 4px 0; }
.gpulab-sketch button { padding: 2px 10px; }
.gpulab-sketch button[aria-pressed=true] { border-width: 2px; font-weight: 600; }
.gpulab-sketch table { border-collapse: collapse; }
.gpulab-sketch th, .gpulab-sketch td { padding: 1px 8px; text-align: right; }
.gpulab-sketch .told { min-height: 1.4em; }
`;
const WIDTH = 860, HEIGHT = 380;
const LEFT = 94, RIGHT = 110, TOP = 14, BOTTOM = 48;
const FINE = 0.1, COARSE = 1; // decades that a key moves a point
const SETTLE_MS = 300; // without a key, before the drawing is sent to the kernel
const OWN_MS = 3000; // after a stroke, for which a view keeps to its own curves
const KEYS = "Draw with the mouse, or go to a point by Tab: ← → choose a point, ↑ ↓ move it (Page Up, Page Down: tenfold), Delete takes it away.";

export default { render };

function render({ model, el }) {
  const sketch = new Sketch(el, model);
  return () => sketch.close();
}

function clip(value, low, high) {
  return Math.min(high, Math.max(low, value));
}

function copied(curves) {
  return curves.map(curve => ({ ...curve, values: [...curve.values] }));
}

class Sketch {
  constructor(el, model) {
    this.model = model;
    this.axes = model.get("axes");
    this.curves = copied(model.get("curves"));
    this.active = 0;
    this.chosen = 0; // index of the point that has the focus, or will get it
    this.last = null; // last position of the pointer while it draws
    this.timer = 0;
    this.told_ms = 0;
    this.build(el);
    this.draw();
    this.adopted = () => this.adopt();
    model.on("change:curves", this.adopted);
  }

  // Places of points and values on the picture.
  x(i) {
    const { x, is_log } = this.axes;
    const place = value => (is_log ? Math.log(value) : value);
    const [low, high] = [place(x[0]), place(x[x.length - 1])];
    return LEFT + (WIDTH - LEFT - RIGHT) * (place(x[i]) - low) / (high - low || 1);
  }

  y(value) {
    const { low, high } = this.axes;
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * Math.log(value / low) / Math.log(high / low);
  }

  valueAt(y) {
    const { low, high } = this.axes;
    return clip(low * (high / low) ** ((HEIGHT - BOTTOM - y) / (HEIGHT - TOP - BOTTOM)), low, high);
  }

  nearest(x) {
    let best = 0;
    for (let i = 1; i < this.axes.x.length; i++) if (Math.abs(this.x(i) - x) < Math.abs(this.x(best) - x)) best = i;
    return best;
  }

  build(el) {
    this.svg = drawn("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "group", "aria-label": this.model.get("question") });
    this.told = tag("div", { class: "told", "aria-live": "polite" });
    this.choose = tag("div", { class: "bar", role: "group", "aria-label": "Which curve you draw" });
    this.buttons = this.curves.map((curve, i) => {
      const button = tag("button", { type: "button", "aria-pressed": "false" }, `Draw ${curve.name}`);
      button.addEventListener("click", () => { this.active = i; this.chosen = 0; this.draw(); });
      this.choose.append(button);
      return button;
    });
    const clear = tag("button", { type: "button" }, "Clear");
    clear.addEventListener("click", () => { this.curves[this.active].values.fill(null); this.draw(); this.tell(); this.say(`${this.name()} is empty.`); });
    this.choose.append(clear);
    this.table = tag("table");
    const style = tag("style", {}, LOOK + STYLE + `.${this.model.get("still")} { display: none; }`);
    this.root = tag("div", { class: "gpulab-sketch" }, style, tag("div", { class: "keys gpulab-controls" }, KEYS), this.choose, this.svg, this.told,
      tag("details", {}, tag("summary", {}, "Your drawing in numbers"), this.table));
    this.presentation = new Presentation(this.root);
    this.root.append(this.presentation.button());
    el.append(this.root);
    this.svg.addEventListener("pointerdown", event => this.press(event));
    this.svg.addEventListener("pointermove", event => this.move(event));
    this.svg.addEventListener("pointerup", event => this.release(event));
    this.svg.addEventListener("pointercancel", event => this.release(event));
    this.root.addEventListener("keydown", event => this.key(event));
    this.releaseKeys = keepKeys(this.root);
    this.root.addEventListener("focusout", () => this.flush());
  }

  name() {
    return this.curves[this.active].name;
  }

  place(event) {
    const box = this.svg.getBoundingClientRect();
    return [(event.clientX - box.left) * WIDTH / box.width, (event.clientY - box.top) * HEIGHT / box.height];
  }

  press(event) {
    if (event.button !== 0) return;
    event.preventDefault();
    this.svg.setPointerCapture(event.pointerId);
    this.last = this.place(event);
    this.stroke(this.last, this.last);
  }

  move(event) {
    if (this.last === null) return;
    const now = this.place(event);
    this.stroke(this.last, now);
    this.last = now;
  }

  release() {
    if (this.last === null) return;
    this.last = null;
    this.handles[this.chosen].focus({ preventScroll: true });
    this.tell();
    this.sayPoint();
  }

  // Sets a point at each place between two positions of the pointer: a fast pointer passes several
  // places from one event to the next.
  stroke(from, to) {
    const [a, b] = [this.nearest(from[0]), this.nearest(to[0])];
    const step = a <= b ? 1 : -1;
    for (let i = a; i !== b + step; i += step) {
      const share = to[0] === from[0] ? 1 : clip((this.x(i) - from[0]) / (to[0] - from[0]), 0, 1);
      this.curves[this.active].values[i] = this.valueAt(from[1] + share * (to[1] - from[1]));
    }
    this.chosen = b;
    this.draw();
  }

  key(event) {
    const moves = { ArrowUp: FINE, ArrowDown: -FINE, PageUp: COARSE, PageDown: -COARSE, Home: -99, End: 99 };
    const sides = { ArrowLeft: -1, ArrowRight: 1 };
    if (!this.handles.includes(event.target)) return;
    if (event.key in sides) this.chosen = clip(this.chosen + sides[event.key], 0, this.axes.x.length - 1);
    else if (event.key in moves) this.shift(moves[event.key]);
    else if (event.key === "Delete" || event.key === "Backspace") this.curves[this.active].values[this.chosen] = null;
    else {
      // Shift+Enter reaches the notebook and runs a cell, which may need the drawing.
      if (event.key === "Enter") this.flush();
      return;
    }
    event.preventDefault();
    this.draw();
    this.handles[this.chosen].focus();
    this.sayPoint();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.tell(), SETTLE_MS);
  }

  // Moves the chosen point. A new point begins at the height of the nearest one before it, or in the
  // middle of the axis.
  shift(decades) {
    const { low, high } = this.axes, values = this.curves[this.active].values;
    const before = values.slice(0, this.chosen).reverse().find(value => value !== null);
    const from = values[this.chosen] ?? before ?? Math.sqrt(low * high);
    values[this.chosen] = clip(from * 10 ** decades, low, high);
  }

  flush() {
    if (this.timer) this.tell();
  }

  tell() {
    clearTimeout(this.timer);
    this.timer = 0;
    this.told_ms = Date.now();
    const curves = copied(this.curves);
    this.model.set("curves", curves); // for other views of the same widget
    // A message and not save_changes(): the page would hold a second change back until the kernel has
    // handled the first, and a cell that is run meanwhile would see the older drawing.
    this.model.send({ drawn: curves.map(curve => [curve.name, curve.values]) });
  }

  say(text) {
    this.told.textContent = text;
  }

  sayPoint() {
    this.say(`${this.label(this.chosen)}: ${this.text(this.curves[this.active].values[this.chosen])}`);
  }

  label(i) {
    return `${this.name()}, ${this.axes.x_name} ${this.axes.x_texts[i]}`;
  }

  text(value) {
    if (value === null) return "not drawn";
    const { units } = this.axes; // [size, name], the largest first
    const [size, unit] = units.find(([size]) => value >= size * 0.9995) ?? units[units.length - 1];
    const digits = (value / size).toPrecision(3);
    // Zeros are removed only at the end of a fraction: those of 100 count.
    return `${digits.replace(/(\.\d*?)0+(?=e|$)/, "$1").replace(/\.(?=e|$)/, "").replace(/e\+?(-?\d+)/, " × 10^$1")} ${unit}`;
  }

  draw() {
    // All elements are made anew, so the focus must be given to the new element of the same point.
    const had = this.handles?.includes(document.activeElement);
    this.svg.replaceChildren(this.frame(), ...this.curves.map((curve, i) => this.line(curve, i)), this.points());
    for (const [i, button] of this.buttons.entries()) button.setAttribute("aria-pressed", i === this.active);
    this.fill();
    if (had && this.last === null) this.handles[this.chosen].focus({ preventScroll: true });
  }

  frame() {
    const { x_ticks, y_ticks, x_label, y_label } = this.axes;
    const grid = drawn("g", { "aria-hidden": "true" });
    for (const [i, text] of x_ticks) {
      const x = this.x(i);
      grid.append(drawn("line", { class: "grid", x1: x, x2: x, y1: TOP, y2: HEIGHT - BOTTOM }),
        drawn("text", { x, y: HEIGHT - BOTTOM + 17, "text-anchor": "middle" }, text));
    }
    for (const [value, text] of y_ticks) {
      const y = this.y(value);
      grid.append(drawn("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y, y2: y }),
        drawn("text", { x: LEFT - 6, y: y + 4, "text-anchor": "end" }, text));
    }
    grid.append(drawn("text", { x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 8, "text-anchor": "middle" }, x_label),
      drawn("text", { transform: `translate(14 ${(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)`, "text-anchor": "middle" }, y_label));
    return grid;
  }

  line(curve, number) {
    const group = drawn("g", { "aria-hidden": "true" });
    const there = curve.values.map((value, i) => [i, value]).filter(([, value]) => value !== null);
    if (!there.length) return group;
    const path = there.map(([i, value], k) => `${k ? "L" : "M"}${this.x(i)} ${this.y(value)}`).join("");
    group.append(drawn("path", { d: path, fill: "none", style: `stroke: ${curve.colour}`, "stroke-width": number === this.active ? 3 : 2 }));
    // The active curve has its handles; without marks a single point of another one would not be seen.
    if (number !== this.active) {
      for (const [i, value] of there) group.append(drawn("circle", { cx: this.x(i), cy: this.y(value), r: 3, style: `fill: ${curve.colour}` }));
    }
    const [end, value] = there[there.length - 1];
    group.append(drawn("text", { class: "name", x: this.x(end) + 14, y: this.y(value) + 4 }, curve.name));
    return group;
  }

  points() {
    const { low, high } = this.axes, curve = this.curves[this.active];
    const group = drawn("g");
    this.handles = curve.values.map((value, i) => {
      const handle = drawn("g", {
        role: "slider", tabindex: i === this.chosen ? "0" : "-1", "aria-orientation": "vertical", "aria-label": this.label(i),
        "aria-valuemin": Math.log10(low), "aria-valuemax": Math.log10(high), "aria-valuenow": Math.log10(value ?? low), "aria-valuetext": this.text(value),
      });
      const place = { cx: this.x(i), cy: value === null ? HEIGHT - BOTTOM : this.y(value) };
      handle.append(drawn("circle", { ...place, r: 11, class: "focus" }),
        drawn("circle", { ...place, r: value === null ? 3 : 5, style: `stroke: ${curve.colour}; fill: ${value === null ? "none" : curve.colour}`, "stroke-width": 1.5 }));
      handle.addEventListener("focus", () => { this.chosen = i; });
      return handle;
    });
    group.append(...this.handles);
    return group;
  }

  fill() {
    const head = tag("tr", {}, tag("th", { scope: "col" }, this.axes.x_name), ...this.curves.map(curve => tag("th", { scope: "col" }, curve.name)));
    const rows = this.axes.x_texts.map((text, i) =>
      tag("tr", {}, tag("th", { scope: "row" }, text), ...this.curves.map(curve => tag("td", {}, this.text(curve.values[i])))));
    this.table.replaceChildren(tag("tbody", {}, head, ...rows));
  }

  // Shows what was drawn in another view. Where somebody draws, answers to earlier strokes come late.
  adopt() {
    const hasFocus = document.hasFocus() && this.root.contains(document.activeElement);
    if (hasFocus || this.last !== null || this.timer || Date.now() < this.told_ms + OWN_MS) return;
    this.curves = copied(this.model.get("curves"));
    this.draw();
  }

  close() {
    this.flush();
    this.model.off("change:curves", this.adopted);
    this.presentation.close();
    this.releaseKeys();
    this.root.remove();
  }
}
