"""The axes of lesson 10 for a drawn prediction: the time of an addition against its size."""

import numpy as np

from gpulab.exercises._drawings import Curves, SketchAxes

# Over the 14 powers of two of the axis, neighbouring sizes differ by 2.5 %.
_N_STEPS = 400
_TWICE = 2.0


def _smallest_s(curves: Curves) -> float | None:
    _, times_s = curves["addition"]
    return times_s[0] if times_s else None


def _grows_from(curves: Curves) -> float | None:
    """Return the first size that takes twice as long as the smallest, also between the points."""
    drawn_sizes, times_s = curves["addition"]
    if not drawn_sizes:
        return None
    sizes = np.geomspace(drawn_sizes[0], drawn_sizes[-1], _N_STEPS)
    times = np.interp(np.log(sizes), np.log(drawn_sizes), np.log(times_s))
    is_longer = times > np.log(_TWICE * times_s[0])
    return float(sizes[np.argmax(is_longer)]) if is_longer.any() else None


ADDITIONS = SketchAxes(
    x=tuple(2.0**power for power in range(10, 25, 2)),
    x_label="n (elements)",
    x_name="n",
    low=1e-9,
    high=1e-2,
    y_label="time per addition",
    quantities=(
        ("The smallest addition", _smallest_s, "s"),
        ("Twice as long from", _grows_from, "elements on"),
    ),
    curves=("addition",),
    is_log=True,
)
