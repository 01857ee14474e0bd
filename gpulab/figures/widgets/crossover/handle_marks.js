// Marks at the handle: its line, both times on it, and the distance between them as a factor.

import { ratioText, sizeText } from "../chart/quantities.js";
import { timeAt } from "./crossing.js";

const CHIP_PX = 24,
  DIGIT_PX = 7.6,
  ROOM_PX = 16,
  RIGHT_PX = 70;
const DOT = "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0";

export function handleMarks(plane, { state: { size }, cpu, gpu, second }) {
  const { top, bottom, left, right, y } = plane,
    x = plane.x.to(size);
  if (x < left - 1 || x > right + 1) return [];
  const spots = [cpu, gpu, second].flatMap(curve => {
    const time = curve && timeAt(curve, size);
    return time ? [{ curve, time, at: [x, y.to(time)] }] : [];
  });
  return [
    { key: "line", tag: "line", class: "handle", x1: x, x2: x, y1: top + 30, y2: bottom },
    ...gap(
      x,
      x < right - RIGHT_PX,
      spots.filter(({ curve }) => curve !== second),
    ),
    ...spots.map(({ curve: { key, role }, at }) => ({
      key,
      tag: "path",
      class: `spot ${role}`,
      d: DOT,
      at,
    })),
    ...chip(plane, x, `◂ n = ${sizeText(size)} ▸`),
  ];
}

function gap(x, isRight, [cpu, gpu]) {
  if (!gpu) return [];
  const [one, other] = [cpu.at[1], gpu.at[1]],
    ratio = cpu.time / gpu.time;
  const line = { key: "gap", tag: "line", class: "gap", x1: x, x2: x, y1: one, y2: other };
  if (Math.abs(one - other) < ROOM_PX) return [line];
  const place = {
    class: isRight ? "times" : "times end",
    x: isRight ? x + 14 : x - 14,
    y: (one + other) / 2 + 5,
  };
  return [line, { key: "times", tag: "text", ...place, text: `${ratioText(Math.max(ratio, 1 / ratio))}×` }];
}

function chip({ left, right, bottom }, x, text) {
  const width = text.length * DIGIT_PX + 12,
    height = CHIP_PX,
    y = bottom - 30;
  const middle = Math.min(Math.max(x, left + width / 2), right - width / 2);
  return [
    { key: "chip", tag: "rect", class: "chip", x: middle - width / 2, y, width, height, rx: height / 2 },
    { key: "n", tag: "text", class: "chip-text middle", x: middle, y: y + 17, text },
  ];
}
