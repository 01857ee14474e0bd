// A picture that grows while something runs. At the end Python puts a figure in its place.
//
// Its view has `title`, `note` and `panels`. A panel has the axes `x` and `y`, each with its `label`,
// `is_log`, `span` and `ticks` (null, or [place, name] for each row); `curves` with their `points`, `line`
// (solid, dashed, or none) and `dots` (filled, hollow, or none); `rules`, which are lines across the picture;
// `intervals` from one place to another; and `texts`.

import { Axis } from "../chart/axis.js";
import { Frame } from "../chart/frame.js";
import { lineNames } from "../chart/line_names.js";
import { Plane } from "../chart/plane.js";
import { digits, plain, timeText } from "../chart/quantities.js";
import { Reach } from "../chart/reach.js";
import { tag } from "../shared.js";
import style from "./look.css";

const LABEL = /^(.*) \((\S{1,6})\)$/, // a quantity and its unit
  SECONDS = { s: 1, ms: 1e-3, µs: 1e-6, ns: 1e-9 };

export class Live {
  constructor(host, view) {
    this.frame = new Frame({
      kind: "live",
      style,
      name: () => "live",
      rows: () => rowsOf(this.view.panels),
    });
    this.panels = [];
    this.show(view);
    host.replaceChildren(this.frame.root);
  }

  panel(place) {
    const host = tag("div", { class: "panel" });
    this.frame.stage.append(host);
    const redraw = () => this.draw(place);
    const { x, y } = this.view.panels[place];
    const axes = { x: axisOf(x), y: axisOf(y) };
    const plane = new Plane(host, { label: y.label || this.view.title, ...axes, redraw });
    return { plane, reach: new Reach(plane, sentence => this.frame.say(sentence)) };
  }

  show(view) {
    this.view = view;
    this.frame.show({ title: view.title, detail: view.note });
    if (this.panels.length !== view.panels.length) {
      this.frame.stage.replaceChildren();
      this.panels = view.panels.map((_, place) => this.panel(place));
    }
    for (const [place, { plane }] of this.panels.entries()) {
      const { x, y } = view.panels[place];
      for (const [axis, of] of [
        [plane.x, x],
        [plane.y, y],
      ]) {
        Object.assign(axis, { name: of.label, marked: of.ticks });
        axis.fit(of.span);
      }
      plane.leave(y.ticks?.map(([, name]) => name) ?? []);
      this.draw(place);
    }
  }

  draw(place) {
    const { plane, reach } = this.panels[place] ?? {},
      panel = this.view.panels[place];
    if (!plane?.width) return;
    const { x, y, layers } = plane;
    const pixels = panel.curves.map(({ points }) => points.map(at => [x.to(at[0]), y.to(at[1])]));
    plane.drawAxes();
    layers.back.draw([
      ...panel.rules.map(({ axis, value, colour }, i) => ({
        key: `rule ${i}`,
        tag: "line",
        class: "curve across",
        style: `--role: ${colour}`,
        ...(axis === "y" ? level(plane, y.to(value)) : upright(plane, x.to(value))),
      })),
      ...panel.intervals.map(({ from, to, colour }, i) => ({
        key: `interval ${i}`,
        tag: "line",
        class: "curve across",
        style: `--role: ${colour}`,
        ...{ x1: x.to(from[0]), x2: x.to(to[0]), y1: y.to(from[1]), y2: y.to(to[1]) },
      })),
    ]);
    layers.lines.draw(
      panel.curves.flatMap(({ line, colour }, i) =>
        line ? [{ key: `${i}`, tag: "polyline", class: `curve ${line}`, style: `--role: ${colour}`, points: pixels[i].flat() }] : [],
      ),
    );
    layers.points.draw(
      panel.curves.flatMap(({ dots, colour }, i) =>
        pixels[i].flatMap(([cx, cy], n) =>
          dots ? [{ key: `${i} ${n}`, tag: "circle", class: `point ${dots}`, style: `--role: ${colour}`, cx, cy, r: 5 }] : [],
        ),
      ),
    );
    const named = panel.curves.map(({ name, colour }, i) => ({ key: `${i}`, name, role: "", style: `--role: ${colour}` }));
    layers.above.draw([
      ...(panel.curves.length > 1 ? lineNames(plane, named, pixels).filter(({ text }) => text) : []),
      ...panel.rules.map(({ axis, value, name }, i) => ({
        key: `rule ${i}`,
        tag: "text",
        ...(axis === "y"
          ? { class: "tick", x: plane.right + 6, y: y.to(value) + 4 }
          : { ...besideUpright(panel.rules, value, x.to(value)), y: plane.top - 9 }),
        text: name,
      })),
      ...panel.texts.map(({ at, text }, i) => ({
        key: `text ${i}`,
        tag: "text",
        x: x.to(at[0]) + 10,
        y: y.to(at[1]) + 4,
        text,
      })),
    ]);
    reach.set(
      pixels.flatMap((along, i) =>
        along.map(([px, py], n) => ({
          key: `${i} ${n}`,
          series: i,
          x: px,
          y: py,
          describe: () => described(panel, panel.curves[i], n),
        })),
      ),
    );
  }

  close() {
    this.frame.close();
  }
}

function axisOf({ is_log }) {
  const tick = value => plain(Number(value.toPrecision(9)));
  return new Axis({ base: is_log ? 10 : 0, tick });
}

function level({ left, right }, y) {
  return { x1: left, x2: right, y1: y, y2: y };
}

function upright({ top, bottom }, x) {
  return { x1: x, x2: x, y1: top, y2: bottom };
}

// The name of the first of several upright lines is at its left, so that names of near lines do not meet.
function besideUpright(rules, value, at) {
  const isFirst = rules.some(rule => rule.axis === "x" && rule.value > value);
  return isFirst ? { class: "tick end", x: at - 3 } : { class: "tick", x: at + 3 };
}

// The quantity of an axis, and its value as a sentence has it: with three digits and a unit.
function quantity({ label, ticks }, value) {
  const row = ticks?.find(([place]) => place === value);
  if (row) return ["", row[1]];
  const [, name, unit] = label.match(LABEL) ?? ["", label, ""];
  if (unit in SECONDS) return [name, timeText(value * SECONDS[unit])];
  const number = Number.isInteger(value) ? plain(value) : digits(value);
  return [name, unit ? `${number} ${unit}` : number];
}

function described({ x, y }, { name, points }, n) {
  const texts = [quantity(y, points[n][1]), quantity(x, points[n][0])];
  const [first, second] = texts.map(([what, value]) => (what ? `${what}: ${value}` : value));
  const title = name ? `${name}, ${first}` : first;
  return { title, lines: [second], sentence: `${title}, ${second}.` };
}

// One row for each point, or one for each place if there are several panels. A quantity keeps its unit
// in the head, so that the file has plain numbers.
function rowsOf(panels) {
  const rows = new Map(),
    cell = ({ label, ticks }, value) => [label || "row", ticks?.find(([place]) => place === value)?.[1] ?? value];
  for (const { x, y, curves } of panels)
    for (const { name, points } of curves)
      for (const at of points) {
        const series = name && (curves.length > 1) ? { series: name } : {},
          key = panels.length > 1 ? at[0] : rows.size;
        rows.set(key, { ...rows.get(key), ...series, ...Object.fromEntries([cell(x, at[0]), cell(y, at[1])]) });
      }
  return [...rows.values()];
}
