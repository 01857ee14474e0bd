// Where two curves cross: the arithmetic of find_crossing in gpulab/roofline/scaling/_intersection.py.
// A curve is { sizes, median_s, low_s, high_s }; between its sizes it is straight in both logarithms.

const CPU_AHEAD = 1,
  GPU_AHEAD = -1;

// Returns { kind, sizes, low, high, first, last }; kind is "once", "reversed", "several", "always",
// "never", "undecided", or "apart" if the curves have no size in common.
export function findCrossing(cpu, gpu) {
  const shared = cpu.sizes.filter(size => gpu.sizes.includes(size));
  if (!shared.length) return { kind: "apart", sizes: [] };
  const ratio = shared.map(size => ratioAt(cpu, gpu, size));
  const ahead = ratio.map(({ low, high }) => (low > 0 ? CPU_AHEAD : high < 0 ? GPU_AHEAD : 0));
  const ends = { first: shared[0], last: shared.at(-1) };
  if (ahead.every(side => side === 0)) return { kind: "undecided", sizes: [], ...ends };
  const changes = changesOf(ahead, ratio);
  const zeros = (end, [start, stop]) =>
    zerosOf(
      shared,
      ratio.map(each => each[end]),
      start,
      stop,
    );
  const sizes = changes.map(change => {
    const found = zeros("middle", change);
    return Math.sqrt(found[0] * found.at(-1));
  });
  if (!changes.length)
    return { kind: side(ratio[0].middle) === CPU_AHEAD ? "never" : "always", sizes, ...ends };
  if (changes.length > 1) return { kind: "several", sizes, ...ends };
  const [change] = changes,
    falls = side(ratio[change[0]].middle) === CPU_AHEAD;
  const [early, late] = falls ? ["low", "high"] : ["high", "low"];
  return {
    kind: falls ? "once" : "reversed",
    sizes,
    ...ends,
    low: ahead[change[0]] ? zeros(early, change)[0] : 0,
    high: ahead[change[1]] ? zeros(late, change).at(-1) : Infinity,
  };
}

// Returns a curve's time at any size between its ends; null outside.
export function timeAt({ sizes, median_s }, size) {
  const next = sizes.findIndex(each => each >= size);
  if (next < 0 || size < sizes[0]) return null;
  if (sizes[next] === size) return median_s[next];
  const share = Math.log(size / sizes[next - 1]) / Math.log(sizes[next] / sizes[next - 1]);
  return median_s[next - 1] * (median_s[next] / median_s[next - 1]) ** share;
}

// The logarithm of the GPU's time over the CPU's, with its interval; errors add as squares.
function ratioAt(cpu, gpu, size) {
  const [c, g] = [cpu, gpu].map(curve => {
    const at = curve.sizes.indexOf(size),
      time = curve.median_s[at];
    const low = Math.max(curve.low_s?.[at] ?? time, 1e-6 * time),
      high = curve.high_s?.[at] ?? time;
    return { time, down: Math.log(time / low), up: Math.log(high / time) };
  });
  const middle = Math.log(g.time / c.time);
  return { middle, low: middle - Math.hypot(g.down, c.up), high: middle + Math.hypot(g.up, c.down) };
}

// Pairs of places between which the faster side changes. The ends count even if they are uncertain.
function changesOf(ahead, ratio) {
  const certain = ahead.flatMap((sign, place) => (sign ? [[sign, place]] : []));
  const [first, last] = [0, ratio.length - 1].map(place => [side(ratio[place].middle), place]);
  const decided = [first, ...certain, last];
  return decided.slice(1).flatMap(([sign, place], index) => {
    const [before, start] = decided[index];
    return sign === before ? [] : [[start, place]];
  });
}

function side(ratio) {
  return ratio > 0 ? CPU_AHEAD : GPU_AHEAD;
}

function zerosOf(sizes, values, start, stop) {
  const found = [];
  for (let place = start; place < stop; place++) {
    const [one, two] = [values[place], values[place + 1]];
    const share = one / (one - two);
    if (one > 0 !== two > 0) found.push(sizes[place] * (sizes[place + 1] / sizes[place]) ** share);
  }
  return found;
}
