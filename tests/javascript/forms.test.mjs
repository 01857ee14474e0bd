// The forms of questions: what a key chooses, what is sent, and a kernel that does not answer.

import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { Patience } from "../../gpulab/figures/widgets/chart/patience.js";
import { bare, inside } from "./inside.mjs";

const { AnswerForm } = await inside("gpulab/figures/widgets/forms/answer.js", "AnswerForm");
const { Form, withCode } = await inside("gpulab/figures/widgets/forms/form.js", "Form", "withCode");

function box(fields) {
  return { checked: false, focus() {}, ...fields };
}

test("a letter marks its line, a digit the line at its place, and one of them stays marked", () => {
  const boxes = ["a", "b", "3"].map(value => [box({ value })]);
  const rows = [["a"], ["b"], ["3"]];
  const form = bare(AnswerForm, { kind: "some", rows, boxes });
  const marked = () => Object.keys(form.given()).sort().join("");
  assert.deepEqual(["a", "2", "3", "9", "x"].map(key => form.choose(key)), [true, true, true, false, false]);
  assert.equal(marked(), "3ab");
  form.choose("b");
  assert.equal(marked(), "3a");
  const one = bare(AnswerForm, { kind: "one", rows, boxes });
  one.choose("a"); // a second time: a line that is marked stays marked
  assert.equal(one.boxes[0][0].checked, true);
});

test("each row of a table is sent, with the texts of its parts", () => {
  const boxes = [[box({ value: "work" }), box({ value: "" })], [box({ value: "" }), box({ value: "none" })]];
  const form = bare(AnswerForm, { kind: "table", rows: [["a"], ["b"]], boxes });
  assert.deepEqual(form.given(), { a: ["work", ""], b: ["", "none"] });
  assert.equal(form.choose("a"), false); // a box with words finds them by their letters itself
});

test("a kernel that does not answer is named, and its answer takes the sentence away", () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const sent = [], said = { textContent: "" };
  const patience = new Patience(sentence => (said.textContent = sentence));
  const form = bare(Form, { said, patience, model: { send: message => sent.push(message) } });
  form.send({ hint: true }, "Checking …");
  assert.equal(said.textContent, "Checking …");
  mock.timers.tick(5000);
  assert.match(said.textContent, /^No answer from the kernel yet/);
  form.send({ check: {} });
  patience.end();
  said.textContent = "Right.";
  mock.timers.tick(5000);
  assert.equal(said.textContent, "Right.");
  assert.equal(sent.length, 2);
  mock.timers.reset();
});

test("only what stands between backquotes is code", () => {
  globalThis.document = { createElement: () => ({ append(text) { this.text = text; } }) };
  assert.deepEqual(withCode("a `b` c").map(part => part.text ?? `(${part})`), ["(a )", "b", "( c)"]);
});
