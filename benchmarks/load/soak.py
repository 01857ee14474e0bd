"""Run cells of many kinds in one kernel, and print by how much each kind makes it grow.

    python -m benchmarks.load.soak --n 250

Outputs are not kept, because IPython keeps them for as long as a kernel lives.
"""

import argparse
import gc
import io
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

import psutil  # type: ignore[import-untyped]  # psutil ships no types

from benchmarks.common.command_line import parser_of

_SET_UP = ("import torch, gpulab", "%load_ext gpulab", "gpulab.use('H200')")
CELLS = {
    "use": "gpulab.use('H200'); x = torch.ones(64, 64, device='cuda')",
    "tensors": "(x @ x).relu().sum().item()",
    "measure": "m = gpulab.measure(lambda: x + x, n_samples=10)",
    "timeline and its page": "t = gpulab.timeline(lambda: x @ x)._repr_mimebundle_()",
    "hazards": "with gpulab.hazards():\n    y = x * 2",
    "graph": "g = torch.cuda.CUDAGraph()\nwith torch.cuda.graph(g): z = x + 1\ng.replay()",
    "magic": "%cudatime -n 10 x + x",
}
_N_WARM = 8


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = parser_of("benchmarks.load.soak", __doc__)
    made.add_argument("--n", type=int, default=100, help="cells of each kind")
    return made


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the cells and print the growth."""
    options = parser().parse_args(arguments)
    from IPython.core.interactiveshell import InteractiveShell

    shell: Any = InteractiveShell.instance()
    for source in (*_SET_UP, *CELLS.values(), *[*CELLS.values()] * _N_WARM):
        _run(shell, source)
    begin_mib = _resident_mib()
    for name, source in CELLS.items():
        before_mib = _resident_mib()
        for _ in range(options.n):
            _run(shell, source)
        growth_kib = (_resident_mib() - before_mib) * 1024 / options.n
        print(f"{name}: {growth_kib:.1f} KiB a cell", flush=True)
    n_cells = options.n * len(CELLS)
    print(f"{n_cells} cells: from {begin_mib:.0f} to {_resident_mib():.0f} MiB")


def _run(shell: Any, source: str) -> None:  # noqa: ANN401  # IPython is untyped
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        shell.run_cell(source, store_history=False).raise_error()


def _resident_mib() -> float:
    gc.collect()
    return float(psutil.Process().memory_info().rss / 2**20)


if __name__ == "__main__":
    main()
