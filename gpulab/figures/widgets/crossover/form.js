// The choices of the crossover: what is compared, and over which link its copies go.

import { allow, menu, range, refill, segments } from "../chart/controls.js";
import { rateText } from "../chart/quantities.js";
import { tag } from "../shared.js";
import { lacksNumbers, rateOf } from "./curves.js";
import { sourceText } from "./words.js";

const COPIES = ["none", "in", "out", "both"];
const OWN = "own";
const SLOWEST = 4e9,
  FASTEST = 450e9; // bytes per second
const NEAR = 0.06; // octaves at which the slider snaps to a named link

export class Form {
  // `changed` gets a field, its value, and whether it comes from a slider that is still dragged.
  constructor(data, state, changed) {
    this.data = data;
    this.rate = tag("span", { class: "value" });
    const same = names => names.map(name => [name, name]),
      sources = side => Object.entries(data[side]).map(([id, source]) => [id, sourceText(source)]);
    const workloads = data.families.map(([family, names]) => [family, same(names)]);
    const links = Object.keys(data.links).map((name, place) => [
      name,
      place ? name.replace("PCIe ", "") : name,
    ]);
    const slider = { min: Math.log2(SLOWEST), max: Math.log2(FASTEST), step: 0.02 };
    this.root = tag(
      "form",
      {},
      tag(
        "div",
        { class: "pair" },
        menu("workload", "Operation", workloads, state.workload),
        menu("dtype", "Type", [[null, same(data.dtypes)]], state.dtype),
      ),
      menu("gpu", "GPU", [[null, sources("gpus")]], state.gpu),
      menu("beside", "Second GPU", [[null, [["", "none"], ...sources("gpus")]]], state.beside),
      menu("cpu", "CPU", [[null, sources("cpus")]], state.cpu),
      segments("n_threads", "CPU threads", [], ""),
      segments("transfers", "Copies", same(COPIES), state.transfers),
      segments("link", "Link", [[OWN, "own"], ...links], state.link ?? OWN),
      range("rate", "Rate of the link", slider, this.rate),
    );
    this.root.addEventListener("submit", event => event.preventDefault());
    this.root.addEventListener("input", ({ target: { name, value } }) => {
      if (name === "rate") changed("link", this.linkAt(2 ** value), true);
      else changed(name, this.valueOf(name, value), false);
    });
  }

  valueOf(name, value) {
    if (name === "link") return value === OWN ? null : value;
    return name === "n_threads" ? JSON.parse(value) : value;
  }

  linkAt(rate) {
    const named = Object.entries(this.data.links).find(
      ([, each]) => Math.abs(Math.log2(each / rate)) < NEAR,
    );
    return named ? named[0] : Math.round(rate);
  }

  // Returns the state with the nearest choices that its operation and CPU offer, and shows it. What
  // has no numbers here can be chosen only if a kernel can compute or measure them.
  settled(state, hasKernel) {
    const { data } = this,
      fields = this.root.elements,
      operation = data.operations[state.workload];
    const dtype = operation.dtypes.includes(state.dtype) ? state.dtype : operation.dtypes[0];
    const counts = data.cpus[state.cpu].threads;
    const n_threads = counts.includes(state.n_threads) ? state.n_threads : counts[0];
    const settled = { ...state, dtype, n_threads },
      known = operation.types[dtype];
    const allowed = (name, has) =>
      allow(fields[name], value => hasKernel || value === settled[name] || has(value));
    allow(
      fields.dtype,
      value => operation.dtypes.includes(value) && (hasKernel || value in operation.types),
    );
    allowed("workload", value => {
      const types = data.operations[value].types;
      return dtype in types && !lacksNumbers(data, { ...settled, workload: value });
    });
    allowed("gpu", id => known?.gpus[id]?.none);
    allowed("beside", id => id === "" || known?.gpus[id]?.none);
    allowed("cpu", id => id in (known?.cpus ?? {}));
    const threads = counts.map(count => [
      JSON.stringify(count),
      String(count ?? data.cpus[state.cpu].n_threads ?? "as set"),
    ]);
    refill(this.root, "n_threads", threads, JSON.stringify(n_threads));
    this.showLink(settled, hasKernel || Boolean(known?.payload));
    for (const name of ["workload", "dtype", "gpu", "beside", "cpu", "transfers"])
      fields[name].value = settled[name];
    return settled;
  }

  showLink(state, hasBytes) {
    const { link, rate } = this.root.elements,
      isOff = state.transfers === "none";
    const bytes_per_s = rateOf(this.data, state.link, state.gpu);
    for (const input of link) {
      input.checked = input.value === (state.link ?? OWN);
      input.disabled = isOff || (input.value !== OWN && !hasBytes);
    }
    rate.disabled = isOff || !hasBytes;
    if (bytes_per_s) rate.value = Math.log2(bytes_per_s);
    const text = bytes_per_s ? rateText(bytes_per_s, "B") : "not known";
    rate.setAttribute("aria-valuetext", text);
    this.rate.textContent = isOff ? "" : text;
  }
}
