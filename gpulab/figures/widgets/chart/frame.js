// The frame of every picture on a plane: sentences above, the picture, buttons and a table below.

import { keepKeys } from "../keys.js";
import { Presentation, tag } from "../shared.js";
import { button } from "./controls.js";
import { pictureText, save, savePng, tableText } from "./download.js";
import { numbersTable } from "./table.js";
import look from "./look.css";

const PRESENTED_PX = [1100, 640]; // the size at which a frame is presented, enlarged to the window

export class Frame {
  // `kind` is a class of CSS, and `name` returns that of the files; `rows` returns the numbers that
  // are shown. `buttons` come before those that save.
  constructor({ kind, style = "", hint = "", name, rows, buttons = [] }) {
    this.title = tag("h2");
    this.detail = tag("p", { class: "detail" });
    this.told = tag("p", { class: "told", role: "status" }, hint);
    this.stage = tag("div", { class: "stage" });
    this.note = tag("span", { class: "note" });
    const planes = () => [...this.stage.querySelectorAll(".plane")],
      picture = () => pictureText(planes(), this.title.textContent);
    this.saves = tag(
      "span",
      { class: "saves gpulab-controls" },
      button("SVG", "Save the picture", () => save(`${name()}.svg`, "image/svg+xml", picture().text)),
      button("PNG", "Save the picture as pixels", () => savePng(`${name()}.png`, picture())),
      button("CSV", "Save the numbers", () => save(`${name()}.csv`, "text/csv", tableText(rows()))),
    );
    this.buttons = tag("div", { class: "buttons" }, this.note, ...buttons, this.saves);
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
      { class: `gpulab charted ${kind}` },
      tag("style", {}, `${LOOK}${look}${style}`),
      this.parts,
      this.table,
    );
    this.freeKeys = keepKeys(this.root);
    this.presentation = new Presentation(this.root, () => this.enlarge());
    this.saves.append(this.presentation.button());
  }

  // In a presentation everything is so large that the whole frame fills the window.
  enlarge() {
    const [width, height] = PRESENTED_PX;
    this.root.style.setProperty("--zoom", Math.max(1, Math.min(innerWidth / width, innerHeight / height)));
  }

  add(...parts) {
    this.stage.before(...parts);
  }

  say(sentence) {
    if (this.told.textContent !== sentence) this.told.textContent = sentence;
  }

  show({ title, detail = "", note = "" }) {
    const texts = [
      [this.title, title.replaceAll(" = ", "\u00a0=\u00a0")],
      [this.detail, detail],
      [this.note, note],
    ];
    for (const [element, text] of texts) if (element.textContent !== text) element.textContent = text;
    this.table.renew();
  }

  close() {
    this.freeKeys();
    this.presentation.close();
    this.root.remove();
  }
}
