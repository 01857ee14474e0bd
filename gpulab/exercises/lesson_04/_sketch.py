"""The axes of lesson 04 for a drawn prediction: the times of the first ten calls."""

from collections.abc import Sequence

from gpulab.exercises._drawings import Curves, Points, SketchAxes, Term

_N_CALLS = 10


def _terms(drawn: Curves, was: Curves) -> Sequence[Term]:
    (guess,), (outcome,) = drawn.values(), was.values()
    return (
        Term(
            "The first call over the last",
            _first_over_last(guess),
            _first_over_last(outcome),
            "times",
        ),
        Term("The last call", guess[1][-1] if guess[1] else None, outcome[1][-1], "s"),
    )


def _first_over_last(curve: Points) -> float | None:
    """Return the first time over the last, or None if one end of the curve is not drawn."""
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
    curves=("step",),
)
