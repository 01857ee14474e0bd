// Names the points that are farthest from their prediction in this view: at most one per operation.

import { ratioText } from "../chart/quantities.js";
import { className } from "./families.js";
import { ratioOf } from "./points.js";
import * as words from "./words.js";

const N_LABELS = 3,
  LEAST = 1.15; // a smaller factor is no outlier
const LETTER_PX = 6.6,
  BOLD_LETTER_PX = 8.2,
  SIDE_LETTER_PX = 9.3, // the names of the sides are large and bold
  LINE_PX = 17,
  SIGN_PX = 7,
  LEADER_PX = 22;
// Where a name may stand, best first: a share of its width and pixels to the right, pixels down.
const NEARBY = [
  [0, 12, 5],
  [-1, -12, 5],
  [-0.5, 0, 26],
  [-0.5, 0, -14],
  [0, 12, 28],
  [0, 12, -18],
  [-1, -12, -18],
  [0, 4, -40],
  [-0.5, 0, -64],
  [0, 0, -90],
  [0, 20, 60],
];

// `names` are texts that stand in the picture already, and `back` is what is drawn behind the points. A name
// stands on a line of it only if there is no other place.
export function outlierMarks(plane, spots, model, names, back = []) {
  const seen = spots.filter(({ x, y }) => plane.holds(x, y));
  const taken = names.filter(({ transform }) => !transform).map(boxOf);
  const signs = seen.map(({ x, y }) => ({
    x: x - SIGN_PX,
    y: y - SIGN_PX,
    width: 2 * SIGN_PX,
    height: 2 * SIGN_PX,
  }));
  taken.push(...signs);
  const lines = back.filter(({ tag }) => tag === "polyline").flatMap(({ points }) => boxesAlong(points));
  return farthest(
    seen.filter(({ point }) => ratioOf(point, model) !== null),
    model,
  ).flatMap(({ point, x, y }) => {
    const ratio = ratioOf(point, model),
      times = ratioText(Math.max(ratio, 1 / ratio));
    const text = `${words.title(point)}: ${times}× ${ratio > 1 ? "slower" : "faster"}`;
    const width = text.length * BOLD_LETTER_PX;
    const box = freeBox(plane, x, y, width, [...taken, ...lines]) ?? freeBox(plane, x, y, width, taken);
    if (!box) return [];
    taken.push(box);
    const name = {
      tag: "text",
      class: `outlier ${className(point.family)}`,
      x: box.x,
      y: box.y + 13,
      text,
    };
    return [...leader(point, x, y, box), { key: `far ${point.operation}`, ...name }];
  });
}

function boxOf({ class: kind, x, y, text }) {
  const words = kind.split(" "),
    width = text.length * (words.includes("side") ? SIDE_LETTER_PX : LETTER_PX);
  return { x: words.includes("end") ? x - width : x, y: y - 13, width, height: LINE_PX };
}

// Returns small boxes along a line; no name fits between two of them.
function boxesAlong(points) {
  const corners = points.flatMap((_, at) => (at % 2 ? [] : [[points[at], points[at + 1]]]));
  return corners.slice(1).flatMap(([x2, y2], at) => {
    const [x1, y1] = corners[at],
      n = Math.max(1, Math.ceil(Math.hypot(x2 - x1, y2 - y1) / LINE_PX));
    return Array.from({ length: n + 1 }, (_, i) => ({
      x: x1 + (i / n) * (x2 - x1) - 1,
      y: y1 + (i / n) * (y2 - y1) - 1,
      width: 2,
      height: 2,
    }));
  });
}

function farthest(spots, model) {
  const far = ({ point }) => Math.abs(Math.log(ratioOf(point, model)));
  const groups = Map.groupBy(spots, ({ point }) => point.operation).values();
  return [...groups]
    .map(group => group.reduce((one, other) => (far(other) > far(one) ? other : one)))
    .filter(spot => far(spot) > Math.log(LEAST))
    .sort((one, other) => far(other) - far(one))
    .slice(0, N_LABELS);
}

function freeBox(plane, x, y, width, taken) {
  const { left, top, bottom } = plane;
  const boxes = NEARBY.map(([share, far, down]) => ({
    x: x + share * width + far,
    y: y + down - 13,
    width,
    height: LINE_PX,
  }));
  return boxes.find(
    box =>
      box.x > left &&
      box.x + width < plane.width &&
      box.y > top &&
      box.y + LINE_PX < bottom &&
      taken.every(other => !overlap(box, other)),
  );
}

function leader({ operation }, x, y, box) {
  const x2 = Math.min(Math.max(x, box.x), box.x + box.width),
    y2 = box.y + (box.y < y ? LINE_PX : 0);
  const isFar = Math.hypot(x2 - x, y2 - y) > LEADER_PX;
  return isFar ? [{ key: `to ${operation}`, tag: "line", class: "leader", x1: x, y1: y, x2, y2 }] : [];
}

function overlap(one, other) {
  return (
    one.x < other.x + other.width &&
    other.x < one.x + one.width &&
    one.y < other.y + other.height &&
    other.y < one.y + one.height
  );
}
