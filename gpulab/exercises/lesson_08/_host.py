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
    """
    share = timeline.summary().devices[0]
    return share.busy_s / sum(stream.busy_s for stream in share.streams)


def how_they_ran(timeline: "Timeline") -> str:
    """Return how the kernels of a timeline ran: ``"together"`` or ``"sequentially"``."""
    return "together" if share_of_serial(timeline) < _TOGETHER else "sequentially"


def host_times(
    calls: Mapping[str, Callable[[], object]], before: Callable[[], object] | None = None
) -> "pd.DataFrame":
    """Time calls by the host's clock, each from an idle GPU; ``before`` enqueues work before it.

    Each call runs twice, and the second time counts. The columns are ``host_s``, seconds until the
    call returned; ``done_s``, seconds until the GPU had finished; and ``returned``, the value as
    text.
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
            text = "" if torch.is_tensor(returned) else str(returned)
            rows[name] = (host_s, time.perf_counter() - start_s, text)
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

    Each line runs twice, with a short and with a long kernel c, so that luck does not count. The
    table says which of a, b and c were done both times: when the host arrived at ``now()``, and
    before d.
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
