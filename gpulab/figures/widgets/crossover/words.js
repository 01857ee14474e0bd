// The sentences of the crossover explorer: the finding, the times at the handle, and what changed.

import { ratioText, rateText, sizeText, timeText } from "../chart/quantities.js";
import { timeAt } from "./crossing.js";
import { fitText } from "./fit.js";
import { areComputed, hasSecond, threadsText } from "./curves.js";

const COPIES = { none: "no copies", in: "copies in", out: "copies out", both: "copies in and out" };

// The finding: where the curves of this view cross; or what to do if there is nothing to compare.
export function headline(data, { state, cpu, gpu, second, crossing, secondCrossing }) {
  const what = `${state.workload} in ${state.dtype}`;
  if (!cpu || !gpu) {
    const side = cpu ? data.gpus[state.gpu].name : "CPU";
    return `No times of ${what} on the ${side} yet: press “Measure here”, or choose another ${cpu ? "GPU" : "CPU"}.`;
  }
  const how = state.transfers === "none" ? "" : `, ${COPIES[state.transfers]} included`;
  const also =
    secondCrossing?.kind === "once"
      ? `, the ${short(second)} from n = ${sizeText(secondCrossing.sizes[0])}`
      : "";
  return `${what}: ${finding(crossing, short(gpu))}${also}${how}.`;
}

function finding({ kind, sizes, first, last }, name = "GPU") {
  return {
    once: () => `from n = ${sizeText(sizes[0])} the ${name} beats the CPU`,
    reversed: () => `up to n = ${sizeText(sizes[0])} the ${name} beats the CPU, then no longer`,
    several: () => `the curves cross at n = ${sizes.map(sizeText).join(", ")}`,
    always: () => `the ${name} beats the CPU at every size from n = ${sizeText(first)}`,
    never: () => `the CPU beats the ${name} at every size up to n = ${sizeText(last)}`,
    undecided: () => "neither side is clearly faster",
    apart: () => "no size was timed on both sides",
  }[kind]();
}

// Both times at the handle.
export function atHandle(data, { state, cpu, gpu, second }) {
  const n = sizeText(state.size);
  if (!cpu || !gpu) return `The handle is at n = ${n}.`;
  const curves = [cpu, gpu, second].filter(Boolean),
    silent = curves.find(curve => timeAt(curve, state.size) === null);
  if (silent) {
    const [first, last] = [silent.sizes[0], silent.sizes.at(-1)].map(sizeText);
    return `The handle is at n = ${n}; ${silent.name} was timed from n = ${first} to ${last}.`;
  }
  const times = curves.map(curve => `${curve.name} ${timeText(timeAt(curve, state.size))}`);
  const ratio = timeAt(cpu, state.size) / timeAt(gpu, state.size),
    ahead = ratio >= 1 ? short(gpu) : "CPU";
  const factor = ratioText(Math.max(ratio, 1 / ratio));
  const faster =
    factor === "1" ? "Both take the same time" : `The ${ahead} is ${factor} times as fast`;
  return `At n = ${n}: ${times.join(" · ")}. ${faster}.`;
}

// Where the numbers come from, and whether that makes the crossing an estimate.
export function origin(data, { state }) {
  const ids = hasSecond(state) ? [state.gpu, state.beside] : [state.gpu],
    cpu = data.cpus[state.cpu];
  const gpus = ids.map(id => data.gpus[id]);
  const sources = [`CPU ${cpu.source}`, ...gpus.map(({ name, source }) => `${name} ${source}`)].join(", ");
  const copied = areComputed(data, state, state.gpu)
    ? `, copies computed for ${linkText(data, state.link)}`
    : "";
  const isMixed = gpus.some(({ source }) => source !== cpu.source);
  return `${sources}${copied}${isMixed ? ": sides of different sources, so an estimate" : ""}. `;
}

// The fitted lines in words, and where they cross.
export function fitted({ lines, crossing }) {
  if (!lines.length) return "A fit needs two sizes whose bytes or FLOPs are known.";
  const each = lines.map(({ name, fit }) => `${name}: ${fitText(fit)}`).join("; ");
  return `Dotted: ${each}. From the fits, ${finding(crossing)}.`;
}

// What a point says of itself when it is reached.
export function describePoint(data, { state }, curve, place) {
  const size = sizeText(curve.sizes[place]);
  const [time, low, high] = [curve.median_s, curve.low_s, curve.high_s].map(
    each => each && timeText(each[place]),
  );
  const copied = curve.name.endsWith("copies");
  const lines = [
    `${state.workload}, ${state.dtype}, n = ${size}`,
    ...(low !== high ? [`95 %: ${low} to ${high}`] : []),
    ...(copied ? [`${COPIES[state.transfers]}, ${linkText(data, state.link)}`] : []),
  ];
  return { title: `${curve.name}: ${time}`, lines, sentence: `${curve.name}, n = ${size}: ${time}.` };
}

// What a choice has changed: the choice, and what the crossing does.
export function change(data, name, before, after) {
  const to = after.state[name],
    from = before.state[name],
    text = state => asText(data, name, state);
  if (name === "workload") return `${to}: ${finding(after.crossing)}; n is ${data.operations[to].size_is}.`;
  if (name === "beside")
    return after.second
      ? `Beside it ${text(after.state)}: ${finding(after.secondCrossing)}.`
      : "One GPU alone.";
  if (to === from) return "";
  if (!after.cpu || !after.gpu) return `${text(after.state)}: nothing is measured yet.`;
  const what =
    name === "transfers"
      ? `With ${COPIES[to]}`
      : `With ${text(after.state)} in place of ${text(before.state)}`;
  return `${what} ${moved(before.crossing, after.crossing)}.`;
}

function moved(before, after) {
  if (before.kind !== "once" || after.kind !== "once") {
    return after.kind === before.kind ? `there is still this: ${finding(after)}` : `now ${finding(after)}`;
  }
  const [from, to] = [before, after].map(({ sizes }) => sizeText(sizes[0]));
  if (from === to) return `the crossing stays at n = ${from}`;
  return `the crossing ${after.sizes[0] < before.sizes[0] ? "falls" : "rises"} from n = ${from} to ${to}`;
}

function asText(data, name, state) {
  if (name === "gpu" || name === "beside") return deviceText(data.gpus[state[name]]);
  if (name === "cpu") return deviceText(data.cpus[state.cpu]);
  if (name === "n_threads") return threadsText(data, state) || "the threads that are set";
  if (name === "link") return linkText(data, state.link);
  return state[name];
}

function deviceText({ name, source, is_computed }) {
  return `the ${is_computed ? "computed" : source} ${name.replace("this ", "")}`;
}

export function sourceText({ name, source, file }) {
  return `${name}, ${file || source}`;
}

function linkText(data, link) {
  if (link === null) return "the GPU's own link";
  return link in data.links ? link : rateText(link, "B");
}

function short(curve) {
  return curve.name.split(" ")[0];
}
