// The fields of a form. Their names and values are those of an explorer's state.

import { tag } from "../shared.js";

// One of a few choices, all in sight: radio buttons that look like one bar.
export function segments(name, legend, options, chosen) {
  const bar = tag("div", { "data-name": name }, ...options.map(option => segment(name, option, chosen)));
  return tag("fieldset", { class: "segments" }, tag("legend", {}, legend), bar);
}

function segment(name, [value, text], chosen) {
  const input = tag("input", { type: "radio", name, value });
  input.checked = value === chosen;
  return tag("label", {}, input, tag("span", {}, text));
}

// Gives a bar other options, if they differ from those that it has.
export function refill(form, name, options, chosen) {
  const bar = form.querySelector(`[data-name=${name}]`),
    inputs = [...bar.querySelectorAll("input")];
  const isSame = inputs.map(({ value }) => value).join() === options.map(([value]) => value).join();
  if (!isSame) bar.replaceChildren(...options.map(option => segment(name, option, chosen)));
  for (const input of bar.querySelectorAll("input")) input.checked = input.value === chosen;
}

// One of many choices, in groups.
export function menu(name, label, groups, chosen) {
  const select = tag(
    "select",
    { name },
    ...groups.flatMap(([group, options]) => {
      const offered = options.map(([value, text]) => tag("option", { value }, text));
      return group ? [tag("optgroup", { label: group }, ...offered)] : offered;
    }),
  );
  select.value = chosen;
  return tag("label", { class: "menu" }, tag("span", {}, label), select);
}

// A slider with its value as text beside it.
export function range(name, label, limits, output) {
  const slider = tag("input", { type: "range", name, "aria-label": label, ...limits });
  return tag("label", { class: "rate" }, slider, output);
}

export function button(text, title, pressed) {
  const element = tag("button", { type: "button", title }, text);
  element.addEventListener("click", pressed);
  return element;
}

// Disables the options of a menu that do not pass.
export function allow(select, passes) {
  for (const option of select.options) option.disabled = !passes(option.value);
}
