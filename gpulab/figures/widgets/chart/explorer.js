// What both explorers share: a state, the numbers that it needs, and the kernel that has more of them.

import { Presentation } from "../shared.js";
import { Frame } from "./frame.js";
import { codeOf } from "./share.js";

const REST_MS = 150; // of a slider, before the kernel hears of its place
const SILENCE_MS = 4000;

// A subclass has `makeForm`, `lacks` (whether a state needs numbers that are not here), `update` (which
// draws the state), `settled` (the nearest state that can be chosen), `rows` and `told` (a sentence
// that says what a choice has changed).
export class Explorer {
  constructor(host, data, options) {
    this.data = data;
    this.state = data.state;
    this.model = null;
    this.frame = new Frame({
      ...options,
      name: () => `${options.kind}-${this.state.dtype}`,
      rows: () => this.rows(),
      showAll: () => this.plane.showAll(),
      code: () => codeOf(this.data, this.state),
      measure: () => this.ask({ do: "measure" }, "Waiting for the kernel."),
      stop: () => this.ask({ do: "stop" }, "Stops after this point."),
    });
    this.root = this.frame.root;
    this.presentation = new Presentation(this.root, () => this.enlarge());
    this.frame.addButton(this.presentation.button());
    host.replaceChildren(this.root);
  }

  // In a presentation everything is so large that the whole explorer fills the window.
  enlarge() {
    const zoom = Math.max(1, Math.min(innerWidth / 1100, innerHeight / 640));
    this.root.style.setProperty("--zoom", zoom);
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
    this.frame.showKernel(this.model !== null);
    this.state = this.settled(this.state);
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
    clearTimeout(this.silence);
    const busy = "No answer from the kernel yet: a cell may be running, or the kernel has ended.";
    this.silence = setTimeout(() => this.frame.say(busy), SILENCE_MS);
  }

  receive({ numbers, state, progress, note }) {
    clearTimeout(this.silence);
    if (numbers) merge(this.data, numbers);
    const isNew = state && JSON.stringify(state) !== JSON.stringify(this.state);
    if (isNew) this.state = state;
    if (progress) this.frame.showProgress(progress);
    this.settle();
    if (this.lacks(this.state)) return;
    this.update(numbers && !progress ? this.moveMs : 0);
    const sentence = note || (isNew ? "Chosen by code." : this.sentence?.());
    if (sentence) this.frame.say(sentence);
    this.sentence = null;
  }

  close() {
    this.presentation.close();
    this.root.remove();
  }
}

function merge(known, added) {
  for (const [name, value] of Object.entries(added)) {
    const isRecord = value && typeof value === "object" && !Array.isArray(value) && known[name];
    if (isRecord) merge(known[name], value);
    else known[name] = value;
  }
}
