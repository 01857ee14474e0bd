// The line fitted to a curve, a fixed cost and a rate: the arithmetic of fit_line in
// gpulab/roofline/scaling/_latency_bandwidth_fit.py, and of with_fit in _curve.py.

import { rateText, timeText } from "../chart/quantities.js";

const CLEARLY = 0.9; // FLOPs replace bytes if their misfit is below this share of the bytes' misfit
const STEPS = 200,
  REFINEMENTS = 60,
  GOLDEN = (Math.sqrt(5) - 1) / 2;

// Returns { fixed_s, slope_s, unit, median_s }, with the line at the curve's sizes; null without one.
// `amounts` has [bytes, FLOPs] by size.
export function fitOf({ sizes, median_s }, amounts) {
  if (sizes.length < 2 || !amounts || sizes.some(size => !(size in amounts))) return null;
  const [bytes, flops] = [0, 1].map(place => {
    const x = sizes.map(size => amounts[size][place]);
    return x.some(amount => amount > 0) ? lineOf(x, median_s) : null;
  });
  const isFlops = flops && (!bytes || misfit(flops) < CLEARLY * misfit(bytes));
  const { cost: _, ...line } = isFlops ? flops : bytes;
  return { ...line, unit: isFlops ? "FLOP" : "B" };
}

function misfit({ cost, median_s }) {
  return Math.expm1(Math.sqrt(cost / median_s.length));
}

// The line is slope * (amount + k). For each k one slope is best, so k alone is searched: on a grid,
// and then between its neighbours. Without a k there is no fixed cost, and with an endless one no slope.
function lineOf(x, times) {
  const alone = [line(x, times, 0), flat(times)];
  const [first, last] = [Math.min(...x.filter(each => each > 0)) / 1e6, Math.max(...x) * 1e6].map(Math.log);
  const costAt = place => line(x, times, Math.exp(place)).cost;
  const step = (last - first) / STEPS;
  const grid = Array.from({ length: STEPS + 1 }, (_, place) => first + place * step);
  const best = grid.reduce((one, other) => (costAt(other) < costAt(one) ? other : one));
  let [low, high] = [best - step, best + step];
  for (let turn = 0; turn < REFINEMENTS; turn++) {
    const [one, other] = [high - GOLDEN * (high - low), low + GOLDEN * (high - low)];
    if (costAt(one) < costAt(other)) high = other;
    else low = one;
  }
  const found = line(x, times, Math.exp((low + high) / 2));
  // Preferred if it fits as well: a tiny fixed cost or slope would only be rounding.
  return alone.find(({ cost }) => cost <= found.cost + 1e-12) ?? found;
}

function line(x, times, k) {
  if (!k && x.some(amount => !amount)) return { cost: Infinity };
  const slope_s = Math.exp(mean(times.map((time, place) => Math.log(time / (x[place] + k)))));
  return withCost({ fixed_s: slope_s * k, slope_s, median_s: x.map(amount => slope_s * (amount + k)) }, times);
}

function flat(times) {
  const fixed_s = Math.exp(mean(times.map(Math.log)));
  return withCost({ fixed_s, slope_s: 0, median_s: times.map(() => fixed_s) }, times);
}

function withCost(found, times) {
  const cost = times.reduce((sum, time, place) => sum + Math.log(time / found.median_s[place]) ** 2, 0);
  return { ...found, cost };
}

function mean(values) {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

export function fitText({ fixed_s, slope_s, unit }) {
  const start = fixed_s ? `${timeText(fixed_s)} fixed` : "no fixed cost";
  return `${start}, ${slope_s ? `then ${rateText(1 / slope_s, unit)}` : "no growth with size"}`;
}
