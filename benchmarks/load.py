"""Load a machine as learners do, and print the memory and the time that it takes.

    python -m benchmarks.load kernels 30
    python -m benchmarks.load lessons 01 08b

kernels  runs one lesson in N Jupyter kernels at once, and prints how many failed, how long the
         lesson took, and the memory of each kernel while all of them still exist.
lessons  runs each lesson, or those that you name, in its own kernel, and prints the processor
         time and the memory that one learner needs for it. All take about 3 minutes.

Everything runs on the virtual GPU; times are those of the machine that runs it. RSS is the memory
of a process that is in RAM, with shared libraries; PSS divides shared memory among the processes
that share it, so that the PSS of all kernels add up to what they need; USS is the memory that a
process does not share. All three need Linux.
"""

import asyncio
import os
import statistics
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

import psutil

from benchmarks.common.command_line import call_command, parser_of
from benchmarks.common.markdown import padded_table
from benchmarks.common.notebooks import SOURCES, client_of, without_gpu
from gpulab.lessons._build import solved

if TYPE_CHECKING:
    from nbclient import NotebookClient

LESSONS = [source for source in SOURCES if source.parent.name == "source"]
MIB = 1 << 20


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one of the commands."""
    parser = parser_of("benchmarks.load", __doc__)
    commands = parser.add_subparsers(required=True)
    kernels = commands.add_parser("kernels", help="run a lesson in many kernels at once")
    kernels.add_argument("n", type=int, nargs="?", default=8, help="kernels (default: 8)")
    kernels.add_argument("--lesson", default="07", help="number of the lesson (default: 07)")
    kernels.set_defaults(command="benchmarks.load:run_kernels")
    each = commands.add_parser("lessons", help="run each lesson in its own kernel")
    each.add_argument("numbers", nargs="*", help="such as 01 08b (default: all)")
    each.set_defaults(command="benchmarks.load:run_lessons")
    call_command(parser, arguments)


def run_kernels(n: int, lesson: str) -> None:
    """Run one lesson in ``n`` kernels at once."""
    asyncio.run(_kernels(n, lesson))


def run_lessons(numbers: Sequence[str]) -> None:
    """Run each lesson in its own kernel."""
    asyncio.run(_lessons(numbers))


class Memory(NamedTuple):
    """Memory of one process in MiB; the module explains the names."""

    rss: float
    pss: float
    uss: float
    highest_rss: float

    @classmethod
    def of(cls, process: psutil.Process) -> "Memory":
        """Return the memory of a process now; Linux only."""
        now = process.memory_full_info()
        status = Path(f"/proc/{process.pid}/status").read_text("utf-8")
        (highest,) = (line.split() for line in status.splitlines() if line.startswith("VmHWM"))
        return cls(now.rss / MIB, now.pss / MIB, now.uss / MIB, int(highest[1]) / 1024)


@asynccontextmanager
async def _kernel(folder: str, lesson: Path) -> AsyncIterator[tuple[psutil.Process, str]]:
    """Yield a kernel that has run a lesson, with the first error, and end it after the block."""
    client = client_of(solved(lesson), folder)
    async with client.async_setup_kernel(env=without_gpu()):
        error = await _error_in(client, lesson)
        yield psutil.Process(client.km.provisioner.pid), error


async def _error_in(client: "NotebookClient", lesson: Path) -> str:
    from nbclient.exceptions import CellExecutionError

    for index, cell in enumerate(client.nb.cells):
        try:
            await client.async_execute_cell(cell, index)
        except CellExecutionError as error:
            return f"{lesson.stem}, cell {index}: {error.ename}: {error.evalue}"
    return ""


async def _kernels(n: int, number: str) -> None:
    (lesson,) = _chosen([number])
    before_mib = psutil.virtual_memory().available / MIB
    start_s = time.perf_counter()

    async def run_one() -> tuple[psutil.Process, str, float]:
        process, error = await opened.enter_async_context(_kernel(folder, lesson))
        return process, error, time.perf_counter() - start_s

    async with AsyncExitStack() as opened:
        folder = opened.enter_context(TemporaryDirectory(prefix="gpulab-load-"))
        ran = await asyncio.gather(*(run_one() for _ in range(n)))
        needed_mib = before_mib - psutil.virtual_memory().available / MIB
        # While all kernels exist: shared memory is divided among them, as it is in a class.
        memories = [Memory.of(process) for process, _, _ in ran]
    errors = [error for _, error, _ in ran if error]
    times_s = [time_s for _, _, time_s in ran]
    print(f"{lesson.stem} in {n} kernels at once, {os.cpu_count()} cores: {len(errors)} failed")
    print(*sorted(set(errors)), sep="\n", end="\n" if errors else "")
    print(f"time of a lesson: median {statistics.median(times_s):.0f} s, all {max(times_s):.0f} s")
    print(f"available memory fell by {needed_mib:.0f} MiB, {needed_mib / n:.0f} for each kernel")
    rows = [
        [
            name,
            *(f"{value:.0f}" for value in (min(values), statistics.median(values), max(values))),
        ]
        for name, values in zip(Memory._fields, zip(*memories, strict=True), strict=True)
    ]
    print(*padded_table(("MiB per kernel", "least", "median", "most"), rows), sep="\n")


def _chosen(numbers: Sequence[str]) -> list[Path]:
    """Return the lessons with these numbers, or all if there are none."""
    return [path for path in LESSONS if not numbers or path.stem.split("_")[0] in numbers]


async def _lessons(numbers: Sequence[str]) -> None:
    rows = []
    with TemporaryDirectory(prefix="gpulab-load-") as folder:
        for lesson in _chosen(numbers):
            async with _kernel(folder, lesson) as (process, error):
                memory, cpu = Memory.of(process), process.cpu_times()
            # RSS and not PSS, which is smaller while other processes share the libraries.
            figures = (cpu.user + cpu.system, memory.rss, memory.highest_rss)
            rows.append([lesson.stem, *(f"{figure:.0f}" for figure in figures)])
            print(lesson.stem, error or "ran", flush=True)
    headings = ("lesson", "CPU, s", "RSS at the end, MiB", "highest RSS, MiB")
    print(*padded_table(headings, rows), sep="\n")


if __name__ == "__main__":
    main()
