"""Measure how long calls block the host, and run the waits of the exercise on streams."""

import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

import torch

from gpulab import device
from gpulab.core.torch_private import spin

if TYPE_CHECKING:
    import pandas as pd

    from gpulab.tracing import Timeline

_TOGETHER = 0.75  # kernels that share less time than this ran at the same time
_SHORT, _MIDDLE, _LONG = 400_000, 2_000_000, 20_000_000  # lengths of kernels, in clock cycles

Wait = Callable[[torch.cuda.Stream, torch.cuda.Stream, torch.cuda.Event], object]


def share_of_serial(timeline: "Timeline") -> float:
    """Return the time that the GPU was busy, divided by the sum of the busy times of its streams.

    It is 1 if nothing ran at the same time.

    Parameters
    ----------
    timeline
        A timeline with work in at least one stream.

    Examples
    --------
    >>> import gpulab, torch
    >>> from gpulab import virtual
    >>> from gpulab.exercises import lesson_08 as lab
    >>> with virtual.virtual_gpu("H200", first_use=False):
    ...     x = torch.ones(1 << 20, device="cuda")
    ...     lab.share_of_serial(gpulab.timeline(lambda: x.neg()))
    1.0
    """
    share = timeline.summary().devices[0]
    return share.busy_s / sum(stream.busy_s for stream in share.streams)


def how_they_ran(timeline: "Timeline") -> str:
    """Return how the kernels of a timeline ran: ``"together"`` or ``"sequentially"``.

    Examples
    --------
    >>> import gpulab, torch
    >>> from gpulab import virtual
    >>> from gpulab.exercises import lesson_08 as lab
    >>> with virtual.virtual_gpu("H200", first_use=False):
    ...     x = torch.ones(1 << 20, device="cuda")
    ...     lab.how_they_ran(gpulab.timeline(lambda: x.neg()))
    'sequentially'
    """
    return "together" if share_of_serial(timeline) < _TOGETHER else "sequentially"


def host_times(
    calls: Mapping[str, Callable[[], object]], before: Callable[[], object] | None = None
) -> "pd.DataFrame":
    """Time calls by the host's clock, each from an idle GPU.

    Each call runs twice, and the second time counts.

    Parameters
    ----------
    calls
        The functions to call, by their names.
    before
        A function that enqueues work before each call.

    Returns
    -------
    pandas.DataFrame
        A row for each name: ``host_s``, seconds until the call returned; ``done_s``, seconds until
        the GPU had finished; and ``returned``, the returned value as text.

    Examples
    --------
    >>> import torch
    >>> from gpulab import virtual
    >>> from gpulab.exercises import lesson_08 as lab
    >>> with virtual.virtual_gpu("H200", first_use=False):
    ...     x = torch.ones(8, device="cuda")
    ...     lab.host_times({"wait": lambda: x.sum().item()})["returned"]["wait"]
    '8.0'
    """
    import pandas as pd

    rows = {}
    with device.active():
        for name, call in [*calls.items(), *calls.items()]:  # the second time replaces the first
            torch.cuda.synchronize()
            if before is not None:
                before()
            start_s = time.perf_counter()
            returned = call()
            host_s = time.perf_counter() - start_s
            torch.cuda.synchronize()
            shown = "" if torch.is_tensor(returned) else str(returned)
            rows[name] = (host_s, time.perf_counter() - start_s, shown)
    return pd.DataFrame.from_dict(rows, orient="index", columns=["host_s", "done_s", "returned"])


_LINES: Mapping[str, Wait] = MappingProxyType(
    {
        "torch.cuda.synchronize()": lambda _left, _right, _marker: torch.cuda.synchronize(),
        "left.synchronize()": lambda left, _right, _marker: left.synchronize(),
        "marker.synchronize()": lambda _left, _right, marker: marker.synchronize(),
        "right.wait_event(marker)": lambda _left, right, marker: right.wait_event(marker),
        "right.wait_stream(left)": lambda left, right, _marker: right.wait_stream(left),
        "y.item()": lambda _left, _right, _marker: torch.ones(1, device="cuda").item(),
    }
)


def run_the_puzzle() -> "pd.DataFrame":
    """Run the exercise ``08.five-waits`` with each of its lines, and return what was done when.

    Each line runs twice, with a short and with a long kernel c, so that luck does not count.

    Returns
    -------
    pandas.DataFrame
        Which of a, b and c were done both times: when the host arrived at ``now()``, and before d.

    Examples
    --------
    >>> import gpulab
    >>> from gpulab.exercises import lesson_08 as lab
    >>> with gpulab.virtual_gpu("H200"):
    ...     table = lab.run_the_puzzle()
    >>> table.loc["marker.synchronize()", "before d"]
    'ac'
    """
    import pandas as pd

    rows = {}
    with device.active():
        _trial(lambda *_: torch.cuda.synchronize(), _SHORT)  # the first calls are slow
        for name, line in _LINES.items():
            pairs = zip(_trial(line, _SHORT), _trial(line, _LONG), strict=True)
            rows[name] = ["".join(sorted(short & long)) or "none" for short, long in pairs]
    return pd.DataFrame.from_dict(rows, orient="index", columns=["done at now()", "before d"])


def _trial(line: Wait, c_cycles: int) -> tuple[set[str], set[str]]:
    left, right = (torch.cuda.Stream() for _ in range(2))  # type: ignore[no-untyped-call]  # torch's gap
    marker = torch.cuda.Event()  # type: ignore[no-untyped-call]  # as above
    torch.cuda.synchronize()
    # The same order as in the listing of the exercise; the events say which kernel is done.
    done = {"a": _kernel(left, _MIDDLE)}
    marker.record(left)
    done |= {"b": _kernel(left, _MIDDLE), "c": _kernel(right, c_cycles)}
    with torch.cuda.stream(right):
        line(left, right, marker)
    at_now = {name for name, event in done.items() if event.query()}  # type: ignore[no-untyped-call]  # as above
    d = _kernel(right, 1)  # so short that its event marks its start
    torch.cuda.synchronize()
    return at_now, {name for name, event in done.items() if event.elapsed_time(d) > 0}


def _kernel(stream: torch.cuda.Stream, n_cycles: int) -> torch.cuda.Event:
    event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]  # as above
    with torch.cuda.stream(stream):
        spin(n_cycles)
        event.record(stream)
    return event
