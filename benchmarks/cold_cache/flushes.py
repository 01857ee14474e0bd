"""The ways to prepare the cache before a timed kernel: flushes, other inputs, or nothing."""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Any

import torch

from benchmarks.cold_cache.works import Case, Tensors
from benchmarks.common import environment

Prepare = Callable[[], object]

MIB = 1024**2
# A read flush writes one sum for each row: with rows of 64 KiB these are 8 kB for twice an L2 of
# 60 MiB, too few to make the cache dirty.
_ROW_ELEMENTS = 16 * 1024
_ROW_BYTES = 4 * _ROW_ELEMENTS
_LINE_ELEMENTS = 32  # of 4 bytes in a line of 128 bytes
# Eight blocks for each of the 132 multiprocessors of an H200.
_N_BLOCKS, _N_THREADS = 1056, 256
_USUAL_BYTES = 256 * MIB  # what triton's do_bench writes, whatever the size of the L2
_WAIT_CYCLES = 1_980_000  # 1 ms at the boost clock of an H200


@dataclass(frozen=True, slots=True)
class Way:
    """One way to prepare the cache.

    Attributes
    ----------
    name
        Its name in the tables.
    make
        Takes the size of the L2 in bytes and returns a function that enqueues the flush; None
        for ways that need no buffer.
    rotation
        Size of the other inputs that run between two uses of the same input, as a multiple of
        the L2; 0 for no rotation.
    same_output
        Whether the runs on other inputs write to the same output.
    pause_cycles
        How long the GPU waits between the flush and the kernel.
    real_only
        Whether it needs code that only a real GPU runs.
    counted
        Whether ncu counts its bytes, too; that takes long.
    """

    name: str
    make: Callable[[int], Prepare] | None = None
    rotation: float = 0.0
    same_output: bool = False
    pause_cycles: int = 1_000
    real_only: bool = False
    counted: bool = True


def _rows(size_bytes: float) -> torch.Tensor:
    n_rows = ceil(size_bytes / _ROW_BYTES)
    return torch.zeros(n_rows, _ROW_ELEMENTS, dtype=torch.float32, device="cuda")


def _read(n_caches: float, times: int = 1, reduce: Any = torch.sum) -> Callable[[int], Prepare]:  # noqa: ANN401 # sum and amax have unlike types
    def make(l2_bytes: int) -> Prepare:
        rows = _rows(n_caches * l2_bytes)
        out = torch.zeros(len(rows), dtype=torch.float32, device="cuda")

        def flush() -> None:
            for _ in range(times):
                reduce(rows, dim=1, out=out)

        return flush

    return make


def _sparse(n_caches: float) -> Callable[[int], Prepare]:
    def make(l2_bytes: int) -> Prepare:
        rows = _rows(n_caches * l2_bytes)
        words = rows.view(len(rows), -1, _LINE_ELEMENTS)[:, :, 0]
        out = torch.zeros(len(rows), dtype=torch.float32, device="cuda")
        return lambda: torch.sum(words, dim=1, out=out)

    return make


def _write(size_bytes: int = 0, n_caches: float = 0) -> Callable[[int], Prepare]:
    def make(l2_bytes: int) -> Prepare:
        return _rows(size_bytes or n_caches * l2_bytes).zero_

    return make


def _both(first: Callable[[int], Prepare], second: Callable[[int], Prepare]) -> Any:  # noqa: ANN401 # a maker
    def make(l2_bytes: int) -> Prepare:
        one, other = first(l2_bytes), second(l2_bytes)

        def flush() -> None:
            one()
            other()

        return flush

    return make


# The comparison at the end is never true. Without it the compiler would remove the loads, because
# nothing used their sum.
_TOUCH = """
extern "C" __global__ void NAME(int* p, int n_lines, int* out) {
    int sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n_lines; i += gridDim.x * blockDim.x) {
        int* line = p + (long long)i * LINE;
        BODY
    }
    if (sum == 123456789) *out = sum;
}
"""
_BODIES = {
    "touch": "sum += *line;",
    # Most of the prefetches are dropped: it takes only 11 µs and leaves up to 84 % of the data in
    # the cache (docs/cold-cache.md).
    "prefetch": 'asm volatile("prefetch.global.L2 [%0];" :: "l"(line));',
    # It leaves lines empty, and a few kernels are then 1 to 4 % faster than after any read flush.
    # A program never finds an empty cache, so it is not the default.
    "discard": 'asm volatile("discard.global.L2 [%0], 128;" :: "l"(line) : "memory");',
}


def _custom(name: str, n_caches: float = 0, *, zero_bytes: int = 0) -> Callable[[int], Prepare]:
    """Return the maker of a flush: a kernel that does one thing to each line of a buffer."""

    def make(l2_bytes: int) -> Prepare:
        source = _TOUCH.replace("NAME", name).replace("BODY", _BODIES[name])
        source = source.replace("LINE", str(_LINE_ELEMENTS))
        kernel = torch.cuda._compile_kernel(source, name)
        rows = _rows(zero_bytes or n_caches * l2_bytes)
        out = torch.zeros(1, dtype=torch.int32, device="cuda")
        n_lines = rows.numel() // _LINE_ELEMENTS

        def flush() -> None:
            if zero_bytes:
                rows.zero_()
            stream = torch.cuda.current_stream()
            grid, block = (_N_BLOCKS, 1, 1), (_N_THREADS, 1, 1)
            kernel(grid=grid, block=block, args=[rows, n_lines, out], stream=stream)

        return flush

    return make


def _memset(n_caches: float) -> Callable[[int], Prepare]:
    def make(l2_bytes: int) -> Prepare:
        rows = _rows(n_caches * l2_bytes)
        runtime = ctypes.CDLL(_runtime_path())

        def flush() -> None:
            stream = torch.cuda.current_stream().cuda_stream
            pointer, size = ctypes.c_void_p(rows.data_ptr()), ctypes.c_size_t(rows.nbytes)
            failed = runtime.cudaMemsetAsync(pointer, 0, size, ctypes.c_void_p(stream))
            if failed:
                raise RuntimeError(f"cudaMemsetAsync returned {failed}")

        return flush

    return make


def _reset_persisting(_: int) -> Prepare:
    runtime = ctypes.CDLL(_runtime_path())

    def reset() -> None:
        failed = runtime.cudaCtxResetPersistingL2Cache()
        if failed:
            raise RuntimeError(f"cudaCtxResetPersistingL2Cache returned {failed}")

    return reset


def _runtime_path() -> str:
    """Return the path of the CUDA runtime that torch loaded; a second copy has other contexts."""
    with open("/proc/self/maps", encoding="utf-8") as maps:  # noqa: PTH123 # not a file on disk
        found = [line.split()[-1] for line in maps if "libcudart" in line]
    return found[0]


WAYS = (
    Way("hot"),
    Way("write 256 MiB", _write(_USUAL_BYTES)),
    Way("write 1x", _write(n_caches=1)),
    Way("write 2x", _write(n_caches=2)),
    Way("memset 1x", _memset(1), real_only=True),
    Way("memset 2x", _memset(2), real_only=True, counted=False),
    Way("write 256 MiB, read 2x", _both(_write(_USUAL_BYTES), _read(2))),
    # Waiting does not help: after 1 ms the lines are as dirty as before.
    Way("write 256 MiB, wait 1 ms", _write(_USUAL_BYTES), pause_cycles=_WAIT_CYCLES),
    Way("write 256 MiB, discard", _custom("discard", zero_bytes=_USUAL_BYTES), real_only=True),
    # CUDA's own reset flushes only what was set aside as persisting.
    Way("reset persisting", _reset_persisting, real_only=True, counted=False),
    # One L2 size leaves 2 % of the inputs hot, because the buffer itself is still partly in the
    # cache and hits. From 1.5 times on nothing changes; the default is 2, as a margin for other
    # GPUs.
    Way("read 1x", _read(1)),
    Way("read 1.25x", _read(1.25)),
    Way("read 1.5x", _read(1.5)),
    Way("read 2x", _read(2)),
    Way("read 3x", _read(3)),
    Way("read 4x", _read(4)),
    Way("read 1x, twice", _read(1, times=2)),
    Way("amax 2x", _read(2, reduce=torch.amax), counted=False),
    Way("one of 32 words, 2x", _custom("touch", 2), real_only=True),
    Way("one of 32 words, 3x", _custom("touch", 3), real_only=True, counted=False),
    Way("one of 32 words, 2x, by torch", _sparse(2), real_only=True),
    Way("prefetch 2x", _custom("prefetch", 2), real_only=True),
    Way("rotate 1x", rotation=1.0, counted=False),
    Way("rotate 2x", rotation=2.0),
    Way("rotate 4x", rotation=4.0, counted=False),
    # Results that are written over never go to memory, so small ones cost nothing here.
    Way("rotate 2x, same output", rotation=2.0, same_output=True),
)


def prepared(way: Way, flush: Prepare | None, case: Case, clones: list[Tensors]) -> list[Prepare]:
    """Return the steps to run before one sample; the records time the last step separately.

    A flush runs before and after the work, as in a loop of samples, so that it finds what the
    flush of the sample before left in the cache.
    """
    if way.rotation:
        n_others = max(1, ceil(way.rotation * needed_bytes(1) / case.size_bytes))
        n_own = len(case.tensors) - (case.n_outputs if way.same_output else 0)

        def others() -> None:
            for tensors in clones[:n_others]:
                case.run(*tensors[:n_own], *case.tensors[n_own:])

        return [others]

    def work() -> None:
        case.run(*case.tensors)

    # "Hot" runs the same kernel right before the timed one.
    return [work, work] if flush is None else [flush, work, flush]


def needed_bytes(n_caches: float) -> int:
    """Return a multiple of the size of the L2 of the GPU in use, in bytes."""
    return int(n_caches * environment.l2_bytes())


def clones_of(case: Case, rotation: float) -> list[Tensors]:
    """Return as many copies of the inputs as a rotation needs."""
    n_clones = max(1, ceil(needed_bytes(rotation) / case.size_bytes))
    return [tuple(tensor.clone() for tensor in case.tensors) for _ in range(n_clones)]
