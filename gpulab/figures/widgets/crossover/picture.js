// Draws a view of the crossover: tinted sides, what the copies cost, the curves and their names.

import { lineNames } from "../chart/line_names.js";
import { timeAt } from "./crossing.js";
import { crossingMarks, crossingPoints } from "./crossing_marks.js";
import { describePoint } from "./words.js";

const ROOM_PX = 26,
  AWAY_PX = 54;
const SIGNS = {
  cpu: "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0",
  bare: "M0-6L5.5 4.5H-5.5Z",
  gpu: "M-4.5-4.5H4.5V4.5H-4.5Z",
  second: "M0-6.5L6 0L0 6.5L-6 0Z",
};

const CROSS = "M-5-5L5 5M-5 5L5-5";

export class Picture {
  constructor(plane, data) {
    Object.assign(this, { plane, data });
  }

  draw(view, fits, ms) {
    const { layers } = this.plane,
      curves = [...curvesOf(view), ...fits],
      pixels = curves.map(curve => this.pixels(curve));
    layers.back.draw([...this.sides(view.crossing), ...this.copies(view)], ms);
    const lines = curves.map(({ key, role }, index) => ({
      key,
      tag: "polyline",
      class: `curve ${role} ${key}`,
      points: pixels[index].flat(),
    }));
    const points = [...curvesOf(view), ...view.own].flatMap(curve => this.signs(curve));
    layers.lines.draw(lines, ms);
    layers.points.draw(points, ms);
    const names = [...lineNames(this.plane, curves, pixels), ...this.copiesName(view)];
    layers.above.draw([...names, ...crossingMarks(this.plane, view, names)], ms);
  }

  // What was measured here and belongs to no curve has a cross.
  signs(curve) {
    const { key, role, sizes } = curve;
    return this.pixels(curve).map((at, place) => ({
      key: `${key}${sizes[place]}`,
      tag: "path",
      class: `point ${role} ${key}`,
      d: SIGNS[key] ?? CROSS,
      at,
    }));
  }

  pixels({ sizes, median_s }) {
    const { x, y } = this.plane;
    return sizes.map((size, place) => [x.to(size), y.to(median_s[place])]);
  }

  // Each side up to the end of the crossing's interval; what lies between them is not decided.
  sides({ kind, sizes, low, high }) {
    const { left, right, top, bottom, x } = this.plane,
      tint = (key, from, to) => ({
        key,
        tag: "rect",
        class: `tint ${key}`,
        x: from,
        y: top,
        width: Math.max(0, to - from),
        height: bottom - top,
      });
    if (kind === "always") return [tint("gpu", left, right)];
    if (kind === "never") return [tint("cpu", left, right)];
    if (kind !== "once" && kind !== "reversed") return [];
    const [first, second] = kind === "once" ? ["cpu", "gpu"] : ["gpu", "cpu"];
    const start = low > 0 ? x.to(low) : x.to(sizes[0]),
      end = high < Infinity ? x.to(high) : x.to(sizes[0]);
    return [tint(first, left, start), tint(second, end, right)];
  }

  // The surface between the GPU alone and the GPU with its copies: what the link costs.
  copies({ gpu, bare }) {
    const [upper, lower] = gpu && bare ? this.gap(gpu, bare) : [[], []];
    return gpu === bare || !gpu || !bare
      ? []
      : [
          {
            key: "copies",
            tag: "polygon",
            class: "copies",
            points: [...upper, ...lower.toReversed()].flat(),
          },
        ];
  }

  gap(gpu, bare) {
    const shared = bare.sizes.filter(size => gpu.sizes.includes(size)),
      { x, y } = this.plane;
    return [gpu, bare].map(curve => shared.map(size => [x.to(size), y.to(timeAt(curve, size))]));
  }

  // Its name stands where it is high, away from the border and from the handle.
  copiesName({ state, gpu, bare, crossing }) {
    const [upper, lower] = gpu === bare || !gpu || !bare ? [[], []] : this.gap(gpu, bare),
      { left, right, x } = this.plane;
    const busy = [state.size, ...crossing.sizes].map(size => x.to(size));
    const places = upper
      .slice(1)
      .map(([x2, y2], at) => {
        const [x1, y1] = upper[at],
          low = (lower[at][1] + lower[at + 1][1]) / 2;
        return { x: (x1 + x2) / 2, y: ((y1 + y2) / 2 + low) / 2 + 4, high: low - Math.max(y1, y2) };
      })
      .filter(
        place =>
          place.x > left + AWAY_PX &&
          place.x < right - AWAY_PX &&
          place.high > ROOM_PX &&
          busy.every(other => Math.abs(other - place.x) > AWAY_PX),
      );
    const best = places.sort((one, other) => other.high - one.high)[0];
    return best
      ? [{ key: "copies", tag: "text", class: "copies-name middle", x: best.x, y: best.y, text: "copies" }]
      : [];
  }

  points(view) {
    const { plane, data } = this;
    const points = [...curvesOf(view), ...view.own].flatMap(curve =>
      this.pixels(curve).map(([x, y], place) => ({
        key: `${curve.key}${curve.sizes[place]}`,
        series: curve.key,
        x,
        y,
        describe: () => describePoint(data, view, curve, place),
      })),
    );
    return [...points.filter(({ x, y }) => plane.holds(x, y)), ...crossingPoints(plane, view)];
  }
}

export function curvesOf({ cpu, bare, gpu, second }) {
  return [...new Set([second, bare, gpu, cpu])].filter(Boolean);
}
