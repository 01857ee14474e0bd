// Code that all widgets share: new elements, the colours of the theme, and the presentation mode.

// Returns a new HTML element with attributes and children.
export function tag(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

// Returns a new SVG element with attributes and children.
export function drawn(name, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function filled(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children); // strings become text nodes, so a name is never read as markup
  return element;
}

// Returns whether the theme is dark, and a function for its colours by their names in
// gpulab/core/palette.py, for a canvas. An element that is not on the page yet has no style, so the theme
// of the page counts.
function themeOf(root) {
  const ofPage = { true: "light", false: "dark" }[document.body.dataset.jpThemeLight];
  const scheme = root.isConnected ? getComputedStyle(root).colorScheme : ofPage;
  const isDark = scheme === "dark" || (scheme !== "light" && window.matchMedia("(prefers-color-scheme: dark)").matches);
  return { isDark, colour: name => COLOURS[name][isDark ? 1 : 0] };
}

// Returns a duration in microseconds as text, as gpulab.core.units.format_time writes it: three digits,
// and the unit that suits the rounded number.
export function time(us) {
  const exponent = us === 0 ? 0 : Number((us / 1e6).toExponential(2).split("e")[1]);
  const power = us === 0 ? 0 : Math.min(Math.max(Math.floor(exponent / 3) * 3, -9), 0);
  const unit = { 0: "s", "-3": "ms", "-6": "µs", "-9": "ns" }[power];
  return `${(us * 10 ** (-6 - power)).toFixed(Math.max(0, 2 - exponent + power))} ${unit}`;
}

// Shows a widget alone in the window, in large type, for a lecture hall. The key P in the widget
// begins and ends it, Escape ends it, and D changes between light and dark. It calls `changed` with
// true or false, so that a canvas can be drawn in the new size.
export class Presentation {
  constructor(root, changed = () => {}) {
    this.root = root;
    this.changed = changed;
    this.isOn = false;
    this.press = event => this.obey(event);
    // While it is shown, no key may reach the page behind it, wherever the focus is.
    this.guard = event => {
      if (root.contains(event.target)) return;
      this.obey(event);
      if (!event.ctrlKey && !event.metaKey) event.stopPropagation();
    };
    this.exit = tag("button", { type: "button", class: "gpulab-exit", title: "End the presentation; key Esc" }, "✕");
    this.exit.addEventListener("click", () => this.show(false));
    root.classList.add("gpulab");
    root.addEventListener("keydown", this.press);
  }

  // Returns a button, for readers who do not know the key.
  button() {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "gpulab-controls";
    button.textContent = "Present";
    button.title = "Show it alone, in large type; key P. There, D changes light and dark, Esc ends it.";
    button.addEventListener("click", () => this.show(true));
    return button;
  }

  obey(event) {
    const isTyping = event.target.matches("input:not([type=range], [type=checkbox]), textarea, select, [contenteditable]");
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    const key = event.key.toLowerCase();
    if (key === "p") this.show(!this.isOn);
    else if (this.isOn && key === "escape") this.show(false);
    else if (this.isOn && key === "d") this.turn();
    else return;
    event.preventDefault();
    event.stopPropagation(); // otherwise the notebook takes the key as a command
  }

  show(isOn) {
    if (isOn === this.isOn) return;
    const { root } = this;
    this.isOn = isOn;
    if (isOn) this.before = document.activeElement;
    // A popover is in the browser's top layer. JupyterLab's panels would clip anything below it.
    if (isOn && root.showPopover) {
      root.popover = "manual";
      root.showPopover();
    } else if (!isOn && root.popover) {
      root.hidePopover();
      root.popover = null;
    }
    if (isOn) {
      root.append(this.exit);
      document.addEventListener("keydown", this.guard, true);
    } else {
      this.exit.remove();
      document.removeEventListener("keydown", this.guard, true);
    }
    root.classList.toggle("gpulab-presents", isOn);
    root.classList.remove("gpulab-on-light", "gpulab-on-dark");
    if (isOn && !root.contains(document.activeElement)) {
      root.tabIndex = -1;
      root.focus({ preventScroll: true });
    } else if (!isOn && this.before) {
      this.before.focus({ preventScroll: true });
    }
    this.changed(isOn);
  }

  turn() {
    const { isDark } = themeOf(this.root);
    this.root.classList.toggle("gpulab-on-light", isDark);
    this.root.classList.toggle("gpulab-on-dark", !isDark);
    this.changed(true);
  }

  close() {
    this.show(false);
    this.root.removeEventListener("keydown", this.press);
  }
}
