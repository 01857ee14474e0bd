// Save what is seen: the picture as SVG with its colours written out, the numbers as CSV.

const STYLES = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-width",
  "stroke-opacity",
  "stroke-dasharray",
  "stroke-linejoin",
  "opacity",
  "font-family",
  "font-size",
  "font-weight",
  "font-style",
  "text-anchor",
  "paint-order",
];

export function pictureText(root, title) {
  const copy = root.cloneNode(true),
    shown = root.querySelectorAll("*");
  copy.querySelectorAll("*").forEach((element, index) => {
    const style = getComputedStyle(shown[index]);
    element.setAttribute("style", STYLES.map(name => `${name}:${style.getPropertyValue(name)}`).join(";"));
    element.removeAttribute("class");
  });
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  for (const side of ["width", "height"]) copy.setAttribute(side, root.getBoundingClientRect()[side]);
  copy.setAttribute("style", `background:${getComputedStyle(root).backgroundColor}`);
  copy.insertAdjacentHTML("afterbegin", "<title></title>");
  copy.firstElementChild.textContent = title;
  return new XMLSerializer().serializeToString(copy);
}

export function tableText(rows) {
  const quoted = value => (/[",\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
  if (!rows.length) return "";
  return [Object.keys(rows[0]), ...rows.map(Object.values)].map(row => row.map(quoted).join()).join("\n");
}

// Draws the picture on a canvas, with two pixels for each of the screen's.
export function savePng(name, text, { clientWidth, clientHeight }) {
  const image = new Image(),
    canvas = document.createElement("canvas");
  Object.assign(canvas, { width: 2 * clientWidth, height: 2 * clientHeight });
  Object.assign(image, { width: canvas.width, height: canvas.height });
  image.addEventListener("load", () => {
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob(blob => saveBlob(name, blob));
  });
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
}

export function save(name, type, text) {
  saveBlob(name, new Blob([text], { type }));
}

function saveBlob(name, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
