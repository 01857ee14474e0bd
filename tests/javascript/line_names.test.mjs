// The names at the ends of lines.

import assert from "node:assert/strict";
import { test } from "node:test";
import { inside } from "./inside.mjs";

const { lineNames } = await inside("gpulab/figures/widgets/chart/line_names.js", "lineNames");

test("no name leaves the picture, however narrow", () => {
  for (const width of [300, 360, 479, 556, 900]) {
    for (const margin of [104, 132]) {
      const right = width - margin;
      const plane = { left: 62, right, width, holds: () => true };
      for (const name of ["T4", "H200 + copies", "CPU, 16 threads"]) {
        const [{ x, class: classes }] = lineNames(plane, [{ key: "a", role: "cpu", name }], [[[right, 90]]]);
        const isAtEnd = classes.endsWith(" end");
        assert.ok(isAtEnd ? x <= width : x + 7.9 * name.length < width, `${name} at ${width} px`);
      }
    }
  }
});
