// The picture's points under the pointer and by keys, and the families of names.

import assert from "node:assert/strict";
import { test } from "node:test";
import { bare, inside } from "./inside.mjs";

const { Picture } = await inside("gpulab/figures/widgets/picture.js", "Picture");
const { Chips } = await inside("gpulab/figures/widgets/chips.js", "Chips");

function picture(selected = -1) {
  const chosen = [];
  const made = bare(Picture, {
    selected, chosen, spots: [[0.1, 0.5, "add"], [0.12, 0.5, "exp"], [0.9, 0.5, "matmul"]],
    stage: { getBoundingClientRect: () => ({ left: 10, top: 20, width: 1000, height: 400 }) },
    select: index => chosen.push(index),
  });
  return made;
}

test("the pointer finds the nearest point within its reach, and none beyond it", () => {
  for (const [clientX, clientY, index] of [[111, 220, 0], [128, 222, 1], [910, 232, 2], [500, 220, -1], [910, 240, -1]]) {
    const shown = picture();
    shown.point({ clientX, clientY });
    assert.deepEqual(shown.chosen, [index]);
  }
});

test("keys go from point to point, begin at either end, and stop there", () => {
  const press = (selected, key) => {
    const shown = picture(selected);
    shown.press({ key, preventDefault() {}, stopPropagation() {} });
    return shown.chosen;
  };
  assert.deepEqual([press(-1, "ArrowRight"), press(-1, "ArrowLeft"), press(2, "ArrowRight"), press(0, "ArrowLeft")], [[0], [2], [2], [0]]);
  assert.deepEqual([press(1, "Home"), press(0, "End"), press(1, "Escape")], [[0], [2], [-1]]);
  assert.deepEqual([press(-1, "Escape"), press(0, "x")], [[], []]); // left to the page
});

function chips(index) {
  const traits = { options: ["add", "exp", "matmul"], index, families: [["element-wise", ["add", "exp", "gelu"]], ["sorts", ["sort"]]] };
  return bare(Chips, { traits, model: { get: name => traits[name], set: (name, value) => { traits[name] = value; }, save_changes() {} } });
}

test("a family has the names that are there, and one without any is left out", () => {
  assert.deepEqual(chips([]).families(), [["element-wise", [0, 1]]]);
});

test("a family's button presses all of it, and frees it when all are pressed", () => {
  const some = chips([2, 0]);
  some.turn([0, 1]);
  assert.deepEqual(some.traits.index, [0, 1, 2]);
  some.turn([0, 1]);
  assert.deepEqual(some.traits.index, [2]);
});
