"""Run a load or a series of results to its end, to an error or a stop, and show the results."""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import torch

from gpulab.device import clocks
from gpulab.views.live._display import Screen
from gpulab.views.live._records import Series, Trace
from gpulab.views.live._stop import Stop

_NOTHING = "stopped before there was anything to show"


def run_load(
    readings: Iterator[clocks.Reading],
    trace: Callable[..., Trace],
    stop: Stop,
    screen: Screen,
    *,
    is_paced: bool,
) -> Trace:
    """Take readings to the end or until a stop, and show them on a screen, which is closed here.

    The iterator runs the load between two readings. With ``is_paced`` it waits for real time, for
    a virtual GPU that computes faster.
    """
    readings_so_far: list[clocks.Reading] = []
    began_s = time.monotonic()  # real time, even if a virtual GPU is in use
    try:
        for reading in readings:
            readings_so_far.append(reading)
            elapsed_s = reading.at_s - readings_so_far[0].at_s
            screen.show(trace(tuple(readings_so_far), stopped_by=stop.by), elapsed_s)
            behind_s = elapsed_s - (time.monotonic() - began_s) if is_paced else 0.0
            if stop.wait(behind_s):
                break
    except KeyboardInterrupt:
        stop.ask("interrupt")
        if not readings_so_far:
            raise
    except Exception as error:
        stop.ask("error")
        if readings_so_far:
            error.partial = trace(tuple(readings_so_far), stopped_by="error")  # type: ignore[attr-defined]  # a new one
        error.add_note(_note("under load", len(readings_so_far), "readings"))
        raise
    finally:
        # After an error, too: otherwise the figure in the notebook would still say "loading".
        record = trace(tuple(readings_so_far), stopped_by=stop.by) if readings_so_far else None
        screen.close(record, _NOTHING)
    return trace(tuple(readings_so_far), stopped_by=stop.by)


def run_series(
    results: Iterator[object], series: Callable[..., Series], stop: Stop, screen: Screen
) -> Series:
    """Take results to the end or until a stop, show them after each, and close their generator."""
    results_so_far: list[object] = []
    try:
        for result in results:
            # After Ctrl-C gpulab.measure returns early and raises nothing; its samples are too
            # few.
            if stop.by == "interrupt":
                break
            results_so_far.append(result)
            screen.show(series(tuple(results_so_far), stopped_by=""), len(results_so_far))
            if stop.wait(0.0):
                break
    except KeyboardInterrupt:
        stop.ask("interrupt")
    except Exception as error:
        stop.ask("error")
        # Even without results, so that code which catches the error can rely on the attribute.
        error.partial = series(tuple(results_so_far), stopped_by="error")  # type: ignore[attr-defined]  # a new one
        error.add_note(_note("by what gives the results", len(results_so_far), "results"))
        raise
    finally:
        _end(results, stop)
        record = series(tuple(results_so_far), stopped_by=stop.by)
        screen.close(record if results_so_far else None, _NOTHING)
    if not results_so_far and stop.by == "interrupt":
        raise KeyboardInterrupt
    return record


def _end(results: Iterator[object], stop: Stop) -> None:
    """Close a generator that was left early, and wait until the GPU has finished its work."""
    close = getattr(results, "close", None)
    if close is not None:
        close()
    # Only then: the first call of torch.cuda starts CUDA, and its start may be what is measured.
    if stop.by and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]  # torch's gap
        with suppress(RuntimeError):
            torch.cuda.synchronize()


def _note(when: str, n_kept: int, kind: str) -> str:
    outcome = (
        f"the {n_kept} {kind} before are in its attribute `partial`"
        if n_kept
        else "nothing was kept"
    )
    return f"gpulab: raised {when}; {outcome}"
