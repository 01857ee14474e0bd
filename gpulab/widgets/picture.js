// A picture that the kernel draws, with what needs no answer from it: hints at the mouse, keys
// that go from point to point, and links to keep picture and data.

const STYLE = `
.gpulab-picture { color: var(--jp-ui-font-color1, CanvasText); font: 13px/1.4 var(--jp-ui-font-family, system-ui, sans-serif); }
.gpulab-picture .stage { position: relative; display: block; max-width: 100%; outline-offset: 2px; }
.gpulab-picture .stage:focus-visible { outline: 2px solid var(--jp-brand-color1, #1976d2); }
.gpulab-picture img { display: block; width: 100%; height: auto; }
.gpulab-picture .marks div { position: absolute; pointer-events: none; box-sizing: border-box; }
.gpulab-picture .marks .line { width: 1.4px; margin-left: -0.7px; background: #000; }
.gpulab-picture .marks .dot { width: 13px; height: 13px; margin: -6.5px; border: 2px solid #000; border-radius: 50%; }
.gpulab-picture .ring { position: absolute; width: 16px; height: 16px; margin: -8px; border: 2px solid #000; border-radius: 50%;
  box-shadow: 0 0 0 2px #fff; pointer-events: none; box-sizing: border-box; }
.gpulab-picture .tip { position: absolute; z-index: 5; pointer-events: none; padding: 4px 8px; white-space: pre;
  color: #111; background: #fff; border: 1px solid #767676; border-radius: 3px; box-shadow: 0 2px 6px rgb(0 0 0 / 30%); }
.gpulab-picture .empty { padding: 24px; border: 1px dashed var(--jp-border-color1, GrayText); border-radius: 3px; white-space: pre-line; font-size: 15px; }
.gpulab-picture .below { display: flex; flex-wrap: wrap; gap: 2px 16px; align-items: baseline; min-height: 1.5em; }
.gpulab-picture .below .keys { color: var(--jp-ui-font-color2, GrayText); margin-right: auto; }
.gpulab-picture .legend { display: flex; flex-wrap: wrap; gap: 0 18px; list-style: none; margin: 0 0 6px; padding: 0 0 0 8px; max-width: 760px; }
.gpulab-picture .legend li { display: inline-flex; gap: 6px; align-items: center; margin: 0; }
.gpulab-picture .legend svg { background: #fff; border-radius: 2px; flex: none; }
.gpulab-picture button { font: inherit; color: inherit; cursor: pointer; padding: 1px 8px; border-radius: 3px;
  background: var(--jp-layout-color1, Canvas); border: 1px solid var(--jp-border-color1, GrayText); }
.gpulab-picture .words p { margin: 2px 0; }
.gpulab-picture .words p:first-child { font-size: 15px; font-weight: 600; min-height: 1.5em; }
.gpulab-picture .table caption { text-align: left; font-weight: 600; }
.gpulab-picture .table td { text-align: right; white-space: nowrap; }
.gpulab-picture .table { max-height: 320px; overflow: auto; }
.gpulab-picture .told { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
.gpulab-picture [hidden] { display: none; }
`;
const NEAR_PX = 18;
const REST_MS = 600;
const SHAPES = { // in a box from -5 to 5
  o: "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z", s: "M-4 -4h8v8h-8z", "^": "M0 -4.5L4.5 4H-4.5z", v: "M0 4.5L4.5 -4H-4.5z",
  D: "M0 -5L5 0L0 5L-5 0z", P: "M-1.6 -5h3.2v3.4h3.4v3.2h-3.4v3.4h-3.2v-3.4h-3.4v-3.2h3.4z", X: "M-4 -4L4 4M4 -4L-4 4", _: "M-5 0H5",
};

export default { render };

function render({ model, el }) {
  const picture = new Picture(el, model);
  return () => picture.close();
}

function tag(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children); // strings become text: nothing of a name is ever markup
  return element;
}

// A vertical line from one place to another, or a dot where both are one; shares of the picture.
function mark([x, from, to]) {
  const element = tag("div", { class: from === to ? "dot" : "line" });
  element.style.left = `${100 * x}%`;
  element.style.top = `${100 * from}%`;
  if (from !== to) element.style.height = `${100 * (to - from)}%`;
  return element;
}

function drawn(name, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

function entry({ label, colour, marker, is_filled, line }) {
  const sign = drawn("svg", { viewBox: "-14 -7 28 14", width: 28, height: 14, "aria-hidden": "true" });
  if (line === "band") sign.append(drawn("rect", { x: -14, y: -5, width: 28, height: 10, fill: colour, "fill-opacity": 0.2 }));
  else if (line) sign.append(drawn("path", { d: "M-14 0H14", stroke: colour, "stroke-width": 2, "stroke-dasharray": line === "dashed" ? "5 3" : "none" }));
  const fill = is_filled && !"X_".includes(marker) ? colour : "none";
  if (marker) sign.append(drawn("path", { d: SHAPES[marker] || SHAPES.o, stroke: colour, "stroke-width": 1.5, fill }));
  return tag("li", {}, sign, label);
}

class Picture {
  constructor(el, model) {
    this.model = model;
    this.selected = -1;
    this.build(el);
    this.listening = [
      ["change:number", () => this.show()],
      ["change:table", () => this.fill()],
      ["msg:custom", (content, buffers) => this.keep(content.file, buffers[0])],
    ];
    for (const [name, action] of this.listening) model.on(name, action);
    this.fill();
    this.show();
    if (model.get("ratio") !== window.devicePixelRatio) {
      model.set("ratio", window.devicePixelRatio);
      model.save_changes();
    }
  }

  build(el) {
    this.image = tag("img", { alt: "", decoding: "sync" }); // in the frame that shows it
    this.marks = tag("div", { class: "marks" });
    this.ring = tag("div", { class: "ring", hidden: "" });
    this.tip = tag("div", { class: "tip", hidden: "" });
    this.told = tag("div", { class: "told", "aria-live": "polite" });
    this.empty = tag("p", { class: "empty", role: "status" });
    this.stage = tag("div", { class: "stage", tabindex: "0", role: "group", "aria-label": "Picture and its points" },
      this.image, this.marks, this.ring, this.tip);
    this.keys = tag("span", { class: "keys" }, "Points: mouse, or ← → here; Esc leaves.");
    this.files = tag("span", { class: "files" }, this.button("Download picture", ".png"), " ", this.button("Download data", ".csv"));
    const below = tag("div", { class: "below" }, this.keys, this.files);
    this.legend = tag("ul", { class: "legend", "aria-label": "Legend" });
    this.words = tag("div", { class: "words" });
    this.table = tag("div", { class: "table", tabindex: "0", role: "region", "aria-label": "Data" });
    this.data = tag("details", {}, tag("summary", {}, "Data as a table"), this.table);
    this.root = tag("div", { class: "gpulab-picture" }, tag("style", {}, STYLE),
      this.stage, this.legend, this.empty, this.words, this.told, below, this.data);
    el.append(this.root);
    this.stage.addEventListener("pointermove", event => this.point(event));
    this.stage.addEventListener("pointerleave", () => this.select(-1));
    this.stage.addEventListener("keydown", event => this.press(event));
    this.data.addEventListener("toggle", () => {
      this.model.set("is_open", this.data.open);
      this.model.save_changes();
    });
  }

  // The whole picture, with its legend, is drawn only for who wants to keep it.
  button(text, file) {
    const button = tag("button", { type: "button" }, text);
    button.addEventListener("click", () => this.model.send({ file }));
    return button;
  }

  keep(suffix, content) {
    const url = URL.createObjectURL(new Blob([content]));
    tag("a", { href: url, download: this.model.get("file") + suffix }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  }

  async show() {
    const model = this.model, number = model.get("number"), empty = model.get("empty");
    const png = model.get("png");
    if (!empty && png !== this.png) await this.swap(png);
    if (this.closed || number !== model.get("number")) return; // the next one is here already
    this.empty.textContent = empty;
    this.empty.hidden = !empty;
    this.stage.hidden = this.legend.hidden = this.files.hidden = this.data.hidden = Boolean(empty);
    this.spots = empty ? [] : model.get("spots");
    this.keys.hidden = !this.spots.length;
    this.image.alt = model.get("alt");
    this.legend.replaceChildren(...(empty ? [] : model.get("legend")).map(entry));
    this.marks.replaceChildren(...model.get("markers").map(mark));
    this.words.replaceChildren(...model.get("words").map(line => tag("p", {}, line)));
    this.select(Math.min(this.selected, this.spots.length - 1), false);
    this.speak();
    // The kernel draws the next one when this one is seen, so it must not be told too early.
    requestAnimationFrame(() => this.answer(number));
  }

  fill() {
    this.table.innerHTML = this.model.get("table"); // escaped where it was written
  }

  // Read out what is seen when nothing moves any more, not every step of a slider.
  speak() {
    clearTimeout(this.speaking);
    const text = this.model.get("empty") || this.model.get("words")[0] || "";
    this.speaking = setTimeout(() => { this.told.textContent = text; }, REST_MS);
  }

  async swap(png) {
    this.png = png;
    this.stage.style.width = `${this.model.get("width")}px`;
    const old = this.url;
    const loaded = new Promise(done => { this.image.onload = this.image.onerror = done; });
    this.image.src = this.url = URL.createObjectURL(new Blob([png], { type: "image/png" }));
    await loaded;
    if (old) URL.revokeObjectURL(old);
  }

  answer(number) {
    if (this.closed || number !== this.model.get("number")) return;
    this.image.dataset.number = number;
    this.model.set("shown", number);
    this.model.save_changes();
  }

  point(event) {
    const box = this.stage.getBoundingClientRect();
    const x = event.clientX - box.left, y = event.clientY - box.top;
    let best = -1, least = NEAR_PX;
    this.spots.forEach(([across, down], index) => {
      const far = Math.hypot(across * box.width - x, down * box.height - y);
      if (far < least) [best, least] = [index, far];
    });
    this.select(best);
  }

  press(event) {
    const last = this.spots.length - 1;
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    let next;
    if (step) next = this.selected < 0 && step < 0 ? last : this.selected + step;
    else if (event.key === "Home") next = 0;
    else if (event.key === "End") next = last;
    else if (event.key === "Escape") next = -1;
    else return;
    event.preventDefault();
    event.stopPropagation(); // the notebook must not take arrows for its own
    this.select(event.key === "Escape" ? -1 : Math.min(Math.max(next, 0), last));
  }

  select(index, tells = true) {
    const changed = index !== this.selected;
    this.selected = index;
    const spot = this.spots[index];
    this.ring.hidden = this.tip.hidden = !spot;
    if (!spot) return;
    const [across, down, text] = spot;
    const box = this.stage.getBoundingClientRect();
    const [x, y] = [across * box.width, down * box.height];
    this.ring.style.left = `${x}px`;
    this.ring.style.top = `${y}px`;
    this.tip.textContent = text;
    const right = x > box.width / 2, low = y > box.height / 2;
    this.tip.style.left = right ? "auto" : `${x + 14}px`;
    this.tip.style.right = right ? `${box.width - x + 14}px` : "auto";
    this.tip.style.top = low ? "auto" : `${y + 10}px`;
    this.tip.style.bottom = low ? `${box.height - y + 10}px` : "auto";
    if (changed && tells) this.told.textContent = text;
  }

  close() {
    this.closed = true;
    clearTimeout(this.speaking);
    for (const [name, action] of this.listening) this.model.off(name, action);
    if (this.url) URL.revokeObjectURL(this.url);
    this.root.remove();
  }
}
