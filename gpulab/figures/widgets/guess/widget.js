// The form of a guess: a field with its unit, or the choices as buttons, and how sure the learner is.

import { tag } from "../shared.js";
import look from "./look.css";

const STEPS = [
  ["guess", "a guess"],
  ["likely", "likely"],
  ["sure", "sure"],
];

class GuessForm {
  constructor(model) {
    this.model = model;
    const { question, unit, choices, still } = model.get("view");
    this.said = tag("p", { class: "said", role: "status" });
    this.field = tag("input", { type: "text", autocomplete: "off", "aria-label": `Your guess in ${unit}` });
    this.choices = choices.map((choice, place) => this.choice(choice, place));
    this.sure = STEPS.map(step => this.step(step));
    const answers = choices.length
      ? this.choices
      : [this.field, tag("span", { class: "unit" }, unit), tag("button", {}, "Answer")];
    this.root = tag(
      "form",
      { class: "gpulab guess", "aria-label": question },
      tag("style", {}, `${LOOK}${look}.${still} { display: none; }`),
      tag("p", { class: "question" }, question),
      tag("div", { class: "answers" }, ...answers),
      tag(
        "div",
        { class: "sure", role: "group", "aria-label": "How sure are you?" },
        "How sure? ",
        ...this.sure,
      ),
      this.said,
    );
    this.root.addEventListener("submit", event => {
      event.preventDefault();
      this.send({ text: this.field.value });
    });
    this.root.addEventListener("keydown", event => this.press(event));
    this.changed = () => this.show();
    model.on("change:view", this.changed);
    this.show();
  }

  choice(text, place) {
    const button = tag(
      "button",
      { type: "button" },
      tag("kbd", { "aria-hidden": "true" }, `${place + 1}`),
      text,
    );
    button.addEventListener("click", () => this.send({ text }));
    return button;
  }

  step([value, text]) {
    const button = tag("button", { type: "button", "data-value": value }, text);
    button.addEventListener("click", () => this.send({ confidence: value }));
    return button;
  }

  // A digit chooses, and Enter, which presses the button that has the focus, answers. No plain key
  // reaches the notebook; JupyterLab's shortcuts with Ctrl or Cmd do.
  press(event) {
    if (event.ctrlKey || event.metaKey) return;
    event.stopPropagation();
    const chosen = event.target === this.field ? null : this.choices[Number(event.key) - 1];
    if (chosen) chosen.focus();
  }

  send(message) {
    this.said.textContent = "";
    this.model.send(message);
  }

  show() {
    const { choices, guess, typed, confidence, said } = this.model.get("view");
    if (typed && document.activeElement !== this.field) this.field.value = typed;
    this.choices.forEach((button, place) => button.setAttribute("aria-pressed", choices[place] === guess));
    for (const button of this.sure)
      button.setAttribute("aria-pressed", button.dataset.value === confidence);
    this.said.textContent = said;
  }

  close() {
    this.model.off("change:view", this.changed);
    this.root.remove();
  }
}

export default {
  render({ model, el }) {
    const form = new GuessForm(model);
    el.append(form.root);
    return () => form.close();
  },
};
