// A growing picture: what a point says, and the table of its numbers.

import assert from "node:assert/strict";
import { test } from "node:test";
import { inside } from "./inside.mjs";

const { described, rowsOf } = await inside("gpulab/figures/widgets/live/live.js", "described", "rowsOf");

const x = { label: "time per call (ms)", ticks: null },
  rows = { label: "", ticks: [[0, "context"], [-1, "matmul"]] };

test("a point says its time as a sentence has it, and its row by name", () => {
  const curve = { name: "first use", points: [[0.012, -1]] };
  const { sentence } = described({ x, y: rows }, curve, 0);
  assert.equal(sentence, "first use, matmul, time per call: 12.0 µs.");
});

test("other quantities keep their unit, and whole numbers all of their digits", () => {
  const y = { label: "clock (MHz)", ticks: null },
    sizes = { label: "n (matrices are n by n)", ticks: null };
  const { title, lines } = described({ x: sizes, y }, { name: "", points: [[65536, 1455.55]] }, 0);
  assert.equal(title, "clock: 1,460 MHz");
  assert.deepEqual(lines, ["n (matrices are n by n): 65,536"]);
});

test("the table has a row for each point, and joins the panels of one time", () => {
  const one = { name: "add", points: [[1, 0], [2, -1]] };
  assert.deepEqual(rowsOf([{ x, y: rows, curves: [one] }]), [
    { "time per call (ms)": 1, row: "context" },
    { "time per call (ms)": 2, row: "matmul" },
  ]);
  const panel = label => ({ x: { label: "time (s)" }, y: { label }, curves: [{ name: "", points: [[0, 5], [1, 6]] }] });
  assert.deepEqual(rowsOf([panel("clock (MHz)"), panel("power (W)")]), [
    { "time (s)": 0, "clock (MHz)": 5, "power (W)": 5 },
    { "time (s)": 1, "clock (MHz)": 6, "power (W)": 6 },
  ]);
});
