"""A function run where nothing of the GPU was used before: in a new process, or on a new GPU.

First-use costs one after the other, where nobody has used the GPU yet, each as it comes.
"""

import inspect
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence

import torch

from gpulab import device
from gpulab.virtual import virtual_gpu


def in_a_new_process(function: Callable[[], Sequence[float]]) -> list[float]:
    """Run a function that has used nothing yet, and return its seconds.

    A real GPU forgets what was loaded when the process ends, so the function runs in a new
    one. A virtual GPU is as good as new when it was just made: the same one is chosen again.

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
        return _in_a_process(function)
    device.use(virtual.spec.name)
    with device.active():
        return [float(number) for number in function()]


def _in_a_process(function: Callable[[], Sequence[float]]) -> list[float]:
    code = f"import time, torch\n{inspect.getsource(function)}\nprint(*{function.__name__}())"
    command = [sys.executable, "-c", code]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603  # ours
    except subprocess.CalledProcessError as error:
        error.add_note(f"the new process said: {error.stderr.strip()}")
        raise
    return [float(word) for word in done.stdout.split()]


NAMES = (
    *("context", "64 MB of memory", "a kernel", "product, float32", "product, float16"),
    *("random numbers", "convolution"),
)
Cost = dict[str, object]
_COMMAND = (sys.executable, "-m", __name__)


def measured() -> Iterator[Cost]:
    """Yield ``what``, ``first_s`` and ``second_s`` of each cost, in the order of ``NAMES``.

    A real GPU forgets what was loaded when the process ends, so a new one does the work; that
    it has to start first, which takes seconds, is not in the numbers. For a virtual GPU another
    one is made, and the one in use is as it was after that.

    Raises
    ------
    subprocess.CalledProcessError
        If the new process fails; a note holds what it said.
    """
    virtual = device.current().virtual
    if virtual is None:
        yield from _of_a_process()
        return
    with device.outside(), virtual_gpu(virtual.spec.name):
        yield from one_by_one()


def one_by_one() -> Iterator[Cost]:
    """Yield the costs of this process; each of them shows once only."""
    for name, work in zip(NAMES, _works(), strict=True):
        first_s, second_s = (_once_s(work) for _ in range(2))
        yield {"what": name, "first_s": first_s, "second_s": second_s}


def _works() -> Iterator[Callable[[], object]]:
    """Yield the works; between two of them is made what the next one needs."""
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
    start_s = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - start_s


def _of_a_process() -> Iterator[Cost]:
    pipe = subprocess.PIPE
    with subprocess.Popen(_COMMAND, stdout=pipe, stderr=pipe, text=True) as process:  # noqa: S603  # ours
        try:
            for line in process.stdout or ():
                yield json.loads(line)
            said = process.stderr.read() if process.stderr else ""
            process.wait()
        finally:
            process.kill()  # if the caller has had enough; one that has ended is left alone
    if process.returncode:
        error = subprocess.CalledProcessError(process.returncode, _COMMAND)
        error.add_note(f"the new process said: {said.strip()}")
        raise error


if __name__ == "__main__":
    for cost in one_by_one():
        sys.stdout.write(f"{json.dumps(cost)}\n")
        sys.stdout.flush()
