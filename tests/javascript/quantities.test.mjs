// Texts of quantities: commas as in English, without the rules of all languages.

import assert from "node:assert/strict";
import { test } from "node:test";
import { inside } from "./inside.mjs";

const { digits, plain, ratioText, sizeText } = await inside(
  "gpulab/figures/widgets/chart/quantities.js", "digits", "plain", "ratioText", "sizeText",
);

test("numbers have the commas and decimals of English", () => {
  const values = [0, 7, 999, 1000, 12345, 1e6, 123456789, 2 ** 53, -1234.5, 0.1, 1234.5678, 1e-9, 0.30000000000000004];
  for (let power = -9; power < 15; power++) values.push(1.5 * 10 ** power, 10 ** power, -(10 ** power));
  for (const value of values)
    assert.equal(plain(value), value.toLocaleString("en", { maximumFractionDigits: 12 }));
});

test("three digits, or all of a whole number above 100", () => {
  assert.deepEqual([1455.55, 12.345, 0.5].map(value => digits(value)), ["1,460", "12.3", "0.500"]);
  assert.deepEqual([2340.4, 1.76, 0.0333333].map(ratioText), ["2,340", "1.76", "0.0333"]);
  assert.deepEqual([178, 8192, 12700000].map(sizeText), ["178", "8,192", "12,700,000"]);
});
