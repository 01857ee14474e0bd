// The form of an exercise whose answer is data: one choice, some of them, a table, or a number.
//
// Its view has `label`, `kind` ("one", "some", "table"), `rows` (pairs of key and text), `parts`
// (for each part of a row the words to choose from; none for a number), `headings` (what each
// part is), `unit`, `given` (the words and numbers by the row's key), and as HTML `verdict` and
// `hint`. It sends { check: given } and { hint: true }.

import { tag } from "../shared.js";
import { Form, rendering, withCode } from "./form.js";

class AnswerForm extends Form {
  constructor(model) {
    const { label, kind, rows, parts, headings, unit, given } = model.get("view");
    const boxes = rows.map(([key]) =>
      kind === "table"
        ? parts.map((words, place) =>
            box(words, key, headings[place] ?? "", given[key]?.[place]),
          )
        : [mark(kind, key, key in given)],
    );
    const hint = tag("button", { type: "button" }, "Hint");
    const told = tag("div", { class: "told", role: "status" });
    super(
      model,
      label,
      "answer",
      kind === "table" ? table(rows, boxes, unit) : options(rows, boxes),
      tag("div", { class: "answers" }, tag("button", {}, "Check"), hint),
      told,
      tag("div", { class: "said", role: "status" }),
    );
    Object.assign(this, { kind, rows, boxes, told, known: JSON.stringify(given) });
    hint.addEventListener("click", () => this.send({ hint: true }));
  }

  // Returns what was given, as a list of texts for each row; if rows are marked, for those alone.
  given() {
    const { kind, rows, boxes } = this;
    const isGiven = ([input]) => kind === "table" || input.checked;
    const pairs = rows
      .map(([key], place) => [key, boxes[place]])
      .filter(([, inputs]) => isGiven(inputs));
    return Object.fromEntries(
      pairs.map(([key, inputs]) => [key, inputs.map(({ value }) => value)]),
    );
  }

  submit() {
    const check = this.given();
    this.known = JSON.stringify(check);
    this.send({ check }, "Checking …");
  }

  fill(given) {
    this.known = JSON.stringify(given);
    for (const [row, [key]] of this.rows.entries())
      for (const [place, input] of this.boxes[row].entries())
        if (this.kind === "table") input.value = given[key]?.[place] ?? "";
        else input.checked = key in given;
  }

  // A letter marks its row, a digit the row at this place. Returns whether the key is one of them.
  choose(key) {
    if (this.kind === "table") return false;
    const named = this.rows.findIndex(([name]) => name === key);
    const [input] = this.boxes[named < 0 ? Number(key) - 1 : named] ?? [];
    if (!input) return false;
    input.checked = this.kind === "one" || !input.checked;
    input.focus();
    return true;
  }

  show({ verdict, hint, given }) {
    // Another form or view of this exercise has answered. Otherwise what you have begun stays.
    if (JSON.stringify(given) !== this.known) this.fill(given);
    this.told.innerHTML = hint; // the kernel's own HTML, in which all texts are escaped
    this.said.innerHTML = verdict;
  }
}

function mark(kind, value, isGiven) {
  const type = kind === "one" ? "radio" : "checkbox";
  return Object.assign(tag("input", { type, name: "answer", value }), { checked: isGiven });
}

// Before a word is chosen, the box says what it is for.
function box(words, key, heading, value = "") {
  const open = tag("option", { value: "" }, heading ? `${heading} …` : "…");
  const element = words.length
    ? tag("select", {}, open, ...words.map(word => tag("option", {}, word)))
    : tag("input", { type: "text", autocomplete: "off" });
  element.setAttribute("aria-label", heading ? `${key}, ${heading}` : key);
  return Object.assign(element, { value });
}

function options(rows, boxes) {
  const labels = rows.map(([key, text], row) =>
    tag("label", {}, ...boxes[row], tag("kbd", {}, key), tag("span", {}, ...withCode(text))),
  );
  return tag("div", { class: "options" }, ...labels);
}

function table(rows, boxes, unit) {
  const lines = rows.map(([key, text], row) => [
    tag("kbd", {}, key),
    tag("span", {}, ...withCode(text)),
    tag("span", { class: "boxes" }, ...boxes[row], unit),
  ]);
  return tag("div", { class: "rows" }, ...lines.flat());
}

export default { render: rendering(model => new AnswerForm(model)) };
