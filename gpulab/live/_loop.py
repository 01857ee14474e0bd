"""Runs a load or a series of results to its end, an error or a stop, and shows what there is."""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import torch

from gpulab import clocks
from gpulab.live._display import Screen
from gpulab.live._records import Series, Trace
from gpulab.live._stop import Stop

_NOTHING = "stopped before there was anything to show"


def run_load(
    readings: Iterator[clocks.Reading],
    trace: Callable[..., Trace],
    stop: Stop,
    screen: Screen,
    *,
    is_paced: bool,
) -> Trace:
    """Take readings to the end, or until it is stopped, and show them.

    Parameters
    ----------
    readings
        They keep a load running between one and the next.
    trace
        Makes the record of ``readings``, with the keyword ``stopped_by``.
    stop
        Whether somebody has asked to stop.
    screen
        Where the trace is shown; it is closed here.
    is_paced
        Whether a clock that runs fast is held back to real time.
    """
    kept: list[clocks.Reading] = []
    began_s = time.monotonic()  # real, whatever GPU is in use
    try:
        for reading in readings:
            kept.append(reading)
            elapsed_s = reading.at_s - kept[0].at_s
            screen.show(trace(tuple(kept), stopped_by=stop.by), elapsed_s)
            behind_s = elapsed_s - (time.monotonic() - began_s) if is_paced else 0.0
            if stop.wait(behind_s):
                break
    except KeyboardInterrupt:
        stop.ask("interrupt")
        if not kept:
            raise
    except Exception as error:
        stop.ask("error")
        if kept:
            error.partial = trace(tuple(kept), stopped_by="error")  # type: ignore[attr-defined]  # a new one
        error.add_note(_note("under load", len(kept), "readings"))
        raise
    finally:
        # Also after an error: the picture in the notebook must not go on saying "loading".
        record = trace(tuple(kept), stopped_by=stop.by) if kept else None
        screen.close(record, _NOTHING)
    return trace(tuple(kept), stopped_by=stop.by)


def run_series(
    results: Iterator[object], series: Callable[..., Series], stop: Stop, screen: Screen
) -> Series:
    """Take results to the end, or until it is stopped, and show them between one and the next.

    Parameters
    ----------
    results
        They are closed here, if they can be.
    series
        Makes the record of results and ``stopped_by``.
    stop, screen
        As for :func:`run_load`.
    """
    kept: list[object] = []
    try:
        for result in results:
            # Work that keeps what it has on Ctrl-C has not raised, and has kept too little.
            if stop.by == "interrupt":
                break
            kept.append(result)
            screen.show(series(tuple(kept), stopped_by=""), len(kept))
            if stop.wait(0.0):
                break
    except KeyboardInterrupt:
        stop.ask("interrupt")
    except Exception as error:
        stop.ask("error")
        # Without results too: whoever catches the error need not ask whether it is there.
        error.partial = series(tuple(kept), stopped_by="error")  # type: ignore[attr-defined]  # a new one
        error.add_note(_note("by what gives the results", len(kept), "results"))
        raise
    finally:
        _end(results, stop)
        record = series(tuple(kept), stopped_by=stop.by)
        screen.close(record if kept else None, _NOTHING)
    if not kept and stop.by == "interrupt":
        raise KeyboardInterrupt
    return record


def _end(results: Iterator[object], stop: Stop) -> None:
    """Let a generator that is left early clean up, and the GPU finish what it was given."""
    close = getattr(results, "close", None)
    if close is not None:
        close()
    # Not otherwise: a first look at the GPU would start CUDA, which may be what is measured.
    if stop.by and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]  # torch's gap
        with suppress(RuntimeError):
            torch.cuda.synchronize()


def _note(when: str, n_kept: int, what: str) -> str:
    kept = (
        f"the {n_kept} {what} before are in its attribute `partial`"
        if n_kept
        else "nothing was kept"
    )
    return f"gpulab: raised {when}; {kept}"
