// Draws the points: below the roofs, or measured over predicted times. In both, a line from the
// prediction to the measurement of each point is as long as the error.

import { SIGNS, className } from "./families.js";
import { outlierMarks } from "./outliers.js";
import { intensityOf, predictedTime, rateOf } from "./points.js";
import {
  diagonalMarks,
  diagonalNames,
  floorMarks,
  floorNames,
  roofMarks,
  roofNames,
  secondRoofMarks,
} from "./roofs.js";
import * as words from "./words.js";

const TICK_PX = 6,
  DODGE_PX = 8,
  DODGE_SHARE = 0.05; // the share is of a decade

export class Picture {
  constructor(plane) {
    this.plane = plane;
  }

  draw({ points, roofs, floor, second, state: { view, model } }, ms) {
    const { plane } = this,
      { layers } = plane;
    const spots = this.spots(points, view, model),
      others = second ? this.spots(second.points, view, model) : [],
      isRoofline = view === "roofline";
    const back = isRoofline
      ? [...roofMarks(plane, roofs), ...secondRoofMarks(plane, second?.roofs ?? [])]
      : [...diagonalMarks(plane), ...floorMarks(plane, floor)];
    layers.back.draw(back, ms);
    layers.below.draw(spots.map(errorLine), ms);
    layers.lines.draw(spots.map(predictionTick), ms);
    layers.points.draw([...spots.map(measuredSign), ...others.map(secondSign)], ms);
    const names = isRoofline
      ? roofNames(plane, roofs)
      : [...diagonalNames(plane), ...floorNames(plane, floor)];
    layers.above.draw([...names, ...outlierMarks(plane, spots, model, names, back)], ms);
  }

  // A spot is a point with its pixels: x, the prediction's y and the measurement's y.
  spots(points, view, model) {
    if (view === "roofline") return this.dodged(points, model);
    const { x, y } = this.plane;
    return points.map(point => {
      const time = predictedTime(point, model);
      return { point, x: x.to(time), predicted: y.to(time), y: y.to(point.measured_s) };
    });
  }

  // Sizes of one operation with the same intensity would hide each other. They hang side by side, small
  // ones left, and to the right of their place: on the left they would stand above the rising roof.
  dodged(points, model) {
    const { x, y } = this.plane,
      step = Math.min(DODGE_PX, DODGE_SHARE * (x.to(10) - x.to(1)));
    const alike = Map.groupBy(points, point => `${point.operation} ${intensityOf(point).toPrecision(2)}`);
    return [...alike.values()].flatMap(group =>
      group
        .toSorted((one, other) => one.size - other.size)
        .map((point, place) => ({
          point,
          x: x.to(intensityOf(point)) + step * place,
          predicted: y.to(point.flops / (predictedTime(point, model) ?? point.refined_s)),
          y: y.to(rateOf(point)),
        })),
    );
  }

  points({ points, second, state: { view, model } }, sheet, otherSheet) {
    const reachable = (spots, device, ownSheet) =>
      spots
        .filter(({ x, y }) => this.plane.holds(x, y))
        .map(({ point, x, y }) => ({
          key: point.key,
          series: `${device}${point.operation}`,
          x,
          y,
          describe: () => words.describe(point, model, ownSheet, device),
        }));
    return [
      ...reachable(this.spots(points, view, model), "", sheet),
      ...reachable(second ? this.spots(second.points, view, model) : [], "second GPU", otherSheet),
    ];
  }
}

function errorLine({ point: { key, family }, x, predicted, y }) {
  return { key, tag: "line", class: `error ${className(family)}`, x1: x, x2: x, y1: predicted, y2: y };
}

function predictionTick({ point: { key, family }, x, predicted: y }) {
  const ends = { x1: x - TICK_PX, x2: x + TICK_PX, y1: y, y2: y };
  return { key, tag: "line", class: `predicted ${className(family)}`, ...ends };
}

function measuredSign({ point: { key, family, measured_s }, x, y }) {
  const kind = measured_s === null ? "measured second" : "measured";
  return { key, tag: "path", class: `${kind} ${className(family)}`, d: SIGNS[family], at: [x, y] };
}

function secondSign({ point: { key, family }, x, y }) {
  return { key, tag: "path", class: `measured second ${className(family)}`, d: SIGNS[family], at: [x, y] };
}
