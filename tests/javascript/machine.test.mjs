// The machine explorer: records from columns, which times are in view, and what a drag is about.

import assert from "node:assert/strict";
import { test } from "node:test";
import { inside } from "./inside.mjs";

const { MachineScale, labelsOf, recordsOf } = await inside(
  "gpulab/figures/widgets/machine_chart.js", "MachineScale", "labelsOf", "recordsOf",
);
const { inARow } = await inside("gpulab/figures/widgets/machine_hand.js", "inARow");
const { nearest } = await inside("gpulab/figures/widgets/machine_side.js", "nearest");

test("columns become records with the same names", () => {
  assert.deepEqual(recordsOf({ start: [0, 5], is_stuck: [false, true] }), [
    { start: 0, is_stuck: false },
    { start: 5, is_stuck: true },
  ]);
  assert.deepEqual(recordsOf({ start: [] }), []);
});

test("a scale shows the whole program with a margin until it is zoomed", () => {
  const scale = new MachineScale();
  scale.fit(100);
  assert.deepEqual([scale.from, scale.to], [0, 103]);
  const x = scale.x(50);
  scale.zoom(2, 50);
  assert.ok(Math.abs(scale.us(x) - 50) < 1e-9);
  scale.fit(200);
  assert.deepEqual([scale.from, scale.to], [25, 76.5]);
});

test("a bar has its length in its longest label alone", () => {
  const operation = { buffer: "x", duration_us: 200, is_pinned: false };
  assert.deepEqual(labelsOf(operation, { kind: "kernel" }), ["kernel x  200 µs", "kernel x", "x"]);
  assert.equal(labelsOf(operation, { kind: "copy in" })[0], "copy in x, pageable  200 µs");
  assert.deepEqual(labelsOf(operation, { kind: "wait", is_stuck: true }), ["wait: stuck", "stuck"]);
});

test("a drag at the end of the third of tasks in a row moves this end by three lengths", () => {
  const tasks = [[0, 10], [10, 20], [21, 30], [90, 100]].map(([start, end]) => ({ start, end }));
  assert.equal(inARow(tasks, 30), 3);
  assert.equal(inARow(tasks, 99), 1);
});

test("the nearest known value is that of the smallest ratio", () => {
  assert.equal(nearest([1, 10, 100], 4), 1);
  assert.equal(nearest([1, 10, 100], 3), 0);
  assert.equal(nearest([4, 8, 1022], 5000), 2);
});
