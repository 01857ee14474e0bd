"""Show a GPU under load, or results as they come, in a picture that grows.

Both can be stopped, by Ctrl-C, the notebook's interrupt or a button, and keep what there is.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from gpulab import clocks, plots
from gpulab import device as gpus
from gpulab.errors import ClocksUnavailableError, InvalidOptionError
from gpulab.figures import Figure, provenance
from gpulab.interrupts import ExitStack
from gpulab.live._display import screen_for
from gpulab.live._figure import SIZE_IN, alt_of, live
from gpulab.live._loop import run_load, run_series
from gpulab.live._records import Series, Trace
from gpulab.live._stop import Stop
from gpulab.plots import check_figure, draw_ladder
from gpulab.requirements import (
    COUNT_OR_ZERO,
    DURATION,
    FLAG,
    FUNCTION,
    TEXT,
    Requirement,
    instance_of,
)
from gpulab.timing import N_RUNGS, Ladder, left_as_found, run_ladder
from gpulab.work import check_callable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw", "ladder", "load", "series"]


_RESULTS = Requirement(
    "what yields one result after the other, such as a generator or a list",
    lambda value: isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping),
)


def load(  # noqa: PLR0913  # all but one are keyword-only
    work: Callable[[], object],
    *,
    duration_s: float = 2.0,
    period_s: float = 0.1,
    device: int | None = None,
    title: str = "The GPU under load",
    progress: bool = True,
) -> Trace:
    """Call work again and again, and show clock, power, temperature and use meanwhile.

    In a notebook the picture grows in its place; where nobody watches, it is shown once at the
    end, and a plain Python shows a bar on the standard error stream. A virtual GPU computes
    seconds in less: where the picture is watched, it is slowed down to real time.

    What the picture cannot show: readings are up to 0.1 s old, and between two of them the clock
    may have been anywhere.

    Parameters
    ----------
    work
        Work for the current stream, without arguments.
    duration_s, period_s
        How long to call it, and the time between readings, in seconds.
    device
        Torch's index; None is the current device.
    title
        Title of the picture, to which the source is added.
    progress
        Whether to show anything before the end.

    Returns
    -------
    Trace
        The readings. One that was stopped says so, in its picture too. Without NVML its readings
        are empty, and it says why.

    Raises
    ------
    NotCallableError
        If ``work`` is not a plain function.
    InvalidOptionError
        If one of the times is not above 0.

    What the work raises is raised on, with the readings before in its attribute ``partial``.

    Examples
    --------
    >>> import torch, gpulab
    >>> with gpulab.virtual_gpu("H200"):
    ...     a = torch.ones(1024, 1024, device="cuda")
    ...     trace = gpulab.live.load(lambda: a @ a, duration_s=0.01, period_s=0.005)
    >>> len(trace.readings) > 1
    True
    """
    check_callable("work", work, "pass a function: live.load(lambda: a @ b)")
    DURATION.check(duration_s=duration_s, period_s=period_s)
    COUNT_OR_ZERO.or_none.check(device=device)
    TEXT.check(title=title)
    FLAG.check(progress=progress)
    with ExitStack() as stack:
        in_use = stack.enter_context(gpus.active())
        # First, as it refuses what cannot be done before anything is shown or changed.
        readings, missing = _readings(work, duration_s, period_s, device)
        stack.enter_context(left_as_found())  # drains the queue, whatever ends the load
        stop = stack.enter_context(Stop())
        screen = screen_for(
            partial(draw, title=title),
            stop,
            what="loading",
            unit=" s",
            total=duration_s,
            progress=progress,
            threaded=True,
        )
        so_far = partial(
            Trace,
            source=in_use.source,
            device_name=in_use.name,
            asked_s=duration_s,
            missing=missing,
        )
        # Nobody could follow, or stop, what is computed in a tenth of the time it stands for.
        is_paced = screen.is_watched and in_use.virtual is not None
        return run_load(readings, so_far, stop, screen, is_paced=is_paced)


def draw(record: Trace, *, title: str = "The GPU under load") -> Figure:
    """Return the picture of a trace, to be shown; it says if the load was stopped.

    Examples
    --------
    >>> import torch, gpulab
    >>> with gpulab.virtual_gpu("H200"):
    ...     a = torch.ones(1024, 1024, device="cuda")
    ...     trace = gpulab.live.load(lambda: a @ a, duration_s=0.01, period_s=0.005)
    >>> gpulab.live.draw(trace).title
    'The GPU under load (virtual NVIDIA H200)'
    """
    instance_of(Trace, "a trace, such as live.load() returns").check(record=record)
    TEXT.check(title=title)
    stopped = f", {record.stopped}" if record.stopped else ""
    return plots.draw(live, record, title=f"{title}{stopped}", alt=alt_of(record), ax_size=SIZE_IN)


def series(  # noqa: PLR0913  # all but two are keyword-only
    results: Iterable[Any],
    plot: "Callable[..., Axes]",
    *,
    title: str,
    alt: str,
    n_expected: int | None = None,
    gather: Callable[[list[Any]], object] | None = None,
    source: object = None,
    ax_size: tuple[float, float] = (6.4, 4.0),
    progress: bool = True,
    **options: object,
) -> Series:
    """Draw results as they come, and return them; those there are if it is stopped.

    The picture is drawn between two results, at most five times a second, so that drawing does
    not disturb what is measured. It is shown as that of :func:`load` is.

    Parameters
    ----------
    results
        Anything that yields one result after the other, such as a generator that measures.
    plot
        A function of :mod:`gpulab.plots`, or any ``f(record, ax, **options) -> Axes``.
    title, alt, source, ax_size, options
        As for :func:`gpulab.plots.draw`; the source is the GPU in use where the record has none.
    n_expected
        How many results are to come; None: as many as ``results`` says it has, if it does.
    gather
        Makes the record to draw of the results so far. None: mappings, such as dicts, become the
        rows of a frame; anything else stays a list.
    progress
        Whether to show anything before the end.

    Returns
    -------
    Series
        Its ``record`` is what was drawn last. A result that came although it was being stopped
        is left out: work that keeps what it has on Ctrl-C may have kept too little.

    Raises
    ------
    InvalidOptionError
        If ``alt`` is empty.

    What ``results`` raises is raised on, with what came before in its attribute ``partial``.
    """
    check_figure(plot, title=title, alt=alt, ax_size=ax_size)
    COUNT_OR_ZERO.or_none.check(n_expected=n_expected)
    FUNCTION.or_none.check(gather=gather)
    FLAG.check(progress=progress)
    _RESULTS.check(results=results)
    if n_expected is None and isinstance(results, Sequence):
        n_expected = len(results)

    def figure(record: Series) -> Figure:
        # Both title and description say that it is a part: a picture may travel without its text.
        return plots.draw(
            plot,
            record.record,
            title=f"{title}, {record.stopped}" if record.stopped else title,
            alt=f"{alt} {record.stopped.capitalize()}." if record.stopped else alt,
            ax_size=ax_size,
            source=_source(record.record, source),
            **options,
        )

    with Stop() as stop:
        screen = screen_for(
            figure, stop, what="measuring", unit=" results", total=n_expected, progress=progress
        )
        so_far = partial(_so_far, gather or _gathered, n_expected)
        return run_series(iter(results), so_far, stop, screen)


def ladder(work: Callable[[], object], *, label: str = "", **options: Any) -> Ladder:  # noqa: ANN401  # passed on
    """Time one piece of work by every method, and show each rung when it is there.

    Parameters
    ----------
    work, label, options
        As for :func:`gpulab.ladder`, but for ``progress``.

    Returns
    -------
    Ladder
        The rungs there are, if it is stopped.
    """
    check_callable("work", work, "pass a function: live.ladder(lambda: a @ b)")
    TEXT.check(label=label)

    def figure(record: Series) -> Figure:
        climbed: Any = record.record
        stopped = f", {record.stopped}," if record.stopped else ""
        return draw_ladder(replace(climbed, label=f"{label or 'One piece of work'}{stopped}"))

    with Stop() as stop:
        screen = screen_for(
            figure, stop, what="climbing", unit=" rungs", total=N_RUNGS, progress=True
        )
        so_far = partial(_so_far, itemgetter(-1), N_RUNGS)
        growing = run_ladder(work, label=label, **options)
        whole: Any = run_series(growing, so_far, stop, screen).record
    climbed: Ladder = whole
    return climbed


def _readings(
    work: Callable[[], object], duration_s: float, period_s: float, device: int | None
) -> tuple[Iterator[clocks.Reading], str]:
    """Return readings while the work runs, and why they are empty if they are."""
    found = clocks.watch(work, duration_s=duration_s, period_s=period_s, device=device)
    try:
        clocks.read(device, ())
    except ClocksUnavailableError as error:
        # The load is run all the same: its picture says what is missing, and why.
        found = clocks.watch_by(work, _time_alone, duration_s=duration_s, period_s=period_s)
        return found, str(error)
    return found, ""


def _time_alone() -> clocks.Reading:
    return clocks.Reading(time.perf_counter())


def _so_far(
    gather: Callable[[list[Any]], object],
    n_expected: int | None,
    results: tuple[object, ...],
    stopped_by: str,
) -> Series:
    record = gather(list(results)) if results else None
    return Series(results, record, n_expected, stopped_by)


def _gathered(results: list[Any]) -> object:
    if not all(isinstance(result, Mapping) for result in results):
        return results
    import pandas as pd

    return pd.DataFrame(results)


def _source(record: object, given: object) -> object:
    if given is not None:
        return given
    try:
        provenance(record)
    except InvalidOptionError:
        return gpus.current()
    return None
