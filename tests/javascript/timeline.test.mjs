// The timeline: text of sizes, steps of the axis, what lies under the pointer, the view.

import assert from "node:assert/strict";
import { test } from "node:test";
import { bare, inside } from "./inside.mjs";

const { Painter, Spans, Viewport, lower, nameOf, sizeText } = await inside(
  "gpulab/tracing/timeline.js", "Painter", "Spans", "Viewport", "lower", "nameOf", "sizeText",
);

test("a size has binary units, and the next one from 1023.5 on", () => {
  const written = { 0: "0 B", 512: "512 B", 1023: "1023 B", 1024: "1 KiB", 1536: "1.5 KiB", 1048064: "1 MiB", 2199023255552: "2 TiB" };
  for (const [size, text] of Object.entries(written)) assert.equal(sizeText(Number(size)), text);
});

test("the search in a sorted column finds the first value that is not less", () => {
  const column = [1, 3, 3, 7];
  assert.deepEqual([0, 1, 3, 4, 8].map(value => lower(column, value, 0, 4)), [0, 0, 1, 3, 4]);
  assert.equal(lower(column, 0, 2, 4), 2);
});

test("a series has its greatest value beside its name", () => {
  assert.equal(nameOf({ name: "memory", most: "2 GiB" }), "memory ≤ 2 GiB");
});

// Two rows of one lane: in the first a long bar with a moment inside, then a later bar.
function spans() {
  const made = bare(Spans, {
    start: Float64Array.of(0, 4, 20, 6), end: Float64Array.of(10, 4, 30, 8), row: Int32Array.of(0, 0, 0, 1),
    lanes: [{ name: "stream 7", rows: 2 }], series: [], sequences: new Map(),
  });
  made.stack();
  made.index();
  return made;
}

test("the bar under the pointer is found, the shortest of several, and the nearest within the slack", () => {
  const found = spans();
  assert.equal(found.at(2, 0, 0.5), 0);
  assert.equal(found.at(4, 0, 0.5), 1);
  assert.equal(found.at(12, 0, 1), -1);
  assert.equal(found.at(12, 0, 3), 0);
  assert.equal(found.at(18, 0, 3), 2);
  assert.equal(found.at(7, 1, 0.1), 3);
});

test("a bar that begins long before the view is not missed for a moment inside of it", () => {
  assert.equal(spans().firstEnding(9, 0), 0);
  assert.equal(spans().firstEnding(11, 0), 2);
});

test("the bars of a lane are one sequence by their starts, whatever row they are drawn on", () => {
  assert.deepEqual(spans().sequence(0), [0, 1, 3, 2]);
});

function view() {
  const made = bare(Viewport, { length: 100, gutter: 80, right: 0, moved() {}, calm: { matches: true }, goal: null, from: -1, to: 101 });
  made.resize(1080, 1);
  return made;
}

test("a place leads back to its time, and a zoom keeps the time that it is about", () => {
  const shown = view(), x = shown.x(40);
  assert.ok(Math.abs(shown.us(x) - 40) < 1e-9);
  shown.zoom(0.5, 40);
  assert.deepEqual([shown.from, shown.to], [19.5, 70.5]);
  assert.ok(Math.abs(shown.us(x) - 40) < 1e-9);
});

test("the view never leaves the record, and is never wider than it", () => {
  const shown = view();
  shown.show(90, 130);
  assert.deepEqual([shown.from, shown.to], [61, 101]);
  shown.zoom(100);
  assert.deepEqual([shown.from, shown.to], shown.whole());
  shown.pan(-5);
  assert.deepEqual([shown.from, shown.to], shown.whole());
});

test("a view in words has the times of the record alone", () => {
  assert.equal(view().inWords(), "0 to 100 µs");
});
