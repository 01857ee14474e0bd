// The numbers of the picture as a table, made only while it is open.

import { tag } from "../shared.js";

export function numbersTable(rows) {
  const table = tag("table"),
    details = tag("details", {}, tag("summary", {}, "Data as a table"), table);
  details.renew = () => details.open && table.replaceChildren(...tableRows(rows()));
  details.addEventListener("toggle", details.renew);
  return details;
}

function tableRows(rows) {
  if (!rows.length) return [];
  const line = (cell, values) => tag("tr", {}, ...values.map(value => tag(cell, {}, asText(value))));
  return [line("th", Object.keys(rows[0])), ...rows.map(row => line("td", Object.values(row)))];
}

function asText(value) {
  return typeof value === "number" && !Number.isInteger(value) ? value.toPrecision(3) : String(value);
}
