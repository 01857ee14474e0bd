// Select several of many names: each name is a button that is pressed or not. Names are grouped in
// families, and a family has a button that selects or clears all of its names.

const STYLE = `${LOOK}
.gpulab-chips { padding: 2px 0; border: 0; }
.gpulab-chips .family { display: flex; flex-wrap: wrap; gap: 3px 4px; align-items: center; margin: 2px 0; }
.gpulab-chips button { min-height: 26px; padding: 0 9px; border-radius: 13px; }
.gpulab-chips button[aria-pressed=true] { background: var(--gpulab-faint); border-color: var(--gpulab-ink); font-weight: 600; }
.gpulab-chips button[aria-pressed=true]::before { content: "✓ " / ""; }
.gpulab-chips button[aria-pressed=false] { color: var(--gpulab-muted); }
.gpulab-chips button.all { min-width: 8.5em; text-align: left; border-style: dashed; border-radius: 4px; }
.gpulab-chips button.all[aria-pressed=true] { border-style: solid; }
`;

export default { render };

function render({ model, el }) {
  const chips = new Chips(model, el);
  return () => chips.close();
}

class Chips {
  constructor(model, el) {
    this.model = model;
    this.root = document.createElement("div");
    this.root.className = "gpulab gpulab-chips";
    this.root.setAttribute("role", "group");
    this.root.setAttribute("aria-label", model.get("description"));
    el.append(this.root);
    this.build = () => this.make();
    this.mark = () => this.press();
    model.on("change:options", this.build);
    model.on("change:index", this.mark);
    this.make();
  }

  make() {
    const { model } = this, style = document.createElement("style");
    style.textContent = STYLE;
    this.buttons = [];
    const rows = this.families().map(([family, places]) => {
      const row = document.createElement("div");
      row.className = "family";
      row.append(this.button(family, places, "all"), ...places.map(place => this.button(model.get("options")[place], [place], "")));
      return row;
    });
    this.root.replaceChildren(style, ...rows);
    this.press();
  }

  // Returns each family with the places of its names among the options. A family of which no name is
  // offered is left out: the options change with the type, and the families do not.
  families() {
    const { model } = this, options = model.get("options");
    return model.get("families")
      .map(([family, names]) => [family, names.map(name => options.indexOf(name)).filter(place => place >= 0)])
      .filter(([, places]) => places.length);
  }

  button(text, places, kind) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = kind;
    button.textContent = text;
    button.addEventListener("click", () => this.turn(places));
    this.buttons.push([button, places]);
    return button;
  }

  turn(places) {
    const chosen = new Set(this.model.get("index"));
    // The button of a family clears it only if all of its names are selected.
    const isOn = places.every(place => chosen.has(place));
    for (const place of places) if (isOn) chosen.delete(place); else chosen.add(place);
    this.model.set("index", [...chosen].sort((one, other) => one - other));
    this.model.save_changes();
  }

  press() {
    const chosen = new Set(this.model.get("index"));
    for (const [button, places] of this.buttons) button.setAttribute("aria-pressed", places.every(place => chosen.has(place)));
  }

  close() {
    this.model.off("change:options", this.build);
    this.model.off("change:index", this.mark);
    this.root.remove();
  }
}
