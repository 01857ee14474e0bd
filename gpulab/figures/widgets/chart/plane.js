// The picture's paper: an SVG with two axes, layers to draw on, and zoom.

import { drawn } from "../shared.js";
import { Layer } from "./marks.js";

const WIDE = { top: 24, right: 132, bottom: 46, left: 62 },
  NARROW = { top: 24, right: 104, bottom: 44, left: 62 };
const NARROW_PX = 480, // beside JupyterLab's bars a picture has 556
  BRUSH_PX = 8,
  NAME_GAP_PX = 16,
  LETTER_PX = 7.2, // a wide one of the names of rows
  NAMES_SHARE = 0.45, // of the picture, at most
  ZOOM_MS = 350;

export class Plane {
  // Paper on which the learner draws cannot be zoomed: there the pointer draws.
  constructor(host, { label, x, y, redraw, canZoom = true }) {
    Object.assign(this, { host, x, y, redraw, names_px: 0 });
    const clip = `gpulab-plane-${Math.random().toString(36).slice(2)}`; // each output has its own script
    this.frame = drawn("rect");
    this.root = drawn(
      "svg",
      {
        class: "plane",
        tabindex: 0,
        role: "application",
        "aria-roledescription": "chart",
        "aria-label": label,
      },
      drawn("clipPath", { id: clip }, this.frame),
    );
    host.append(this.root);
    this.layers = {};
    for (const name of ["back", "grid", "below", "lines", "points", "above"]) {
      this.layers[name] = new Layer(this.root, name);
      if (name !== "grid" && name !== "above")
        this.layers[name].group.setAttribute("clip-path", `url(#${clip})`);
    }
    this.brush = new Layer(this.root, "brush");
    if (canZoom) this.listen();
    new ResizeObserver(() => this.resize()).observe(host);
  }

  resize() {
    const { clientWidth: width, clientHeight: height } = this.host;
    if (!width || !height || (width === this.width && height === this.height)) return;
    const { top, right, bottom, left: least } = width < NARROW_PX ? NARROW : WIDE;
    const left = Math.max(least, Math.min(this.names_px, NAMES_SHARE * width));
    Object.assign(this, { width, height, left, top, right: width - right, bottom: height - bottom });
    this.root.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const inside = { x: left, y: top, width: this.right - left, height: this.bottom - top };
    for (const [name, value] of Object.entries(inside)) this.frame.setAttribute(name, value);
    this.x.pixels = [left, this.right];
    this.y.pixels = [this.bottom, top];
    this.redraw();
  }

  // Makes room for names of rows at the left.
  leave(names) {
    const names_px = Math.max(0, ...names.map(name => NAME_GAP_PX + LETTER_PX * name.length));
    if (names_px === this.names_px) return;
    this.names_px = names_px;
    this.width = 0;
    this.resize();
  }

  get isNarrow() {
    return this.width < NARROW_PX;
  }

  get isZoomed() {
    return this.x.isZoomed || this.y.isZoomed;
  }

  holds(x, y) {
    return x >= this.left - 1 && x <= this.right + 1 && y >= this.top - 1 && y <= this.bottom + 1;
  }

  drawAxes(ms) {
    const { left, right, top, bottom, x, y } = this,
      marks = [];
    const rule = (key, ends) => marks.push({ key, tag: "line", class: "rule", ...ends });
    const tick = (key, place) => marks.push({ key, tag: "text", ...place });
    for (const [value, text] of x.ticks(54)) {
      const at = x.to(value);
      rule(`x${value}`, { x1: at, x2: at, y1: top, y2: bottom });
      tick(`n${value}`, { class: "tick middle", x: at, y: bottom + 18, text });
    }
    for (const [value, text] of y.ticks(30)) {
      const at = y.to(value);
      rule(`y${value}`, { x1: left, x2: right, y1: at, y2: at });
      tick(`t${value}`, { class: "tick end", x: left - 8, y: at + 4, text });
    }
    marks.push({ key: "axis", tag: "line", class: "axis", x1: left, x2: right, y1: bottom, y2: bottom });
    const middle = (left + right) / 2,
      start = Math.max(6, left - 56);
    marks.push({ key: "x", tag: "text", class: "name middle", x: middle, y: bottom + 38, text: x.name });
    marks.push({ key: "y", tag: "text", class: "name", x: start, y: top - 9, text: y.name });
    this.layers.grid.draw(marks, ms);
  }

  place(event) {
    const box = this.root.getBoundingClientRect();
    const scale = this.width / box.width; // a presentation enlarges the picture
    return [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
  }

  listen() {
    this.root.addEventListener("pointerdown", event => this.startBrush(event));
    this.root.addEventListener("dblclick", () => this.showAll());
    this.root.addEventListener(
      "wheel",
      event => {
        if (!event.ctrlKey) return; // the wheel alone scrolls the page
        event.preventDefault();
        const [x, y] = this.place(event);
        this.zoom(1.002 ** -event.deltaY, this.x.from(x), this.y.from(y));
      },
      { passive: false },
    );
    this.root.addEventListener("keydown", event => {
      const { x, y } = this;
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "+") this.zoom(1.4, x.middle, y.middle, ZOOM_MS);
      else if (event.key === "-") this.zoom(1 / 1.4, x.middle, y.middle, ZOOM_MS);
      else if (event.key === "0") this.showAll();
    });
  }

  zoom(factor, x, y, ms = 0) {
    this.x.zoom(factor, x);
    this.y.zoom(factor, y);
    this.redraw(ms);
  }

  showAll() {
    this.x.span = this.x.full;
    this.y.span = this.y.full;
    this.redraw(ZOOM_MS);
  }

  // Dragging over the empty paper selects the part that is shown; a click does not.
  startBrush(event) {
    const [x0, y0] = this.place(event);
    if (event.button || event.pointerType === "touch" || event.defaultPrevented || !this.holds(x0, y0))
      return;
    this.root.setPointerCapture(event.pointerId);
    const box = end => {
      const x = clamp(end[0], this.left, this.right),
        y = clamp(end[1], this.top, this.bottom);
      return { x: Math.min(x, x0), y: Math.min(y, y0), width: Math.abs(x - x0), height: Math.abs(y - y0) };
    };
    const isLarge = ({ width, height }) => width > BRUSH_PX && height > BRUSH_PX;
    const move = event => {
      const part = box(this.place(event));
      this.brush.draw(isLarge(part) ? [{ key: "brush", tag: "rect", ...part }] : []);
    };
    const stop = event => {
      this.root.removeEventListener("pointermove", move);
      this.brush.draw([]);
      const { x, y, width, height } = box(this.place(event));
      if (event.type !== "pointerup" || !isLarge({ width, height })) return;
      [this.x.span, this.y.span] = [
        [this.x.from(x), this.x.from(x + width)],
        [this.y.from(y + height), this.y.from(y)],
      ];
      this.redraw(ZOOM_MS);
    };
    this.root.addEventListener("pointermove", move);
    this.root.addEventListener("pointerup", stop, { once: true });
    this.root.addEventListener("pointercancel", stop, { once: true });
  }
}

export function clamp(value, low, high) {
  return Math.min(high, Math.max(low, value));
}
