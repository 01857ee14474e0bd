// The axes to draw on: places and values, strokes of the pointer, steps of the keys, and numbers.

import assert from "node:assert/strict";
import { test } from "node:test";
import { bare, inside } from "./inside.mjs";

const { Sketch } = await inside("gpulab/figures/widgets/sketch.js", "Sketch");

const units = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]];
const axes = { x: [1, 10, 100], is_log: true, low: 1e-6, high: 1e-2, units };

function sketch(values = [null, null, null]) {
  return bare(Sketch, { axes, curves: [{ name: "hot", values }], active: 0, chosen: 0, draw() {} });
}

test("places of a logarithmic axis lie at equal distances, and the nearest is found", () => {
  const drawing = sketch(), [a, b, c] = [0, 1, 2].map(i => drawing.x(i));
  assert.ok(Math.abs(b - a - (c - b)) < 1e-9);
  assert.equal(drawing.nearest(b - 1), 1);
  assert.equal(drawing.nearest(-50), 0);
});

test("a height leads back to its value, and no value lies outside of the axis", () => {
  const drawing = sketch();
  assert.ok(Math.abs(drawing.valueAt(drawing.y(3e-5)) / 3e-5 - 1) < 1e-9);
  assert.deepEqual([drawing.valueAt(-999), drawing.valueAt(9999)], [axes.high, axes.low]);
});

test("a fast stroke gives every place that it passes a point, on the line between its ends", () => {
  const drawing = sketch();
  drawing.stroke([drawing.x(0), drawing.y(1e-5)], [drawing.x(2), drawing.y(1e-3)]);
  const expected = [1e-5, 1e-4, 1e-3];
  drawing.curves[0].values.forEach((value, i) => assert.ok(Math.abs(value / expected[i] - 1) < 1e-9));
  assert.equal(drawing.chosen, 2);
});

test("a key moves a point by decades, from the point before it or from the middle", () => {
  const drawing = sketch([2e-5, null, null]);
  drawing.chosen = 2;
  drawing.shift(1);
  assert.ok(Math.abs(drawing.curves[0].values[2] / 2e-4 - 1) < 1e-9);
  const empty = sketch();
  empty.shift(0);
  assert.ok(Math.abs(empty.curves[0].values[0] / 1e-4 - 1) < 1e-9);
  empty.shift(99);
  assert.equal(empty.curves[0].values[0], axes.high);
});

test("a number keeps its zeros: 100 µs is not 1 µs", () => {
  const written = [[1e-6, "1 µs"], [1e-5, "10 µs"], [1e-4, "100 µs"], [1.2e-4, "120 µs"], [1.25e-5, "12.5 µs"], [9.996e-4, "1 ms"], [3e-8, "0.03 µs"], [2000, "2 × 10^3 s"], [1e10, "1 × 10^10 s"]];
  for (const [value, text] of written) assert.equal(sketch().text(value), text);
  assert.equal(sketch().text(null), "not drawn");
});
