// An axis, logarithmic or linear: from values to pixels and back, and the values that get a number.

const LOG = { place: Math.log, value: Math.exp },
  LINEAR = { place: value => value, value: place => place };
const STEPS = [1, 2, 5, 10]; // times a power of ten, between two numbers of a linear axis

export class Axis {
  // A logarithmic axis has numbers at the powers of its `base`, a linear one has no base. `marked`
  // has [value, text] for each number of an axis that has fixed ones.
  constructor({ base = 0, tick, name = "", marked = null }) {
    Object.assign(this, { base, tick, name, marked, ...(base ? LOG : LINEAR) });
    this.full = this.span = [1, 10];
    this.pixels = [0, 1];
  }

  // Sets the values that the whole picture spans. A zoomed view stays as it is.
  fit(span) {
    const isZoomed = this.isZoomed;
    this.full = span;
    if (!isZoomed) this.span = span;
  }

  get isZoomed() {
    return this.span[0] !== this.full[0] || this.span[1] !== this.full[1];
  }

  get middle() {
    const [low, high] = this.span.map(this.place);
    return this.value((low + high) / 2);
  }

  to(value) {
    const [low, high] = this.span.map(this.place),
      [start, end] = this.pixels;
    return start + ((end - start) * (this.place(value) - low)) / (high - low);
  }

  from(pixel) {
    const [low, high] = this.span.map(this.place),
      [start, end] = this.pixels;
    return this.value(low + ((high - low) * (pixel - start)) / (end - start));
  }

  // Zooms by a factor around a value, never beyond the whole picture.
  zoom(factor, around) {
    const middle = this.place(around);
    const [low, high] = this.span.map(end => this.value(middle + (this.place(end) - middle) / factor));
    this.span = [Math.max(low, this.full[0]), Math.min(high, this.full[1])];
  }

  // Returns [value, text] for each number, at least so many pixels apart.
  ticks(least) {
    if (this.marked) return this.marked;
    const found = this.base ? this.powers(least) : this.steps(least);
    return found.map(value => [value, this.tick(value)]);
  }

  powers(least) {
    const [low, high] = this.span.map(value => Math.log(value) / Math.log(this.base));
    const stride = Math.max(1, Math.ceil(least / (this.length / (high - low))));
    const first = Math.ceil(low / stride - 1e-9) * stride;
    return multiples(first, stride, high + 1e-9).map(power => this.base ** power);
  }

  steps(least) {
    const [low, high] = this.span,
      least_step = (least * (high - low)) / this.length;
    const power = 10 ** Math.floor(Math.log10(least_step));
    const step = power * STEPS.find(times => power * times >= least_step * 0.999);
    return multiples(Math.ceil(low / step - 1e-9) * step, step, high + 1e-9 * step);
  }

  get length() {
    return Math.abs(this.pixels[1] - this.pixels[0]);
  }
}

function multiples(first, step, last) {
  const count = Math.max(0, Math.floor((last - first) / step + 1e-9) + 1);
  return Array.from({ length: count }, (_, place) => first + place * step);
}
