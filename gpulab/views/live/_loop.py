"""Run a load or a series of results to its end, to an error or a stop, and show the results."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TypeVar

import torch

from gpulab.views.live._display import Screen
from gpulab.views.live._stop import Stop

Item = TypeVar("Item")
Record = TypeVar("Record")
_NOTHING = "stopped before there was anything to show"


def run(  # noqa: PLR0913  # all but four are keyword-only
    results: Iterator[Item],
    record: Callable[..., Record],
    stop: Stop,
    screen: Screen,
    *,
    what: str,
    n_done: Callable[[Sequence[Item]], float] = len,
    is_paced: bool = False,
) -> Record:
    """Take results to the end or until a stop, show them after each, and close their generator.

    An error gets a note with the number of ``what`` there is by then. With ``is_paced`` it waits
    until as much real time has passed as is done, for a virtual GPU that computes faster.
    """
    so_far: list[Item] = []
    began_s = time.monotonic()  # real time, even if a virtual GPU is in use
    try:
        for result in results:
            # After Ctrl-C gpulab.measure returns early and raises nothing; its samples are too
            # few.
            if stop.by == "interrupt":
                break
            so_far.append(result)
            done = n_done(so_far)
            screen.show(record(tuple(so_far), stopped_by=""), done)
            behind_s = done - (time.monotonic() - began_s) if is_paced else 0.0
            if stop.wait(behind_s):
                break
    except KeyboardInterrupt:
        stop.ask("interrupt")
    except Exception as error:
        stop.ask("error")
        # Even without results, so that code which catches the error can rely on the attribute.
        error.partial = record(tuple(so_far), stopped_by="error") if so_far else None  # type: ignore[attr-defined]  # a new one
        error.add_note(_note(len(so_far), what))
        raise
    finally:
        _end(results, stop)
        # After an error, too: otherwise the figure in the notebook would still say "loading".
        shown = record(tuple(so_far), stopped_by=stop.by) if so_far else None
        screen.close(shown, _NOTHING)
    if not so_far and stop.by == "interrupt":
        raise KeyboardInterrupt
    return record((), stopped_by=stop.by) if shown is None else shown


def _end(results: Iterator[object], stop: Stop) -> None:
    """Close a generator that was left early, and wait until the GPU has finished its work."""
    close = getattr(results, "close", None)
    if close is not None:
        close()
    # Only then: the first call of torch.cuda starts CUDA, and its start may be what is measured.
    if stop.by and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]  # torch's gap
        with suppress(RuntimeError):
            torch.cuda.synchronize()


def _note(n_kept: int, what: str) -> str:
    if not n_kept:
        return f"gpulab: nothing was kept; the error came before the first of the {what}"
    return f"gpulab: the {n_kept} {what} before the error are in its attribute `partial`"
