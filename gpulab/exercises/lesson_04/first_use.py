"""Times of what was never used before, taken in a new process or on a new virtual GPU.

A real GPU forgets what was loaded when the process ends, so another process has to take them.
A virtual GPU is as good as new when it was just made.
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
from gpulab.virtual import virtual_gpu

Cost = dict[str, object]

NAMES = (
    *("context", "64 MB of memory", "a kernel", "product, float32", "product, float16"),
    *("random numbers", "convolution"),
)
_COMMAND = (sys.executable, "-m", __name__)


def in_a_new_process(function: Callable[[], Sequence[float]]) -> list[float]:
    """Run a function that has used nothing yet, and return its seconds.

    If the GPU in use is virtual, it is chosen again, which makes it new.

    Parameters
    ----------
    function
        Written in the notebook, without arguments; it may use ``time`` and ``torch`` and
        nothing else from outside. It returns numbers.

    Raises
    ------
    subprocess.CalledProcessError
        If the function raises in the new process; a note holds what it said.
    """
    virtual = device.current().virtual
    if virtual is None:
        code = f"import time, torch\n{inspect.getsource(function)}\nprint(*{function.__name__}())"
        lines = _lines_of((sys.executable, "-c", code))
        return [float(word) for line in lines for word in line.split()]
    device.use(virtual.spec.name)
    with device.active():
        return [float(number) for number in function()]


def measured() -> Iterator[Cost]:
    """Yield ``what``, ``first_s`` and ``second_s`` of each cost, in the order of ``NAMES``.

    A new process has to start first, which takes seconds; that is not in the numbers. If the GPU
    in use is virtual, another one is made for them, and the one in use stays as it is.

    Raises
    ------
    subprocess.CalledProcessError
        If the new process fails; a note holds what it said.
    """
    virtual = device.current().virtual
    if virtual is None:
        with closing(_lines_of(_COMMAND)) as lines:
            yield from map(json.loads, lines)
        return
    with device.outside(), virtual_gpu(virtual.spec.name):
        yield from one_by_one()


def one_by_one() -> Iterator[Cost]:
    """Yield the costs of this process; each of them shows once only."""
    for name, work in zip(NAMES, _works(), strict=True):
        first_s, second_s = (_once_s(work) for _ in range(2))
        yield {"what": name, "first_s": first_s, "second_s": second_s}


def _works() -> Iterator[Callable[[], object]]:
    """Yield the works; what the next one needs is made between two of them."""
    yield torch.cuda.synchronize
    kept: list[torch.Tensor] = []
    yield lambda: kept.append(torch.empty(1 << 24, device="cuda"))
    x = kept[0][: 1 << 20]
    yield x.sin_
    a = x.view(1024, 1024)
    yield lambda: a @ a
    # Not by .half(), whose kernel would be a first use that nobody sees.
    half = torch.empty(1024, 1024, device="cuda", dtype=torch.half)
    yield lambda: half @ half
    yield lambda: torch.randn(1000, device="cuda")
    images = torch.empty(16, 64, 56, 56, device="cuda")
    filters = torch.empty(64, 64, 3, 3, device="cuda")
    yield lambda: torch.nn.functional.conv2d(images, filters, padding=1)


def _once_s(work: Callable[[], object]) -> float:
    # No wait before the first reading: it would make the context, and hide its cost.
    start_s = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - start_s


def _lines_of(command: Sequence[str]) -> Generator[str, None, None]:
    """Yield the lines that a new process prints, as they come; end it if the caller stops."""
    # A file takes whatever the process says, where a full pipe would block it.
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
        said = stderr.read().strip()
    if process.returncode:
        error = subprocess.CalledProcessError(process.returncode, command)
        error.add_note(f"the new process said: {said}")
        raise error


if __name__ == "__main__":
    for cost in one_by_one():
        sys.stdout.write(f"{json.dumps(cost)}\n")
        sys.stdout.flush()
