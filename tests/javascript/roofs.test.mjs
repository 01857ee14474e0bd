// The names of the roofs: each beside its roof, and none in another one.

import assert from "node:assert/strict";
import { test } from "node:test";
import { inside } from "./inside.mjs";

const { roofNames } = await inside("gpulab/figures/widgets/roofline/roofs.js", "roofNames");

// A tenfold peak is 100 pixels higher.
function names(...peaks) {
  const plane = {
    right: 500,
    x: { full: [1, 1000], to: Math.log10 },
    y: { to: value => 2000 - 100 * Math.log10(value) },
    holds: () => true,
  };
  const roofs = peaks.flatMap((peak, number) =>
    ["data sheet", "measured"].map(basis => ({ name: `${number}`, basis, peak, memory: 1e12 })),
  );
  return roofNames(plane, roofs).filter(({ x }) => x === 508);
}

test("a name stands at its roof", () => {
  assert.deepEqual(names(1e14, 1e12).map(({ y }) => y), [604, 620, 636, 804, 820, 836]);
});

test("names of two near roofs stand below each other, the higher first", () => {
  const lines = names(6e13, 1e14);
  assert.deepEqual(lines.map(({ y }) => y), [604, 620, 636, 652, 668, 684]);
  assert.deepEqual(lines.map(({ key }) => key[0]).join(""), "111000");
});
