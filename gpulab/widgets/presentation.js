// What all widgets share: the colours of the theme in use, and the presentation mode.

// Colours for a canvas, by their names in gpulab/palette.py; `isDark` tells which theme is in use.
// An element that is not on the page yet has no style, and takes the theme of the page.
function themeOf(root) {
  const ofPage = { true: "light", false: "dark" }[document.body.dataset.jpThemeLight];
  const scheme = root.isConnected ? getComputedStyle(root).colorScheme : ofPage;
  const isDark = scheme === "dark" || (scheme !== "light" && window.matchMedia("(prefers-color-scheme: dark)").matches);
  return { isDark, colour: name => COLOURS[name][isDark ? 1 : 0] };
}

// Shows a widget alone in the window, in large type, for a lecture hall. The key P, pressed in the
// widget, begins and ends it; Escape ends it; D changes between light and dark. `changed` is called
// with true or false, so that what is drawn on a canvas can follow the type.
class Presentation {
  constructor(root, changed = () => {}) {
    this.root = root;
    this.changed = changed;
    this.isOn = false;
    this.press = event => this.obey(event);
    root.classList.add("gpulab");
    root.addEventListener("keydown", this.press);
  }

  // A button for those who do not know the key.
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
    event.stopPropagation(); // the notebook must not take the key for its own
  }

  show(isOn) {
    if (isOn === this.isOn) return;
    const { root } = this;
    this.isOn = isOn;
    if (isOn) this.before = document.activeElement;
    // The notebook's panels confine what they contain; the top layer is outside of them.
    if (isOn && root.showPopover) {
      root.popover = "manual";
      root.showPopover();
    } else if (!isOn && root.popover) {
      root.hidePopover();
      root.popover = null;
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
