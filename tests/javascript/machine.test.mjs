// The machine explorer: how ticks are written, and which times are where.

import assert from "node:assert/strict";
import { test } from "node:test";
import { inside } from "./inside.mjs";

const { Scale, nearest, tickText } = await inside("gpulab/figures/widgets/machine.js", "Scale", "nearest", "tickText");

test("a tick has no zeros at its end, and 0 has no unit", () => {
  const written = { 0: "0", 0.25: "250 ns", 50: "50 µs", 1500: "1.5 ms" };
  for (const [us, text] of Object.entries(written)) assert.equal(tickText(Number(us)), text);
});

test("a scale shows the whole program with a margin until it is zoomed", () => {
  const scale = new Scale();
  scale.fit(100);
  assert.deepEqual([scale.from, scale.to], [0, 103]);
  scale.zoom(2, 50);
  scale.fit(200);
  assert.deepEqual([scale.from, scale.to], [25, 76.5]);
});

test("a place leads back to its time, and a zoom keeps the time under the pointer", () => {
  const scale = new Scale();
  scale.fit(100);
  const x = scale.x(30);
  assert.ok(Math.abs(scale.us(x) - 30) < 1e-9);
  scale.zoom(1.6, 30);
  assert.ok(Math.abs(scale.us(x) - 30) < 1e-9);
  const length = scale.to - scale.from;
  scale.pan(0.5);
  assert.ok(Math.abs(scale.us(x) - 30 - length / 2) < 1e-9);
});

test("ticks stand at whole steps of 1, 2 or 5, inside the view and never before the beginning", () => {
  const scale = new Scale();
  scale.fit(100);
  assert.deepEqual(scale.ticks(), [0, 20, 40, 60, 80, 100]);
  Object.assign(scale, { from: -30, to: 10 });
  assert.deepEqual(scale.ticks(), [0, 10]);
  Object.assign(scale, { from: 0.1, to: 0.4 });
  assert.deepEqual(scale.ticks(), [0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4]);
});

test("the nearest known value is that of the smallest ratio", () => {
  assert.equal(nearest([1, 10, 100], 4), 1);
  assert.equal(nearest([1, 10, 100], 3), 0);
  assert.equal(nearest([4, 8, 1022], 5000), 2);
});
