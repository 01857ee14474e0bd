// Mouse and keyboard on the picture of the machine.

import { BAR, ON_HOST } from "./machine_chart.js";

// What can be dropped in: its key, its name, the operation, and whether its host memory is pinned.
export const PALETTE = [
  { key: "k", name: "Kernel", kind: "kernel", is_pinned: true },
  { key: "c", name: "Copy, pinned", kind: "copy in", is_pinned: true },
  { key: "u", name: "Copy, pageable", kind: "copy in", is_pinned: false },
  { key: "o", name: "Copy out", kind: "copy out", is_pinned: true },
  { key: "g", name: "Graph", kind: "graph", is_pinned: true },
  { key: "l", name: "Sleep", kind: "sleep", is_pinned: true },
  { key: "e", name: "Event", kind: "record", is_pinned: true },
  { key: "w", name: "Wait", kind: "wait", is_pinned: true },
  { key: "s", name: "Synchronize", kind: "synchronize", is_pinned: true },
  { key: "t", name: "Clock", kind: "clock", is_pinned: true },
];
export const ZOOM = 1.6;
export const MOVED_PX = 5; // a hand moves a little in a click, so a drag begins later
const GAP_US = 2; // between tasks that run one after the other

export class Hand {
  constructor(machine) {
    this.machine = machine;
    this.svg = machine.chart.svg;
    this.svg.addEventListener("pointerdown", event => this.down(event));
    this.svg.addEventListener("pointermove", event => this.move(event));
    this.svg.addEventListener("pointerup", event => this.up(event));
    this.svg.addEventListener("pointercancel", () => this.leave());
    this.svg.addEventListener("wheel", event => this.wheel(event), { passive: false });
    this.svg.addEventListener("keydown", event => this.press(event));
    // Undo and redo work everywhere but in a field, where they are about its text.
    machine.root.addEventListener("keydown", event => {
      const isTyping = event.target.matches("input:not([type=range]), select");
      if (!isTyping && (event.ctrlKey || event.metaKey)) this.press(event);
    });
  }

  at(event) {
    const box = this.svg.getBoundingClientRect();
    const { zoomed } = this.machine.scale;
    return [(event.clientX - box.left) / zoomed, (event.clientY - box.top) / zoomed];
  }

  down(event) {
    if (event.button) return;
    const { machine } = this,
      [x, y] = this.at(event),
      group = event.target.closest(".task");
    this.svg.setPointerCapture(event.pointerId);
    this.svg.focus({ preventScroll: true });
    this.start = { x, y, from: machine.scale.from, to: machine.scale.to };
    if (!group) {
      this.what = "pan";
      return;
    }
    const place = Number(group.dataset.place),
      turn = Number(group.dataset.turn);
    machine.choose(place);
    const operation = machine.view.operations[place];
    this.place = place;
    const own = machine.chart.tasks.filter(task => task.place === place);
    this.task = own.find(task => task.turn === turn);
    const isMovable = group.dataset.role === "task" || ON_HOST.includes(operation.kind);
    this.what = event.target.classList.contains("end") ? "end" : isMovable ? "body" : "none";
    if (this.what === "end") {
      this.duration = operation.duration_us;
      this.shared = inARow(own, machine.scale.us(x));
      machine.newGesture();
      this.hadFit = machine.scale.fits;
      machine.scale.fits = false; // otherwise the scale would change under the pointer
    }
  }

  move(event) {
    if (!this.what || !this.start) return;
    const { machine } = this,
      [x, y] = this.at(event),
      by = x - this.start.x;
    if (this.what === "end") this.lengthen(by);
    else if (Math.hypot(by, y - this.start.y) < MOVED_PX && !this.moved) return;
    else if (this.what === "pan") this.pan(by);
    else if (this.what === "body") machine.carry(this.carried(x, y));
    this.moved = true;
  }

  pan(by) {
    const { scale } = this.machine,
      us = by / scale.perUs;
    scale.fits = false;
    scale.place(this.start.from - us, this.start.to - us);
    this.machine.redraw();
  }

  lengthen(by) {
    const { machine } = this,
      { scale, view } = machine;
    const us = by / scale.perUs / this.shared;
    const wanted = Math.min(
      view.limits.longest,
      Math.max(view.limits.shortest, this.duration + us),
    );
    const step = (scale.to - scale.from) / 900 > 1 ? 1 : 0.5;
    const value = Math.max(view.limits.shortest, Math.round(wanted / step) * step);
    machine.ask({
      do: "set",
      place: this.place,
      field: "duration_us",
      value,
      gesture: machine.gesture,
    });
  }

  carried(x, y) {
    const { view } = this.machine,
      operation = view.operations[this.place];
    const width = this.task
      ? this.machine.scale.x(this.task.end) - this.machine.scale.x(this.task.start)
      : 40;
    return {
      x: x - Math.min(width, 60) / 2,
      y: y - BAR / 2,
      width,
      at: [x, y],
      kind: operation.kind,
    };
  }

  up(event) {
    const { machine } = this,
      [x, y] = this.at(event),
      { what, moved } = this;
    this.leave();
    if (what === "end") {
      machine.scale.fits = this.hadFit;
      machine.newGesture();
      machine.fit();
    } else if (what === "body" && moved) machine.drop(this.place, x, y);
  }

  leave() {
    this.what = this.start = null;
    this.moved = false;
    this.machine.carry(null);
  }

  wheel(event) {
    // Without the focus the page scrolls.
    if (!event.ctrlKey && document.activeElement !== this.svg) return;
    event.preventDefault();
    const [x] = this.at(event);
    this.machine.scale.zoom(Math.exp(-event.deltaY / 300), this.machine.scale.us(x));
    this.machine.redraw();
  }

  press(event) {
    const { machine } = this;
    if (machine.isBusy && this.knows(event)) {
      // the operation that the key is about may not be in the view yet
      event.preventDefault();
      event.stopPropagation();
      if (!event.repeat) machine.afterwards.push(() => this.press(event));
      return;
    }
    const action = event.ctrlKey || event.metaKey ? this.undoing(event) : this.actionOf(event);
    if (!action) return;
    action();
    event.preventDefault();
    event.stopPropagation(); // otherwise the notebook takes the key as a command
  }

  undoing({ key, shiftKey }) {
    const { machine } = this;
    const letter = key.toLowerCase();
    if (letter === "y" || (letter === "z" && shiftKey)) return () => machine.ask({ do: "redo" });
    return letter === "z" ? () => machine.ask({ do: "undo" }) : null;
  }

  actionOf(event) {
    const { machine } = this;
    const source = PALETTE.find(({ key }) => key === event.key.toLowerCase());
    const actions = {
      ArrowLeft: () => this.across(event, -1),
      ArrowRight: () => this.across(event, 1),
      ArrowUp: () => machine.toStream(-1),
      ArrowDown: () => machine.toStream(1),
      Home: () => machine.choose(0),
      End: () => machine.choose(machine.view.operations.length - 1),
      Delete: () => machine.remove(),
      Backspace: () => machine.remove(),
      "+": () => machine.zoom(ZOOM),
      "=": () => machine.zoom(ZOOM),
      "-": () => machine.zoom(1 / ZOOM),
      0: () => machine.showAll(),
      Enter: () => machine.side.fields.querySelector("input, select")?.focus(),
    };
    return actions[event.key] ?? (source && (() => machine.add(source)));
  }

  knows({ key, ctrlKey, metaKey }) {
    if (ctrlKey || metaKey) return "zy".includes(key.toLowerCase());
    return (
      key.startsWith("Arrow") ||
      ["Home", "End", "Delete", "Backspace", "Enter"].includes(key) ||
      PALETTE.some(source => source.key === key.toLowerCase())
    );
  }

  across(event, step) {
    const { machine } = this;
    if (event.shiftKey) machine.stretch(step);
    else if (event.altKey) machine.shift(step);
    else machine.choose(machine.chosen + step);
  }
}

// Returns how many tasks of an operation run one after the other up to the end that is nearest to a
// time. If each becomes longer by a share of a drag, this end follows the pointer.
export function inARow(own, us) {
  const tasks = own.toSorted((one, other) => one.start - other.start);
  const nearest = tasks.reduce(
    (best, task, index) =>
      Math.abs(task.end - us) < Math.abs(tasks[best].end - us) ? index : best,
    0,
  );
  let first = nearest;
  while (first > 0 && tasks[first].start - tasks[first - 1].end < GAP_US) first -= 1;
  return nearest - first + 1;
}
