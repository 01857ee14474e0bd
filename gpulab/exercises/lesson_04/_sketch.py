"""The curve that is drawn before lesson 04 measures it: ten calls from the first one on."""

from collections.abc import Sequence

from gpulab.exercises._drawings import Curves, Points, SketchAxes, Term

_N_CALLS = 10


def _terms(drawn: Curves, was: Curves) -> Sequence[Term]:
    (said,), (came_out,) = drawn.values(), was.values()
    return (
        Term(
            "The first call over the last",
            _first_over_last(said),
            _first_over_last(came_out),
            "times",
        ),
        Term("The last call", said[1][-1] if said[1] else None, came_out[1][-1], "s"),
    )


def _first_over_last(curve: Points) -> float | None:
    """Return how much slower the first call is; None unless both ends of the curve are there."""
    calls, times_s = curve
    return times_s[0] / times_s[-1] if calls and (calls[0], calls[-1]) == (1, _N_CALLS) else None


TEN_CALLS = SketchAxes(
    x=tuple(map(float, range(1, _N_CALLS + 1))),
    x_label="call",
    x_name="call",
    low=1e-6,
    high=10.0,
    y_label="time per call",
    terms=_terms,
    curves=("matmul and sum",),
)
