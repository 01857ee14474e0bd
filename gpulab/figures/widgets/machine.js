// The machine in the browser: it draws what Python has simulated, and sends edits to Python. The
// program is in Python. Only what needs no answer is here: the view, the selection, and the preview
// of a drag. Times are microseconds since the start of the program. A *place* is the index of an
// operation.

import { keepKeys } from "./keys.js";
import LANES_STYLE from "./lanes.css";
import STYLE from "./machine.css";
import { BAR, MachineChart, MachineScale, ON_HOST, roleOf, TIMED } from "./machine_chart.js";
import { Hand, MOVED_PX, PALETTE, ZOOM } from "./machine_hand.js";
import { choice, Side, say } from "./machine_side.js";
import { Presentation, tag } from "./shared.js";

const TYPE_PX = 14;
const MOST_STEPS = 4;
const MOST_HURRIES = 3;

export default { render };

function render({ model, el }) {
  const machine = new Machine(el, model);
  return () => machine.close();
}

class Machine {
  constructor(el, model) {
    this.model = model;
    this.scale = new MachineScale();
    this.chart = new MachineChart(this.scale);
    this.side = new Side(this);
    this.chosen = 0;
    this.number = 0;
    this.turns = 0;
    this.isBusy = false;
    this.afterwards = [];
    this.build(el);
    this.hand = new Hand(this);
    this.changed = () => this.take();
    model.on("change:view", this.changed);
    this.messages = model.widget_manager?.kernel?.iopubMessage; // JupyterLab and Notebook have it
    this.heard = (_, message) => this.hurry(message);
    this.messages?.connect(this.heard);
    this.watch = new ResizeObserver(() => this.resize());
    this.watch.observe(this.stage);
    this.take();
  }

  build(el) {
    this.challenge = choice([]);
    this.challenge.setAttribute("aria-label", "Challenge");
    this.challenge.addEventListener("change", () =>
      this.ask({ do: "begin", name: this.challenge.value }),
    );
    this.undo = this.button("Undo", () => this.ask({ do: "undo" }));
    this.redo = this.button("Redo", () => this.ask({ do: "redo" }));
    const reset = this.button("Reset", () => this.ask({ do: "reset" }));
    const zooms = [
      this.button("−", () => this.zoom(1 / ZOOM), "Zoom out"),
      this.button("+", () => this.zoom(ZOOM), "Zoom in"),
      this.button("Show all", () => this.showAll()),
    ];
    this.palette = tag(
      "div",
      { class: "gm-row palette", role: "group", "aria-label": "Drop in" },
      ...PALETTE.map(entry => this.source(entry)),
    );
    this.told = tag("p", { class: "told", "aria-live": "polite" });
    this.stage = tag("div", { class: "stage" }, this.chart.svg);
    this.own = tag("style");
    this.root = tag("div", { class: "gpulab-machine" });
    this.releaseKeys = keepKeys(this.root);
    this.presentation = new Presentation(this.root, isOn => this.present(isOn));
    this.origin = tag("span", { class: "push quiet" });
    this.root.append(
      tag("style", {}, LOOK + LANES_STYLE + STYLE),
      this.own,
      tag(
        "div",
        { class: "gm-row top" },
        this.challenge,
        this.undo,
        this.redo,
        reset,
        tag("span", { class: "push" }),
        ...zooms,
        this.presentation.button(),
      ),
      this.palette,
      this.stage,
      tag("div", { class: "gm-row quiet" }, this.told, this.origin),
      this.side.element,
    );
    el.append(this.root);
  }

  button(text, action, name = text) {
    const button = tag("button", { type: "button", "aria-label": name }, text);
    button.addEventListener("click", action);
    return button;
  }

  // Returns a button of the palette: a click adds its operation, or you drag it into a lane.
  source(entry) {
    const { key, name, kind } = entry;
    const how = `key ${key.toUpperCase()} in the picture: after the chosen operation`;
    const title = `A click adds it at the end, a drag in a lane; ${how}`;
    const colour = tag("i", { style: `background: var(--gpulab-${roleOf(kind)})` });
    const data = { "data-kind": kind, "data-key": key };
    const button = tag("button", { type: "button", title, ...data }, colour, name);
    let from = null;
    button.addEventListener("pointerdown", event => {
      from = [event.clientX, event.clientY];
      button.setPointerCapture(event.pointerId);
    });
    button.addEventListener("pointermove", event => {
      if (!from || Math.hypot(event.clientX - from[0], event.clientY - from[1]) < MOVED_PX) return;
      const [x, y] = this.hand.at(event);
      this.carry({ x: x - 20, y: y - BAR / 2, width: 60, at: [x, y], kind });
    });
    button.addEventListener("pointerup", event => {
      const [x, y] = this.hand.at(event),
        isDragged = Boolean(this.chart.drag);
      from = null;
      this.carry(null);
      // The browser sends a click after the drag, too, because the pointer was captured.
      if (!isDragged) return;
      this.skipClick = true;
      // So that the next key is about what was dropped.
      this.chart.svg.focus({ preventScroll: true });
      this.addAt(entry, x, y);
    });
    button.addEventListener("click", () => {
      // At the end, and not where it solves a challenge: the learner chooses its place.
      if (!this.skipClick) this.add(entry, this.view.operations.length);
      this.skipClick = false;
    });
    return button;
  }

  // ------------------------------------------------ answers of Python

  take() {
    const view = this.model.get("view");
    this.view = view;
    if (view.answer >= this.number) this.isBusy = false;
    this.chosen = Math.max(0, Math.min(this.chosen, view.operations.length - 1));
    // A dropped operation is selected at its new place, but only once the answer contains it.
    if (this.wanted !== undefined && !this.isBusy) {
      this.chosen = Math.min(this.wanted, view.operations.length - 1);
      this.wanted = undefined;
    }
    this.chart.show(view);
    this.paint();
    this.chart.redraw(this.chosen);
    this.side.show(view);
    this.tell();
    this.undo.disabled = !view.can_undo;
    this.redo.disabled = !view.can_redo;
    if (this.presentation.isOn) this.present(true); // there may be more lanes or remarks
    this.root.dataset.answer = view.answer;
    this.root.dataset.n = view.operations.length;
    if (this.next && !this.isBusy) {
      const next = this.next;
      this.next = null;
      this.ask(next);
    }
    while (this.afterwards.length && !this.isBusy) this.afterwards.shift()();
  }

  paint() {
    const { view } = this,
      key = JSON.stringify([view.challenges, view.challenge, view.still, view.source]);
    if (key === this.painted) return;
    this.painted = key;
    this.challenge.replaceChildren(
      tag("option", { value: "" }, "Free play"),
      ...view.challenges.map(name => tag("option", { value: name }, `Challenge: ${name}`)),
    );
    this.challenge.value = view.challenge;
    this.origin.textContent = view.source;
    // The still picture is for pages without a kernel; it is hidden while the widget is alive. The
    // whole output is hidden, because an empty one would still take space.
    const still = `#${view.still}`;
    const hidden = `.jp-OutputArea-child:has(${still}), ${still}`;
    this.own.textContent = `${hidden} { display: none !important; }`;
  }

  // ------------------------------------------------ requests to Python

  // Sends one request of a gesture at a time. Of those made before its answer only the last is
  // sent, so that a fast drag does not leave a queue of old ones.
  ask(message) {
    if (this.isBusy && message.gesture) {
      this.next = message;
      return;
    }
    this.isBusy = true;
    this.number += 1;
    this.hurries = 0;
    this.model.send({ ...message, number: this.number });
  }

  // A server on this computer sends the answer only when the browser has acknowledged the messages
  // before it, which say that the kernel is busy, and idle again (Nagle's algorithm). The browser's
  // system puts an acknowledgement off by 40 ms or more, unless there is something to send: so we
  // send something.
  hurry({ header }) {
    if (!this.isBusy || header.msg_type !== "status" || this.hurries >= MOST_HURRIES) return;
    this.hurries += 1;
    this.model.send({ do: "hurry" });
  }

  // All requests of one gesture are undone together.
  get gesture() {
    return `${this.turns}`;
  }

  newGesture() {
    this.turns += 1;
  }

  tune(field, value) {
    this.ask({ do: "tune", field, value, gesture: this.gesture });
  }

  get operation() {
    return this.view.operations[this.chosen];
  }

  choose(place) {
    const last = this.view.operations.length - 1,
      chosen = Math.max(0, Math.min(place, last));
    if (chosen !== this.chosen) this.side.forget(); // what was wrong with another operation
    this.chosen = chosen;
    this.redraw();
    this.side.showFields();
    this.tell();
  }

  tell() {
    const text = this.operation?.text ?? "The program is empty. Drop in an operation.";
    say(this.told, text);
  }

  carry(drag) {
    this.chart.drag = drag;
    this.redraw();
    const lane = drag && this.chart.laneAt(drag.at[1]);
    for (const rect of this.chart.svg.querySelectorAll(".lane"))
      rect.classList.toggle("over", rect.dataset.lane === lane?.name && lane.kind !== "engine");
  }

  // Returns the place in the program, and the stream, for an operation dropped at a point of the
  // picture: before the first operation of the lane whose middle is later.
  //
  // An operation that is moved keeps its place if the lane allows it: a drag straight down into an
  // empty stream changes the stream and not the order of the calls.
  target(x, y, kind, moved = -1) {
    const lane = this.chart.laneAt(y),
      us = this.scale.us(x),
      { view } = this;
    if (!lane || lane.kind === "engine") return null;
    const isHost = ON_HOST.includes(kind) || lane.kind === "host";
    const { calls, tasks } = this.chart;
    const bars = (isHost ? calls : tasks.filter(task => task.stream === lane.number)).filter(
      bar => bar.place !== moved,
    );
    const isLater = bar => (bar.start + bar.end) / 2 > us;
    const later = bars.find(bar => bar.turn === 0 && isLater(bar));
    const before = bars.filter(bar => !isLater(bar)).map(bar => bar.place);
    const least = Math.max(-1, ...before) + 1,
      most = later ? later.place : view.operations.length;
    const place =
      moved >= 0 ? Math.max(least, Math.min(moved, most)) : later || !before.length ? most : least;
    return { place, stream: lane.kind === "host" ? null : lane.number };
  }

  drop(place, x, y) {
    const operation = this.view.operations[place],
      target = this.target(x, y, operation.kind, place);
    if (!target) return;
    const stream = ON_HOST.includes(operation.kind)
      ? operation.stream
      : (target.stream ?? operation.stream);
    const to = target.place > place ? target.place - 1 : target.place;
    // Nothing to do if the operation was dropped where it was.
    if (to === place && stream === operation.stream) return;
    this.wanted = to;
    this.ask({ do: "move", place, to, stream });
  }

  add({ kind, is_pinned }, place = this.operation ? this.chosen + 1 : 0) {
    const { operation } = this;
    const stream = operation && !ON_HOST.includes(operation.kind) ? operation.stream : 0;
    this.put({ kind, is_pinned, place, stream });
  }

  addAt({ kind, is_pinned }, x, y) {
    const target = this.target(x, y, kind);
    if (target) this.put({ kind, is_pinned, place: target.place, stream: target.stream ?? 0 });
  }

  put({ kind, is_pinned, place, stream }) {
    this.wanted = place;
    this.ask({ do: "add", kind, is_pinned, place, stream });
  }

  remove() {
    if (this.view.operations.length) this.ask({ do: "remove", place: this.chosen });
  }

  stretch(step) {
    const { operation } = this;
    if (!operation || !TIMED.includes(operation.kind)) return;
    // Half of the power of ten below, in steps of 0.5 µs: a key changes any length noticeably.
    const size = Math.max(0.5, 10 ** Math.floor(Math.log10(operation.duration_us)) / 2);
    const raw = Math.round((operation.duration_us + step * size) * 2) / 2;
    const value = Math.min(this.view.limits.longest, Math.max(this.view.limits.shortest, raw));
    this.ask({ do: "set", place: this.chosen, field: "duration_us", value });
  }

  toStream(step) {
    const { operation } = this;
    if (!operation || ON_HOST.includes(operation.kind)) return;
    const stream = operation.stream + step;
    if (stream >= 0 && stream < this.view.limits.streams)
      this.ask({ do: "set", place: this.chosen, field: "stream", value: stream });
  }

  shift(step) {
    const { operation } = this;
    const to = this.chosen + step;
    if (!operation || to < 0 || to >= this.view.operations.length) return;
    this.wanted = to;
    this.ask({ do: "move", place: this.chosen, to, stream: operation.stream });
  }

  // ------------------------------------------------ the view, without Python

  zoom(factor) {
    this.scale.zoom(factor, (this.scale.from + this.scale.to) / 2);
    this.redraw();
  }

  showAll() {
    this.scale.fits = true;
    this.fit();
  }

  fit() {
    this.scale.fit(this.view.end);
    this.redraw();
  }

  resize() {
    if (this.presentation.isOn) this.present(true);
    else if (this.measure()) this.redraw();
  }

  // Takes over the size of the type and of the picture, and returns whether they have changed.
  measure() {
    const zoomed = parseFloat(getComputedStyle(this.root).fontSize) / TYPE_PX,
      width = Math.round(this.stage.clientWidth / zoomed);
    if (!width || (width === this.scale.width && zoomed === this.scale.zoomed)) return false;
    Object.assign(this.scale, { width, zoomed });
    return true;
  }

  // In a lecture hall nobody scrolls: the type is as large as the window allows.
  present(isOn) {
    this.root.style.fontSize = "";
    this.measure();
    this.chart.redraw(this.chosen);
    // Borders and gaps do not shrink with the type, so one step is not enough.
    for (
      let step = 0;
      isOn && step < MOST_STEPS && this.root.scrollHeight > window.innerHeight;
      step++
    ) {
      const share = window.innerHeight / this.root.scrollHeight;
      const size = 0.99 * share * TYPE_PX * this.scale.zoomed;
      this.root.style.fontSize = `${Math.max(TYPE_PX, size)}px`;
      this.measure();
      this.chart.redraw(this.chosen);
    }
  }

  // Draws at most once in a frame, however many events arrive.
  redraw() {
    if (this.isAsked) return;
    this.isAsked = true;
    requestAnimationFrame(() => {
      this.isAsked = false;
      if (!this.closed) this.chart.redraw(this.chosen);
      this.root.dataset.drawn = Number(this.root.dataset.drawn || 0) + 1;
    });
  }

  close() {
    this.closed = true;
    this.presentation.close();
    this.releaseKeys();
    this.watch.disconnect();
    this.model.off("change:view", this.changed);
    this.messages?.disconnect(this.heard);
    this.root.remove();
  }
}
