"""One rule ends all sampling: at a number, a precision or a time."""

from collections.abc import Sequence

import pytest

from gpulab.timing import MeasurementOptions
from gpulab.timing._stopping import StoppingRule, take_in_turns

LIMIT = StoppingRule(options=MeasurementOptions(), n_least=10)
WIDE = [1.0, 1.1] * 10


def never() -> Sequence[float]:
    """Fail if the values are read, where the rule must not look at them."""
    raise AssertionError("the values were looked at")


def test_time_ends_what_is_not_precise_but_nothing_empty() -> None:
    """The time limit ends sampling, but only after at least one sample."""
    assert LIMIT.reason(20, 0.999, lambda: WIDE) == ""
    assert LIMIT.reason(20, 1.0, lambda: WIDE) == "max_time"
    assert LIMIT.reason(1, 1.0, never) == "max_time"
    assert LIMIT.reason(0, 9.0, never) == ""


@pytest.mark.parametrize(
    ("precision", "resolution", "coarsest_tick", "reason"),
    [
        (0.048, 0.0, 0.0, "precision"),
        (0.047, 0.0, 0.0, ""),
        (0.01, 0.0501, 0.0, "precision"),
        (0.01, 0.0499, 0.0, ""),
        (0.01, 0.0, 0.2, "precision"),
        (0.01, 0.0, 0.05, ""),
    ],
)
def test_width_that_is_narrow_enough(
    precision: float, resolution: float, coarsest_tick: float, reason: str
) -> None:
    """The width may be a share of the median, the given resolution, or one tick of the clock."""
    rule = StoppingRule(
        options=MeasurementOptions(precision=precision),
        n_least=10,
        resolution=resolution,
        coarsest_tick=coarsest_tick,
    )
    assert rule.reason(20, 0.0, lambda: WIDE) == reason


def test_runs_take_turns() -> None:
    """Two runs go a, b, b, a, and the first batch size is asked for at time zero."""
    taken: list[str] = []
    asked: list[tuple[int, bool]] = []

    def n_next(n_taken: int, elapsed_s: float) -> int:
        asked.append((n_taken, elapsed_s == 0.0))
        return 2

    ended = take_in_turns(
        [lambda n: taken.append(f"a{n}"), lambda n: taken.append(f"b{n}")],
        StoppingRule(options=MeasurementOptions(n_samples=4), n_least=10),
        count=lambda: 2 * (len(taken) // 2),
        judged=never,
        n_next=n_next,
    )
    assert ended == (4, "n_samples")
    assert taken == ["a2", "b2", "b2", "a2"]
    assert asked == [(0, True), (2, False)]


@pytest.mark.parametrize("n_turns", [0, 1])
def test_an_interrupt_keeps_the_samples_of_whole_turns(n_turns: int) -> None:
    """Ctrl-C before the first turn is over is raised; a later one ends the sampling."""
    taken: list[int] = []

    def take(n: int) -> None:
        if len(taken) == n_turns:
            raise KeyboardInterrupt
        taken.append(n)

    def ended() -> tuple[int, str]:
        count = taken.__len__
        return take_in_turns([take], LIMIT, count=count, judged=never, n_next=lambda *_: 1)

    if n_turns:
        assert ended() == (1, "interrupt")
    else:
        with pytest.raises(KeyboardInterrupt):
            ended()
