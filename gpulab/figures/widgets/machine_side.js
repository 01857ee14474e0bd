// Beside the picture of the machine: readings, sliders, the fields of an operation, and texts.

import { ON_HOST, TIMED } from "./machine_chart.js";
import { tag } from "./shared.js";

const KEYS = [
  ["← →", "operation before, after"],
  ["Shift + ← →", "shorter, longer"],
  ["↑ ↓", "to another stream"],
  ["Alt + ← →", "called earlier, later"],
  [
    "K C U O G L",
    "drop in a kernel, a copy in, one from pageable memory, a copy out, a graph, a sleep",
  ],
  ["E W S T", "drop in an event, a wait, a synchronize, a reading of the clock"],
  ["Delete", "take it out"],
  ["Ctrl + Z, Ctrl + Y", "undo, redo"],
  ["+ − 0", "zoom in, zoom out, show all"],
  ["Enter", "to its fields"],
  ["P", "show it alone, in large type; there D changes light and dark, Esc ends it"],
];
const DEPTHS = [4, 8, 16, 32, 64, 128, 256, 512, 1022];
const TURNS = [1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 500, 1000];
const BUFFERED = ["kernel", "copy in", "copy out", "graph"];
const SAID_MS = 3000;
const STEPS = {
  ArrowRight: 1,
  ArrowUp: 1,
  ArrowLeft: -1,
  ArrowDown: -1,
  Home: Number.NEGATIVE_INFINITY,
  End: Number.POSITIVE_INFINITY,
};

// Sets a text only if it differs, because the browser lays out again what is set.
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export class Side {
  constructor(machine) {
    this.machine = machine;
    this.readings = tag("ul", { class: "readings", "aria-label": "Readings" });
    this.truth = tag("p", { class: "title" });
    this.more = tag("button", { type: "button" }, "Show all methods");
    this.more.addEventListener("click", () => machine.ask({ do: "show all methods" }));
    this.remarks = tag("ul", { class: "remarks", "aria-label": "Remarks" });
    this.fields = tag("div", { class: "fields" });
    this.heading = tag("p", { class: "title" });
    this.problem = tag("p", { class: "problem", role: "alert", hidden: "" });
    this.sliders = tag("div", { class: "fields" });
    this.goal = tag("div", { class: "goal", hidden: "" });
    this.words = tag("ul");
    this.code = tag("pre", { tabindex: "0" });
    this.link = tag("pre", { tabindex: "0" });
    this.slides = {};
    this.filled = [];
    this.slide("launch_us", "Launch of a kernel", {
      range: { min: 1, max: 50, step: 0.5 },
      unit: " µs",
    });
    this.slide("queue_depth", "Launch queue", { known: DEPTHS });
    this.slide("repetitions", "Repetitions n", { known: TURNS });
    this.element = tag(
      "div",
      {},
      this.goal,
      tag(
        "div",
        { class: "below" },
        tag("div", {}, this.truth, this.readings, this.more, this.remarks),
        tag(
          "div",
          { class: "gpulab-controls" },
          this.heading,
          this.fields,
          this.problem,
          tag("p", { class: "title" }, "Host"),
          this.sliders,
        ),
      ),
      tag(
        "div",
        { class: "gpulab-controls" },
        details(
          "As PyTorch code",
          tag("div", { class: "gm-row" }, copier("Copy the code", this.code)),
          this.code,
        ),
        details("In words", this.words),
        details(
          "Link: one line that puts this program on a machine",
          tag("div", { class: "gm-row" }, copier("Copy the line", this.link)),
          this.link,
        ),
        details(
          "Keys, once the picture has the focus",
          tag("ul", {}, ...KEYS.map(([key, text]) => tag("li", {}, tag("b", {}, key), ` ${text}`))),
        ),
      ),
    );
    for (const text of [this.words, this.code, this.link])
      text.closest("details").addEventListener("toggle", () => this.showTexts());
  }

  // Adds a slider for a setting: over a range of numbers, or over a list of known values.
  slide(field, text, { range, known, unit = "" }) {
    const id = idFor(field);
    const limits = range ?? { min: 0, max: known.length - 1, step: 1 };
    const read = () => (known ? known[input.value] : Number(input.value));
    const input = tag("input", { type: "range", id, "data-field": field, ...limits });
    const shown = tag("output", { for: id });
    const write = value => {
      say(shown, `${value}${unit}`);
      input.setAttribute("aria-valuetext", shown.textContent);
    };
    input.addEventListener("input", () => {
      write(read());
      this.machine.tune(field, read());
    });
    input.addEventListener("change", () => this.machine.newGesture());
    input.addEventListener("keydown", event => {
      const step = STEPS[event.key];
      if (!step) return;
      event.preventDefault(); // by hand, because JupyterLab keeps these keys from the browser
      event.stopPropagation();
      const wanted = Number(input.value) + step * limits.step;
      input.value = Math.min(limits.max, Math.max(limits.min, wanted));
      input.dispatchEvent(new Event("input"));
      this.machine.newGesture();
    });
    this.sliders.append(
      tag("label", { for: id }, text),
      tag("span", { class: "slide" }, input, shown),
    );
    this.slides[field] = value => {
      // An older answer must not move the slider back.
      if (this.machine.isBusy || this.machine.next) return;
      const position = known ? nearest(known, value) : value;
      if (Number(input.value) !== position) input.value = position;
      write(value);
    };
  }

  show(view) {
    this.view = view;
    for (const field of Object.keys(this.slides)) this.slides[field](view[field]);
    this.showReadings();
    const remarks = JSON.stringify(view.remarks);
    if (remarks !== this.remarked)
      this.remarks.replaceChildren(
        ...view.remarks.map(({ kind, text }) => tag("li", { class: kind }, text)),
      );
    this.remarked = remarks;
    this.showTexts();
    this.showGoal();
    this.showFields();
    this.showProblem(view.problem);
  }

  showProblem({ text, field }) {
    this.problem.hidden = !text;
    say(this.problem, text || "");
    for (const input of this.element.querySelectorAll("[data-field]")) {
      if (text && input.dataset.field === field) input.setAttribute("aria-invalid", "true");
      else input.removeAttribute("aria-invalid");
    }
  }

  forget() {
    this.view.problem = {};
    this.showProblem({});
  }

  // Fills only texts whose box is open: a drag must not wait for texts that nobody sees.
  showTexts() {
    const { view } = this;
    if (isOpen(this.words)) {
      this.words.replaceChildren(...view.words.map(line => tag("li", {}, line)));
    }
    if (isOpen(this.code)) this.code.textContent = view.code;
    if (isOpen(this.link)) this.link.textContent = view.link;
  }

  showReadings() {
    const { readings, has_all_methods } = this.view;
    this.more.hidden = has_all_methods;
    this.nameReadings(readings.map(reading => reading.name));
    if (!readings.length) {
      say(this.truth, "No readings");
      return;
    }
    const { truth, truth_shown } = readings[0];
    say(this.truth, `The truth is ${truth_shown}`);
    // A bar ends at three times the truth; otherwise one far reading would make all others too
    // short.
    const values = readings.map(reading => reading.value || 0);
    const most = Math.min(Math.max(truth, ...values), 3 * truth) * 1.02;
    readings.forEach(({ value, shown, is_right, reason }, number) => {
      const row = this.rows[number];
      row.bar.hidden = value === null;
      row.bar.style.width = `${100 * Math.min(1, (value || 0) / most)}%`;
      row.bar.className = `${is_right ? "" : "wrong"} ${value > most ? "beyond" : ""}`;
      row.line.style.left = `${(100 * truth) / most}%`;
      say(row.shown, shown);
      say(row.why, is_right ? "✓ right" : `✗ ${reason}`);
    });
  }

  // Makes a row for each method; rows of the same methods stay, which is faster than new ones.
  nameReadings(names) {
    const key = names.join();
    if (key === this.names) return;
    this.names = key;
    this.rows = names.map(name => ({
      name,
      bar: tag("b"),
      line: tag("u"),
      shown: tag("span", { class: "number" }),
      why: tag("span", { class: "why" }),
    }));
    this.readings.replaceChildren(
      ...this.rows.map(({ name, bar, line, shown, why }) =>
        tag(
          "li",
          { "data-name": name },
          tag("span", { class: name.startsWith("your") ? "own" : "" }, name),
          tag("span", { class: "track", "aria-hidden": "true" }, bar, line),
          shown,
          why,
        ),
      ),
    );
  }

  showGoal() {
    const { goal, said, tried } = this.view;
    const key = JSON.stringify([goal, said, tried]);
    if (key === this.goalKey) return; // also for screen readers, which would say it again
    this.goalKey = key;
    this.goal.hidden = !goal;
    this.goal.classList.toggle("solved", Boolean(goal) && !said);
    const verdict = said ? `Not yet. ${said}` : "✓ Solved.";
    const parts = [tag("b", {}, goal), tag("div", { class: "said", role: "status" }, verdict)];
    if (tried.length) parts.push(this.log(tried));
    this.goal.replaceChildren(...parts);
  }

  // Returns the attempts, in a box that stays open or closed when it is made anew.
  log(tried) {
    const lines = tried.map(text => tag("li", {}, text || "Solved."));
    const box = details(`Tried: ${tried.length}`, tag("ol", {}, ...lines));
    box.open = Boolean(this.isLogOpen);
    box.addEventListener("toggle", () => {
      this.isLogOpen = box.open;
    });
    return box;
  }

  showFields() {
    const { view } = this;
    const { operation, chosen: place } = this.machine;
    const key = JSON.stringify([
      place,
      operation,
      view.n_streams,
      view.operations.length,
      view.operations.map(({ event }) => event),
    ]);
    if (key === this.key && !view.problem.text) return;
    // What was typed stays, beside the message about it.
    if (view.problem.text && this.fields.contains(document.activeElement)) return;
    this.key = key;
    say(
      this.heading,
      operation ? `Operation ${operation.text}` : "Choose an operation, or drop one in",
    );
    const form = JSON.stringify([
      operation?.kind,
      view.n_streams,
      operation?.kind === "wait" && this.events(operation),
    ]);
    if (form !== this.form) this.makeFields(form, operation);
    for (const { input, shown } of this.filled) {
      if (input.value !== shown(operation)) input.value = shown(operation);
    }
  }

  // Makes the fields of a kind of operation. They stay while others of the kind are chosen, because
  // new fields are slow.
  makeFields(form, operation) {
    const active = this.fields.contains(document.activeElement)
      ? document.activeElement.dataset.field
      : null;
    this.form = form;
    this.filled = [];
    this.fields.replaceChildren(...(operation ? this.inputs(operation) : []));
    if (active) this.fields.querySelector(`[data-field="${active}"]`)?.focus();
  }

  events(operation) {
    return [
      ...new Set([
        operation.event,
        ...this.view.operations.filter(({ kind }) => kind === "record").map(({ event }) => event),
      ]),
    ];
  }

  // Returns the labels and fields of an operation.
  inputs(operation) {
    const { kind } = operation;
    const { view } = this;
    const found = [];
    const add = (...field) => found.push(...this.field(...field));
    if (TIMED.includes(kind)) {
      const text = kind === "graph" ? "Each kernel, µs" : "Length, µs";
      add("duration_us", text, tag("input", { type: "number", step: "any" }), fieldNumber);
    }
    if (kind === "graph")
      add("n_kernels", "Kernels", tag("input", { type: "number" }), fieldNumber);
    if (!ON_HOST.includes(kind)) {
      const n_streams = Math.min(view.n_streams + 1, view.limits.streams);
      const numbers = [...Array(n_streams).keys()].map(String);
      add("stream", "Stream", choice(numbers), input => Number(input.value));
    }
    if (BUFFERED.includes(kind)) add("buffer", "Buffer", choice(view.buffers), fieldText);
    if (kind.startsWith("copy")) {
      const memory = choice(["pinned", "pageable"]);
      const shown = ({ is_pinned }) => (is_pinned ? "pinned" : "pageable");
      add("is_pinned", "Host memory", memory, input => input.value === "pinned", shown);
    }
    if (kind === "record")
      add("event", "Event", tag("input", { type: "text", size: 8 }), fieldText);
    if (kind === "wait") add("event", "Event", choice(this.events(operation)), fieldText);
    return [...found, this.actions()];
  }

  // Returns a label and its field. A field that is removed while it has the focus reports a change,
  // for a program that is gone.
  field(name, text, input, read, shown = operation => String(operation[name])) {
    const { machine, form } = this;
    input.id = idFor(name);
    input.dataset.field = name;
    const send = () => {
      if (this.form !== form) return;
      const value = read(input);
      if (value === machine.operation[name]) this.forget();
      else machine.ask({ do: "set", place: machine.chosen, field: name, value });
    };
    input.addEventListener("change", send);
    input.addEventListener("keydown", event => {
      if (event.key !== "Enter") return;
      // JupyterLab would take the key, and the browser would report no change.
      event.preventDefault();
      event.stopPropagation();
      send();
    });
    this.filled.push({ input, shown });
    return [tag("label", { for: input.id }, text), input];
  }

  actions() {
    const { machine } = this;
    const actions = {
      "Called earlier": () => machine.shift(-1),
      "Called later": () => machine.shift(1),
      Remove: () => machine.remove(),
    };
    const buttons = Object.entries(actions).map(([text, action]) => {
      const button = tag("button", { type: "button", "data-field": text }, text);
      button.addEventListener("click", action);
      return button;
    });
    return tag("span", { class: "gm-row wide" }, ...buttons);
  }
}

// Returns a button that copies a text, and says so. A page that is from elsewhere and without
// https may not use the clipboard: then the text is selected, for the reader's own key.
function copier(name, text) {
  const button = tag("button", { type: "button", "aria-live": "polite" }, name);
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(text);
      button.textContent = "Selected: press Ctrl + C";
    }
    setTimeout(() => {
      button.textContent = name;
    }, SAID_MS);
  });
  return button;
}

function nearest(known, value) {
  const distance = index => Math.abs(Math.log(known[index] / value));
  return known.reduce((best, _, index) => (distance(index) < distance(best) ? index : best), 0);
}

function fieldNumber(input) {
  return input.value === "" ? null : Number(input.value);
}

export function choice(options) {
  return tag("select", {}, ...options.map(option => tag("option", { value: option }, option)));
}

function details(text, ...children) {
  return tag("details", {}, tag("summary", {}, text), ...children);
}

function isOpen(element) {
  return element.closest("details").open;
}

function idFor(field) {
  return `gm-${field}-${Math.random().toString(36).slice(2)}`;
}

function fieldText(input) {
  return input.value.trim();
}
