"""The lesson on warm-up: right answers pass, and each typical mistake gets its diagnosis."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib.axes import Axes

import gpulab
from gpulab import exercises, stats
from gpulab.exercises.lesson_04 import figures, traces
from gpulab.figures import Figure
from tests.support.journals import forget_all

Rule = Callable[[Sequence[float]], Any]


@pytest.fixture(autouse=True)
def _nothing_answered() -> Iterator[None]:
    """Start and end each test with no saved answers."""
    forget_all()
    yield
    forget_all()


def rule(
    samples_s: Sequence[float], *, tolerance: float = 0.03, row: int = 3, check: bool = True
) -> int:
    """Find the start as the notebook's solution does; arguments switch its parts off."""
    values = np.array(samples_s)
    tail = values[len(values) // 2 :]
    before, behind = np.array_split(tail, 2)
    level_s = np.median(tail)
    if check and abs(np.median(behind) - np.median(before)) > 0.02 * level_s:
        return len(values)
    inside = np.abs(values - level_s) < tolerance * level_s
    rows = np.convolve(inside, np.ones(row), "valid") == row
    return int(np.argmax(rows)) if rows.any() else len(values)


def after_last_outlier(samples_s: Sequence[float]) -> int:
    """Return the index after the last sample that is far above the level."""
    values = np.array(samples_s)
    high = np.flatnonzero(values > 1.05 * np.median(values[len(values) // 2 :]))
    return int(high.max()) + 1


def shifted(by: int) -> Rule:
    """Return a rule that finds the right start and then adds an offset."""
    return lambda samples_s: min(max(rule(samples_s) + by, 0), len(samples_s))


RULES: list[tuple[object, str, str]] = [
    (shifted(3), "", "Your rule finds the start in all six loops"),
    (len, "never", "In 'one slow call' your rule finds no steady state"),
    (after_last_outlier, "outlier-as-warm-up", "In 'one late outlier'"),
    (lambda samples_s: rule(samples_s, row=1), "one-lucky-call", "In 'a lucky call'"),
    (lambda samples_s: rule(samples_s, check=False), "still-moving", "In 'still moving'"),
    (shifted(-1), "too-early", "In 'one slow call' your rule starts at 0. A call there still"),
    (shifted(12), "too-late", "In 'one slow call' your rule starts at 13, but the loop is steady"),
    (
        lambda samples_s: samples_s[min(rule(samples_s), len(samples_s) - 1)],
        "not-an-index",
        "For 'one slow call' your function returned 0.000148",
    ),
    (lambda samples_s: f"{rule(samples_s)} s", "not-an-index", "For 'one slow call'"),
    (lambda samples_s: rule(samples_s) - 2, "not-an-index", "For 'one slow call'"),
]


@pytest.mark.parametrize(("answer", "code", "beginning"), RULES)
def test_each_rule_gets_its_verdict(answer: object, code: str, beginning: str) -> None:
    """A right rule passes, and the message of a mistake names the loop."""
    verdict = exercises.check("04.steady-state", answer)
    assert (verdict.ok, verdict.diagnosis_code) == (not code, code), verdict.message
    assert verdict.message.startswith(beginning)


def test_a_rule_cannot_change_the_loops() -> None:
    """A rule that sorts its list does not change the samples of the next check."""

    def sorts(samples_s: list[float]) -> int:
        samples_s.sort()
        return 0

    exercises.check("04.steady-state", sorts)
    assert exercises.check("04.steady-state", rule).ok


def test_each_loop_has_its_steady_range() -> None:
    """The last right start is at the level of the loop, and the sample before the first is not."""
    for trace in traces.traces():
        level_s = np.median(trace.samples_s[30:])
        assert len(trace.samples_s) == 60
        if trace.first < 60:
            assert abs(trace.samples_s[trace.last] / level_s - 1) < 0.02
            assert trace.samples_s[trace.first - 1] / level_s - 1 > 0.1
    assert len(traces.to_frame()) == 360


def test_one_run_changes_once_and_the_other_often() -> None:
    """Run a crosses the middle between its two modes once, run b 32 times."""
    runs = dict(iter(traces.two_runs().groupby("series")["duration_s"]))
    changes = {}
    for name, durations_s in runs.items():
        low_s, high_s = stats.modes(durations_s.to_numpy())
        changes[name] = int(np.abs(np.diff(durations_s > (low_s + high_s) / 2)).sum())
    assert changes == {"run a": 1, "run b": 32}


def test_the_call_times_are_those_of_the_virtual_gpu() -> None:
    """The first call of trace a takes as long as on a new virtual H200."""
    calls = exercises.readings("04.name-the-cost").set_index("trace")
    assert calls.loc["a", "first call"] == "torch.cuda.synchronize(): 334 ms"
    with gpulab.virtual_gpu("H200") as virtual:
        begin_s = virtual.now_s
        torch.cuda.synchronize()
        assert round(virtual.now_s - begin_s, 3) == 0.334


# The figures


def frame(**series: Sequence[float]) -> pd.DataFrame:
    """Return loops as the frame that the figures need."""
    rows = [(i, s, name) for name, times_s in series.items() for i, s in enumerate(times_s)]
    return pd.DataFrame(rows, columns=["iteration", "duration_s", "series"])


def axes_of(figure: Figure) -> Axes:
    """Return the axes of a figure, with those inside of them."""
    (ax,) = figure.canvas.axes
    return ax


def test_runs_are_drawn_relative_to_their_shortest_call() -> None:
    """The histograms say how far apart the humps are; the same calls follow in their order."""
    histograms, order = figures.draw_runs()
    assert histograms.title.startswith("The slowest call takes 1.18 (run a), 1.74 (run b) times")
    for line in axes_of(order).lines:
        assert min(line.get_ydata()) == 1
        assert list(line.get_xdata()) == list(range(60))


def test_many_loops_have_a_panel_each_relative_to_their_end() -> None:
    """Each of four loops has its own linear axis, and a triangle marks a call far above it."""
    drift = [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.6]
    loops = frame(a=[50.0] + [2.0] * 19, b=drift, c=[1.0] * 8, d=[3.0] * 8)
    ax = axes_of(figures._Panels(loops).figure(source="made up"))
    panels = ax.child_axes
    assert len(panels) == 4
    assert {panel.get_yscale() for panel in panels} == {"linear"}
    assert panels[0].get_title() == "a, ▲ up to 25"
    assert list(panels[0].lines[2].get_xdata()) == [0]
    assert panels[1].lines[1].get_ydata() == pytest.approx(np.array(drift) / 1.6)
    assert "4 loops, each relative to its own end" in ax.get_title()
