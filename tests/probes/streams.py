"""Probes of streams: the current stream, waits, overlap and priorities."""

import time

import torch
from torch.autograd.function import FunctionCtx

from tests.probes.table import Gives, Probe

_SLEEP_CYCLES = 2_000_000  # about a millisecond


def _defaults() -> list[object]:
    current, default = torch.cuda.current_stream(), torch.cuda.default_stream()
    return [
        current == default,
        isinstance(current, torch.cuda.Stream),
        current.cuda_stream,
        str(current.device),
        hash(current) == hash(default),
    ]


def _side_stream() -> list[object]:
    side = torch.cuda.Stream()
    answers = [side == torch.cuda.current_stream(), side == torch.cuda.Stream()]
    with torch.cuda.stream(side) as _:
        answers.append(torch.cuda.current_stream() == side)
        with torch.cuda.stream(None):
            answers.append(torch.cuda.current_stream() == side)
    return [*answers, torch.cuda.current_stream() == torch.cuda.default_stream()]


def _with_stream() -> list[bool]:
    side = torch.cuda.Stream()
    with side:
        inside = torch.cuda.current_stream() == side
    return [inside, torch.cuda.current_stream() == side]


def _set_stream() -> list[bool]:
    side, before = torch.cuda.Stream(), torch.cuda.current_stream()
    torch.cuda.set_stream(side)
    inside = torch.cuda.current_stream() == side
    torch.cuda.set_stream(before)
    return [inside, torch.cuda.current_stream() == before]


def _queries() -> list[bool]:
    stream = torch.cuda.current_stream()
    answers = [stream.query()]
    torch.cuda._sleep(_SLEEP_CYCLES)
    answers.append(stream.query())
    stream.synchronize()
    return [*answers, stream.query()]


def _waits_for_stream() -> list[object]:
    side, x = torch.cuda.Stream(), torch.zeros(4, device="cuda")
    torch.cuda._sleep(_SLEEP_CYCLES)
    x += 1
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y = x * 10
    torch.cuda.current_stream().wait_stream(side)
    x.record_stream(side)
    return (y + 1).tolist()


def _waits_for_event() -> list[object]:
    side, x = torch.cuda.Stream(), torch.zeros(2, device="cuda")
    torch.cuda._sleep(_SLEEP_CYCLES)
    x += 1
    done = torch.cuda.Event()
    done.record()
    with torch.cuda.stream(side):
        side.wait_event(done)
        y = x * 10
    side.synchronize()
    return y.tolist()


def _streams_overlap() -> bool:
    sides = [torch.cuda.Stream() for _ in range(2)]
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for side in sides:
        side.wait_event(start)
        with torch.cuda.stream(side):
            torch.cuda._sleep(10 * _SLEEP_CYCLES)
        torch.cuda.current_stream().wait_stream(side)
    end.record()
    end.synchronize()
    return start.elapsed_time(end) < 15


def _priorities() -> list[object]:
    low, high = torch.cuda.Stream.priority_range()
    return [low, high < 0, torch.cuda.Stream(priority=high).priority, torch.cuda.Stream().priority]


def _external() -> list[bool]:
    side = torch.cuda.Stream()
    same = torch.cuda.ExternalStream(side.cuda_stream)
    with torch.cuda.stream(same):
        torch.cuda._sleep(_SLEEP_CYCLES)
    busy = not side.query()
    same.synchronize()
    return [busy, side.query(), same.cuda_stream == side.cuda_stream]


def _copy_beside() -> list[object]:
    side, host = torch.cuda.Stream(), torch.arange(4.0).pin_memory()
    with torch.cuda.stream(side):
        x = host.to("cuda", non_blocking=True)
    torch.cuda.current_stream().wait_stream(side)
    return (x + 1).tolist()


def _out_without_waiting() -> list[object]:
    x = torch.ones(4, device="cuda")
    torch.cuda._sleep(_SLEEP_CYCLES)
    x += 1
    host = torch.zeros(4).pin_memory()
    host.copy_(x, non_blocking=True)
    early = host.clone().tolist()
    torch.cuda.synchronize()
    return [early, host.tolist()]


def _host_goes_on() -> list[bool]:
    torch.cuda.synchronize()
    start_s = time.perf_counter()
    torch.cuda._sleep(20 * _SLEEP_CYCLES)
    launched_s = time.perf_counter() - start_s
    torch.cuda.synchronize()
    return [launched_s < 0.005, time.perf_counter() - start_s > 0.01]


class _Noting(torch.autograd.Function):
    """A slow doubling whose backward pass appends the current stream to a list."""

    @staticmethod
    def forward(context: FunctionCtx, x: torch.Tensor, answers: list[object]) -> torch.Tensor:
        context.answers = answers
        return x * 2

    @staticmethod
    def backward(context: FunctionCtx, *gradients: torch.Tensor) -> tuple[torch.Tensor, None]:
        context.answers.append(torch.cuda.current_stream())
        torch.cuda._sleep(_SLEEP_CYCLES)
        return gradients[0] * 2, None


def _backward_on_the_stream_of_forward() -> list[object]:
    side, answers = torch.cuda.Stream(), []
    x = torch.ones(3, device="cuda", requires_grad=True)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y = _Noting.apply(x, answers)
    torch.cuda.current_stream().wait_stream(side)
    z = y * 3
    y.register_hook(lambda _gradient: answers.append(torch.cuda.current_stream()))
    z.register_hook(lambda _gradient: answers.append(torch.cuda.current_stream()))
    z.sum().backward()
    gradient = (x.grad + 0).tolist()
    where = ["side" if stream == side else "default" for stream in answers]
    return [where, gradient, torch.cuda.current_stream() == side]


FAMILIES: dict[str, list[Probe]] = {
    "streams": [
        Gives("current and default", _defaults, [True, True, 0, "cuda:0", True]),
        Gives("torch.cuda.stream", _side_stream, [False, False, True, True, True]),
        Gives("with stream", _with_stream, [True, False]),
        Gives("set_stream", _set_stream, [True, True]),
        Gives(
            "backward on the stream of forward",
            _backward_on_the_stream_of_forward,
            [["default", "side", "side"], [6.0] * 3, False],
        ),
        Gives("query and synchronize", _queries, [True, False, True]),
        Gives("wait_stream", _waits_for_stream, [11.0] * 4),
        Gives("wait_event", _waits_for_event, [10.0] * 2),
        Gives("overlap", _streams_overlap),
        Gives("priority", _priorities, [0, True, -3, 0]),
        Gives("ExternalStream", _external, [True, True, True]),
        Gives("a copy on a side stream", _copy_beside, [1.0, 2.0, 3.0, 4.0]),
        Gives(
            "a copy to the host without a wait",
            _out_without_waiting,
            [[0.0] * 4, [2.0] * 4],
        ),
        Gives("a launch does not block the host", _host_goes_on, [True, True]),
        Gives(
            "repr",
            lambda: repr(torch.cuda.Stream()).startswith(
                "<torch.cuda.Stream device=cuda:0 cuda_stream=0x"
            ),
        ),
        Gives(
            "set_sync_debug_mode",
            lambda: [torch.cuda.get_sync_debug_mode(), torch.cuda.set_sync_debug_mode("default")],
            [0, None],
        ),
    ],
}
