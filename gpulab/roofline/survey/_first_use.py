"""Measure the costs of first use (context, libraries, memory), each in a fresh process."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import cast

from gpulab import device
from gpulab.core.errors import DamagedDataError, RecordingError
from gpulab.core.serialization import parse_json
from gpulab.workloads.recordings import Row

# Each sequence runs in a fresh process. A first step pays for what later steps share, so the
# same step is also measured first in another sequence. Saved recordings contain the names of the
# steps, so a matmul is "product" here.
SEQUENCES = (
    ("context", "allocation", "kernel", "product", "half product"),
    ("context", "half product"),
    ("context", "convolution"),
)
# Python, torch and a CUDA context take seconds; a driver that hangs must not block the survey.
_TIMEOUT_S = 90
_REAL = "cuda"
_ALLOCATION_BYTES = 64 << 20


def rows(*, quick: bool) -> Iterator[Row]:
    """Yield a row for each step of each process: the time of its first and of its second run."""
    in_use = device.current()
    gpu = _REAL if in_use.virtual is None else in_use.virtual.spec.name
    for process, steps in enumerate(SEQUENCES[:1] if quick else SEQUENCES):
        for position, row in enumerate(_in_a_process(gpu, steps)):
            yield {"process": process, "position": position, **row}


def _in_a_process(gpu: str, steps: tuple[str, ...]) -> list[Row]:
    # This module as a program and not a fork: CUDA does not work in a fork, and the context must
    # be new.
    command = [sys.executable, "-m", __name__, gpu, *steps]
    try:
        done = subprocess.run(  # noqa: S603 # this very Python, and names from above
            command,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=True,
            timeout=_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired as error:
        raise RecordingError(f"a fresh process did not end within {_TIMEOUT_S} s") from error
    except subprocess.CalledProcessError as error:
        last = (error.stderr.strip().splitlines() or ["nothing"])[-1]
        raise RecordingError(f"a fresh process failed and said: {last}") from error
    # Libraries may print to standard output too; the JSON is the last line.
    try:
        found = parse_json(done.stdout.rpartition("\n")[2])
    except DamagedDataError as error:
        raise RecordingError(f"a fresh process gave no times: {error}; try again") from error
    return cast("list[Row]", found)


def main(gpu: str, steps: list[str]) -> None:
    """Run the steps in this process, and print their times as JSON."""
    takes = {step: _STEPS[step] for step in steps}
    with _gpu(gpu):
        sys.stdout.write(json.dumps([{"step": step, **take()} for step, take in takes.items()]))


def _gpu(name: str) -> AbstractContextManager[object]:
    # Do not look for a real GPU: that would create its context before the first step is timed.
    if name == _REAL:
        return nullcontext()
    from gpulab.virtual import virtual_gpu

    return virtual_gpu(name)


def _context() -> Row:
    import torch

    # The first run creates the context: _twice waits for the device after it.
    return _twice(torch.cuda.init)


def _allocation() -> Row:
    import torch

    def allocate() -> float:
        start_s = time.perf_counter()
        block = torch.empty(_ALLOCATION_BYTES, dtype=torch.uint8, device="cuda")
        elapsed_s = time.perf_counter() - start_s
        del block
        return elapsed_s

    first_s = allocate()
    # Without its cache, PyTorch must ask the driver again. The third time the cache serves.
    torch.cuda.empty_cache()
    return {"first_s": first_s, "again_s": allocate(), "cached_s": allocate()}


def _kernel() -> Row:
    import torch

    ones = torch.empty(1 << 20, device="cuda")
    return _twice(lambda: ones.mul_(2))


def _matmul(dtype: str = "float32") -> Row:
    import torch

    # Allocated before the timing starts, because the cost of memory is another step.
    matrix = torch.empty(1024, 1024, dtype=getattr(torch, dtype), device="cuda")
    return _twice(lambda: matrix @ matrix)


def _convolution() -> Row:
    import torch

    images = torch.empty(32, 64, 56, 56, device="cuda")
    weights = torch.empty(64, 64, 3, 3, device="cuda")
    return _twice(lambda: torch.nn.functional.conv2d(images, weights, padding=1))


def _twice(work: Callable[[], object]) -> Row:
    import torch

    times_s = []
    for _ in range(2):
        start_s = time.perf_counter()
        work()
        # Within the timed part, because a first use also costs time on the GPU.
        torch.cuda.synchronize()
        times_s.append(time.perf_counter() - start_s)
    return {"first_s": times_s[0], "again_s": times_s[1], "cached_s": None}


_STEPS: dict[str, Callable[[], Row]] = {
    "context": _context,
    "allocation": _allocation,
    "kernel": _kernel,
    "product": _matmul,
    "half product": lambda: _matmul("float16"),
    "convolution": _convolution,
}

if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
