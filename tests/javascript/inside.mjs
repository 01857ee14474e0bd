// Loads a file of a widget with all that it imports, and opens what it does not export to the tests.

import { readFileSync } from "node:fs";

const ROOT = new URL("../../", import.meta.url);
const IMPORT = /^import ([^;]+?) from "([^"]+)";$/gm;
// Styles and colours come from Python; no pure function reads them.
const STUBS = "const LOOK = '', COLOURS = {};";

// Returns an object with these functions and classes of a file.
export function inside(path, ...names) {
  return import(addressOf(new URL(path, ROOT), `export { ${names.join(", ")} };`));
}

// Returns the address of a module that contains its own text. A file of styles is an empty text.
function addressOf(url, end) {
  if (url.pathname.endsWith(".css")) return encoded("export default '';");
  const text = readFileSync(url, "utf-8").replace(
    IMPORT,
    (_, names, path) => `import ${names} from "${addressOf(new URL(path, url), "")}";`,
  );
  const inner = end ? text.replace(/^export (?=function|class|const)/gm, "") : text;
  return encoded(`${STUBS}\n${inner}\n${end}`);
}

function encoded(text) {
  return `data:text/javascript;base64,${Buffer.from(text).toString("base64")}`;
}

// Returns an instance of a class without its constructor, which needs a page.
export function bare(kind, fields) {
  return Object.assign(Object.create(kind.prototype), fields);
}
