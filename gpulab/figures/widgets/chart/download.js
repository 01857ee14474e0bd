// Save what is seen: the picture as SVG with its colours written out, the numbers as CSV.

import { drawn } from "../shared.js";

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

// Returns pictures as one, each below the one before it: { text, width, height }.
export function pictureText(planes, title) {
  const boxes = planes.map(plane => plane.getBoundingClientRect());
  const width = Math.max(...boxes.map(box => box.width)),
    height = boxes.reduce((sum, box) => sum + box.height, 0);
  const whole = drawn("svg", { width, height }, drawn("title", {}, title));
  whole.setAttribute("style", `background:${getComputedStyle(planes[0]).backgroundColor}`);
  let y = 0;
  for (const [place, plane] of planes.entries()) {
    const copy = withStyles(plane);
    for (const [name, value] of Object.entries({ y, width: boxes[place].width, height: boxes[place].height }))
      copy.setAttribute(name, value);
    whole.append(copy);
    y += boxes[place].height;
  }
  return { text: new XMLSerializer().serializeToString(whole), width, height };
}

function withStyles(plane) {
  const copy = plane.cloneNode(true),
    shown = plane.querySelectorAll("*");
  copy.querySelectorAll("*").forEach((element, index) => {
    const style = getComputedStyle(shown[index]);
    element.setAttribute("style", STYLES.map(name => `${name}:${style.getPropertyValue(name)}`).join(";"));
    element.removeAttribute("class");
  });
  return copy;
}

export function tableText(rows) {
  const quoted = value => (/[",\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
  if (!rows.length) return "";
  return [Object.keys(rows[0]), ...rows.map(Object.values)].map(row => row.map(quoted).join()).join("\n");
}

// Draws the picture on a canvas, with two pixels for each of the screen's.
export function savePng(name, { text, width, height }) {
  const image = new Image(),
    canvas = document.createElement("canvas");
  Object.assign(canvas, { width: 2 * width, height: 2 * height });
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
