// What both explorers share: a state, the numbers that it needs, and the kernel that has more of them.

import { tag } from "../shared.js";
import { button } from "./controls.js";
import { Frame } from "./frame.js";
import { codeOf } from "./share.js";
import { Patience } from "./patience.js";

const REST_MS = 150; // of a slider, before the kernel hears of its place
const HOW = "Drag to zoom. Points: mouse, or ← → ↑ ↓ in the picture.";
const ALONE = "Without a kernel there are recorded numbers only; run the cell to measure your own.";
const MEASURE = "Time what is shown, on this machine";

// A subclass has `makeForm`, `lacks` (whether a state needs numbers that are not here), `update` (which
// draws the state), `settled` (the nearest state that can be chosen), `rows` and `told` (a sentence
// that says what a choice has changed).
export class Explorer {
  constructor(host, data, { kind, style, hint }) {
    this.data = data;
    this.state = data.state;
    this.model = null;
    this.code = tag("input", {
      class: "code",
      readonly: "",
      hidden: "",
      "aria-label": "This view as code",
    });
    this.frame = new Frame({
      kind: `explorer ${kind}`,
      style,
      hint,
      name: () => `${kind}-${this.state.dtype}`,
      rows: () => this.rows(),
      buttons: [...this.zooming(), ...this.measuring(), this.sharing()],
    });
    this.root = this.frame.root;
    this.frame.table.before(this.code);
    this.patience = new Patience(sentence => this.frame.say(sentence));
    host.replaceChildren(this.root);
  }

  zooming() {
    this.whole = button("Show all", "Back to the whole picture; key 0", () => {
      this.plane.showAll();
      this.plane.root.focus(); // the button goes away, and its focus would be lost
    });
    return [this.whole];
  }

  measuring() {
    const ask = (what, sentence) => () => this.ask({ do: what }, sentence);
    this.start = button("Measure here", MEASURE, ask("measure", "Waiting for the kernel."));
    this.halt = button(
      "Stop",
      "Stop measuring; what is measured stays",
      ask("stop", "Stops after this point."),
    );
    this.bar = tag("progress", { "aria-label": "Measured" });
    this.halt.hidden = this.bar.hidden = true;
    return [this.start, this.bar, this.halt];
  }

  sharing() {
    return button("Share", "The line of Python that shows this view", () => {
      const text = codeOf(this.data, this.state);
      Object.assign(this.code, { value: text, hidden: false });
      this.code.focus();
      this.code.select();
      navigator.clipboard?.writeText(text).then(
        () => this.frame.say("Copied: one line of Python that shows this view."),
        () => this.frame.say("Copy this line of Python: it shows this view."),
      );
    });
  }

  connect(model) {
    this.model = model;
    this.model.send({ do: "hello" });
    this.settle();
  }

  disconnect() {
    this.model = null;
    this.settle();
  }

  // Shows which choices are possible now.
  settle() {
    const isThere = this.model !== null;
    this.start.disabled = !isThere;
    this.start.title = isThere ? MEASURE : ALONE;
    this.state = this.settled(this.state);
  }

  show({ note, ...texts }) {
    this.frame.show({ ...texts, note: note + (this.model ? HOW : ALONE) });
    this.code.hidden = true;
  }

  choose(name, value, isDrag = false) {
    if (!isDrag || this.dragged !== name) this.before = this.view;
    this.dragged = isDrag ? name : null;
    this.change({ [name]: value }, isDrag ? 0 : this.moveMs, () => this.told(name));
  }

  change(values, ms, sentence) {
    this.state = this.settled({ ...this.state, ...values });
    this.tellKernel();
    if (this.lacks(this.state)) {
      this.sentence = sentence;
      this.ask({ do: "numbers", state: this.state }, "The virtual GPU computes these times.");
      return;
    }
    this.update(ms);
    this.frame.say(sentence());
  }

  tellKernel() {
    clearTimeout(this.resting);
    this.resting = setTimeout(() => this.model?.send({ do: "state", state: this.state }), REST_MS);
  }

  ask(message, sentence) {
    if (!this.model) return this.frame.say("This needs a running kernel: run the cell again.");
    this.frame.say(sentence);
    this.model.send(message);
    this.patience.begin();
  }

  receive({ numbers, state, progress }) {
    this.patience.end();
    if (numbers) merge(this.data, numbers);
    const isNew = state && JSON.stringify(state) !== JSON.stringify(this.state);
    if (isNew) this.state = state;
    if (progress) this.showProgress(progress);
    this.settle();
    if (this.lacks(this.state)) return;
    this.update(numbers && !progress ? this.moveMs : 0);
    const sentence = isNew ? "Chosen by code." : this.sentence?.();
    if (sentence) this.frame.say(sentence);
    this.sentence = null;
  }

  showProgress({ text, done, total }) {
    const isRunning = total > 0,
      focused = document.activeElement;
    this.start.hidden = isRunning;
    this.halt.hidden = this.bar.hidden = !isRunning;
    if (isRunning) Object.assign(this.bar, { value: done, max: total });
    this.frame.say(text);
    // A button that goes away would lose the focus, and the next key would reach the notebook.
    if (focused === this.start && isRunning) this.halt.focus();
    if (focused === this.halt && !isRunning) this.start.focus();
  }

  close() {
    this.patience.end();
    this.frame.close();
  }
}

function merge(known, added) {
  for (const [name, value] of Object.entries(added)) {
    const isRecord = value && typeof value === "object" && !Array.isArray(value) && known[name];
    if (isRecord) merge(known[name], value);
    else known[name] = value;
  }
}
