// A picture that grows while a GPU is under load: one panel for each reading, over one time axis. At the
// end Python puts a figure in its place.
//
// Its view has `title`, `note`, `span_s` (the time that the load takes), `times_s`, and `panels`: for
// each its `label`, `colour`, `values` (null where nothing is known), `limit` and `limit_name`.

import { Axis } from "../chart/axis.js";
import { Frame } from "../chart/frame.js";
import { Plane } from "../chart/plane.js";
import { digits } from "../chart/quantities.js";
import { Reach } from "../chart/reach.js";
import { tag } from "../shared.js";
import style from "./look.css";

const HEADROOM = 1.15; // from zero to above the highest value: a clock that falls a little looks so

export class Live {
  constructor(host, view) {
    this.frame = new Frame({
      kind: "live",
      style,
      name: () => "live",
      rows: () => this.rows(),
    });
    this.panels = view.panels.map(({ label }, place) => this.panel(label, place));
    this.show(view);
    host.replaceChildren(this.frame.root);
  }

  panel(label, place) {
    const host = tag("div", { class: "panel" });
    this.frame.stage.append(host);
    const x = new Axis({ tick: value => `${Number(value.toPrecision(3))} s` }),
      y = new Axis({ tick: value => value.toLocaleString("en"), name: label });
    const redraw = () => this.view && this.draw(place);
    const plane = new Plane(host, { label, x, y, redraw });
    return { plane, reach: new Reach(plane, sentence => this.frame.say(sentence)) };
  }

  show(view) {
    this.view = view;
    this.frame.show({ title: view.title, detail: view.note });
    for (const [place, { plane }] of this.panels.entries()) {
      const { values, limit } = view.panels[place];
      plane.x.fit([0, this.seconds(view)]);
      plane.y.fit([0, HEADROOM * Math.max(...values, limit ?? 0) || 1]);
      this.draw(place);
    }
  }

  // The axis doubles as the load goes on, so that a long one is not a line at the left border.
  seconds({ span_s, times_s }) {
    const last_s = times_s.at(-1) ?? 0;
    return Math.max(last_s, Math.min(span_s, 2 ** Math.ceil(Math.log2(Math.max(last_s, 1)))));
  }

  draw(place) {
    const { plane, reach } = this.panels[place],
      { label, colour, values, limit, limit_name } = this.view.panels[place];
    if (!plane.width) return;
    const { x, y, layers } = plane,
      points = this.view.times_s.flatMap((time_s, i) =>
        values[i] === null ? [] : [{ time_s, value: values[i], at: [x.to(time_s), y.to(values[i])] }],
      );
    plane.drawAxes();
    const height = limit === null ? null : y.to(limit);
    const ends = { x1: plane.left, x2: plane.right, y1: height, y2: height };
    const name = { x: plane.right + 6, y: height + 4, text: limit_name };
    layers.back.draw(limit === null ? [] : [{ key: "limit", tag: "line", class: "axis", ...ends }]);
    layers.above.draw(limit === null ? [] : [{ key: "limit", tag: "text", class: "tick", ...name }]);
    layers.lines.draw([
      {
        key: "curve",
        tag: "polyline",
        class: "curve",
        style: `--role: ${colour}`,
        points: points.flatMap(({ at }) => at),
      },
    ]);
    reach.set(
      points.map(({ time_s, value, at }, i) => ({
        key: `${i}`,
        series: label,
        x: at[0],
        y: at[1],
        describe: () => {
          const title = `${label}: ${digits(value)}`,
            after = `after ${time_s.toFixed(1)} s`;
          return { title, lines: [after], sentence: `${title} ${after}.` };
        },
      })),
    );
  }

  rows() {
    const { times_s, panels } = this.view;
    return times_s.map((time_s, i) => ({
      "time (s)": time_s,
      ...Object.fromEntries(panels.map(({ label, values }) => [label, values[i] ?? ""])),
    }));
  }

  close() {
    this.frame.close();
  }
}
