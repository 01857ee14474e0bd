"""Threads that use virtual GPUs at random moments work one at a time, or are told why not."""

import random
import sys
import threading
import time
from collections.abc import Iterator

import pytest
import torch

import gpulab
from gpulab.core.errors import VirtualGpuError
from gpulab.virtual import VirtualGpu

N_TRIES, N_THREADS, N_TURNS = 40, 3, 8


@pytest.fixture
def _quick_turns() -> Iterator[None]:
    """Let threads take turns as often as Python can, so that they meet in the middle of a step."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def use(gpu: VirtualGpu, chance: random.Random) -> str:
    """Enter a GPU, measure or compute, and leave; return what came of it."""
    try:
        with gpu:
            if chance.random() < 0.1:
                a = torch.ones(64, device="cuda")
                reading = gpulab.measure(lambda: a + a, n_samples=3, progress=False)
                assert 1e-7 < reading.median_s < 1e-4
            assert torch.ones(8, device="cuda").sum().item() == 8
    except VirtualGpuError as error:
        return "told" if "; " in str(error) else f"no advice: {error}"
    return "worked"


@pytest.mark.usefixtures("_quick_turns")
def test_threads_work_one_at_a_time_or_are_told() -> None:
    """Every use gives right values or our error; afterwards PyTorch is as before."""
    before = torch.cuda.is_available, torch.ones, time.perf_counter, threading.Thread.start
    outcomes: list[str] = []
    for seed in range(N_TRIES):
        gpus = [gpulab.virtual_gpu(name, first_use=False) for name in ("H200", "A100")]

        def turns(chance: random.Random, gpus: list[VirtualGpu] = gpus) -> None:
            try:
                outcomes.extend(use(chance.choice(gpus), chance) for _ in range(N_TURNS))
            except BaseException as error:  # noqa: BLE001  # it is shown below
                outcomes.append(f"{type(error).__name__}: {error}")

        threads = [
            threading.Thread(target=turns, args=(random.Random(100 * seed + number),))
            for number in range(N_THREADS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (
            torch.cuda.is_available,
            torch.ones,
            time.perf_counter,
            threading.Thread.start,
        ) == (before)
        assert [use(gpu, random.Random(seed)) for gpu in gpus] == ["worked"] * 2
    assert set(outcomes) == {"worked", "told"}
