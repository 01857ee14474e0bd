// The roofs of the data sheet and as measured, and the diagonal of the other picture, with their names.

import { rateText, timeText } from "../chart/quantities.js";

const LINE_PX = 16;

// Between the data sheet's roof and the measured one is what no kernel has reached.
export function roofMarks(plane, roofs) {
  return [...Map.groupBy(roofs, roof => roof.name)].flatMap(([name, pair]) => {
    const [sheet, reached] = pair.map(roof => corners(plane, roof));
    const between = reached ? [...sheet, ...reached.toReversed()].flat() : [];
    return [
      { key: `${name} between`, tag: "polygon", class: "unreached", points: between },
      { key: name, tag: "polyline", class: "roof", points: sheet.flat() },
      { key: `${name} reached`, tag: "polyline", class: "roof reached", points: reached?.flat() ?? [] },
    ];
  });
}

// The roofs of a second GPU, highest of each type.
export function secondRoofMarks(plane, roofs) {
  const best = Map.groupBy(roofs, roof => roof.name);
  return [...best].map(([name, same]) => {
    const highest = same.reduce((one, other) => (other.peak > one.peak ? other : one));
    return {
      key: `second ${name}`,
      tag: "polyline",
      class: "roof beside",
      points: corners(plane, highest).flat(),
    };
  });
}

function corners({ x, y }, { peak, memory }) {
  const [low, high] = x.full;
  return [low, peak / memory, high].map(at => [x.to(at), y.to(Math.min(peak, at * memory))]);
}

// Peaks are named at the ends of their lines, the memory along the slope.
export function roofNames(plane, roofs) {
  const sheets = roofs.filter(({ basis }) => basis === "data sheet"),
    [first] = sheets;
  if (!first) return [];
  const measured = name => roofs.find(roof => roof.name === name && roof.basis === "measured");
  const best = measured(first.name),
    reached = best ? `, reached ${amount(best.memory, "B")}` : "";
  const memory = `memory ${rateText(first.memory, "B")}${reached}`;
  const [start, ridge] = corners(plane, first);
  return [
    ...peakNames(plane, sheets, measured),
    along("memory", memory, start, ridge, 0.5, -9),
  ];
}

// The highest comes first; a name that would stand in the one above it moves down.
function peakNames(plane, sheets, measured) {
  let free = Number.NEGATIVE_INFINITY;
  return sheets
    .toSorted((one, other) => other.peak - one.peak)
    .flatMap(sheet => {
      const at = corners(plane, sheet)[2][1] + 4;
      if (!plane.holds(plane.right, at)) return [];
      const y = Math.max(at, free),
        best = measured(sheet.name);
      const reached = best ? [`reached ${amount(best.peak, "FLOP")}`] : [];
      const lines = [sheet.name, rateText(sheet.peak, "FLOP"), ...reached];
      free = y + LINE_PX * lines.length;
      return lines.map((text, line) => ({
        key: `${sheet.name} ${line}`,
        tag: "text",
        class: line ? "roof-rate" : "roof-name",
        x: plane.right + 8,
        y: y + LINE_PX * line,
        text,
      }));
    });
}

function amount(rate, unit) {
  return rateText(rate, unit).split(" ")[0];
}

export function diagonalMarks({ x, y }) {
  const [low, high] = x.full;
  const ends = { x1: x.to(low), y1: y.to(low), x2: x.to(high), y2: y.to(high) };
  return [{ key: "diagonal", tag: "line", class: "roof", ...ends }];
}

export function diagonalNames({ left, right, top, bottom, x, y }) {
  const [start, end] = x.full.map(time => [x.to(time), y.to(time)]);
  const slower = { class: "side", x: left + 14, y: top + 22, text: "▴ slower than predicted" };
  const faster = { class: "side end", x: right - 14, y: bottom - 14, text: "▾ faster than predicted" };
  return [
    along("diagonal", "as predicted", start, end, 0.72, 18),
    { key: "slower", tag: "text", ...slower },
    { key: "faster", tag: "text", ...faster },
  ];
}

// The shortest time of a call: below it there is nothing to measure.
export function floorMarks({ left, right, y }, floor) {
  if (floor === null) return [];
  return [
    { key: "floor", tag: "line", class: "floor", x1: left, x2: right, y1: y.to(floor), y2: y.to(floor) },
  ];
}

export function floorNames({ right, y }, floor) {
  if (floor === null) return [];
  const text = `launch floor ${timeText(floor)}`;
  return [{ key: "floor", tag: "text", class: "roof-rate end", x: right - 14, y: y.to(floor) - 7, text }];
}

// A text that stands on a line, after a share of its length.
function along(key, text, [x1, y1], [x2, y2], share, lift) {
  const angle = (Math.atan2(y2 - y1, x2 - x1) * 180) / Math.PI;
  const at = `translate(${x1 + share * (x2 - x1)} ${y1 + share * (y2 - y1)})`;
  const transform = `${at} rotate(${angle}) translate(0 ${lift})`;
  return { key, tag: "text", class: "roof-name middle", transform, text };
}
