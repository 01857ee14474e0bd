// From the recorded and computed numbers and a state to the curves and their crossings.

import { copiesTime } from "./copies.js";
import { findCrossing } from "./crossing.js";
import { fitOf } from "./fit.js";

const HERE = "here";
const HEADROOM = 5; // a factor above the curves, for the words on the tinted sides
const FOOTROOM = 3; // and below them, for the handle
const EMPTY_SPANS = [
  [1, 1024],
  [1e-6, 1e-1],
];

// Returns { cpu, bare, gpu, second } with their crossings. A curve has a `key`, a `name` for its end,
// and `role`, which gives it a colour. Each is null if it has no times.
export function view(data, state) {
  const copies = state.transfers !== "none",
    threads = threadsText(data, state);
  const cpu = curve(timesOfCpu(data, state), {
    key: "cpu",
    role: "cpu",
    name: threads ? `CPU, ${threads}` : "CPU",
  });
  const { name } = data.gpus[state.gpu];
  const alone = { key: copies ? "bare" : "gpu", role: "gpu", name: copies ? `${name} alone` : name };
  const bare = curve(timesOf(data, state, state.gpu).none, alone);
  const gpu = copies
    ? curve(withCopies(data, state, state.gpu), { key: "gpu", role: "gpu", name: `${name} + copies` })
    : bare;
  const second = hasSecond(state) ? secondOf(data, state) : null;
  return {
    state,
    cpu,
    bare,
    gpu,
    second,
    own: ownPoints(data, state),
    crossing: crossingOf(cpu, gpu),
    bareCrossing: copies ? crossingOf(cpu, bare) : null,
    secondCrossing: second && crossingOf(cpu, second),
  };
}

// Returns the fitted lines of a view as curves, each with `fit`, and where those of CPU and GPU cross.
export function fits(data, { state, cpu, gpu, second }) {
  const { amounts } = data.operations[state.workload].types[state.dtype] ?? {};
  const lines = [cpu, gpu, second].filter(Boolean).flatMap(curve => {
    const fit = fitOf(curve, amounts);
    const names = { key: `fit ${curve.key}`, role: `${curve.role} fit`, name: `${curve.name} fit` };
    return fit ? [{ ...names, of: curve.key, sizes: curve.sizes, median_s: fit.median_s, fit }] : [];
  });
  const [one, other] = ["cpu", "gpu"].map(key => lines.find(line => line.of === key));
  return { lines, crossing: crossingOf(one, other) };
}

function curve(times, names) {
  return times ? { ...names, ...times } : null;
}

function crossingOf(cpu, gpu) {
  return cpu && gpu ? findCrossing(cpu, gpu) : { kind: "apart", sizes: [] };
}

export function hasSecond({ gpu, beside }) {
  return beside !== "" && beside !== gpu;
}

function secondOf(data, state) {
  const { name } = data.gpus[state.beside],
    copied = state.transfers === "none" ? "" : " + copies";
  return curve(withCopies(data, state, state.beside), {
    key: "second",
    role: "second",
    name: `${name}${copied}`,
  });
}

function timesOf(data, { workload, dtype }, id) {
  return data.operations[workload].types[dtype]?.gpus[id] ?? {};
}

function timesOfCpu(data, { workload, dtype, cpu, n_threads }) {
  return data.operations[workload].types[dtype]?.cpus[cpu]?.[String(n_threads)];
}

export function threadsText({ cpus }, { cpu, n_threads }) {
  const count = n_threads ?? cpus[cpu].n_threads;
  return count === null ? "" : `${count} ${count === 1 ? "thread" : "threads"}`;
}

// Whether a GPU's copies are computed from their bytes, because a link is chosen or none were timed.
export function areComputed(data, state, id) {
  return state.transfers !== "none" && (state.link !== null || !timesOf(data, state, id)[state.transfers]);
}

// Whether numbers are missing that the kernel can compute.
export function lacksNumbers(data, state) {
  const ids = [state.gpu, ...(hasSecond(state) ? [state.beside] : [])];
  const hasBytes = Boolean(data.operations[state.workload].types[state.dtype]?.payload);
  return ids.some(
    id =>
      (data.gpus[id].source === "computed" && !timesOf(data, state, id).none) ||
      (areComputed(data, state, id) && !hasBytes),
  );
}

// Times over a GPU's own link were recorded, or are computed for the link of its data sheet.
function withCopies(data, state, id) {
  const known = timesOf(data, state, id);
  if (!areComputed(data, state, id)) return known[state.transfers];
  const rate = rateOf(data, state.link, id),
    { payload } = data.operations[state.workload].types[state.dtype] ?? {};
  if (!known.none || !payload || !rate) return undefined;
  const places = [...known.none.sizes.keys()].filter(at => known.none.sizes[at] in payload);
  const { sizes, ...times } = Object.fromEntries(
    Object.entries(known.none).map(([name, column]) => [name, places.map(at => column[at])]),
  );
  const later = sizes.map(size => copiesTime(payload[size], state.transfers, rate, data.copies));
  const moved = Object.entries(times).map(([key, column]) => [
    key,
    column.map((time, at) => time + later[at]),
  ]);
  return { sizes, ...Object.fromEntries(moved) };
}

// A link is a name, a rate in bytes per second between those of the names, or null for the GPU's own.
export function rateOf(data, link, id) {
  return link === null ? data.gpus[id].link_bytes_per_s : (data.links[link] ?? link);
}

// Points that were measured here and are not part of a curve.
function ownPoints(data, state) {
  const cpus = data.operations[state.workload].types[state.dtype]?.cpus[HERE] ?? {},
    gpus = timesOf(data, state, HERE),
    isOnly = state.transfers === "none";
  return [
    ...(state.cpu === HERE
      ? []
      : Object.entries(cpus).map(([n, times]) =>
          curve(times, { key: `own cpu ${n}`, role: "cpu", name: "CPU here" }),
        )),
    ...(state.gpu === HERE
      ? []
      : ["none", ...(isOnly ? [] : [state.transfers])]
          .filter(how => gpus[how])
          .map(how =>
            curve(gpus[how], { key: `own gpu ${how}`, role: "gpu", name: `${data.gpus[HERE].name} here` }),
          )),
  ];
}

// Returns the spans of all sizes and times that any link and number of threads can give, so that the
// axes stand still while a slider moves.
export function spans(data, state) {
  const kinds = data.operations[state.workload].types[state.dtype];
  if (!kinds) return EMPTY_SPANS;
  const slowest = { ...state, transfers: "both", link: Object.keys(data.links)[0] };
  const ids = hasSecond(state) ? [state.gpu, state.beside] : [state.gpu];
  const curves = [
    ...Object.values(kinds.cpus[state.cpu] ?? {}),
    ...ids.flatMap(id => [...Object.values(timesOf(data, state, id)), withCopies(data, slowest, id)]),
    ...ownPoints(data, state),
  ].filter(Boolean);
  if (!curves.length) return EMPTY_SPANS;
  const sizes = curves.flatMap(each => each.sizes);
  const times = curves.flatMap(each => each.median_s).filter(time => time > 0);
  return [wider(sizes, 1.25), wider(times, FOOTROOM, HEADROOM)];
}

function wider(values, below, above = below) {
  return [Math.min(...values) / below, Math.max(...values) * above];
}
