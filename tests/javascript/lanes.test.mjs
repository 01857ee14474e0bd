// Bars on lanes: where times are, which ticks there are, what fits, and what becomes one bar.

import assert from "node:assert/strict";
import { test } from "node:test";
import { inside } from "./inside.mjs";

const { Scale, clipped, fitting, merged, nice, onPixels, stacked, tickText } = await inside(
  "gpulab/figures/widgets/lanes.js",
  "Scale", "clipped", "fitting", "merged", "nice", "onPixels", "stacked", "tickText",
);

function scaleOf(from, to) {
  const scale = new Scale(100);
  scale.place(from, to);
  return scale;
}

test("a place leads back to its time", () => {
  const scale = scaleOf(20, 220);
  assert.deepEqual([scale.x(20), scale.x(220)], [100, 900]);
  assert.ok(Math.abs(scale.us(scale.x(30)) - 30) < 1e-9);
});

test("a tick has no zeros at its end, and 0 has no unit", () => {
  const written = { 0: "0", 0.25: "250 ns", 50: "50 µs", 1500: "1.5 ms" };
  for (const [us, text] of Object.entries(written)) assert.equal(tickText(Number(us)), text);
});

test("ticks stand at whole steps of 1, 2 or 5, inside the view and never before the beginning", () => {
  assert.deepEqual(scaleOf(0, 100).ticks(), [0, 20, 40, 60, 80, 100]);
  assert.deepEqual(scaleOf(-30, 10).ticks(), [0, 10]);
  assert.deepEqual(scaleOf(0.1, 0.4).ticks(), [0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4]);
});

test("a step of the axis is rounded up to 1, 2, 5 or 10, and stays if it is one", () => {
  for (const [rough, step] of [[1, 1], [1.1, 2], [2.1, 5], [5.1, 10], [0.03, 0.05], [700, 1000]]) {
    assert.ok(Math.abs(nice(rough) / step - 1) < 1e-9, `${rough}`);
  }
});

test("a name that does not fit is cut, or left out where it would say nothing", () => {
  const measure = text => 10 * text.length;
  assert.equal(clipped("matmul", 60, measure), "matmul");
  assert.equal(clipped("elementwise_kernel", 90, measure), "elementw…");
  assert.equal(clipped("vectorized_kernels", 70, measure), "vector…");
  assert.equal(clipped("elementwise_kernel", 60, measure), "");
  assert.equal(fitting(["kernel x  3.00 µs", "kernel x", "x"], 90, measure), "kernel x");
  assert.equal(fitting(["kernel x", "x"], 40, measure), "x");
  assert.equal(fitting([], 40, measure), "");
});

test("lanes stand one below the other, with all of their rows", () => {
  const lanes = [{ height: 26, rows: 2 }, { height: 30 }];
  assert.equal(stacked(lanes), 24 + 52 + 30 + 4);
  assert.deepEqual(lanes.map(lane => lane.top), [24, 76]);
});

test("alike neighbours of less than a pixel become one bar; what is out of view is left out", () => {
  const scale = scaleOf(0, 8000); // ten times a microsecond's pixel
  const bars = [[0, 4], [5, 9], [10, 14], [400, 900], [20000, 20001]].map(([start, end]) => ({ start, end, kind: "k" }));
  const found = merged(bars, scale, (one, other) => one.kind === other.kind);
  assert.deepEqual(found.map(bar => bar.n), [3, 1]);
  assert.equal(merged(bars, scale, () => false).length, 4);
});

test("bars on one pixel add up, in the role that covers most of it", () => {
  const bars = [
    { x: 3.1, role: "kernel", covered: 0.2 },
    { x: 3.6, role: "copy", covered: 0.3 },
    { x: 4, role: "kernel", covered: 0.1 },
  ];
  const pixels = onPixels(bars).map(({ x, role, covered }) => [x, role, covered]);
  assert.deepEqual(pixels, [[3, "copy", 0.5], [4, "kernel", 0.1]]);
});
