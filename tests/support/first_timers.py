"""Timers that choose their own number of loops, each as the first one of a new process."""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.common.folders import ROOT

_SHELL = "from IPython.core.interactiveshell import InteractiveShell as Shell; shell = Shell(); "
_TORCHS = "from torch.utils.benchmark import Timer; Timer('a @ a', globals={'a': a})"
FIRST_TIMERS = {
    "%timeit": f"{_SHELL} shell.push({{'a': a}}); shell.run_line_magic('timeit', '-q a @ a')",
    "Timer.blocked_autorange": f"{_TORCHS}.blocked_autorange()",
    "Timer.timeit": f"{_TORCHS}.timeit()",
    "timeit.Timer.autorange": "import timeit; timeit.Timer(lambda: a @ a).autorange()",
    "timeit.repeat": "import timeit; timeit.repeat(lambda: a @ a)",
}
# Each program imports its timer on the virtual GPU. A test counts on that.
_PROGRAM = """
import sys
import gpulab, torch
from benchmarks.common import real_clocks  # the names that this program imports become virtual
assert not {"IPython.core.magics.execution", "torch.utils.benchmark"} & set(sys.modules)
with gpulab.virtual_gpu("H200") as gpu:
    a = torch.ones(100, 100, device="cuda")  # one kernel a call: a launch is a round
    n_before, start_ns = gpu.machine.host.n_launched, real_clocks.process_time_ns()
    STATEMENT
    cpu_s = (real_clocks.process_time_ns() - start_ns) / 1e9
    print(gpu.machine.host.n_launched - n_before, cpu_s)
"""


@dataclass(frozen=True, slots=True)
class FirstUse:
    """What the first use of a timer took: launches, and seconds of this processor."""

    n_launches: int
    cpu_s: float


def first_use(timer: str, python: Sequence[str], folder: Path) -> FirstUse:
    """Run one of ``FIRST_TIMERS`` on the virtual GPU in a new process.

    Parameters
    ----------
    timer
        Its name.
    python
        The command that starts Python.
    folder
        Where IPython may write.
    """
    code = _PROGRAM.replace("STATEMENT", FIRST_TIMERS[timer])
    ran = subprocess.run(  # a program of this module
        [*python, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"IPYTHONDIR": str(folder)},
    )
    *_, n_launches, cpu_s = ran.stdout.split()
    return FirstUse(int(n_launches), float(cpu_s))
