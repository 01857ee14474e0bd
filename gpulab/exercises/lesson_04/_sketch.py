"""The axes of lesson 04 for a drawn prediction: the times of the first ten calls."""

from gpulab.exercises._drawings import Curves, SketchAxes

_N_CALLS = 10


def _first_over_last(curves: Curves) -> float | None:
    """Return the first time over the last, or None if one end of the curve is not drawn."""
    calls, times_s = curves["step"]
    return times_s[0] / times_s[-1] if calls and (calls[0], calls[-1]) == (1, _N_CALLS) else None


def _last_s(curves: Curves) -> float | None:
    _, times_s = curves["step"]
    return times_s[-1] if times_s else None


TEN_CALLS = SketchAxes(
    x=tuple(map(float, range(1, _N_CALLS + 1))),
    x_label="call",
    x_name="call",
    low=1e-6,
    high=10.0,
    y_label="time per call",
    quantities=(
        ("The first call over the last", _first_over_last, "times"),
        ("The last call", _last_s, "s"),
    ),
    curves=("step",),
)
