// A picture that the kernel draws, and everything that needs no answer of the kernel: tooltips, keys
// that go from point to point, and buttons to download picture and data.

const STYLE = `${LOOK}
.gpulab-picture { padding: 2px; }
.gpulab-picture .stage { position: relative; display: block; width: 100%; outline-offset: 2px;
  max-width: max(840px, 85vh * var(--shape, 1.8)); } /* not higher than the window, and no text under 12 px */
.gpulab-picture.gpulab-presents .stage { max-width: calc((100vh - 9em) * var(--shape)); margin: auto; }
.gpulab-picture img { display: block; width: 100%; height: auto; }
.gpulab-picture .marks div { position: absolute; pointer-events: none; box-sizing: border-box; }
.gpulab-picture .marks .line { width: 1.4px; margin-left: -0.7px; background: var(--gpulab-ink); }
.gpulab-picture .marks .dot { width: 13px; height: 13px; margin: -6.5px; border: 2px solid var(--gpulab-ink); border-radius: 50%; }
.gpulab-picture .ring { position: absolute; width: 16px; height: 16px; margin: -8px; border: 2px solid var(--gpulab-ink); border-radius: 50%;
  box-shadow: 0 0 0 2px var(--gpulab-paper); pointer-events: none; box-sizing: border-box; }
.gpulab-picture .tip { position: absolute; z-index: 5; pointer-events: none; padding: 4px 8px; white-space: pre;
  background: var(--gpulab-paper); border: 1px solid var(--gpulab-muted); border-radius: 3px; box-shadow: 0 2px 6px rgb(0 0 0 / 30%); }
.gpulab-picture .empty { padding: 24px; border: 1px dashed var(--gpulab-muted); border-radius: 3px; white-space: pre-line; }
.gpulab-picture .below { display: flex; flex-wrap: wrap; gap: 2px 16px; align-items: baseline; min-height: 1.5em; }
.gpulab-picture .below .keys { color: var(--gpulab-muted); margin-right: auto; }
.gpulab-picture .legend { display: flex; flex-wrap: wrap; gap: 0 18px; list-style: none; margin: 0 0 6px; padding: 0 0 0 8px; }
.gpulab-picture .legend li { display: inline-flex; gap: 6px; align-items: center; margin: 0; }
.gpulab-picture .legend svg { flex: none; }
.gpulab-picture button { padding: 0 8px; }
.gpulab-picture .words p { margin: 2px 0; }
.gpulab-picture .words p:first-child { font-size: 1.15em; font-weight: 600; min-height: 1.5em; }
.gpulab-picture .table caption { text-align: left; font-weight: 600; }
.gpulab-picture .table td { text-align: right; white-space: nowrap; }
.gpulab-picture .table { max-height: 320px; overflow: auto; }
.gpulab-picture .progress { margin: 2px 0; }
.gpulab-picture progress { width: 100%; height: 10px; accent-color: var(--gpulab-cold); }
.gpulab-picture .code code { display: inline-block; padding: 2px 6px; border: 1px solid var(--gpulab-faint); overflow-wrap: anywhere; color: inherit; background: none; }
.gpulab-picture .told { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
.gpulab-picture [hidden] { display: none; }
`;
const NEAR_PX = 18;
const REST_MS = 600;
const MOST_SHARPNESS = 2; // device pixels for each CSS pixel; more is hardly visible
const SHAPES = { // matplotlib's markers as paths, in a box from -5 to 5
  o: "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z", s: "M-4 -4h8v8h-8z", "^": "M0 -4.5L4.5 4H-4.5z", v: "M0 4.5L4.5 -4H-4.5z",
  D: "M0 -5L5 0L0 5L-5 0z", P: "M-1.6 -5h3.2v3.4h3.4v3.2h-3.4v3.4h-3.2v-3.4h-3.4v-3.2h3.4z", X: "M-4 -4L4 4M4 -4L-4 4", _: "M-5 0H5",
};

export default { render };

function render({ model, el }) {
  const picture = new Picture(el, model);
  return () => picture.close();
}

// Returns a vertical line, or a dot if both ends are equal; positions are shares of the picture.
function mark([x, from, to]) {
  const element = tag("div", { class: from === to ? "dot" : "line" });
  element.style.left = `${100 * x}%`;
  element.style.top = `${100 * from}%`;
  if (from !== to) element.style.height = `${100 * (to - from)}%`;
  return element;
}

function entry({ label, colour, marker, is_filled, line }) {
  const sign = drawn("svg", { viewBox: "-14 -7 28 14", width: 28, height: 14, "aria-hidden": "true" });
  if (line === "band") sign.append(drawn("rect", { x: -14, y: -5, width: 28, height: 10, fill: colour, "fill-opacity": 0.2 }));
  else if (line) sign.append(drawn("path", { d: "M-14 0H14", stroke: colour, "stroke-width": 2, "stroke-dasharray": line === "dashed" ? "5 3" : "none" }));
  const fill = is_filled && !"X_|".includes(marker) ? colour : "none";
  if (marker) sign.append(drawn("path", { d: SHAPES[marker] || SHAPES.o, stroke: colour, "stroke-width": 1.5, fill }));
  return tag("li", {}, sign, label);
}

class Picture {
  constructor(el, model) {
    this.model = model;
    this.selected = -1;
    this.root = tag("div", { class: "gpulab-picture" });
    this.presentation = new Presentation(this.root, () => this.measurePage());
    this.build(el);
    this.listening = [
      ["change:progress", () => this.report()],
      ["change:number", () => this.show()],
      ["change:table", () => this.fill()],
      ["msg:custom", (content, buffers) => this.keep(content.file, buffers[0])],
    ];
    for (const [name, action] of this.listening) model.on(name, action);
    this.watch();
    this.fill();
    this.report();
    this.show();
  }

  // Observes size and theme of the page, so that the kernel draws sharply and on the right paper.
  watch() {
    this.observers = [new ResizeObserver(() => this.measurePage()), new MutationObserver(() => this.measurePage())];
    this.observers[0].observe(this.stage);
    this.observers[1].observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "class"] });
    this.measurePage();
  }

  measurePage() {
    const { model } = this;
    const scale = (this.stage.clientWidth || this.root.clientWidth || model.get("width")) / (model.get("width") || 1);
    const wanted = Math.min(MOST_SHARPNESS, window.devicePixelRatio * Math.max(1, scale));
    const ratio = Math.ceil(wanted * 4) / 4; // in steps, or a resized window would ask for a picture at each pixel
    const dark = themeOf(this.root).isDark;
    if (ratio === this.sent?.ratio && dark === this.sent.dark) return;
    this.sent = { ratio, dark };
    model.send(this.sent);
  }

  build(el) {
    this.image = tag("img", { alt: "", decoding: "sync" }); // decoding: "sync", so that words and marks never change a frame before the picture.
    this.marks = tag("div", { class: "marks" });
    this.ring = tag("div", { class: "ring", hidden: "" });
    this.tip = tag("div", { class: "tip", hidden: "" });
    this.told = tag("div", { class: "told", "aria-live": "polite" });
    this.empty = tag("p", { class: "empty", role: "status" });
    this.bar = tag("progress", { "aria-label": "Measuring" });
    this.step = tag("span", { role: "status" });
    this.progress = tag("div", { class: "progress", hidden: "" }, this.step, this.bar);
    this.stage = tag("div", { class: "stage", tabindex: "0", role: "group", "aria-label": "Picture and its points" },
      this.image, this.marks, this.ring, this.tip);
    this.keys = tag("span", { class: "keys" }, "Points: mouse, or ← → here; Esc leaves.");
    this.files = tag("span", { class: "files" }, this.button("Download picture", ".png"), " ", this.button("Download data", ".csv"), " ", this.presentation.button());
    const below = tag("div", { class: "below gpulab-controls" }, this.keys, this.files);
    this.legend = tag("ul", { class: "legend", "aria-label": "Legend" });
    this.words = tag("div", { class: "words" });
    this.table = tag("div", { class: "table", tabindex: "0", role: "region", "aria-label": "Data" });
    this.data = tag("details", { class: "gpulab-controls" }, tag("summary", {}, "Data as a table"), this.table);
    this.code = tag("code");
    const code = tag("details", { class: "code gpulab-controls" }, tag("summary", {}, "This view as code"), this.code, " ", this.copier());
    this.root.append(tag("style", {}, STYLE), this.words,
      this.progress, this.stage, this.legend, this.empty, this.told, below, this.data, code);
    el.append(this.root);
    this.stage.addEventListener("pointermove", event => this.point(event));
    this.stage.addEventListener("pointerleave", () => this.select(-1));
    this.stage.addEventListener("keydown", event => this.press(event));
    this.data.addEventListener("toggle", () => {
      this.model.send({ is_open: this.data.open });
    });
  }

  // Returns a button for a download. The kernel makes the file only when the button is pressed.
  button(text, file) {
    const button = tag("button", { type: "button" }, text);
    button.addEventListener("click", () => this.model.send({ file }));
    return button;
  }

  copier() {
    const button = tag("button", { type: "button" }, "Copy");
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(this.code.textContent);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 2_000);
    });
    return button;
  }

  // Shows the progress of a measurement; a total of 0 means that none is running.
  report() {
    const progress = this.model.get("progress");
    this.progress.hidden = !progress.text;
    this.bar.hidden = !progress.total;
    this.step.textContent = progress.text || "";
    this.bar.max = progress.total || 1;
    this.bar.value = progress.done || 0;
  }

  keep(suffix, content) {
    const url = URL.createObjectURL(new Blob([content]));
    tag("a", { href: url, download: this.model.get("file") + suffix }).click();
    // Later, because the browser may read the file only after click() has returned.
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  }

  async show() {
    const model = this.model, number = model.get("number"), empty = model.get("empty");
    const png = model.get("png");
    if (!empty && png !== this.png) await this.swap(png);
    if (this.closed || number !== model.get("number")) return; // a newer picture has arrived meanwhile
    this.empty.textContent = empty;
    this.code.textContent = model.get("code");
    this.empty.hidden = !empty;
    const legend = empty ? [] : model.get("legend");
    this.stage.hidden = this.files.hidden = this.data.hidden = Boolean(empty);
    this.legend.hidden = !legend.length;
    this.spots = empty ? [] : model.get("spots");
    this.keys.hidden = !this.spots.length;
    this.image.alt = model.get("alt");
    this.legend.replaceChildren(...legend.map(entry));
    this.marks.replaceChildren(...model.get("markers").map(mark));
    this.words.replaceChildren(...model.get("words").map(line => tag("p", {}, line)));
    this.select(Math.min(this.selected, this.spots.length - 1), false);
    this.speak();
    // In the next frame, when the picture is visible: the kernel draws the next one after this message.
    requestAnimationFrame(() => this.answer(number));
  }

  fill() {
    this.table.innerHTML = this.model.get("table"); // Python has escaped every cell
  }

  // Announces the main sentence after a rest, so that a screen reader does not read every step of a
  // slider.
  speak() {
    clearTimeout(this.speaking);
    const text = this.model.get("empty") || this.model.get("words")[0] || "";
    this.speaking = setTimeout(() => { this.told.textContent = text; }, REST_MS);
  }

  async swap(png) {
    this.png = png;
    const old = this.url;
    const loaded = new Promise(done => { this.image.onload = this.image.onerror = done; });
    this.image.src = this.url = URL.createObjectURL(new Blob([png], { type: "image/png" }));
    await loaded;
    const { naturalWidth, naturalHeight } = this.image;
    this.root.style.setProperty("--shape", naturalHeight ? naturalWidth / naturalHeight : 1.7);
    if (old) URL.revokeObjectURL(old);
  }

  answer(number) {
    if (this.closed || number !== this.model.get("number")) return;
    this.image.dataset.number = number;
    this.model.send({ shown: number });
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
    else if (event.key === "Escape" && this.selected >= 0) next = -1; // without a selection, Escape ends the presentation
    else return;
    event.preventDefault();
    event.stopPropagation(); // otherwise the notebook takes the arrows as commands
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
    if (!changed || !tells) return;
    clearTimeout(this.speaking); // the words of the picture would replace those of the point
    this.told.textContent = text;
  }

  close() {
    this.closed = true;
    clearTimeout(this.speaking);
    for (const observer of this.observers) observer.disconnect();
    this.presentation.close();
    for (const [name, action] of this.listening) this.model.off(name, action);
    if (this.url) URL.revokeObjectURL(this.url);
    this.root.remove();
  }
}
