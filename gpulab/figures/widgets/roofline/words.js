// The sentences of the roofline explorer: how far the model is off, and what bounds a point.

import { bytesText, rateText, ratioText, sizeText, timeText } from "../chart/quantities.js";
import { partsOf, predictedTime, ratioOf } from "./points.js";

const CLOSE = 1.25; // below this factor, per cent are easier to imagine
const PARTS = { arithmetic: "arithmetic", memory: "moving the bytes", launch: "launches and floors" };

// The finding: by how much half of the points miss the prediction.
export function headline(data, points, state) {
  const { model, operations, gpu, dtype, cache, span } = state,
    { name, source } = data.gpus[gpu];
  if (!operations.length) return "Choose an operation: press one or more names.";
  if (!points.length && span !== null)
    return `No operation moves about ${bytesText(span)} at any of its sizes.`;
  if (!points.length && source === "computed")
    return `Of the ${name} there are predictions only: choose the picture “roofline”.`;
  if (!points.length)
    return `Nothing of ${dtype}, cache ${cache}, is measured: press “Measure here”, or choose otherwise.`;
  const ratios = points.map(point => ratioOf(point, model)).filter(ratio => ratio !== null);
  if (!ratios.length) return `What the models predict for the ${name}; nothing is measured.`;
  const factor = Math.exp(median(ratios.map(ratio => Math.abs(Math.log(ratio)))));
  const what = `the ${model} model predicts`;
  if (factor < CLOSE)
    return `Half of the points are within ${Math.round(100 * (factor - 1))} % of what ${what}.`;
  const middle = median(ratios),
    side = middle > 1 ? "slower" : "faster";
  const times = ratioText(Math.max(middle, 1 / middle));
  return `Half of the points are more than ${times} times ${side} than ${what}.`;
}

// What a change of the model has done to the same points.
export function switched(points, before, after) {
  const both = points.filter(point => ratioOf(point, before) !== null && ratioOf(point, after) !== null);
  if (!both.length) return `The ${after} model.`;
  const off = model => median(both.map(point => Math.exp(Math.abs(Math.log(ratioOf(point, model))))));
  return (
    `From the ${before} to the ${after} model: in the median the error goes from a factor of ` +
    `${ratioText(off(before))} to ${ratioText(off(after))}.`
  );
}

// How much longer the second GPU takes at the points of both.
export function beside(data, { points, second, state: { beside, model } }) {
  const others = new Map(second.points.map(point => [title(point), point]));
  const pairs = points.map(point => [point, others.get(title(point))]).filter(([, other]) => other);
  const areMeasured = pairs.every(pair => pair.every(({ measured_s }) => measured_s !== null));
  const time = point => (areMeasured ? point.measured_s : predictedTime(point, model));
  const { name } = data.gpus[beside];
  if (!pairs.length) return `The ${name} has no point in common with the first GPU.`;
  const ratio = median(pairs.map(([one, other]) => time(other) / time(one)));
  const how = areMeasured ? "measured times" : `the ${model} predictions`,
    times = ratioText(Math.max(ratio, 1 / ratio));
  return `By ${how} the ${name} (hollow signs) takes ${times} times ${ratio > 1 ? "as long" : "less"} in the median of ${pairs.length} points.`;
}

export function origin({ gpus }, { gpu, beside }) {
  const ids = beside && beside !== gpu ? [gpu, beside] : [gpu];
  return `${ids.map(id => `${gpus[id].name} ${gpus[id].source}`).join(", ")}. `;
}

export function counted(points, total) {
  const operations = new Set(points.map(point => point.operation)).size;
  return `${points.length} points of ${operations} of ${total} operations.`;
}

export function explained(points, total) {
  return `${counted(points, total)} A line joins the prediction (–) and the measurement of a point; its length is the error.`;
}

function bound(point, model, sheet) {
  const [longest, next] = partsOf(point, model, sheet);
  if (!longest) return `bound by ${point.bound}`;
  const by = next?.[1] > 0 ? `, ${ratioText(longest[1] / next[1])} times as long as ${PARTS[next[0]]}` : "";
  return `bound by ${longest[0]}: ${timeText(longest[1])}${by}`;
}

function error(point, model) {
  const ratio = ratioOf(point, model);
  return `${ratioText(Math.max(ratio, 1 / ratio))} times ${ratio >= 1 ? "slower" : "faster"} than predicted`;
}

// What a point says of itself when it is reached.
export function describe(point, model, sheet, device = "") {
  const rate =
    point.flops && point.measured_s ? ` = ${rateText(point.flops / point.measured_s, "FLOP")}` : "";
  const predicted = predictedTime(point, model);
  const lines = [
    device,
    point.measured_s === null ? "not measured" : `measured ${timeText(point.measured_s)}${rate}`,
    predicted === null ? "" : `predicted ${timeText(predicted)} (${model})`,
    ratioOf(point, model) === null ? "" : error(point, model),
    bound(point, model, sheet),
  ].filter(Boolean);
  return { title: title(point), lines, sentence: `${title(point)}: ${lines.join("; ")}.` };
}

export function title({ operation, size }) {
  return `${operation} ${sizeText(size)}`;
}

function median(values) {
  const sorted = [...values].sort((one, other) => one - other),
    half = sorted.length / 2;
  return (sorted[Math.ceil(half) - 1] + sorted[Math.floor(half)]) / 2;
}
