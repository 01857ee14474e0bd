// The handle on the picture: a slider for the size that is dragged along the axis, or moved by keys.

import { Layer } from "../chart/marks.js";
import { drawn } from "../shared.js";

const STEP = 2 ** 0.25,
  GRIP_PX = 26;
const KEYS = {
  ArrowLeft: 1 / STEP,
  ArrowDown: 1 / STEP,
  ArrowRight: STEP,
  ArrowUp: STEP,
  PageDown: 0.5,
  PageUp: 2,
  Home: 0,
  End: Infinity,
};

export class Handle {
  constructor(plane, moved) {
    Object.assign(this, { plane, moved, size: 1 });
    this.grip = drawn("rect", { class: "grip", width: GRIP_PX });
    this.root = drawn(
      "g",
      { class: "slider", role: "slider", tabindex: 0, "aria-label": "Size n" },
      this.grip,
    );
    plane.root.append(this.root);
    this.layer = new Layer(this.root, "handle-marks");
    this.root.addEventListener("pointerdown", event => this.grasp(event));
    this.root.addEventListener("keydown", event => this.press(event));
  }

  draw(marks, size, sentence) {
    const { plane } = this,
      [low, high] = plane.x.full;
    this.size = size;
    this.layer.draw(marks);
    this.grip.setAttribute("x", plane.x.to(size) - GRIP_PX / 2);
    this.grip.setAttribute("y", plane.top);
    this.grip.setAttribute("height", plane.bottom - plane.top + 6);
    const value = { min: Math.ceil(low), max: Math.floor(high), now: size, text: sentence };
    for (const [name, text] of Object.entries(value)) this.root.setAttribute(`aria-value${name}`, text);
  }

  grasp(event) {
    event.preventDefault(); // neither a brush nor a selection of text
    this.root.focus({ preventScroll: true });
    this.root.setPointerCapture(event.pointerId);
    const move = event => this.to(this.plane.x.from(this.plane.place(event)[0]));
    this.root.addEventListener("pointermove", move);
    this.root.addEventListener(
      "lostpointercapture",
      () => {
        this.root.removeEventListener("pointermove", move);
      },
      { once: true },
    );
  }

  press(event) {
    const factor = KEYS[event.key];
    if (factor === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    const step = this.size * factor,
      isSmall = Math.round(step) === this.size;
    this.to(isSmall ? this.size + Math.sign(factor - 1) : step);
  }

  to(size) {
    const [low, high] = this.plane.x.full;
    this.moved(Math.round(Math.min(Math.max(size, Math.ceil(low), 1), Math.floor(high))));
  }
}
