// What the axes of both pictures show, and from where to where.

import { decadeTick, rateTick, timeTick } from "../chart/quantities.js";
import { intensityOf, predictedTime, rateOf } from "./points.js";

export function fitAxes({ x, y }, { points, roofs, floor, second, state: { view, model } }) {
  const all = [...points, ...(second?.points ?? [])];
  if (!all.length) return;
  if (view !== "roofline") {
    const models = ["plain", "refined"]; // of both, so that the axes stand still when the model changes
    const times = all.flatMap(point => [
      point.measured_s,
      ...models.map(each => predictedTime(point, each)).filter(time => time !== null),
    ]);
    Object.assign(x, { tick: timeTick, name: `time predicted by the ${model} model` });
    Object.assign(y, { tick: timeTick, name: "time measured" });
    x.fit([Math.min(...times, floor ?? Infinity) / 2, Math.max(...times) * 2]);
    y.fit(x.full);
    return;
  }
  const tops = [...roofs, ...(second?.roofs ?? [])],
    intensities = all.map(intensityOf);
  Object.assign(x, { tick: decadeTick, name: "arithmetic intensity (FLOP per byte)" });
  Object.assign(y, { tick: rateTick, name: "FLOP/s reached" });
  x.fit([
    Math.min(...intensities) / 3,
    Math.max(
      ...tops.map(({ peak, memory }) => (8 * peak) / memory),
      ...intensities.map(each => 2.5 * each),
    ),
  ]);
  y.fit([
    Math.min(...all.map(rateOf)) / 2,
    Math.max(...tops.map(roof => 3 * roof.peak), ...all.map(each => 2 * rateOf(each))),
  ]);
}
