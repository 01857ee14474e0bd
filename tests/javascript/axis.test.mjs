// The axes of a picture: places, values, numbers and zoom, logarithmic and linear.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Axis } from "../../gpulab/figures/widgets/chart/axis.js";

function axis(base, span, pixels = [0, 300]) {
  const made = new Axis({ base, tick: String });
  made.fit(span);
  return Object.assign(made, { pixels });
}

test("a place leads back to its value on both kinds of axis", () => {
  for (const [base, middle] of [[10, 10], [0, 50.5]]) {
    const made = axis(base, [1, 100]);
    assert.ok(Math.abs(made.to(middle) - 150) < 1e-9);
    assert.ok(Math.abs(made.from(made.to(7)) - 7) < 1e-9);
    assert.ok(Math.abs(made.middle - middle) < 1e-9);
  }
});

test("numbers are powers, or round steps, and have room", () => {
  const values = (made, least) => made.ticks(least).map(([value]) => value);
  assert.deepEqual(values(axis(10, [1, 1000]), 90), [1, 10, 100, 1000]);
  assert.deepEqual(values(axis(2, [1, 1024], [0, 100]), 40), [1, 16, 256]);
  assert.deepEqual(values(axis(0, [0, 2]), 60), [0, 0.5, 1, 1.5, 2]);
  assert.deepEqual(values(axis(0, [3, 47]), 50), [10, 20, 30, 40]);
});

test("a zoom stays inside of the whole picture", () => {
  const made = axis(0, [0, 100]);
  made.zoom(2, 10);
  assert.deepEqual(made.span, [5, 55]);
  made.zoom(0.1, 50);
  assert.deepEqual(made.span, [0, 100]);
});
