// Marks at the crossings: a ring with the size beside it, and who is faster on which side.

import { sizeText } from "../chart/quantities.js";
import { timeAt } from "./crossing.js";

const LINE_PX = 22,
  LETTER_PX = 11.5,
  NAME_LETTER_PX = 8.5,
  NEAR_PX = 110,
  SIDE_PX = 100,
  NARROW_SIDE_PX = 84;
const HALVES = { once: ["CPU faster", "GPU faster"], reversed: ["GPU faster", "CPU faster"] };
const WHOLE = { always: "GPU faster", never: "CPU faster" };

// `names` are texts that stand in the picture already.
export function crossingMarks(plane, view, names = []) {
  const [alone, found] = [ringsOf(plane, view, ["bare"]), ringsOf(plane, view, ["gpu", "second"])];
  return [...sides(plane, view.crossing), ...alone.flatMap(bareMarks), ...sizeMarks(found, plane.left, names)];
}

// The crossings as points that can be reached.
export function crossingPoints(plane, view) {
  return ringsOf(plane, view, ["gpu", "second", "bare"]).map(ring => {
    const title = `${ring.name} crosses the CPU at n = ${sizeText(ring.size)}`,
      lines = ring.isOne ? [`95 %: ${interval(ring)}`] : [];
    const describe = () => ({ title, lines, sentence: `${[title, ...lines].join(", ")}.` });
    return { key: `crossing ${ring.id}`, series: "crossings", x: ring.x, y: ring.y, describe };
  });
}

// Where these curves cross the CPU's, inside of the view. Only a single crossing has an interval.
function ringsOf(plane, view, keys) {
  const crossings = { gpu: view.crossing, second: view.secondCrossing, bare: view.bareCrossing };
  return keys.flatMap(key => {
    const { sizes = [], ...ends } = crossings[key] ?? {},
      curve = view[key];
    const rings = sizes.map((size, place) => {
      const at = { x: plane.x.to(size), y: plane.y.to(timeAt(curve, size)) };
      return {
        ...ends,
        ...at,
        key,
        id: `${key} ${place}`,
        name: curve.name,
        size,
        isOne: sizes.length === 1,
      };
    });
    return rings.filter(({ x, y }) => plane.holds(x, y));
  });
}

function interval({ low, high, first, last }) {
  const from = low > 0 ? sizeText(low) : `below ${sizeText(first)}`;
  return `${from} to ${high < Infinity ? sizeText(high) : `above ${sizeText(last)}`}`;
}

// Up and left of a crossing both curves are below, so the sizes stand there, and those of neighbours one
// above the other, and none left of the axis. The interval has room only if there is one crossing.
function sizeMarks(rings, left, names) {
  const isAlone = rings.length === 1 && rings[0].isOne;
  const placed = [];
  for (const ring of rings.sort((one, other) => other.y - one.y)) {
    const near = placed
      .filter(other => Math.abs(other.x - ring.x) < NEAR_PX)
      .map(({ text }) => text - LINE_PX);
    const words = `n = ${sizeText(ring.size)}`,
      width = LETTER_PX * words.length;
    const end = Math.max(ring.x - 16, left + width),
      low = Math.min(ring.y - (isAlone ? 30 : 16), ...near);
    const covered = { end, width, down: isAlone ? 17 : 0 };
    placed.push({ ...ring, words, end, text: aboveNames(low, covered, names) });
  }
  return placed.flatMap(({ key, id, x, y, words: text, end, text: high, ...ring }) => {
    const name = { class: `size end ${key}`, x: end, y: high, text };
    const ends = { class: "remark end", x: end, y: high + 17, text: interval(ring) };
    return [
      { key: `to ${id}`, tag: "line", class: "leader", x1: x - 5, y1: y - 5, x2: x - 13, y2: y - 13 },
      { key: id, tag: "circle", class: `crossing ${key}`, cx: x, cy: y, r: 8 },
      { key: `n ${id}`, tag: "text", ...name },
      ...(isAlone ? [{ key: `interval ${id}`, tag: "text", ...ends }] : []),
    ];
  });
}

// Moves a text up until it covers no name; from the lowest name to the highest one.
function aboveNames(low, { end, width, down }, names) {
  return names
    .map(name => ({ ...spanOf(name), y: name.y }))
    .sort((one, other) => other.y - one.y)
    .reduce((high, { from, to, y }) => {
      const isLevel = y - LINE_PX < high + down && high - LINE_PX < y;
      return isLevel && from < end && end - width < to ? y - LINE_PX - down : high;
    }, low);
}

function spanOf({ class: kind, x, text }) {
  const width = NAME_LETTER_PX * text.length,
    from = kind.split(" ").includes("middle") ? x - width / 2 : x;
  return { from, to: from + width };
}

function bareMarks({ id, size, x, y }) {
  const text = `${sizeText(size)} without copies`;
  return [
    { key: id, tag: "circle", class: "crossing small", cx: x, cy: y, r: 6 },
    { key: `n ${id}`, tag: "text", class: "remark", x: x + 8, y: y + 22, text },
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
