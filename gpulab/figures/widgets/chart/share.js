// The line of Python that opens an explorer with the same choices, as gpulab writes it, too.

export function codeOf({ kind, first, recordings }, state) {
  const chosen = Object.keys(first).filter(
    name => JSON.stringify(state[name]) !== JSON.stringify(first[name]),
  );
  const mine = recordings.length ? [`recordings=${asPython(recordings)}`] : [];
  const choices = [...mine, ...chosen.map(name => `${name}=${asPython(state[name])}`)];
  return `gpulab.explorers.${kind}_explorer(${choices.join(", ")})`;
}

function asPython(value) {
  if (value === null) return "None";
  if (typeof value === "number") return String(value);
  if (Array.isArray(value)) return `(${value.map(asPython).join(", ")}${value.length === 1 ? "," : ""})`;
  return `'${value.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}
