// Keeps keys that are pressed in a widget from the notebook, where D D would delete a cell.

const EDITING = "acvxyz"; // with Ctrl or Cmd, these edit a text or undo a step in the widget

// While the focus is inside of `root`, only Shift+Enter and keys with Ctrl or Cmd reach the
// notebook, without those for editing. Returns a function that ends this.
export function keepKeys(root) {
  const decide = deciding(new WeakRef(root));
  // For other front ends, after the widget has had the key.
  const stop = event => {
    if (!isForNotebook(event)) event.stopPropagation();
  };
  window.addEventListener("keydown", decide, true);
  root.addEventListener("keydown", stop);
  return () => {
    window.removeEventListener("keydown", decide, true);
    root.removeEventListener("keydown", stop);
  };
}

// JupyterLab listens on the document, before any element does; so this listens on the window. It
// does not keep the element of an output that was cleared.
function deciding(kept) {
  return function decide(event) {
    const root = kept.deref();
    if (!root) window.removeEventListener("keydown", decide, true);
    else if (root.contains(event.target))
      root.toggleAttribute("data-lm-suppress-shortcuts", !isForNotebook(event));
  };
}

function isForNotebook({ key, ctrlKey, metaKey, shiftKey }) {
  if (ctrlKey || metaKey) return !EDITING.includes(key.toLowerCase());
  return shiftKey && key === "Enter";
}
