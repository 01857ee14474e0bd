"""Helpers of lesson 07: a figure of raw samples, a trial capture, and the steps of a ladder."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import pandas as pd

from gpulab import device
from gpulab.core.errors import NotCapturableError
from gpulab.core.units import format_time
from gpulab.device.measurement import Measurement
from gpulab.device.work import Work
from gpulab.figures import Figure, Plot, finish, looks, marks, unit_of
from gpulab.timing import measure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_JUMP = 1.5  # times the sample before
_MOST_IN_TITLE = 2
_HEADROOM = 1.2  # times the longest sample, for the text above them
_MAX_TIME_S = 0.05  # the capture is what counts, and one replay shows it


@dataclass(frozen=True, slots=True)
class _StepPlot(Plot):
    """Samples in the order taken, with the largest jump of each series marked."""

    record: Sequence[Measurement]

    @property
    def steps(self) -> dict[str, int]:
        """The number of the first sample after a jump, by the name of the series."""
        found = {}
        for item in self.record:
            ratios = [after / before for before, after in pairwise(item.samples_s)]
            largest = max(ratios, default=1.0)
            if largest >= _JUMP:
                found[item.label] = ratios.index(largest) + 2
        return found

    @property
    def title(self) -> str:
        jumps = [f"{name}: the GPU caught up at sample {at}" for name, at in self.steps.items()]
        return "; ".join(jumps[:_MOST_IN_TITLE]) or "Samples in the order taken"

    @property
    def words(self) -> str:
        sentences = []
        for item in self.record:
            low, high = format_time(min(item.samples_s)), format_time(max(item.samples_s))
            at = self.steps.get(item.label)
            jump = "" if at is None else f"; the jump is at sample {at}"
            sentences.append(f"{item.label}: {item.n_samples} samples from {low} to {high}{jump}.")
        return "\n".join(sentences)

    def draw(self, ax: "Axes") -> "Axes":
        scale, unit = unit_of([item.median_s for item in self.record])
        for item, look in zip(self.record, looks(), strict=False):
            number = range(1, item.n_samples + 1)
            heights = [sample_s / scale for sample_s in item.samples_s]
            ax.plot(number, heights, label=item.label, markersize=4, **marks(look, item.source))
            at = self.steps.get(item.label)
            if at is not None:
                ax.axvline(at - 0.5, color=look.colour, linestyle=":", zorder=1)
                ax.annotate(
                    "the GPU caught up",
                    (at - 0.5, 1.0),
                    (-6, -2),
                    xycoords=("data", "axes fraction"),
                    textcoords="offset points",
                    ha="right",
                    va="top",
                )
        ax.set_ylim(0, _HEADROOM * ax.dataLim.y1)
        ax.grid(visible=True)
        return finish(ax, "Line chart", "sample, in the order taken", f"time per call ({unit})")


def plot_samples(samples_s: Mapping[str, Sequence[float]]) -> Figure:
    """Return a figure of samples that you took yourself, in the order taken, with their jumps.

    Parameters
    ----------
    samples_s
        Seconds of the samples, by the name of the series.

    Examples
    --------
    >>> from gpulab.exercises import lesson_07 as lab
    >>> figure = lab.plot_samples({"mine": [2e-6, 2e-6, 4e-6]})
    >>> figure.caption
    'mine: 3 samples from 2.00 µs to 4.00 µs; the jump is at sample 3.'
    """
    gpu, here = device.current(), device.conditions()
    return _StepPlot(
        [
            Measurement(tuple(series_s), "events", gpu.source, here, label=label)
            for label, series_s in samples_s.items()
        ]
    ).figure()


def try_to_capture(work: Work) -> str:
    """Return ``"captured"``, or the reason why this work cannot be captured as a CUDA graph.

    Parameters
    ----------
    work
        A function without arguments that puts work into the queue.

    Examples
    --------
    >>> import torch
    >>> from gpulab import virtual
    >>> from gpulab.exercises import lesson_07 as lab
    >>> with virtual.virtual_gpu("H200", first_use=False):
    ...     x = torch.ones(8, device="cuda")
    ...     lab.try_to_capture(lambda: torch.relu(x))
    'captured'
    """
    try:
        measure(work, method="graph", max_time_s=_MAX_TIME_S, progress=False)
    except NotCapturableError as error:
        return str(error)
    return "captured"


def repeat(n: int, function: Callable[..., object], *arguments: object) -> None:
    """Call a function n times with the same arguments.

    Parameters
    ----------
    n
        Number of calls.
    function, arguments
        The function and its arguments.

    Examples
    --------
    >>> from gpulab.exercises import lesson_07 as lab
    >>> lab.repeat(2, print, "launch")
    launch
    launch
    """
    for _ in range(n):
        function(*arguments)


def largest_step(medians: pd.Series, rungs: Iterable[str]) -> str:
    """Return the rung whose reading differs most from that of the rung below it.

    Parameters
    ----------
    medians
        Median times by the names of the rungs, in the order of the ladder.
    rungs
        The rungs to choose from.

    Examples
    --------
    >>> import pandas as pd
    >>> from gpulab.exercises import lesson_07 as lab
    >>> medians = pd.Series({"naive": 9e-6, "events": 8e-6, "graph": 2e-6})
    >>> lab.largest_step(medians, ["events", "graph"])
    'graph'
    """
    steps = medians.diff().abs()
    return max(rungs, key=lambda rung: float(steps[rung]))
