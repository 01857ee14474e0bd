// What the forms of guesses and of answers share: their look, their keys, and the kernel's silence.

import { Patience } from "../chart/patience.js";
import { keepKeys } from "../keys.js";
import { tag } from "../shared.js";
import look from "./look.css";

const ASLEEP =
  "The kernel has ended or begun anew. What you gave is kept: run this cell to go on.";

export class Form {
  // `parts` are the elements of the form, and the last one says what the kernel answers.
  constructor(model, label, kind, ...parts) {
    this.model = model;
    this.said = parts.at(-1);
    this.patience = new Patience(sentence => (this.said.textContent = sentence));
    this.root = tag(
      "form",
      { class: `gpulab asked ${kind}`, "aria-label": label },
      tag("style", {}, `${LOOK}${look}.${model.get("view").still} { display: none; }`),
      ...parts,
    );
    this.root.addEventListener("submit", event => {
      event.preventDefault();
      this.submit();
    });
    this.freeKeys = keepKeys(this.root);
    this.root.addEventListener("keydown", event => this.press(event));
    this.changed = () => {
      this.patience.end();
      this.show(this.model.get("view"));
    };
    model.on("change:view", this.changed);
    this.lost = () => this.sleep();
    model.on("comm_live_update", this.lost); // the kernel has gone
  }

  sleep() {
    this.patience.end();
    this.root.classList.add("asleep");
    for (const element of this.root.elements) element.disabled = true;
    this.said.textContent = ASLEEP;
  }

  press(event) {
    const isNotebooks = event.shiftKey && event.key === "Enter";
    if (isNotebooks || event.ctrlKey || event.metaKey || event.altKey) return;
    const isButton = event.target.matches("button");
    if (event.key === "Enter" && !isButton) this.root.requestSubmit();
    else if (event.target.matches("input[type=text], select") || !this.choose(event.key)) return;
    event.preventDefault();
  }

  send(message, meanwhile = "") {
    this.said.textContent = meanwhile;
    this.patience.begin();
    this.model.send(message);
  }

  close() {
    this.patience.end();
    this.model.off("change:view", this.changed);
    this.model.off("comm_live_update", this.lost);
    this.freeKeys();
    this.root.remove();
  }
}

// Returns the text with what stands between backquotes as code.
export function withCode(text) {
  return text.split("`").map((part, place) => (place % 2 ? tag("code", {}, part) : part));
}

// Returns the function that anywidget calls to render.
export function rendering(make) {
  return ({ model, el }) => {
    const form = make(model);
    form.changed();
    el.append(form.root);
    return () => form.close();
  };
}
