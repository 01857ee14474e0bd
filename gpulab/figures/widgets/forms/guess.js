// The form of a guess: a field with its unit or choices as buttons, and how sure the learner is.
//
// Its view has `question`, `unit`, `choices`, `guess` (the choice), `typed` (the guess as text),
// `confidence` and `said` (a sentence). It sends { text } and { confidence }.

import { tag } from "../shared.js";
import { Form, rendering } from "./form.js";

const STEPS = [
  ["guess", "a guess"],
  ["likely", "likely"],
  ["sure", "sure"],
];

class GuessForm extends Form {
  constructor(model) {
    const { question, unit, choices } = model.get("view");
    const field = tag("input", {
      type: "text",
      autocomplete: "off",
      "aria-label": `Your guess in ${unit}`,
    });
    const buttons = choices.map((choice, place) =>
      tag(
        "button",
        { type: "button" },
        tag("kbd", { "aria-hidden": "true" }, `${place + 1}`),
        choice,
      ),
    );
    const sure = STEPS.map(([value, text]) =>
      tag("button", { type: "button", "data-value": value }, text),
    );
    const answers = choices.length
      ? buttons
      : [field, tag("span", { class: "unit" }, unit), tag("button", {}, "Answer")];
    super(
      model,
      question,
      "guess",
      tag("p", { class: "question" }, question),
      tag("div", { class: "answers" }, ...answers),
      tag(
        "div",
        { class: "sure", role: "group", "aria-label": "How sure are you?" },
        "How sure? ",
        ...sure,
      ),
      tag("p", { class: "said", role: "status" }),
    );
    Object.assign(this, { field, buttons, sure });
    for (const [place, button] of buttons.entries())
      button.addEventListener("click", () => this.send({ text: choices[place] }));
    for (const button of sure)
      button.addEventListener("click", () => this.send({ confidence: button.dataset.value }));
  }

  submit() {
    this.send({ text: this.field.value });
  }

  // A digit chooses, and Enter answers with its choice. Returns whether the key is such a digit.
  choose(key) {
    const chosen = this.buttons[Number(key) - 1];
    if (!chosen) return false;
    this.mark(chosen);
    chosen.focus();
    this.said.textContent = `Enter answers with "${chosen.lastChild.data}".`;
    return true;
  }

  // What is marked is not answered yet: it has an outline, and an answer is filled.
  mark(chosen) {
    for (const button of this.buttons) button.toggleAttribute("data-chosen", button === chosen);
  }

  show({ choices, guess, typed, confidence, said }) {
    if (typed && document.activeElement !== this.field) this.field.value = typed;
    this.mark(null);
    for (const [place, button] of this.buttons.entries())
      button.setAttribute("aria-pressed", choices[place] === guess);
    for (const button of this.sure)
      button.setAttribute("aria-pressed", button.dataset.value === confidence);
    this.said.textContent = said;
  }
}

export default { render: rendering(model => new GuessForm(model)) };
