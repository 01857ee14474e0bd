"""Probes of ``torch.cuda.Event``, and of ``torch.Stream`` and ``torch.Event``."""

from collections.abc import Callable

import torch

from tests.probes.table import Gives, Probe, Raises

_SLEEP_CYCLES = 2_000_000  # about a millisecond


def _event_from_stream() -> list[object]:
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        torch.cuda._sleep(_SLEEP_CYCLES)
    event = side.record_event()
    answers = [event.query()]
    event.wait(torch.cuda.current_stream())
    event.synchronize()
    return [*answers, event.query(), side.query()]


def _elapsed() -> list[bool]:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    torch.cuda._sleep(_SLEEP_CYCLES)
    end.record()
    end.synchronize()
    elapsed_ms = start.elapsed_time(end)
    return [
        0.5 < elapsed_ms < 4,
        end.elapsed_time(start) == -elapsed_ms,
        elapsed_ms == start.elapsed_time(end),
    ]


def _recorded_again() -> list[bool]:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    end.record()
    torch.cuda.synchronize()
    short_ms = start.elapsed_time(end)
    torch.cuda._sleep(_SLEEP_CYCLES)
    end.record()
    done = end.query()
    torch.cuda.synchronize()
    return [short_ms < 0.2, done, start.elapsed_time(end) > 0.5]


def _never_recorded() -> list[object]:
    event = torch.cuda.Event()
    event.wait()
    event.synchronize()
    return [event.query(), event.cuda_event]


def _generic() -> list[object]:
    side, event = torch.Stream("cuda"), torch.Event("cuda", enable_timing=True)
    end = torch.Event(device="cuda", enable_timing=True)
    event.record(side)
    with side:
        inside = torch.accelerator.current_stream() == side
        torch.cuda._sleep(_SLEEP_CYCLES)
    end.record(side)
    answers = [inside, end.query(), side.query()]
    side.synchronize()
    return [
        *answers,
        end.query(),
        event.elapsed_time(end) > 0.5,
        str(side.device),
        str(event.device),
    ]


def _relations() -> list[bool]:
    stream, event = torch.cuda.Stream(), torch.cuda.Event()
    return [
        isinstance(stream, torch.Stream),
        isinstance(event, torch.Event),
        issubclass(torch.cuda.Stream, torch.Stream),
        isinstance(torch.Stream("cuda"), torch.cuda.Stream),
        isinstance(torch.cuda.current_stream(), torch.Stream),
        isinstance(torch.ones(1), torch.Stream),
    ]


def _between_generic_and_cuda() -> list[object]:
    event, side = torch.Event("cuda"), torch.cuda.Stream()
    with torch.cuda.stream(side):
        torch.cuda._sleep(_SLEEP_CYCLES)
        event.record()
    event.wait(torch.accelerator.current_stream())
    torch.accelerator.synchronize()
    return [event.query(), side.query()]


def _event_elapsed(*, timing: bool, recorded: bool, wait: bool) -> Callable[[], float]:
    def run() -> float:
        start, end = (torch.cuda.Event(enable_timing=timing) for _ in range(2))
        if recorded:
            start.record()
            torch.cuda._sleep(_SLEEP_CYCLES)
            end.record()
        if wait:
            torch.cuda.synchronize()
        return start.elapsed_time(end)

    return run


FAMILIES: dict[str, list[Probe]] = {
    "events": [
        Gives("recorded by a stream", _event_from_stream, [False, True, True]),
        Gives("elapsed_time", _elapsed, [True, True, True]),
        Gives("recorded again", _recorded_again, [True, False, True]),
        Gives("never recorded", _never_recorded, [True, 0]),
        Gives("repr", lambda: repr(torch.cuda.Event()), "<torch.cuda.Event uninitialized>"),
        Raises(
            "elapsed_time without timing",
            _event_elapsed(timing=False, recorded=True, wait=True),
            ValueError,
            r"Both events must be created with argument 'enable_timing=True'\.",
        ),
        Raises(
            "elapsed_time, not recorded",
            _event_elapsed(timing=True, recorded=False, wait=True),
            ValueError,
            r"Both events must be recorded before calculating elapsed time\.",
        ),
        Raises(
            "elapsed_time, not done",
            _event_elapsed(timing=True, recorded=True, wait=False),
            RuntimeError,
            r"Both events must be completed before calculating elapsed time\.",
        ),
    ],
    "torch.Stream": [
        Gives(
            "stream and events of the accelerator",
            _generic,
            [True, False, False, True, True, "cuda:0", "cuda:0"],
        ),
        Gives("mixed with torch.cuda's", _between_generic_and_cuda, [True, True]),
        Gives("instances", _relations, [True, True, True, False, True, False]),
    ],
}
