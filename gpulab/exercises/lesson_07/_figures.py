"""Helpers of lesson 07: a figure of raw samples, a trial capture, and the steps of a ladder."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import pandas as pd

from gpulab import device
from gpulab.core.errors import NotCapturableError
from gpulab.device.measurement import Measurement
from gpulab.device.work import Work
from gpulab.figures import Figure
from gpulab.timing import measure
from gpulab.views import plots

_MAX_TIME_S = 0.05  # the capture is what counts, and one replay shows it


def plot_samples(samples_s: Mapping[str, Sequence[float]]) -> Figure:
    """Return a figure of samples that you took yourself, in the order taken.

    Parameters
    ----------
    samples_s
        Seconds of the samples, by the name of the series.

    Examples
    --------
    >>> from gpulab.exercises import lesson_07 as lab
    >>> figure = lab.plot_samples({"mine": [2e-6, 3e-6]})
    >>> figure.caption.partition(",")[0]
    'mine: median 2.50 µs [2.00'
    """
    gpu, here = device.current(), device.conditions()
    records = [
        Measurement(tuple(series_s), "events", gpu.source, here, label=label)
        for label, series_s in samples_s.items()
    ]
    return plots.samples(records, title="Samples in the order taken")


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
