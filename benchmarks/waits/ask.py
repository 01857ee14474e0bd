"""Ask one call whether it waits, is seen to wait, may be captured, and what it launches."""

import contextlib
import time
from collections.abc import Callable

import torch

Call = Callable[[], None]
# What the answer to a question is: a truth, a number, or the error that was in the way.
Answer = bool | int | str

_CYCLES_PER_S = 2e9  # at least; a slower clock makes the sleep longer
_SLEEP_S = 0.01
# A call that keeps the host busy for long needs a longer sleep, or it would seem to wait.
_SLEEPS_PER_CALL = 3


def waits(call: Call) -> bool:
    """Return whether a call behind a sleep of the GPU returns only after the sleep."""
    torch.cuda.synchronize()
    start_s = time.perf_counter()
    call()
    duration_s = time.perf_counter() - start_s
    torch.cuda.synchronize()
    after_sleep = torch.cuda.Event()
    torch.cuda._sleep(int((_SLEEP_S + _SLEEPS_PER_CALL * duration_s) * _CYCLES_PER_S))
    after_sleep.record()
    call()
    has_waited = after_sleep.query()
    torch.cuda.synchronize()
    return has_waited


def debug(call: Call) -> Answer:
    """Return whether ``torch.cuda.set_sync_debug_mode("error")`` refuses a call."""
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        call()
    except RuntimeError as error:
        return "synchronizing" in str(error) or _described(error)
    else:
        return False
    finally:
        torch.cuda.set_sync_debug_mode("default")
        torch.cuda.synchronize()


def captured(call: Call) -> bool:
    """Return whether a call may be captured in a CUDA graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    try:
        with torch.cuda.stream(stream):
            call()
            call()
        torch.cuda.synchronize()
        with torch.cuda.graph(torch.cuda.CUDAGraph(), stream=stream):
            call()
    except Exception:  # noqa: BLE001 # CUDA and PyTorch refuse with several classes
        return False
    else:
        return True
    finally:
        with contextlib.suppress(Exception):
            torch.cuda.synchronize()


def kernels(call: Call) -> int:
    """Return how many kernels a call launches, without the driver's own copies and fills."""
    from torch.profiler import ProfilerActivity, profile

    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        call()
        torch.cuda.synchronize()
    return sum(
        str(event.device_type).endswith("CUDA")
        and not event.name.startswith(("Memcpy", "Memset", "Activity"))
        for event in profiler.events()
    )


def repaired_after_capture() -> bool:
    """Capture a graph after one that failed, and return whether random numbers work again."""
    # A failed capture leaves PyTorch's generator in the state of a capture, until one succeeds.
    try:
        number = torch.zeros((), device="cuda")
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            number.add_(1)
        torch.rand(1, device="cuda").item()
    except Exception:  # noqa: BLE001 # whatever failed, the GPU is of no more use
        return False
    return True


def answer(question: Callable[[Call], Answer], call: Call) -> Answer:
    """Return what a question finds about a call that has run twice, or the error as text."""
    try:
        call()
        call()
        return question(call)
    except Exception as error:  # noqa: BLE001 # a call may be missing in one version of PyTorch
        with contextlib.suppress(Exception):
            torch.cuda.synchronize()
        return _described(error)


def _described(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:200]
