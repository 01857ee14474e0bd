// The picture of the machine: calls of the host, tasks of streams and engines, and their links.

import { arrow, frame, fitting, LaneChart, label, merged, Scale, set, widthOf } from "./lanes.js";
import { drawn, time } from "./shared.js";

export const ON_HOST = ["synchronize", "clock"];
export const TIMED = ["kernel", "copy in", "copy out", "sleep", "graph"];
export const BAR = 24;
const LEFT = 92;
const RIGHT = 14;
const ROW = 38;
const ENGINE = 22;
const THIN = 12;
const FREE = 26;
const END_PX = 7;
const ZOOM_MARGIN = 1.03;
const MOST_LINKS = 24; // with more, only those of the selected operation are drawn
const MOST_ARIA = 600; // characters of the picture's text alternative
// The role whose colour a kind of operation has, if its name is another one.
const ROLES = { "copy in": "copy", "copy out": "copy", record: "event", graph: "kernel" };
const ROLES_ON_HOST = { synchronize: "host", clock: "host" };

export function roleOf(kind) {
  return ROLES[kind] ?? ROLES_ON_HOST[kind] ?? kind;
}

// Returns records from columns of equal length, such as { start: [0, 5], end: [2, 9] }.
export function recordsOf(columns) {
  const names = Object.keys(columns);
  return columns[names[0]].map((_, n) =>
    Object.fromEntries(names.map(name => [name, columns[name][n]])),
  );
}

export class MachineScale extends Scale {
  constructor() {
    super(LEFT, RIGHT);
    this.fits = true; // whether it shows the whole program
  }

  fit(end) {
    if (this.fits) this.place(0, Math.max(end, 1) * ZOOM_MARGIN);
  }

  zoom(factor, around) {
    this.fits = false;
    this.place(around - (around - this.from) / factor, around + (this.to - around) / factor);
  }
}

export class MachineChart extends LaneChart {
  constructor(scale) {
    super(scale, { role: "group" });
  }

  show(view) {
    this.view = view;
    this.calls = recordsOf(view.calls);
    this.tasks = recordsOf(view.tasks);
    this.take(this.lanesOf(view));
    this.scale.fit(view.end);
    this.doubted = new Set(view.remarks.flatMap(remark => remark.places));
    const shown = [...view.words, ...view.readings.map(reading => reading.text)].join(" ");
    const alternative = `The machine, ${view.operations.length} operations. ${shown}`;
    set(this.svg, "aria-label", alternative.slice(0, MOST_ARIA));
  }

  lanesOf(view) {
    const numbers = [...Array(view.n_streams).keys()];
    const isBusy = number => this.tasks.some(task => task.stream === number);
    const isUsed = engine => this.tasks.some(task => task.engine === engine);
    const engines = ["compute", "copy in", "copy out"].filter(isUsed);
    const free = { name: "+ stream", kind: "free", number: view.n_streams, height: FREE };
    return [
      { name: "host", kind: "host", height: ROW },
      ...numbers.map(number => ({
        name: `stream ${number}`,
        kind: "stream",
        number,
        height: ROW,
        note: isBusy(number) ? "" : "no work",
      })),
      ...(view.n_streams < view.limits.streams ? [free] : []),
      ...engines.map(name => ({ name, kind: "engine", height: ENGINE })),
    ];
  }

  host() {
    return this.lanes[0];
  }

  stream(number) {
    return this.lanes.find(lane => lane.kind === "stream" && lane.number === number);
  }

  // Draws everything, with the selected operation, and the one that the pointer drags, if any.
  redraw(selected) {
    const ghost = this.drag ? [this.ghost(this.drag)] : [];
    this.draw([
      ...this.links(selected),
      ...this.callBars(selected),
      ...this.taskBars(selected),
      ...ghost,
      ...this.orders(),
    ]);
  }

  // ---------------------------------------------------------------- calls of the host

  callBars(selected) {
    const isLike = (one, other) => one.place === other.place && !one.waited === !other.waited;
    return merged(this.calls, this.scale, isLike).map(bar => this.callBar(bar, selected));
  }

  callBar({ bar: call, x, right, n }, selected) {
    const { kind, text } = this.view.operations[call.place];
    const box = { top: this.host().top + (ROW - BAR) / 2, height: BAR };
    const group = this.group("call", call, selected, text);
    const waits = call.waited > 0 || call.is_stuck;
    // The call, and then the part of it in which the host waits.
    const split = call.is_stuck
      ? x
      : waits
        ? Math.max(x, this.scale.x(call.end - call.waited))
        : right;
    const name = call.is_stuck ? "never comes back" : call.is_queue_full ? "queue full" : "waits";
    if (split > x || !waits) {
      const labels = waits ? [] : [times(n, kind)];
      group.append(...this.bar({ x, right: waits ? split : right, ...box, role: "host", labels }));
    }
    if (waits) {
      group.append(
        ...this.bar({ x: split, right, ...box, role: "wait", labels: [times(n, name)] }),
      );
    }
    if (kind === "clock") group.append(...stopwatch(x, box.top));
    return group;
  }

  // ---------------------------------------------------------------- tasks of the GPU

  taskBars(selected) {
    const isLike = (one, other) => one.place === other.place && one.kind === other.kind;
    return this.lanes.flatMap(lane => {
      if (lane.kind !== "stream" && lane.kind !== "engine") return [];
      const isEngine = lane.kind === "engine";
      const own = this.tasks.filter(task =>
        isEngine ? task.engine === lane.name && !task.is_stuck : task.stream === lane.number,
      );
      return merged(own, this.scale, isLike).map(bar =>
        isEngine ? this.thinBar(lane, bar) : this.taskBar(lane, bar, selected),
      );
    });
  }

  thinBar(lane, { bar: task, x, right }) {
    const box = { top: lane.top + (ENGINE - THIN) / 2, height: THIN };
    return this.bar({ x, right, ...box, role: roleOf(task.kind) })[0];
  }

  taskBar(lane, { bar: task, x, right, n }, selected) {
    const operation = this.view.operations[task.place];
    const top = lane.top + (ROW - BAR) / 2;
    const when = task.is_stuck ? "can never run" : `${time(task.start)} to ${time(task.end)}`;
    const group = this.group("task", task, selected, `${operation.text}\n${when}`);
    group.dataset.kind = task.kind;
    const isMoment = ["record", "wait"].includes(task.kind) && !task.is_stuck;
    if (isMoment) {
      group.append(...momentOf(task.kind, x, top));
      const name = fitting([operation.event], LEFT);
      if (name) group.append(label(x + 8, top + BAR, name));
    } else {
      const role = task.is_stuck ? "wait" : roleOf(task.kind);
      const labels = labelsOf(operation, task).map(text => times(n, text));
      group.append(...this.bar({ x, right, top, height: BAR, role, labels }));
      if (task.kind.startsWith("copy")) group.append(memoryLine(operation, x, right, top));
      if (TIMED.includes(operation.kind) && !task.is_stuck) group.append(handle(x, right, top));
    }
    if (this.doubted.has(task.place)) {
      const width = isMoment ? 12 : right - x;
      group.append(frame({ x: isMoment ? x - 6 : x, top, width, height: BAR, dashes: "5 3" }));
    }
    return group;
  }

  group(role, { place, turn }, selected, title) {
    const kind = `task${role === "call" ? " call" : ""}${place === selected ? " chosen" : ""}`;
    const data = { "data-place": place, "data-turn": turn, "data-role": role };
    return drawn("g", { class: kind, ...data }, drawn("title", {}, title));
  }

  // ---------------------------------------------------------------- links

  // Returns lines from the end of each call to the task that it starts on the GPU.
  links(selected) {
    const isFew = this.tasks.length <= MOST_LINKS;
    const shown = this.tasks.filter(task => isFew || task.place === selected);
    const from = this.host().top + (ROW + BAR) / 2;
    return shown.slice(0, 2 * MOST_LINKS).map(task => {
      const to = this.stream(task.stream).top + (ROW - BAR) / 2;
      return arrow({
        from: [this.scale.x(task.called), from],
        to: [this.scale.x(task.start), to],
        kind: task.place === selected ? "strong" : "",
        head: false,
      });
    });
  }

  // Returns lines from the record of an event to the waits in other streams that depend on it.
  orders() {
    const records = new Map();
    const found = [];
    for (const task of this.tasks) {
      const { event } = this.view.operations[task.place];
      const record = records.get(event);
      if (task.kind === "record") records.set(event, task);
      const isOrder = task.kind === "wait" && !task.is_stuck && record;
      if (isOrder && record.stream !== task.stream && found.length < MOST_LINKS) {
        found.push(
          arrow({ from: this.middle(record), to: this.middle(task), kind: "dashed strong" }),
        );
      }
    }
    return found;
  }

  middle(task) {
    return [this.scale.x(task.start), this.stream(task.stream).top + ROW / 2];
  }

  // Returns the bar that follows the pointer.
  ghost({ x, y, width, kind }) {
    const right = x + Math.max(width, widthOf(kind) + 14);
    const box = { x, right, top: y, height: BAR, role: roleOf(kind) };
    return drawn("g", { class: "ghost" }, ...this.bar({ ...box, labels: [kind] }));
  }
}

export function times(n, text) {
  return n > 1 ? `${n.toLocaleString("en")} × ${text}` : text;
}

// Returns what a bar may say, the longest first.
function labelsOf(operation, { kind, is_stuck }) {
  const { buffer } = operation;
  const length = time(operation.duration_us);
  if (is_stuck) return [`${kind}: stuck`, "stuck"];
  if (kind === "kernel") return [`kernel ${buffer}  ${length}`, `kernel ${buffer}`, buffer];
  if (kind === "sleep") return [`sleep  ${length}`, "sleep"];
  const memory = operation.is_pinned ? "pinned" : "pageable";
  return [`${kind} ${buffer}, ${memory}  ${length}`, `${kind} ${buffer}`, buffer];
}

// Returns a flag for a record of an event, or an hourglass for a wait; both take no time.
function momentOf(kind, x, top) {
  const y = top + BAR;
  const flag = `M${x} ${y}V${top - 4}l11 5l-11 5`;
  const hourglass = `M${x - 6} ${top}h12l-12 ${BAR}h12z`;
  const style = `fill: var(--gpulab-${roleOf(kind)}); stroke-width: 1.5`;
  const d = kind === "record" ? flag : hourglass;
  const reach = { x: x - 8, y: top - 4, width: 18, height: BAR + 6, fill: "transparent" };
  return [
    drawn("path", { class: "body sign", d, style, stroke: "currentColor" }),
    drawn("rect", reach),
  ];
}

// Returns a stopwatch on a line: a reading of the clock takes almost no time, so it has no bar.
function stopwatch(x, top) {
  const look = { fill: "none", stroke: "currentColor", "stroke-width": 1.8 };
  const reach = { x: x - 7, y: top - 7, width: 14, height: BAR + 8, fill: "transparent" };
  return [
    drawn("rect", reach),
    drawn("path", { d: `M${x} ${top + BAR}V${top + 3}`, ...look }),
    drawn("circle", { class: "dial", cx: x, cy: top - 1, r: 4.5, ...look }),
  ];
}

// Returns a line below a copy: solid for pinned memory, dashed for pageable memory.
function memoryLine({ is_pinned }, x, right, top) {
  return drawn("path", {
    class: "memory",
    d: `M${x} ${top + BAR + 3}H${right}`,
    "stroke-dasharray": is_pinned ? "none" : "3 3",
  });
}

// Returns the invisible handle at the end of a bar, by which its length is dragged.
function handle(x, right, top) {
  const width = Math.min(END_PX, (right - x) / 2);
  const box = { x: right - width, y: top, width: width + END_PX, height: BAR };
  return drawn("rect", { class: "end", ...box });
}
