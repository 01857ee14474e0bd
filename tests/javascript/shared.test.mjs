// What all widgets share: a time reads as it does in Python.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { inside } from "./inside.mjs";

const { time } = await inside("gpulab/figures/widgets/shared.js", "time");

test("a time is written as gpulab.core.units.format_time writes it", () => {
  const times = JSON.parse(readFileSync(new URL("times.json", import.meta.url), "utf-8"));
  for (const [time_s, text] of times) assert.equal(time(time_s * 1e6), text);
});
