// Loads a widget's script as the browser gets it, and opens what it does not export to the tests.

import { readFileSync } from "node:fs";

const ROOT = new URL("../../", import.meta.url);
const SHARED = "gpulab/figures/widgets/shared.js";
// Styles and colours come from Python; no pure function reads them.
const STUBS = "const LOOK = '', COLOURS = {};";

// Returns an object with these functions and classes of a script.
export function inside(path, ...names) {
  const [shared, own] = [SHARED, path].map(each => readFileSync(new URL(each, ROOT), "utf-8"));
  const source = `${shared.replace(/^export /gm, "")}\n${own}`;
  const opened = `${STUBS}\n${source}\nexport { ${names.join(", ")} };`;
  return import(`data:text/javascript;base64,${Buffer.from(opened).toString("base64")}`);
}

// Returns an instance of a class without its constructor, which needs a page.
export function bare(kind, fields) {
  return Object.assign(Object.create(kind.prototype), fields);
}
