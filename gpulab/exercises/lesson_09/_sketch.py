"""The axes of lesson 09 for a drawn prediction: the times of a matmul on CPU and GPU."""

import numpy as np

from gpulab.exercises._drawings import Curves, Points, SketchAxes

# Over the nine powers of two of the axis, neighbouring sizes differ by 1.6 %.
_N_STEPS = 400


def _ahead_from(curves: Curves) -> float | None:
    """Return the first size at which the GPU is faster, also between the drawn points."""
    cpu, gpu = curves["CPU"], curves["GPU"]
    if not cpu[0] or not gpu[0]:
        return None
    first, last = max(cpu[0][0], gpu[0][0]), min(cpu[0][-1], gpu[0][-1])
    if first > last:
        return None
    sizes = np.geomspace(first, last, _N_STEPS)
    lead = _between(cpu, sizes) - _between(gpu, sizes)
    if not (lead > 0).any():
        return None
    at = int(np.argmax(lead > 0))
    # Straight between two steps, so that it is the size that the crossover finds, too.
    near = slice(max(at - 1, 0), at + 1)
    return float(np.exp(np.interp(0.0, lead[near], np.log(sizes[near]))))


def _between(curve: Points, sizes: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> np.ndarray:
    """Return the logarithms of a curve at some sizes, interpolated on double logarithmic axes."""
    return np.interp(np.log(sizes), np.log(curve[0]), np.log(curve[1]))


def _smallest_s(curves: Curves) -> float | None:
    _, times_s = curves["GPU"]
    return times_s[0] if times_s else None


MATMUL_TIMES = SketchAxes(
    x=tuple(2.0**power for power in range(2, 12)),
    x_label="n, for n by n matrices",
    x_name="n",
    low=1e-7,
    high=1.0,
    y_label="time per call",
    quantities=(
        ("The GPU gets ahead at n", _ahead_from, ""),
        ("The GPU's smallest matmul", _smallest_s, "s"),
    ),
    curves=("CPU", "GPU"),
    is_log=True,
)
