// Texts of quantities, as gpulab writes them: three digits and a unit.

import { time } from "../shared.js";

const THOUSANDS = [
  [1e15, "P"],
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
  [1, ""],
];
const BINARY = ["B", "KiB", "MiB", "GiB", "TiB"];
const RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹";
const MOST_DECIMALS = 12;
const LARGEST_PLAIN = 10_000; // above it, a power of two is shorter on an axis

// A number with commas, as toLocaleString("en") writes it. Its first call would load the rules of all
// languages, a tenth of the time to the first picture.
export function plain(value) {
  const [whole, part = ""] = value.toFixed(MOST_DECIMALS).split("."),
    decimals = part.replace(/0+$/, "");
  return whole.replace(/\B(?=(\d{3})+$)/g, ",") + (decimals && `.${decimals}`);
}

export function digits(value, count = 3) {
  const rounded = Number(value.toPrecision(count));
  return rounded >= 10 ** (count - 1) ? plain(Math.round(rounded)) : value.toPrecision(count);
}

export function timeText(seconds) {
  return time(1e6 * seconds);
}

export function rateText(perSecond, unit) {
  const [scale, prefix] = THOUSANDS.find(([scale]) => perSecond >= scale * 0.9995) ?? THOUSANDS.at(-1);
  return `${digits(perSecond / scale)} ${prefix}${unit}/s`;
}

// Bytes in powers of 1,024.
export function bytesText(bytes) {
  let value = bytes,
    power = 0;
  // A value that would be written as 1024 belongs to the next unit.
  for (; value >= 1023.5 && power < BINARY.length - 1; power++) value /= 1024;
  return `${digits(value)} ${BINARY[power]}`;
}

export function ratioText(ratio) {
  return plain(Number(ratio.toPrecision(3)));
}

export function sizeText(size) {
  const power = Math.log2(size);
  if (size > LARGEST_PLAIN && Number.isInteger(power)) return `2^${power}`;
  return plain(Number(Number.isInteger(size) ? size : size.toPrecision(3)));
}

export function sizeTick(size) {
  return sizeText(size).replace(/\^(\d+)/, (_, power) => [...power].map(digit => RAISED[digit]).join(""));
}

// A tick is a power of ten, so its digits after the point are zeros.
export function timeTick(seconds) {
  return timeText(seconds).replace(/\.0+ /, " ");
}

export function decadeTick(value) {
  return value >= 1 ? plain(value) : String(Number(value.toPrecision(1)));
}

export function rateTick(flopsPerSecond) {
  const [scale, prefix] = THOUSANDS.find(([scale]) => flopsPerSecond >= scale * 0.9995) ?? THOUSANDS.at(-1);
  return `${Math.round(flopsPerSecond / scale)} ${prefix}`;
}
