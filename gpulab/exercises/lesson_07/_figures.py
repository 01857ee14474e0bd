"""What lesson 07 shows with one call: raw samples, captures, and the steps of a ladder."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import pandas as pd

from gpulab import device, plots
from gpulab.errors import NotCapturableError
from gpulab.figures import Figure
from gpulab.measurement import Measurement
from gpulab.timing import measure
from gpulab.work import Work

_MAX_TIME_S = 0.05


def plot_samples(samples_s: Mapping[str, Sequence[float]]) -> Figure:
    """Return a figure of samples that you took yourself, in the order taken.

    Parameters
    ----------
    samples_s
        Seconds, by the name of the series.
    """
    gpu, here = device.current(), device.conditions()
    records = [
        Measurement(tuple(series_s), "events", gpu.source, here, label=label)
        for label, series_s in samples_s.items()
    ]
    return plots.samples(records, title="Samples in the order taken")


def try_to_capture(work: Work) -> str:
    """Return ``"captured"``, or why a CUDA graph of this work cannot be captured.

    Parameters
    ----------
    work
        A function without arguments.
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
        How often.
    function, arguments
        What to call.
    """
    for _ in range(n):
        function(*arguments)


def largest_step(medians: pd.Series, rungs: Iterable[str]) -> str:
    """Return the rung whose reading differs most from that of the rung below it.

    Parameters
    ----------
    medians
        Times by the names of the rungs, in the order of the ladder.
    rungs
        The rungs to choose from.
    """
    steps = medians.diff().abs()
    return max(rungs, key=lambda rung: float(steps[rung]))
