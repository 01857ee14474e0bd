"""All clocks of a program tell one story, and it is that of the virtual host."""

import asyncio
import copy
import datetime as dt
import logging
import multiprocessing.queues
import pickle
import queue
import random
import threading
import time
import timeit
from collections.abc import Callable, Iterator

import pytest
import torch

import gpulab
from gpulab.virtual import VirtualGpu, watch_clocks

NAMES = ("time", "perf_counter", "monotonic", "process_time", "thread_time")
# Functions of ``time`` that read no clock, or only set or describe one.
WITHOUT_READING = {
    *("clock_getres", "clock_settime", "clock_settime_ns", "get_clock_info", "mktime", "tzset"),
    *("pthread_getcpuclockid", "strptime", "struct_time"),
}


@pytest.fixture
def gpu() -> Iterator[VirtualGpu]:
    """Yield an entered virtual GPU."""
    with gpulab.virtual_gpu("H200") as gpu:
        yield gpu


def of_clock_gettime(name: str) -> Callable[[], int]:
    """Return a function that reads a clock by its number."""
    return lambda: time.clock_gettime_ns(getattr(time, name))


def clocks() -> dict[str, Callable[[], int]]:
    """Return all clocks of Python as functions that return nanoseconds."""
    by_name: dict[str, Callable[[], int]] = {
        f"{name}_ns": lambda name=name: getattr(time, f"{name}_ns")() for name in NAMES
    }
    in_seconds: dict[str, Callable[[], int]] = {
        name: lambda name=name: round(getattr(time, name)() * 1e9) for name in NAMES
    }
    known = (name for name in dir(time) if name.startswith("CLOCK_"))
    return {
        **by_name,
        **in_seconds,
        **{name: of_clock_gettime(name) for name in known},
        "timeit.default_timer": lambda: round(timeit.default_timer() * 1e9),
        "log record": lambda: round(log_record().created * 1e9),
    }


def log_record() -> logging.LogRecord:
    """Return a record of this moment."""
    return logging.LogRecord("name", logging.INFO, "file.py", 1, "message", (), None)


def counts_processor_time(name: str) -> bool:
    """Return whether a clock stands still during time.sleep()."""
    return any(part in name for part in ("process_time", "thread_time", "CPUTIME", "PROF"))


def act(choice: random.Random) -> int:
    """Do something that takes time; return for how many nanoseconds the host slept."""
    kind = choice.randrange(5)
    if kind == 0:
        torch.cuda._sleep(choice.randrange(1, 10_000_000))
    elif kind == 1:
        torch.cuda.synchronize()
    elif kind == 2:
        torch.ones(choice.randrange(1, 1000), device="cuda").sum().item()
    elif kind == 3:
        duration_s = choice.choice((0, 1e-6, 0.25, 100))
        time.sleep(duration_s)
        return round(duration_s * 1e9)
    else:
        torch.zeros(10) + 1
    return 0


@pytest.mark.parametrize("seed", range(40))
def test_differences_agree_over_all_clocks(seed: int) -> None:
    """Between any two moments each clock advances as much as the host's time."""
    choice = random.Random(seed)
    with gpulab.virtual_gpu("H200") as gpu:
        host, slept_ns = gpu.machine.host, 0
        offsets: dict[str, list[int]] = {}
        for _ in range(15):
            slept_ns += act(choice)
            for name, read in choice.sample(sorted(clocks().items()), 6):
                awake_ns = slept_ns if counts_processor_time(name) else 0
                reading_ns = read()
                offsets.setdefault(name, []).append(reading_ns - host.now_ns + awake_ns)
    # A float of seconds since 1970 has a resolution of 0.24 µs, and perf_counter's of 0.12 ns.
    for name, found in offsets.items():
        assert max(found) - min(found) <= 500, name


@pytest.mark.usefixtures("gpu")
def test_no_clock_is_left_out() -> None:
    """Each function of the module time is a virtual one, or reads no clock."""
    builtins = {name for name, value in vars(time).items() if type(value) is type(time.mktime)}
    assert builtins - WITHOUT_READING == set()


def test_a_program_reads_the_present_date() -> None:
    """Time of day begins at the real one, so that a date of a log or a file name makes sense."""
    before_s = time.time()
    with gpulab.virtual_gpu("H200"):
        now_s = time.time()
        assert before_s <= now_s <= before_s + 60
        day = dt.datetime.fromtimestamp(now_s, tz=dt.UTC).astimezone()
        assert time.strftime("%Y-%m-%d") == f"{day:%Y-%m-%d}"
        assert time.localtime()[:3] == day.timetuple()[:3]
        assert str(day.year) in time.ctime()
        assert str(day.year) in time.asctime()
        assert time.gmtime().tm_year == time.gmtime(now_s).tm_year
        time.sleep(86_400)
        assert time.localtime()[:3] == (day + dt.timedelta(days=1)).timetuple()[:3]
        # With an argument they are Python's own.
        assert time.gmtime(0).tm_year == 1970
        assert time.strftime("%Y", time.gmtime(0)) == "1970"
        assert time.asctime(time.gmtime(0)) == "Thu Jan  1 00:00:00 1970"


def test_clocks_go_on_from_one_context_to_the_next() -> None:
    """Real time between two contexts of a GPU counts for none of its clocks."""
    gpu = gpulab.virtual_gpu("H200")
    with gpu:
        before = [getattr(time, f"{name}_ns")() for name in NAMES]
    real_s = time.process_time()
    while time.process_time() < real_s + 0.002:
        pass
    with gpu:
        after = [getattr(time, f"{name}_ns")() for name in NAMES]
    assert [late - early for early, late in zip(before, after, strict=True)] == [250] * 5


@pytest.mark.usefixtures("gpu")
def test_a_blocking_event_leaves_the_processor_free() -> None:
    """A wait takes processor time, and a wait for an event that blocks takes none."""
    used_s = []
    for blocking in (False, True):
        event = torch.cuda.Event(blocking=blocking)
        torch.cuda._sleep(40_000_000)
        event.record()
        began_s, start_s = time.thread_time(), time.perf_counter()
        event.synchronize()
        used_s.append(time.thread_time() - began_s)
        assert time.perf_counter() - start_s > 0.02
    assert used_s[0] > 0.02
    assert used_s[1] < 1e-6


def test_libraries_wait_in_real_time() -> None:
    """Deadlines of asyncio, queues and locks pass although the virtual clock stands still."""
    real = time.monotonic

    async def wait() -> float:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), 0.001)
        return asyncio.get_running_loop().time()

    waiting: multiprocessing.queues.Queue[int] = multiprocessing.get_context("spawn").Queue()
    with gpulab.virtual_gpu("H200"):
        time.sleep(1e6)  # so that the virtual clock is far ahead
        assert asyncio.run(wait()) < real()
        for each in (queue.Queue(), waiting):
            with pytest.raises(queue.Empty):
                each.get(timeout=0.001)
        assert time.monotonic() > real() + 9e5


@pytest.mark.usefixtures("gpu")
def test_other_threads_read_real_clocks() -> None:
    """Another thread reads real clocks, and its time.sleep() takes real time."""
    readings: list[list[int]] = []
    time.sleep(1e6)  # so that the virtual clocks are far ahead

    def read() -> None:
        readings.append([getattr(time, f"{name}_ns")() for name in ("time", "monotonic")])
        readings.append([time.clock_gettime_ns(time.CLOCK_MONOTONIC), time.localtime().tm_yday])

    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
    ahead = [getattr(time, f"{name}_ns")() for name in ("time", "monotonic")]
    assert all(here - there > 9e14 for here, there in zip(ahead, readings[0], strict=True))
    assert ahead[1] - readings[1][0] > 9e14


@pytest.mark.usefixtures("gpu")
def test_clocks_behave_like_builtins() -> None:
    """As an attribute of a class a clock is no method; it can be copied, pickled and refuses."""

    class Watch:
        clock = time.perf_counter
        converter = time.gmtime

    assert Watch().clock() > 1e6
    assert Watch().converter(0).tm_year == 1970
    assert copy.deepcopy(time.monotonic) is time.monotonic
    assert pickle.loads(pickle.dumps(time.time_ns)) is time.time_ns
    with pytest.raises(ValueError, match="non-negative"):
        time.sleep(-1)
    with pytest.raises(TypeError):
        time.perf_counter(1)  # type: ignore[call-arg] # the mistake


def test_real_clocks_are_noticed() -> None:
    """Reads of datetime and of clocks that were imported earlier are named; others are not."""
    early = time.perf_counter
    with gpulab.virtual_gpu("H200"):
        with watch_clocks() as clocks_read:
            time.perf_counter()
            time.time()
            log_record()
            dt.datetime(2026, 1, 1, tzinfo=dt.UTC).isoformat()
        assert (clocks_read.real, clocks_read.n_virtual) == ([], 2)
        with watch_clocks() as clocks_read:
            dt.datetime.now(tz=dt.UTC)
            dt.date.today()  # noqa: DTZ011 # what programs do
            early()
    assert clocks_read.real == [
        "datetime.now()",
        "date.today()",
        "perf_counter() from an earlier import",
    ]
