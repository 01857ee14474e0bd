// The sentence with both times at the handle of the crossover explorer.

import assert from "node:assert/strict";
import { test } from "node:test";
import { atHandle } from "../../gpulab/figures/widgets/crossover/words.js";

function said(cpu_s, gpu_s) {
  const [cpu, gpu] = [["CPU", cpu_s], ["H200", gpu_s]].map(([name, time]) => ({ name, sizes: [64], median_s: [time] }));
  return atHandle({}, { state: { size: 64 }, cpu, gpu });
}

test("the faster side has its factor, and no side is once as fast", () => {
  assert.match(said(4e-5, 2e-5), /The H200 is 2 times as fast\.$/);
  assert.match(said(2.19e-5, 2.191e-5), /Both take the same time\.$/);
});
