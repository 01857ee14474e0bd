// The crossover explorer: CPU against GPU, with a handle on the picture and a sentence for each change.

import { Explorer } from "../chart/explorer.js";
import { Axis } from "../chart/axis.js";
import { button } from "../chart/controls.js";
import { Plane } from "../chart/plane.js";
import { sizeTick, timeTick } from "../chart/quantities.js";
import { Reach } from "../chart/reach.js";
import { fits, lacksNumbers, spans, view } from "./curves.js";
import { Form } from "./form.js";
import { Handle } from "./handle.js";
import { handleMarks } from "./handle_marks.js";
import style from "./look.css";
import { Picture, curvesOf } from "./picture.js";
import * as words from "./words.js";

const HINT = "Drag the black handle, or change the link: this line says what it changes.";
const LABEL = "Time of a call over its size. Arrow keys go from point to point.";

export class CrossoverExplorer extends Explorer {
  moveMs = 450;

  constructor(host, data) {
    super(host, data, { kind: "crossover", style, hint: HINT });
    this.form = new Form(data, this.state, (...change) => this.choose(...change));
    this.form.root.addEventListener("change", () => {
      this.dragged = null; // the slider was let go
    });
    this.frame.add(this.form.root);
    const x = new Axis({ base: 2, tick: sizeTick }),
      y = new Axis({ base: 10, tick: timeTick, name: "time of a call" });
    this.plane = new Plane(this.frame.stage, { label: LABEL, x, y, redraw: ms => this.draw(ms) });
    this.picture = new Picture(this.plane, data);
    this.reach = new Reach(this.plane, sentence => this.frame.say(sentence));
    this.handle = new Handle(this.plane, size => this.slide(size));
    this.fitted = button("Fits", "Lines of a fixed cost and a rate", () => this.showFits());
    this.fitted.setAttribute("aria-pressed", false);
    this.whole.before(this.fitted);
    this.settle();
    this.update();
  }

  showFits() {
    this.areFitsShown = !this.areFitsShown;
    this.fitted.setAttribute("aria-pressed", this.areFitsShown);
    this.draw();
    this.frame.say(this.areFitsShown ? words.fitted(fits(this.data, this.view)) : "Without the fits.");
  }

  settled(state) {
    return this.form.settled(state, this.model !== null);
  }

  lacks(state) {
    return lacksNumbers(this.data, state);
  }

  // While a slider is dragged, what changed is told against the view at the start of the drag.
  told(name) {
    return words.change(this.data, name, this.before, this.view);
  }

  slide(size) {
    this.state = { ...this.state, size };
    this.tellKernel();
    this.view = { ...this.view, state: this.state };
    this.tell();
    this.drawHandle();
  }

  update(ms) {
    this.fit();
    this.view = view(this.data, this.state);
    this.tell();
    this.draw(ms);
  }

  // The sentences come before the picture, because they leave it its height.
  tell() {
    const { view, data } = this;
    const detail = words.atHandle(data, view);
    this.show({ title: words.headline(data, view), detail, note: words.origin(data, view) });
  }

  // The axes stand still, unless the operation or the type changes.
  fit() {
    const {
        plane: { x, y },
        data,
        state,
      } = this,
      shown = `${state.workload} ${state.dtype}`;
    if (shown !== this.shown) [x.span, y.span] = [x.full, y.full];
    this.shown = shown;
    const [sizes, times] = spans(data, state),
      [low, high] = sizes;
    x.fit(sizes);
    y.fit(times);
    x.name = `size n (${data.operations[state.workload].size_is})`;
    if (state.size < low || state.size > high)
      this.state = { ...state, size: Math.round(Math.sqrt(low * high)) };
  }

  draw(ms = 0) {
    if (!this.plane.width) return;
    this.whole.hidden = !this.plane.isZoomed;
    this.plane.drawAxes(ms);
    this.picture.draw(this.view, this.areFitsShown ? fits(this.data, this.view).lines : [], ms);
    this.reach.set(this.picture.points(this.view));
    this.drawHandle();
  }

  drawHandle() {
    const sentence = words.atHandle(this.data, this.view);
    this.handle.draw(handleMarks(this.plane, this.view), this.state.size, sentence);
  }

  rows() {
    return [...curvesOf(this.view), ...this.view.own].flatMap(({ name, sizes, ...times }) =>
      sizes.map((size, place) => ({
        curve: name,
        size,
        ...Object.fromEntries(
          ["median_s", "low_s", "high_s"].map(end => [end, (times[end] ?? times.median_s)[place]]),
        ),
      })),
    );
  }
}
