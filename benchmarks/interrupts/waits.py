"""How long Ctrl-C waits in loops that are nearly always inside steps of the virtual GPU."""

import os
import random
import signal
import threading
from collections.abc import Callable
from time import sleep  # the real one: inside a virtual GPU the name in ``time`` is another

import torch

import gpulab
from benchmarks.common import real_clocks
from gpulab.workloads.sweeps import Task, sweep


def _launches() -> None:
    x = torch.ones(64, device="cuda")
    for _ in range(50):
        x.add_(1)


def _reads() -> None:
    torch.ones(64, device="cuda").sum().item()


def _sweep() -> None:
    task = Task("add", 64, method="events", cache="hot")
    if sweep([task], progress=False, max_time_s=0.01).stopped_by:
        raise KeyboardInterrupt  # a sweep that is stopped returns what it has


def _enter() -> None:
    with gpulab.virtual_gpu("H200", first_use=False):
        pass


PROGRAMS: dict[str, tuple[Callable[[], None], bool]] = {
    "launches": (_launches, True),
    "reads": (_reads, True),
    "sweep": (_sweep, True),
    "enter and leave": (_enter, False),
}


def waits_s(name: str, n: int, seed: int) -> list[float]:
    """Send Ctrl-C ``n`` times at random moments; return how long each one waited.

    A Ctrl-C that is lost, or waits for more than 10 s, counts as infinite.
    """
    program, needs_gpu = PROGRAMS[name]
    if not needs_gpu:
        return [_wait_s(program, random.Random(f"{seed} {i}")) for i in range(n)]  # noqa: S311
    with gpulab.virtual_gpu("H200", first_use=False):
        program()
        return [_wait_s(program, random.Random(f"{seed} {i}")) for i in range(n)]  # noqa: S311


def _wait_s(program: Callable[[], None], generator: random.Random) -> float:
    sent_s = [float("inf")]
    delay_s = generator.uniform(0.005, 0.05)

    def send() -> None:
        sleep(delay_s)
        sent_s[0] = real_clocks.monotonic()
        os.kill(os.getpid(), signal.SIGINT)

    end_s = real_clocks.monotonic() + 10
    try:
        threading.Thread(target=send).start()
        while real_clocks.monotonic() < end_s:
            program()
    except KeyboardInterrupt:
        return real_clocks.monotonic() - sent_s[0]
    return float("inf")
