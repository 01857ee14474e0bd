// Drawing: strokes of the pointer, steps of the keys, and what is shown of another page.

import assert from "node:assert/strict";
import { test } from "node:test";
import { bare, inside } from "./inside.mjs";

const { Sketch, axesOf } = await inside("gpulab/figures/widgets/sketch/sketch.js", "Sketch", "axesOf");

const axes = { x: [1, 10, 100], x_texts: ["1", "10", "100"], is_log: true, low: 1e-6, high: 1e-2, unit: "s" };

function sketch(values = [null, null, null]) {
  const plane = axesOf(axes);
  Object.assign(plane.x, { pixels: [0, 300] });
  Object.assign(plane.y, { pixels: [200, 0] });
  const curves = [{ name: "hot", values }];
  return bare(Sketch, { axes, plane, curves, active: 0, chosen: 0, last: null, sent: 0, isAnswered: true, patience: { end() {} }, draw() {}, show() {} });
}

const isNear = (one, other) => assert.ok(Math.abs(one / other - 1) < 1e-9, `${one} is not ${other}`);

test("a fast stroke gives every place that it passes a point, on the line between its ends", () => {
  const drawing = sketch(), { x, y } = drawing.plane;
  drawing.stroke([x.to(1), y.to(1e-5)], [x.to(100), y.to(1e-3)]);
  [1e-5, 1e-4, 1e-3].forEach((value, i) => isNear(drawing.curves[0].values[i], value));
  assert.equal(drawing.chosen, 2);
});

test("the nearest place is found, and no value lies outside of the axis", () => {
  const drawing = sketch();
  assert.equal(drawing.nearest(drawing.plane.x.to(10) - 1), 1);
  assert.equal(drawing.nearest(-50), 0);
  drawing.stroke([0, -999], [0, -999]);
  assert.equal(drawing.curves[0].values[0], axes.high);
});

test("a key moves a point by decades, from the point before it or from the middle", () => {
  const drawing = sketch([2e-5, null, null]);
  drawing.chosen = 2;
  drawing.shift(1);
  isNear(drawing.curves[0].values[2], 2e-4);
  const empty = sketch();
  empty.shift(0);
  isNear(empty.curves[0].values[0], 1e-4);
  empty.shift(99);
  assert.equal(empty.curves[0].values[0], axes.high);
});

test("a value is written with three digits and its unit", () => {
  assert.deepEqual([1e-4, 1.2e-4, null].map(value => sketch().text(value)), ["100 µs", "120 µs", "not drawn"]);
});

test("another page's drawing is shown, unless it is older than what was drawn here", () => {
  const drawing = sketch(), theirs = { curves: [{ name: "hot", values: [1e-3, null, null] }] };
  Object.assign(drawing, { sent: 7, isAnswered: false });
  drawing.receive({ ...theirs, answer: 3 });
  assert.equal(drawing.curves[0].values[0], null);
  drawing.receive({ curves: drawing.curves, answer: 7 });
  drawing.receive({ ...theirs, answer: 9 });
  assert.equal(drawing.curves[0].values[0], 1e-3);
});
