// The frame that both explorers share: sentences above, a form and the picture, buttons and a table below.

import { tag } from "../shared.js";
import { button } from "./controls.js";
import { pictureText, save, savePng, tableText } from "./download.js";
import { numbersTable } from "./table.js";
import look from "./look.css";

const NOTE = "Drag to zoom. Points: mouse, or ← → ↑ ↓ in the picture.";
const ALONE = "Without a kernel there are recorded numbers only; run the cell to measure your own.";

export class Frame {
  // `name` is that of the files; `rows` returns the numbers that are shown, `code` the line of Python
  // of this view, and `showAll` ends a zoom. `measure` and `stop` ask the kernel.
  constructor({ kind, style, hint, name, rows, showAll, code, measure, stop }) {
    this.title = tag("h2");
    this.detail = tag("p", { class: "detail" });
    this.told = tag("p", { class: "told", role: "status" }, hint);
    this.stage = tag("div", { class: "stage" });
    this.note = tag("span", { class: "note" }, NOTE);
    this.code = tag("input", {
      class: "code",
      readonly: "",
      hidden: "",
      "aria-label": "This view as code",
    });
    this.whole = button("Show all", "Back to the whole picture; key 0", () => {
      showAll();
      this.stage.querySelector(".plane").focus(); // the button goes away, and its focus would be lost
    });
    const plane = () => this.stage.querySelector(".plane"),
      picture = () => pictureText(plane(), this.title.textContent);
    this.buttons = tag(
      "div",
      { class: "buttons gpulab-controls" },
      this.note,
      this.whole,
      ...this.measuring(measure, stop),
      button("Share", "The line of Python that shows this view", () => this.share(code())),
      button("SVG", "Save the picture", () => save(`${name()}.svg`, "image/svg+xml", picture())),
      button("PNG", "Save the picture as pixels", () => savePng(`${name()}.png`, picture(), plane())),
      button("CSV", "Save the numbers", () => save(`${name()}.csv`, "text/csv", tableText(rows()))),
    );
    this.parts = tag(
      "div",
      { class: "parts" },
      tag("div", { class: "head" }, this.title, this.detail, this.told),
      this.stage,
      this.buttons,
    );
    this.table = numbersTable(rows);
    this.root = tag(
      "div",
      { class: `gpulab explorer ${kind}` },
      tag("style", {}, `${LOOK}${look}${style}`),
      this.parts,
      this.code,
      this.table,
    );
    // No plain key reaches the notebook; the shortcuts of JupyterLab with Ctrl or Cmd do.
    this.root.addEventListener(
      "keydown",
      event => event.ctrlKey || event.metaKey || event.stopPropagation(),
    );
  }

  measuring(measure, stop) {
    this.start = button("Measure here", "Time what is shown, on this machine", measure);
    this.halt = button("Stop", "Stop measuring; what is measured stays", stop);
    this.bar = tag("progress", { "aria-label": "Measured" });
    this.halt.hidden = this.bar.hidden = true;
    return [this.start, this.bar, this.halt];
  }

  add(...parts) {
    this.stage.before(...parts);
  }

  addButton(element) {
    this.buttons.append(element);
  }

  say(sentence) {
    if (this.told.textContent !== sentence) this.told.textContent = sentence;
  }

  show({ title, detail, note = "" }) {
    const texts = [
      [this.title, title.replaceAll(" = ", "\u00a0=\u00a0")],
      [this.detail, detail],
      [this.note, note + (this.isAlone ? ALONE : NOTE)],
    ];
    for (const [element, text] of texts) if (element.textContent !== text) element.textContent = text;
    this.code.hidden = true;
    this.table.renew();
  }

  showZoom(isZoomed) {
    this.whole.hidden = !isZoomed;
  }

  showKernel(isThere) {
    this.isAlone = !isThere;
    this.start.disabled = !isThere;
    this.start.title = isThere ? "Time what is shown, on this machine" : ALONE;
  }

  showProgress({ text, done, total }) {
    const isRunning = total > 0,
      focused = document.activeElement;
    this.start.hidden = isRunning;
    this.halt.hidden = this.bar.hidden = !isRunning;
    if (isRunning) Object.assign(this.bar, { value: done, max: total });
    this.say(text);
    // A button that goes away would lose the focus, and the next key would reach the notebook.
    if (focused === this.start && isRunning) this.halt.focus();
    if (focused === this.halt && !isRunning) this.start.focus();
  }

  share(text) {
    this.code.value = text;
    this.code.hidden = false;
    this.code.focus();
    this.code.select();
    navigator.clipboard?.writeText(text).then(
      () => this.say("Copied: one line of Python that shows this view."),
      () => this.say("Copy this line of Python: it shows this view."),
    );
  }
}
