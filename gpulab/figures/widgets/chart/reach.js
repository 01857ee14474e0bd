// Every point can be reached: by the mouse, which shows a hint, and by the arrow keys, which also say
// a sentence. A point is { key, series, x, y, describe }, with x and y in pixels; only the one that is
// reached is asked to describe itself, as { title, lines, sentence }.

import { Layer } from "./marks.js";
import { tag } from "../shared.js";

const NEAR_PX = 32;

export class Reach {
  constructor(plane, say) {
    Object.assign(this, { plane, say, points: [], reached: null });
    this.ring = new Layer(plane.root, "ring");
    this.hint = tag("div", { class: "hint", "aria-hidden": "true", hidden: "" });
    plane.host.append(this.hint);
    plane.root.addEventListener("pointermove", event => event.buttons || this.point(plane.place(event)));
    plane.root.addEventListener("pointerleave", () => this.show(null));
    plane.root.addEventListener("blur", () => this.show(null));
    plane.root.addEventListener("keydown", event => this.press(event));
  }

  // The point that was reached stays so, at its new place, if it is still among the points.
  set(points) {
    this.points = points;
    if (this.reached) this.show(points.find(point => point.key === this.reached.key) ?? null);
  }

  point([x, y]) {
    const far = point => Math.hypot(point.x - x, point.y - y);
    const nearest = this.points.reduce(
      (best, each) => (far(each) < far(best) ? each : best),
      this.points[0],
    );
    this.show(nearest && far(nearest) < NEAR_PX ? nearest : null);
  }

  press(event) {
    if (event.target !== this.plane.root || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") return this.show(null);
    const found = this.next(event.key);
    if (!found) return;
    event.preventDefault();
    this.show(found);
    this.say(found.describe().sentence);
  }

  // Left and right follow a series; up and down go to the nearest point of another one.
  next(key) {
    const { points, reached } = this;
    if (!/^(Arrow|Home|End)/.test(key) || !points.length) return null;
    if (!reached) return points[0];
    const series = [...new Set(points.map(point => point.series))];
    const own = points.filter(point => point.series === reached.series);
    const place = own.findIndex(point => point.key === reached.key);
    if (key === "Home") return own[0];
    if (key === "End") return own.at(-1);
    if (key === "ArrowLeft") return own[Math.max(0, place - 1)];
    if (key === "ArrowRight") return own[Math.min(own.length - 1, place + 1)];
    const step = key === "ArrowDown" ? 1 : series.length - 1;
    const other = series[(series.indexOf(reached.series) + step) % series.length];
    const far = point => Math.abs(point.x - reached.x);
    return points.filter(point => point.series === other).reduce((a, b) => (far(b) < far(a) ? b : a));
  }

  show(point) {
    this.reached = point;
    this.hint.hidden = !point;
    const ring = point && { key: "ring", tag: "circle", cx: point.x, cy: point.y, r: 10 };
    this.ring.draw(point ? [ring] : []);
    if (!point) return;
    const { title, lines } = point.describe();
    this.hint.replaceChildren(tag("b", {}, title), ...lines.map(line => tag("div", {}, line)));
    // Measured after its text is set: it stays inside of the picture, and beside the point.
    const { offsetWidth: width, offsetHeight: height } = this.hint,
      { plane } = this;
    const left = point.x + 16 + width > plane.width ? point.x - 16 - width : point.x + 16;
    const top = Math.min(Math.max(point.y - height / 2, 0), plane.height - height);
    this.hint.style.transform = `translate(${Math.max(0, left)}px, ${top}px)`;
  }
}
