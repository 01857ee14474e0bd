"""Timers that choose their number of loops end early, with the same readings."""

import math
import sys
import time
import timeit
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from IPython.core.magics.execution import Timer
from torch.utils.benchmark import Timer as TorchTimer

import gpulab
from gpulab.core.errors import NotModelledError
from gpulab.virtual import _timer_loops
from tests.support.first_timers import FIRST_TIMERS, first_use


class TimerByHand(timeit.Timer):
    """A timer with a loop of its own, as IPython has one."""

    def timeit(self, number: int = 1_000_000) -> float:
        """Return the seconds of ``number`` rounds."""
        start_s = time.perf_counter()
        for _ in range(number):
            self.inner([None], self.timer)  # type: ignore[attr-defined] # undocumented
        return time.perf_counter() - start_s


@pytest.mark.slow
@pytest.mark.parametrize("kind", [timeit.Timer, Timer])
@pytest.mark.parametrize("is_held_back", [False, True])
def test_a_long_loop_that_the_timer_chose_is_cut(
    kind: type[timeit.Timer], *, is_held_back: bool
) -> None:
    """A long loop is cut off, and the clock advances as if all of it had run."""
    n_calls = 0
    with gpulab.virtual_gpu("H200", first_use=False, max_value_elements=0) as gpu:
        x = torch.empty(1 << (22 if is_held_back else 3), device="cuda")

        def work() -> None:
            nonlocal n_calls
            n_calls += 1
            x.add(1)

        timer = kind(work)
        for number in (1, 10, 100, 1_000, 10_000):
            timer.timeit(number)
        n_calls, start_s = 0, gpu.now_s
        taken_s = timer.timeit(100_000)
        assert n_calls < 10_000
        assert gpu.now_s - start_s == pytest.approx(taken_s, rel=1e-3)
        plain_s = kind(work).timeit(8_000) / 8_000
    assert taken_s / 100_000 == pytest.approx(plain_s, rel=0.15 if is_held_back else 0.01)


def test_a_loop_with_a_full_launch_queue_is_cut() -> None:
    """A loop that a full launch queue holds back is cut off, and takes the time of its kernels."""
    n_calls = 0
    with gpulab.virtual_gpu("H200", first_use=False, max_value_elements=0) as gpu:
        x = torch.empty(1 << 27, device="cuda")

        def work() -> None:
            nonlocal n_calls
            n_calls += 1
            x.add(1)

        timer = timeit.Timer(work)
        for number in (1, 10, 100, 1_000):
            timer.timeit(number)
        n_calls = 0
        taken_s = timer.timeit(10_000) / 10_000
        torch.cuda.synchronize()
        assert n_calls < 2_000
        kernel_ns = gpu.machine.gpu.device.records()[-1]
    assert taken_s == pytest.approx((kernel_ns.end_ns - kernel_ns.start_ns) * 1e-9, rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("numbers", [[3_000], [1, 3_000], [1, 10, 3_000]])
def test_a_number_that_the_program_chose_is_run(numbers: list[int]) -> None:
    """A number of loops that the program chose is run completely."""
    with gpulab.virtual_gpu("H200", first_use=False):
        x = torch.zeros(4, device="cuda")
        # The program's values depend on the number of calls.
        timer = timeit.Timer(lambda: x.add_(1))
        for number in numbers:
            timer.timeit(number)
        assert x[0].item() == sum(numbers)


@pytest.mark.slow
def test_pytorchs_timer_takes_few_readings_of_a_long_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """When a call takes long to simulate, readings that are alike are not taken again."""
    read, lengths, medians, n_calls = _timer_loops._reading, [], [], 0

    def reading(timer: timeit.Timer, number: int, *args: object) -> float:
        lengths.append(number)
        return read(timer, number, *args)

    monkeypatch.setattr(_timer_loops, "_reading", reading)
    with gpulab.virtual_gpu("H200", first_use=False, max_value_elements=0):
        x = torch.empty(4, device="cuda")

        def work() -> None:
            nonlocal n_calls
            n_calls += 1
            for _ in range(50):
                x.add(1)

        for enough_s, n_taken in ((math.inf, 13), (0.0, 5)):
            monkeypatch.setattr(_timer_loops, "_ENOUGH_S", enough_s)
            lengths.clear()
            timer = TorchTimer("work()", globals={"work": work})
            start_s = time.perf_counter()
            found = timer.blocked_autorange(min_run_time=3)
            assert time.perf_counter() - start_s >= sum(found.raw_times)
            assert len(found.raw_times) == 12
            assert lengths.count(found.number_per_run) == n_taken  # one to find the number
            medians.append(found.median)
        n_calls = 0
        timer.timeit(40)  # chosen by the program
        assert n_calls >= 40
    assert medians[0] == pytest.approx(medians[1], rel=1e-3)


def timer_with_a_loop() -> type[timeit.Timer]:
    """Return a class of timers that was just defined."""
    return type("Late", (timeit.Timer,), {"timeit": TimerByHand.timeit})


def timer_that_calls_its_parent() -> type[timeit.Timer]:
    """Return a class whose method uses its parent's."""

    class Late(timeit.Timer):
        def timeit(self, number: int = 1_000_000) -> float:
            return super().timeit(number)

    return Late


@pytest.mark.parametrize("define", [timer_with_a_loop, timer_that_calls_its_parent])
def test_a_timer_that_is_defined_inside_is_cut(define: Callable[[], type[timeit.Timer]]) -> None:
    """A class of timers that is defined on the virtual GPU ends long loops, and is restored."""
    n_calls = 0
    with gpulab.virtual_gpu("H200", first_use=False, max_value_elements=0):
        x = torch.empty(8, device="cuda")

        def work() -> None:
            nonlocal n_calls
            n_calls += 1
            x.add(1)

        kind = define()
        inside = kind.timeit
        # Its own default, a million, is no number that the program chose.
        taken_s = kind(work).timeit() / 1_000_000
        assert n_calls <= 1_000
        assert taken_s == pytest.approx(timeit.Timer(work).timeit(100) / 100, rel=0.03)
    assert kind.timeit is not inside


@pytest.mark.slow
@pytest.mark.parametrize("timer", FIRST_TIMERS)
def test_the_first_timer_of_a_process_launches_little(
    timer: str, warm_python: list[str], tmp_path: Path
) -> None:
    """A timer that the program imports on the virtual GPU is shortened when it runs first.

    Each launch takes about 50 µs of real time; without shortening there are 800,000 and more.
    """
    assert 100 < first_use(timer, warm_python, tmp_path).n_launches < 12_000


def test_the_time_of_a_first_timer_is_real(
    warm_python: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wait that takes hours of the virtual processor takes little of the real one."""
    waiting = "torch.cuda._sleep(1 << 44); torch.cuda.synchronize()"
    monkeypatch.setitem(FIRST_TIMERS, "wait", waiting)
    assert first_use("wait", warm_python, tmp_path).cpu_s < 1_000


def test_pytest_benchmark_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would time the simulation, so an error names the fixture that times the GPU."""

    class BenchmarkFixture:
        def __call__(self, work: Callable[[], int]) -> int:
            return work()

    module = SimpleNamespace(BenchmarkFixture=BenchmarkFixture)
    BenchmarkFixture.pedantic = BenchmarkFixture.__call__  # type: ignore[attr-defined] # as there
    monkeypatch.setitem(sys.modules, "pytest_benchmark.fixture", module)  # type: ignore[arg-type]  # as far as it is needed
    with gpulab.virtual_gpu("H200"), pytest.raises(NotModelledError, match="gpu_benchmark"):
        BenchmarkFixture()(int)
    assert BenchmarkFixture()(int) == 0
