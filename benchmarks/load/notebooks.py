"""Run lessons in Jupyter kernels, many at once or all in one, and print their memory."""

import asyncio
import os
import statistics
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from benchmarks.common.folders import ROOT
from benchmarks.common.markdown import padded_table
from benchmarks.common.notebooks import client_of
from gpulab.lessons._build import solved

SOURCES = ROOT / "notebooks" / "source"
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory of one process in MiB; :mod:`benchmarks.load.__main__` explains the names."""

    rss: float
    pss: float
    uss: float
    highest_rss: float

    @classmethod
    def of(cls, pid: int) -> "Memory":
        """Return the memory of a process now; Linux only."""
        now = psutil.Process(pid).memory_full_info()
        status = Path(f"/proc/{pid}/status").read_text("utf-8")
        (highest,) = (line.split() for line in status.splitlines() if line.startswith("VmHWM"))
        return cls(now.rss / MIB, now.pss / MIB, now.uss / MIB, int(highest[1]) / 1024)


class Kernel:
    """A Jupyter kernel that runs the cells of lessons, and that sees no CUDA GPU."""

    def __init__(self, client: NotebookClient) -> None:
        self._client = client

    @property
    def memory(self) -> Memory:
        """Memory of its process now."""
        return Memory.of(self._client.km.provisioner.pid)

    @property
    def cpu_s(self) -> float:
        """Seconds of processor time that its process has used, all threads together."""
        times = psutil.Process(self._client.km.provisioner.pid).cpu_times()
        return float(times.user + times.system)

    async def run(self, lesson: Path) -> str:
        """Run a lesson with its solutions; return the first error, or an empty text."""
        self._client.nb = solved(lesson)
        self._client.reset_execution_trackers()
        for index, cell in enumerate(self._client.nb.cells):
            try:
                await self._client.async_execute_cell(cell, index)
            except CellExecutionError as error:
                return f"{lesson.stem}, cell {index}: {error.ename}: {error.evalue}"
        return ""


@asynccontextmanager
async def kernel(folder: str) -> AsyncIterator[Kernel]:
    """Yield a kernel that runs in a folder, and end it after the block."""
    # nbclient needs a notebook to start a kernel; `run` replaces it.
    first = solved(lessons()[0])
    client = client_of(first, folder)
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": path}
    async with client.async_setup_kernel(env=environment):
        yield Kernel(client)


def lessons() -> list[Path]:
    """Return the sources of all lessons."""
    return sorted(SOURCES.glob("*.py"))


def print_kernels(n: int, lesson: str) -> None:
    """Run a lesson in ``n`` kernels at once and print what they needed."""
    (source,) = (path for path in lessons() if path.stem.startswith(f"{lesson}_"))
    asyncio.run(_run_kernels(n, source))


async def _run_kernels(n: int, lesson: Path) -> None:
    before_mib = psutil.virtual_memory().available / MIB
    async with AsyncExitStack() as opened:
        folder = opened.enter_context(TemporaryDirectory(prefix="gpulab-load-"))
        start_s = time.perf_counter()
        results = await asyncio.gather(*(_run_one(opened, folder, lesson) for _ in range(n)))
        duration_s = time.perf_counter() - start_s
        needed_mib = before_mib - psutil.virtual_memory().available / MIB
        # While all kernels exist: shared memory is divided among them, as it is in a class.
        memories = [kernel.memory for kernel, _, _ in results]
    errors = [error for _, error, _ in results if error]
    times_s = [time_s for _, _, time_s in results]
    print(f"{lesson.stem} in {n} kernels at once, {os.cpu_count()} cores: {len(errors)} failed")
    print(*sorted(set(errors)), sep="\n", end="\n" if errors else "")
    print(f"time of a lesson: median {statistics.median(times_s):.0f} s, all {duration_s:.0f} s")
    print(f"available memory fell by {needed_mib:.0f} MiB, {needed_mib / n:.0f} for each kernel")
    rows = [(name, *_range(memories, name)) for name in ("rss", "pss", "uss", "highest_rss")]
    print(*padded_table(("MiB per kernel", "least", "median", "most"), rows), sep="\n")


async def _run_one(opened: AsyncExitStack, folder: str, lesson: Path) -> tuple[Kernel, str, float]:
    start_s = time.perf_counter()
    started = await opened.enter_async_context(kernel(folder))
    error = await started.run(lesson)
    return started, error, time.perf_counter() - start_s


def _range(memories: Sequence[Memory], name: str) -> list[str]:
    values = sorted(getattr(memory, name) for memory in memories)
    return [f"{value:.0f}" for value in (values[0], statistics.median(values), values[-1])]


def print_lessons(numbers: Sequence[str]) -> None:
    """Run each lesson in its own kernel and print its CPU time and memory."""
    asyncio.run(_run_lessons(_chosen(numbers)))


def _chosen(numbers: Sequence[str]) -> list[Path]:
    """Return the lessons with these numbers, or all if there are none."""
    return [path for path in lessons() if not numbers or path.stem.split("_")[0] in numbers]


async def _run_lessons(chosen: Sequence[Path]) -> None:
    rows = []
    with TemporaryDirectory(prefix="gpulab-load-") as folder:
        for lesson in chosen:
            async with kernel(folder) as started:
                error = await started.run(lesson)
                memory, cpu_s = started.memory, started.cpu_s
            # RSS and not PSS, which is smaller while other processes share the libraries.
            figures = (cpu_s, memory.rss, memory.highest_rss)
            rows.append([lesson.stem, *(f"{figure:.0f}" for figure in figures)])
            print(lesson.stem, error or "ran", flush=True)
    headings = ("lesson", "CPU, s", "RSS at the end, MiB", "highest RSS, MiB")
    print(*padded_table(headings, rows), sep="\n")


def print_rounds(n: int, numbers: Sequence[str] = ()) -> None:
    """Run lessons ``n`` times in one kernel and print the memory after each round."""
    asyncio.run(_run_rounds(n, _chosen(numbers)))


async def _run_rounds(n: int, chosen: Sequence[Path]) -> None:
    rows: list[list[str]] = []
    with TemporaryDirectory(prefix="gpulab-load-") as folder:
        async with kernel(folder) as started:
            for number in range(1, n + 1):
                start_s = time.perf_counter()
                errors = [error for lesson in chosen if (error := await started.run(lesson))]
                time_s, memory = time.perf_counter() - start_s, started.memory
                figures = (time_s, memory.rss, memory.uss)
                rows.append([str(number), *(f"{figure:.0f}" for figure in figures)])
                print(f"round {number}: {memory.uss:.0f} MiB", *errors, sep="\n", flush=True)
    print(*padded_table(("round", "s", "RSS, MiB", "USS, MiB"), rows), sep="\n")
