// From the numbers and a state to the points that are shown: each with its measured and its predicted
// time, what bounds it, and the roofs above it.

const FAR = 4; // a size that moves 4 times more or fewer bytes does not belong to the span

// Returns the points of a GPU in a state. `measured_s` of a computed GPU is null.
export function pointsOf(data, state, id) {
  const table = data.gpus[id].tables[tableName(state)];
  if (!table) return [];
  const family = familiesOf(data),
    columns = Object.entries(table);
  const points = table.workload.map((operation, row) => ({
    ...Object.fromEntries(columns.map(([name, column]) => [name, column[row]])),
    operation,
    family: family[operation],
    key: `${id} ${operation} ${table.size[row]}`,
  }));
  return points.filter(point => isChosen(point, state) && isNear(point, points, state.span));
}

export function tableName({ dtype, cache }) {
  return `${dtype} ${cache}`;
}

function familiesOf({ families }) {
  return Object.fromEntries(families.flatMap(([name, members]) => members.map(member => [member, name])));
}

// Work without arithmetic has no place below a roof, and work without a time none beside a prediction.
function isChosen(point, { operations, view, model }) {
  const hasPlace =
    view === "roofline"
      ? point.flops > 0
      : point.measured_s !== null && predictedTime(point, model) !== null;
  return hasPlace && operations.includes(point.operation);
}

// Whether it is the size of its operation that moves nearest to these bytes; of two, the smaller one.
function isNear(point, points, span) {
  if (span === null) return true;
  const off = ({ size_bytes }) => Math.abs(Math.log(size_bytes / span));
  const own = points.filter(({ operation }) => operation === point.operation);
  const nearest = own.reduce((best, each) => (off(each) < off(best) ? each : best));
  return point === nearest && off(point) <= Math.log(FAR);
}

export function intensityOf(point) {
  return point.flops / point.size_bytes;
}

// The measured rate in FLOP/s, or the one that the refined model predicts.
export function rateOf(point) {
  return point.flops / (point.measured_s ?? point.refined_s);
}

export function predictedTime(point, model) {
  return point[`${model}_s`];
}

// Measured over predicted time: 3 means three times as slow as predicted. Null without both.
export function ratioOf(point, model) {
  const predicted = predictedTime(point, model);
  return point.measured_s === null || predicted === null ? null : point.measured_s / predicted;
}

// The seconds of the parts that a model reckons, longest first; none if they are not known.
export function partsOf(point, model, sheet) {
  const refined = { arithmetic: point.compute_s, memory: point.memory_s, launch: point.launch_s };
  const plain = sheet && {
    arithmetic: point.flops / sheet.peaks[point.arithmetic],
    memory: point.size_bytes / sheet.memory,
  };
  const parts = Object.entries((model === "plain" ? plain : refined) ?? {});
  return parts.filter(([, time]) => Number.isFinite(time)).sort(([, one], [, other]) => other - one);
}

export function sheetOf({ gpus }, id) {
  return gpus[id].roofs.find(({ basis }) => basis === "data sheet");
}

// The roofs of all types in which these points compute: [{ name, basis, peak, memory }].
export function roofsOf({ gpus }, id, points) {
  const names = [...new Set(points.map(point => point.arithmetic))];
  return gpus[id].roofs
    .filter(({ basis }) => basis !== "live clocks")
    .flatMap(({ basis, peaks, memory }) =>
      names.filter(name => name in peaks).map(name => ({ name, basis, peak: peaks[name], memory })),
    );
}

// The shortest time of any call on this GPU, if it was measured.
export function floorOf({ gpus }, id) {
  return gpus[id].roofs.find(({ floor_s }) => floor_s)?.floor_s ?? null;
}
