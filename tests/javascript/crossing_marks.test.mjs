// The sizes at the crossings: they cover no name of a line.

import assert from "node:assert/strict";
import { test } from "node:test";
import { crossingMarks } from "../../gpulab/figures/widgets/crossover/crossing_marks.js";

const plane = {
  left: 60, right: 500, top: 10, bottom: 300, isNarrow: true,
  x: { to: size => size / 10 }, y: { to: time => time }, holds: () => true,
};
const gpu = { name: "H200", sizes: [1, 4000], median_s: [150, 150] };
const view = {
  gpu, crossing: { kind: "once", sizes: [3000], low: 2900, high: 3100, first: 1, last: 4000 },
};

function size(names) {
  return crossingMarks(plane, view, names).find(({ key }) => key === "n gpu 0");
}

test("a size stands above a name that it would cover, with its interval", () => {
  const free = size([]),
    name = { class: "line-name cpu middle", x: free.x - 10, y: free.y + 10, text: "CPU, 16 threads" };
  assert.equal(size([name]).x, free.x);
  assert.ok(size([name]).y + 17 <= name.y - 17);
});

test("a size keeps its place beside a name that is elsewhere", () => {
  const free = size([]);
  for (const [x, y] of [[free.x + 80, free.y], [free.x, free.y + 80], [free.x, free.y - 60]])
    assert.equal(size([{ class: "line-name cpu middle", x, y, text: "CPU" }]).y, free.y);
});
