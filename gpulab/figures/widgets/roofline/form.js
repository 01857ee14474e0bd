// The choices of the roofline: GPUs, the model, the picture, type, cache, and the sizes by their bytes.

import { allow, menu, range, segments } from "../chart/controls.js";
import { bytesText } from "../chart/quantities.js";
import { tag } from "../shared.js";
import { tableName } from "./points.js";

const VIEWS = [
  ["roofline", "roofline"],
  ["prediction against measurement", "times"],
];
const same = names => names.map(name => [name, name]);

export class Form {
  constructor(data, state, changed) {
    this.data = data;
    this.bytes = tag("span", { class: "value" });
    const gpus = Object.entries(data.gpus).map(([id, { name, source, file }]) => [
      id,
      `${name}, ${file || source}`,
    ]);
    this.root = tag(
      "form",
      {},
      segments("model", "Model", same(["plain", "refined"]), state.model),
      segments("view", "Picture", VIEWS, state.view),
      segments("dtype", "Type", same(data.dtypes), state.dtype),
      segments("cache", "Cache", same(["cold", "hot"]), state.cache),
      menu("gpu", "GPU", [[null, gpus]], state.gpu),
      menu("beside", "Second GPU", [[null, [["", "none"], ...gpus]]], state.beside),
      tag(
        "div",
        { class: "spans" },
        tag("span", { class: "label" }, "Bytes moved"),
        range("span", "Bytes moved", { min: 0, max: data.spans.length - 1, step: 1 }, this.bytes),
      ),
    );
    this.root.addEventListener("submit", event => event.preventDefault());
    this.root.addEventListener("input", ({ target: { name, value } }) => {
      if (name === "span") changed(name, data.spans[value], true);
      else changed(name, value, false);
    });
  }

  // What has no numbers here can be chosen only if a kernel can compute or measure them.
  settled(state, hasKernel) {
    const { gpus, spans } = this.data,
      fields = this.root.elements,
      has = (id, choices = state) => tableName(choices) in gpus[id].tables;
    allow(fields.gpu, id => hasKernel || id === state.gpu || has(id));
    allow(fields.beside, id => hasKernel || id === "" || id === state.beside || has(id));
    for (const name of ["dtype", "cache"])
      for (const input of fields[name])
        input.disabled = !hasKernel && !has(state.gpu, { ...state, [name]: input.value });
    for (const name of ["model", "view", "dtype", "cache", "gpu", "beside"])
      fields[name].value = state[name];
    fields.span.value = spans.indexOf(state.span);
    const text = state.span === null ? "all sizes" : `about ${bytesText(state.span)}`;
    fields.span.setAttribute("aria-valuetext", text);
    this.bytes.textContent = text;
    return state;
  }
}
