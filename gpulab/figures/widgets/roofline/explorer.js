// The roofline explorer: what a model predicts against what was measured, operation by operation.

import { Explorer } from "../chart/explorer.js";
import { Axis } from "../chart/axis.js";
import { Plane } from "../chart/plane.js";
import { Reach } from "../chart/reach.js";
import { fitAxes } from "./axes.js";
import { Form } from "./form.js";
import { Legend } from "./legend.js";
import style from "./look.css";
import { Picture } from "./picture.js";
import { floorOf, pointsOf, roofsOf, sheetOf, tableName } from "./points.js";
import * as words from "./words.js";

const HINT = "Switch the model, and see each prediction move towards its measurement.";
const LABEL = "Points of the roofline. Arrow keys go from point to point.";
const DODGED = "Sizes of equal intensity hang side by side, small ones left. ";

export class RooflineExplorer extends Explorer {
  moveMs = 900;

  constructor(host, data) {
    super(host, data, { kind: "roofline", style, hint: HINT });
    this.names = data.families.flatMap(([, members]) => members);
    this.legend = new Legend(data.families, this.state.operations, (...change) => this.filter(...change));
    this.form = new Form(data, this.state, (...change) => this.choose(...change));
    this.frame.add(this.form.root, this.legend.root);
    const axes = { x: new Axis({ base: 10 }), y: new Axis({ base: 10 }) };
    this.plane = new Plane(this.frame.stage, { label: LABEL, ...axes, redraw: ms => this.draw(ms) });
    this.picture = new Picture(this.plane);
    this.reach = new Reach(this.plane, sentence => this.frame.say(sentence));
    this.settle();
    this.update();
  }

  settled(state) {
    return this.form.settled(state, this.model !== null);
  }

  lacks(state) {
    const { gpus } = this.data;
    return [state.gpu, state.beside].some(
      id => id && gpus[id].source === "computed" && !(tableName(state) in gpus[id].tables),
    );
  }

  told(name) {
    const { points, state } = this.view;
    if (name === "model" && points.length)
      return words.switched(points, this.before.state.model, state.model);
    return words.counted(points, this.names.length);
  }

  filter(operations, members, areOn) {
    const what = members.length > 1 ? `${members.length} operations` : members[0];
    const sentence = () => `${what} ${areOn ? "shown" : "hidden"}: ${this.view.points.length} points.`;
    this.change({ operations: this.names.filter(name => operations.has(name)) }, 0, sentence);
  }

  update(ms) {
    const { data, state, plane } = this,
      points = pointsOf(data, state, state.gpu);
    const hasSecond = state.beside !== "" && state.beside !== state.gpu,
      others = hasSecond ? pointsOf(data, state, state.beside) : [];
    this.view = {
      state,
      points,
      roofs: roofsOf(data, state.gpu, points),
      floor: state.view === "roofline" ? null : floorOf(data, state.gpu),
      second: others.length ? { points: others, roofs: roofsOf(data, state.beside, others) } : null,
    };
    const possible = pointsOf(data, { ...state, operations: this.names, span: null }, state.gpu);
    this.legend.show(new Set(state.operations), new Set(possible.map(point => point.operation)));
    const shown = [
      state.view,
      state.dtype,
      state.cache,
      state.gpu,
      state.beside,
      ...state.operations,
    ].join();
    if (shown !== this.shown) for (const axis of [plane.x, plane.y]) axis.span = axis.full;
    this.shown = shown;
    fitAxes(plane, this.view);
    this.tell();
    this.draw(ms);
  }

  // The sentences come before the picture, because they leave it its height.
  tell() {
    const { points, state, second } = this.view;
    const compared = second ? `${words.beside(this.data, this.view)} ` : "",
      hangs = state.view === "roofline" ? DODGED : "";
    this.show({
      title: words.headline(this.data, points, state),
      detail: compared || words.explained(points, this.names.length),
      note: `${words.origin(this.data, state)}${hangs}`,
    });
  }

  draw(ms = 0) {
    const { view, plane } = this;
    if (!plane.width) return;
    this.whole.hidden = !plane.isZoomed;
    plane.drawAxes(ms);
    this.picture.draw(view, ms);
    const sheets = id => (id ? sheetOf(this.data, id) : undefined);
    this.reach.set(this.picture.points(view, sheets(view.state.gpu), sheets(view.state.beside)));
  }

  rows() {
    const { points, second } = this.view;
    return [...points, ...(second?.points ?? [])].map(({ key, family, operation, ...row }) => ({
      operation,
      ...row,
    }));
  }
}
