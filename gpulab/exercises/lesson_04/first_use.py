"""Times of first uses, such as the context or a library, measured on a fresh GPU.

On a CUDA GPU a first use happens once per process, so the times come from a new process. A virtual
GPU is fresh whenever it is created.
"""

import inspect
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing

import torch

from gpulab import device
from gpulab.exercises.answers import fresh_gpu

Cost = dict[str, object]

NAMES = (
    *("context", "64 MB of memory", "a kernel", "matmul, float32", "matmul, float16"),
    *("random numbers", "convolution"),
)
_COMMAND = (sys.executable, "-m", __name__)


def in_a_new_process(function: Callable[[], Sequence[float]]) -> list[float]:
    """Run a function in a process that has not used the GPU yet, and return its numbers.

    The function, written in the notebook, may use ``time`` and ``torch`` and no other name from
    outside. If the GPU in use is virtual, it runs in this process, on a new virtual GPU. If it
    fails in the new process, a note of the `CalledProcessError` contains its error.
    """
    virtual = device.current().virtual
    if virtual is None:
        # The source is passed on, because a new process cannot import a function of a notebook.
        code = f"import time, torch\n{inspect.getsource(function)}\nprint(*{function.__name__}())"
        lines = _lines_of((sys.executable, "-c", code))
        return [float(word) for line in lines for word in line.split()]
    # This makes another virtual GPU of the same kind, on which nothing was used yet.
    device.use(virtual.spec.name)
    with device.active():
        return [float(number) for number in function()]


def measured() -> Iterator[Cost]:
    """Yield ``what``, ``first_s`` and ``second_s`` of each name in ``NAMES``: its first two uses.

    On a CUDA GPU a new process starts first; its start takes seconds, which are not in the
    numbers. If it fails, a note of the `CalledProcessError` contains its error. On the virtual GPU
    a new one is created, and the one in use does not change.
    """
    virtual = device.current().virtual
    if virtual is None:
        with closing(_lines_of(_COMMAND)) as lines:
            yield from map(json.loads, lines)
        return
    with fresh_gpu(virtual.spec.name, first_use=True):
        yield from one_by_one()


def one_by_one() -> Iterator[Cost]:
    """Yield the first and the second use of each name in this process, where it must be new."""
    for name, work in zip(NAMES, _works(), strict=True):
        first_s, second_s = (_once_s(work) for _ in range(2))
        yield {"what": name, "first_s": first_s, "second_s": second_s}


def _works() -> Iterator[Callable[[], object]]:
    """Yield the work of each name; the inputs of the next one are created in between.

    The order matters: each work must not use anything that a later one is to load.
    """
    yield torch.cuda.synchronize
    inputs: list[torch.Tensor] = []
    yield lambda: inputs.append(torch.empty(1 << 24, device="cuda"))
    x = inputs[0][: 1 << 20]
    yield x.sin_
    a = x.view(1024, 1024)
    yield lambda: a @ a
    # `.half()` would load a conversion kernel, a first use outside the measured work.
    half = torch.empty(1024, 1024, device="cuda", dtype=torch.half)
    yield lambda: half @ half
    yield lambda: torch.randn(1000, device="cuda")
    images = torch.empty(16, 64, 56, 56, device="cuda")
    filters = torch.empty(64, 64, 3, 3, device="cuda")
    yield lambda: torch.nn.functional.conv2d(images, filters, padding=1)


def _once_s(work: Callable[[], object]) -> float:
    # No wait before the first reading: it would create the context and hide its cost.
    start_s = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - start_s


def _lines_of(command: Sequence[str]) -> Generator[str, None, None]:
    """Yield the lines that a new process prints; the process ends if the caller stops reading."""
    # Errors go to a file, because a pipe that nobody reads would fill up and block the process.
    with (
        tempfile.TemporaryFile("w+") as stderr,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True) as process,  # noqa: S603  # ours
    ):
        try:
            yield from process.stdout or ()
            process.wait()
        finally:
            process.kill()  # has no effect on a process that has ended
        stderr.seek(0)
        message = stderr.read().strip()
    if process.returncode:
        error = subprocess.CalledProcessError(process.returncode, command)
        error.add_note(f"the new process said: {message}")
        raise error


if __name__ == "__main__":
    for cost in one_by_one():
        sys.stdout.write(f"{json.dumps(cost)}\n")
        # A pipe is written in blocks, so the figure would not grow before the process ends.
        sys.stdout.flush()
