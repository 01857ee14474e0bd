"""The axes of lesson 10 for a drawn prediction: the time of an addition against its size."""

from collections.abc import Sequence

import numpy as np

from gpulab.exercises._drawings import Curves, Points, SketchAxes, Term

# Over the 14 powers of two of the axis, neighbouring sizes differ by 2.5 %.
_N_STEPS = 400
_TWICE = 2.0


def _terms(drawn: Curves, was: Curves) -> Sequence[Term]:
    (guess,), (outcome,) = drawn.values(), was.values()
    return (
        Term("The smallest addition", _smallest_s(guess), _smallest_s(outcome), "s"),
        Term("Twice as long from", _grows_from(guess), _grows_from(outcome), "elements on"),
    )


def _smallest_s(curve: Points) -> float | None:
    return curve[1][0] if curve[1] else None


def _grows_from(curve: Points) -> float | None:
    """Return the first size that takes twice as long as the smallest, also between the points."""
    if not curve[0]:
        return None
    sizes = np.geomspace(curve[0][0], curve[0][-1], _N_STEPS)
    times = np.interp(np.log(sizes), np.log(curve[0]), np.log(curve[1]))
    is_longer = times > np.log(_TWICE * curve[1][0])
    return float(sizes[np.argmax(is_longer)]) if is_longer.any() else None


ADDITIONS = SketchAxes(
    x=tuple(2.0**power for power in range(10, 25, 2)),
    x_label="n (elements)",
    x_name="n",
    low=1e-9,
    high=1e-2,
    y_label="time per addition",
    terms=_terms,
    curves=("addition",),
    is_log=True,
)
