"""A function run where nothing of the GPU was used before: in a new process, or on a new GPU."""

import inspect
import subprocess
import sys
from collections.abc import Callable, Sequence

from gpulab import device


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
