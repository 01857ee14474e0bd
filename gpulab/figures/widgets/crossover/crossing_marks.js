// Marks at the crossings: a ring with the size beside it, and who is faster on which side.

import { sizeText } from "../chart/quantities.js";
import { timeAt } from "./crossing.js";

const LINE_PX = 22,
  SIDE_PX = 100,
  NARROW_SIDE_PX = 84;
const HALVES = { once: ["CPU faster", "GPU faster"], reversed: ["GPU faster", "CPU faster"] };
const WHOLE = { always: "GPU faster", never: "CPU faster" };

export function crossingMarks(plane, view) {
  const [alone, found] = [ringsOf(plane, view, ["bare"]), ringsOf(plane, view, ["gpu", "second"])];
  return [...sides(plane, view.crossing), ...alone.flatMap(bareMarks), ...sizeMarks(found)];
}

// The crossings as points that can be reached.
export function crossingPoints(plane, view) {
  return ringsOf(plane, view, ["gpu", "second", "bare"]).map(ring => {
    const title = `${ring.name} crosses the CPU at n = ${sizeText(ring.size)}`,
      lines = [`95 %: ${interval(ring)}`];
    const describe = () => ({ title, lines, sentence: `${title}, ${lines}.` });
    return { key: `crossing ${ring.key}`, series: "crossings", x: ring.x, y: ring.y, describe };
  });
}

// Where these curves cross the CPU's; nothing for those that do not do so once, or outside of the view.
function ringsOf(plane, view, keys) {
  const crossings = { gpu: view.crossing, second: view.secondCrossing, bare: view.bareCrossing };
  return keys.flatMap(key => {
    const crossing = crossings[key],
      curve = view[key];
    if (crossing?.kind !== "once" && crossing?.kind !== "reversed") return [];
    const {
      low,
      high,
      first,
      last,
      sizes: [size],
    } = crossing;
    const x = plane.x.to(size),
      y = plane.y.to(timeAt(curve, size));
    return plane.holds(x, y) ? [{ key, name: curve.name, size, low, high, first, last, x, y }] : [];
  });
}

function interval({ low, high, first, last }) {
  const from = low > 0 ? sizeText(low) : `below ${sizeText(first)}`;
  return `${from} to ${high < Infinity ? sizeText(high) : `above ${sizeText(last)}`}`;
}

// Up and left of a crossing both curves are below, so the sizes stand there, one above the other. The
// interval has room only if there is one crossing.
function sizeMarks(found) {
  const isOne = found.length === 1;
  let free = Infinity;
  return found
    .sort((one, other) => other.y - one.y)
    .flatMap(ring => {
      const { key, size, x, y } = ring;
      free = Math.min(y - (isOne ? 30 : 16), free - LINE_PX);
      const name = { class: `size end ${key}`, x: x - 16, y: free, text: `n = ${sizeText(size)}` };
      const ends = { class: "remark end", x: x - 16, y: free + 17, text: interval(ring) };
      return [
        { key: `to ${key}`, tag: "line", class: "leader", x1: x - 5, y1: y - 5, x2: x - 13, y2: y - 13 },
        { key, tag: "circle", class: `crossing ${key}`, cx: x, cy: y, r: 8 },
        { key: `n ${key}`, tag: "text", ...name },
        ...(isOne ? [{ key: `interval ${key}`, tag: "text", ...ends }] : []),
      ];
    });
}

function bareMarks({ size, x, y }) {
  const text = `${sizeText(size)} without copies`;
  return [
    { key: "alone", tag: "circle", class: "crossing small", cx: x, cy: y, r: 6 },
    { key: "n alone", tag: "text", class: "remark", x: x + 8, y: y + 22, text },
  ];
}

function sides({ left, right, top, bottom, x, isNarrow }, { kind, sizes }) {
  const name = { tag: "text", y: top + 20 };
  const whole = { key: "whole", class: "side middle", x: (left + right) / 2, text: WHOLE[kind] };
  if (kind in WHOLE) return [{ ...name, ...whole }];
  if (!(kind in HALVES)) return [];
  const border = Math.min(right, Math.max(left, x.to(sizes[0]))),
    room = isNarrow ? NARROW_SIDE_PX : SIDE_PX;
  const [before, after] = HALVES[kind];
  return [
    { key: "border", tag: "line", class: "border", x1: border, x2: border, y1: top, y2: bottom },
    border - left > room && {
      ...name,
      key: "before",
      class: "side end",
      x: border - 10,
      text: `◂ ${before}`,
    },
    right - border > room && { ...name, key: "after", class: "side", x: border + 10, text: `${after} ▸` },
  ].filter(Boolean);
}
