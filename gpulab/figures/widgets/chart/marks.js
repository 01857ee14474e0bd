// SVG from plain objects. A layer keeps one element for each key, writes only what has changed, and
// lets numbers move to their new values if it gets some milliseconds for that.

import { drawn } from "../shared.js";

export class Layer {
  constructor(parent, name) {
    this.group = drawn("g", { class: name });
    this.items = new Map();
    parent.append(this.group);
  }

  // A mark is { key, tag, ... }: `text` is its content, `at` its place, all else are attributes.
  draw(marks, ms = 0) {
    cancelAnimationFrame(this.frame);
    const keys = new Set(marks.map(mark => mark.key));
    for (const [key, item] of this.items) if (!keys.has(key)) this.remove(key, item);
    const moves = marks.map(mark => this.moveTo(mark));
    if (!ms || matchMedia("(prefers-reduced-motion: reduce)").matches)
      return moves.forEach(move => move(1));
    const start = performance.now();
    const step = now => {
      const share = Math.min(1, Math.max(0, (now - start) / ms));
      for (const move of moves) move(eased(share));
      if (share < 1) this.frame = requestAnimationFrame(step);
    };
    step(start);
  }

  remove(key, item) {
    item.element.remove();
    this.items.delete(key);
  }

  // Returns a function that writes the mark as it is after a share of its way.
  moveTo({ key, tag, ...goal }) {
    if (!this.items.has(key)) {
      const element = drawn(tag);
      this.group.append(element);
      this.items.set(key, { element, shown: {}, written: {} });
    }
    const { element, shown, written } = this.items.get(key);
    const start = { ...shown };
    for (const name of Object.keys(written)) if (!(name in goal)) erase(element, name, written);
    return share => {
      for (const name in goal) {
        shown[name] = between(start[name], goal[name], share);
        const value = asText(shown[name]);
        if (value !== written[name]) write(element, name, (written[name] = value));
      }
    };
  }
}

function erase(element, name, written) {
  delete written[name];
  if (name !== "text") element.removeAttribute(name === "at" ? "transform" : name);
}

function write(element, name, value) {
  if (name === "text") element.textContent = value;
  else if (name === "at") element.setAttribute("transform", `translate(${value})`);
  else element.setAttribute(name, value);
}

function between(start, goal, share) {
  if (share === 1) return goal;
  if (typeof goal === "number" && typeof start === "number") return start + share * (goal - start);
  if (!Array.isArray(goal) || start?.length !== goal.length) return goal;
  return goal.map((value, index) => start[index] + share * (value - start[index]));
}

function asText(value) {
  if (typeof value === "number") return String(Math.round(value * 100) / 100);
  return Array.isArray(value) ? value.map(each => each.toFixed(1)).join() : value;
}

function eased(share) {
  return share < 0.5 ? 4 * share ** 3 : 1 - 4 * (1 - share) ** 3;
}
