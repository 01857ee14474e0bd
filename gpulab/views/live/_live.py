"""Show a GPU under load, or results as they arrive, in a figure that grows.

You can stop both by Ctrl-C, the notebook's interrupt or a button. What there is by then is
returned.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from gpulab import device as gpus
from gpulab.core.errors import ClocksUnavailableError
from gpulab.core.interrupts import ExitStack
from gpulab.core.requirements import (
    COUNT_OR_ZERO,
    DURATION,
    FLAG,
    FUNCTION,
    TEXT,
    Requirement,
    instance_of,
    iterator_of,
)
from gpulab.core.tracebacks import UsersTraceback
from gpulab.device import clocks
from gpulab.device.work import check_callable
from gpulab.figures import Figure, check_words, has_provenance
from gpulab.timing import N_RUNGS, Ladder, left_as_found, run_ladder
from gpulab.views import plots
from gpulab.views.live._display import screen_for
from gpulab.views.live._figure import LOAD_SIZE_IN, UNDER_LOAD, alt_of, finding_of, live
from gpulab.views.live._loop import run
from gpulab.views.live._records import Series, Trace
from gpulab.views.live._stop import Stop
from gpulab.views.live._view import view_of_trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw", "ladder", "load", "series"]


_RESULTS = Requirement(
    "what yields one result after the other, such as a generator or a list",
    lambda value: iterator_of(value) is not None,
)


def load(  # noqa: PLR0913  # all but one are keyword-only
    work: Callable[[], object],
    *,
    duration_s: float = 2.0,
    period_s: float = 0.1,
    device: int | None = None,
    title: str | None = None,
    progress: bool = True,
) -> Trace:
    """Run work in a loop, and show the GPU's clock, power, temperature and use meanwhile.

    In a notebook the figure grows in its place. If the notebook is executed without a front end,
    the figure is shown once, at the end. Plain Python shows a bar on the standard error stream. A
    virtual GPU computes a second of load in less than a second; for a figure that somebody watches
    it is slowed down to real time.

    Readings are up to 0.1 s old, and the figure does not show what the clock did between two.

    Parameters
    ----------
    work
        A function without arguments that enqueues work on the current stream.
    duration_s, period_s
        How long to run it, and the time between two readings, in seconds.
    device
        torch's index of the device; None: the current device.
    title
        Title of the figure; the source is added to it. None: how the clock changes.
    progress
        Whether to show anything before the end.

    Returns
    -------
    Trace
        The readings. If the load was stopped, the trace and its figure say so. Without NVML the
        readings are empty, and ``missing`` says why.

    Raises
    ------
    NotCallableError
        If ``work`` is not a plain function.
    InvalidOptionError
        If one of the times is not above 0.

    If the work raises an error, you get that error, with the readings until then in its attribute
    ``partial``.

    Examples
    --------
    >>> import torch, gpulab
    >>> with gpulab.virtual_gpu("H200"):
    ...     a = torch.ones(1024, 1024, device="cuda")
    ...     trace = gpulab.live.load(lambda: a @ a, duration_s=0.01, period_s=0.005)
    >>> len(trace.readings) > 1
    True
    """
    with UsersTraceback():
        check_callable("work", work, "pass a function: live.load(lambda: a @ b)")
        DURATION.check(duration_s=duration_s, period_s=period_s)
        COUNT_OR_ZERO.or_none.check(device=device)
        TEXT.or_none.check(title=title)
        FLAG.check(progress=progress)
        with ExitStack() as stack:
            in_use = stack.enter_context(gpus.active())
            # First, because it raises for wrong arguments before anything is shown or changed.
            readings, missing = _readings(work, duration_s, period_s, device)
            stack.enter_context(left_as_found())  # drains the queue even after an error
            stop = stack.enter_context(Stop())
            screen = screen_for(
                partial(draw, title=title),
                stop,
                activity="loading",
                unit=" s",
                total=duration_s,
                progress=progress,
                view=partial(view_of_trace, title=title or UNDER_LOAD),
            )
            so_far = partial(
                Trace,
                source=in_use.source,
                device_name=in_use.name,
                asked_s=duration_s,
                missing=missing,
            )
            # A virtual GPU computes a load in a tenth of its time, too fast to follow or to stop.
            is_paced = screen.is_watched and in_use.virtual is not None
            return run(
                readings,
                so_far,
                stop,
                screen,
                what="readings",
                n_done=lambda taken: taken[-1].at_s - taken[0].at_s,
                is_paced=is_paced,
            )


def draw(record: Trace, *, title: str | None = None) -> Figure:
    """Return the figure of a trace; its title says how the clock changes, and if it was stopped.

    Examples
    --------
    >>> import torch, gpulab
    >>> with gpulab.virtual_gpu("H200"):
    ...     a = torch.ones(1024, 1024, device="cuda")
    ...     trace = gpulab.live.load(lambda: a @ a, duration_s=0.01, period_s=0.005)
    >>> gpulab.live.draw(trace).title
    'Under load the clock stays at 1,980 MHz (virtual NVIDIA H200)'
    """
    instance_of(Trace, "a trace, such as live.load() returns").check(record=record)
    TEXT.or_none.check(title=title)
    stopped = f", {record.stopped}" if record.stopped else ""
    return plots.draw(
        live,
        record,
        title=f"{title or finding_of(record)}{stopped}",
        alt=alt_of(record),
        ax_size=LOAD_SIZE_IN,
    )


def series(  # noqa: PLR0913  # all but two are keyword-only
    results: Iterable[Any],
    plot: "Callable[..., Axes]",
    *,
    title: str | Callable[[Any], str],
    alt: str,
    n_expected: int | None = None,
    source: object = None,
    ax_size: tuple[float, float] | None = None,
    progress: bool = True,
    **options: object,
) -> Series:
    """Draw results as they arrive, and return them; if it is stopped, the results until then.

    The figure is drawn between two results, at most five times a second, so that drawing does not
    disturb a measurement. Where it is shown depends on the environment, as for :func:`load`.

    Parameters
    ----------
    results
        Anything that yields one result after the other, such as a generator that measures. Dicts
        and other mappings become the rows of a frame; a list of all else is drawn.
    plot
        A function of :mod:`gpulab.plots`, or any ``f(record, ax, **options) -> Axes``.
    title, alt, source, ax_size, options
        As for :func:`gpulab.plots.draw`. The title may be a function of what is drawn, which
        says what came out. If neither you nor the record say the source, it is the
        GPU in use.
    n_expected
        How many results there will be; None: the length of ``results``, if it has one.
    progress
        Whether to show anything before the end.

    Returns
    -------
    Series
        Its ``record`` is what was drawn last. A result that arrives after Ctrl-C is left out: a
        measurement that was interrupted returns early, with too few samples.

    Raises
    ------
    InvalidOptionError
        If ``alt`` is empty.

    If ``results`` raises an error, you get that error, with the results until then in its
    attribute ``partial``.

    Examples
    --------
    >>> import gpulab
    >>> record = gpulab.live.series(
    ...     ({"n": n, "time_us": 2.0 * n} for n in (1, 2, 4)),
    ...     gpulab.plots.line,
    ...     title="Time over n",
    ...     alt="It grows with n.",
    ...     source="virtual",
    ...     progress=False,
    ... )
    >>> record
    3 results
    """
    with UsersTraceback():
        FUNCTION.check(plot=plot)
        if not isinstance(title, str):
            FUNCTION.check(title=title)
        TEXT.check(alt=alt)
        check_words(title=None, alt=alt, ax_size=ax_size)
        COUNT_OR_ZERO.or_none.check(n_expected=n_expected)
        FLAG.check(progress=progress)
        _RESULTS.check(results=results)
        if n_expected is None and isinstance(results, Sequence):
            n_expected = len(results)

        def figure(record: Series) -> Figure:
            heading = title if isinstance(title, str) else title(record.record)
            is_silent = source is None and not has_provenance(record.record)
            # In the title and in the description, because a figure may be copied without its text.
            return plots.draw(
                plot,
                record.record,
                title=f"{heading}, {record.stopped}" if record.stopped else heading,
                alt=f"{alt} {record.stopped.capitalize()}." if record.stopped else alt,
                ax_size=ax_size,
                source=gpus.current() if is_silent else source,
                **options,
            )

        with Stop() as stop:
            screen = screen_for(
                figure,
                stop,
                activity="measuring",
                unit=" results",
                total=n_expected,
                progress=progress,
            )
            so_far = partial(_so_far, _gathered, n_expected)
            return run(iter(results), so_far, stop, screen, what="results")


def ladder(work: Callable[[], object], *, label: str = "", **options: Any) -> Ladder:  # noqa: ANN401  # passed on
    """Time one piece of work by every method, and show each rung as soon as it is measured.

    Parameters
    ----------
    work, label, options
        As for :func:`gpulab.ladder`; there is no option ``progress``.

    Returns
    -------
    Ladder
        If it is stopped, the rungs until then.

    Examples
    --------
    ::

        record = gpulab.live.ladder(lambda: a @ b, label="matmul")

    The work is a function, not its result:

    >>> import gpulab
    >>> try:
    ...     gpulab.live.ladder(7)
    ... except gpulab.core.errors.NotCallableError as error:
    ...     print(str(error).partition("; ")[2])
    pass a function: live.ladder(lambda: a @ b)
    """
    with UsersTraceback():
        check_callable("work", work, "pass a function: live.ladder(lambda: a @ b)")
        TEXT.check(label=label)

        def figure(record: Series) -> Figure:
            rungs_so_far: Any = record.record
            stopped = f", {record.stopped}," if record.stopped else ""
            return plots.ladder(
                replace(rungs_so_far, label=f"{label or 'One piece of work'}{stopped}")
            )

        with Stop() as stop:
            screen = screen_for(
                figure, stop, activity="measuring", unit=" rungs", total=N_RUNGS, progress=True
            )
            so_far = partial(_so_far, itemgetter(-1), N_RUNGS)
            growing = run_ladder(work, label=label, **options)
            series_record: Any = run(growing, so_far, stop, screen, what="results").record
        finished: Ladder = series_record
        return finished


def _readings(
    work: Callable[[], object], duration_s: float, period_s: float, device: int | None
) -> tuple[Iterator[clocks.Reading], str]:
    """Return readings while the work runs, and the reason if they are empty."""
    readings = clocks.watch(work, duration_s=duration_s, period_s=period_s, device=device)
    try:
        clocks.read(device, ())
    except ClocksUnavailableError as error:
        # The load still runs, and its figure says what is missing and why.
        readings = clocks.watch_by(work, _time_alone, duration_s=duration_s, period_s=period_s)
        return readings, str(error)
    return readings, ""


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
