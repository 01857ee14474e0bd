// The names of the farthest points: where they stand.

import assert from "node:assert/strict";
import { test } from "node:test";
import { outlierMarks } from "../../gpulab/figures/widgets/roofline/outliers.js";

// Node 20 lacks it; the browsers have it.
Map.groupBy ??= (items, keyOf) =>
  items.reduce((groups, item) => groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item]), new Map());

const plane = { left: 60, top: 10, bottom: 190, width: 560, holds: () => true };
const point = {
  operation: "matmul", family: "matrices", key: "matmul 64", size: 64, measured_s: 4e-6, plain_s: 1e-8, refined_s: 4e-6,
};

function nameAt(x, y, names) {
  return outlierMarks(plane, [{ point, x, y }], "plain", names).find(({ tag }) => tag === "text");
}

test("the name of a point does not cover the name of a side", () => {
  const free = nameAt(80, 60, []),
    side = { class: "side", x: free.x, y: free.y, text: "▴ slower than predicted" };
  const moved = nameAt(80, 60, [side]);
  assert.ok(moved.y - 17 >= side.y || moved.y + 17 <= side.y || moved.x >= side.x + 9 * side.text.length);
});

test("a name that ends at its place takes the space to its left", () => {
  const free = nameAt(300, 100, []),
    end = { class: "roof-rate end", x: free.x - 1, y: free.y, text: "launch floor 698 ns" };
  assert.deepEqual(nameAt(300, 100, [end]), free);
});

test("the name of a point stands on a roof only if there is no other place", () => {
  const spots = [{ point, x: 200, y: 100 }],
    nameWith = back => outlierMarks(plane, spots, "plain", [], back).find(({ tag }) => tag === "text");
  const free = nameWith([]),
    roof = y => ({ tag: "polyline", points: [60, y, 560, y] });
  const moved = nameWith([roof(free.y - 5)]);
  assert.ok(moved.y - 13 > free.y - 5 || moved.y + 4 < free.y - 5);
  assert.deepEqual(nameWith(Array.from({ length: 40 }, (_, at) => roof(5 * at))), free);
});
