"""What ``%%cudatime`` adds to the host time of the code that it times."""

import statistics
import time
from typing import Any

import torch

_N_CALLS, _N_ROUNDS = 500, 7
_BODIES = ("x.add_(1)", "y = x * 2\ny.sum()")


def overhead() -> dict[str, Any]:
    """Return the host time of each cell body in microseconds, in a plain loop and in the magic.

    Both take the same samples: wait for an idle device, start the clock, run the body, stop the
    clock. Rounds of both alternate and their medians are compared, because host times drift.
    """
    try:
        from IPython.core.interactiveshell import InteractiveShell
    except ImportError:
        return {"error": "IPython is not installed"}
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "gpulab")
    shell.user_ns["x"] = torch.zeros(1024, device="cuda")
    return {body.replace("\n", "; "): _compare(shell, body) for body in _BODIES}


def _compare(shell: Any, body: str) -> dict[str, float]:  # noqa: ANN401 # IPython's is untyped
    # The magic compiles the cell into a function, so the loop to compare with is in one too.
    names: dict[str, Any] = {
        "x": shell.user_ns["x"],
        "clock": time.perf_counter,
        "wait": torch.cuda.synchronize,
    }
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    source = (
        "def written_out(n, x=x):\n"
        "    times = []\n"
        "    for _ in range(n):\n"
        "        wait()\n"
        "        start = clock()\n"
        f"{lines}"
        "        times.append(clock() - start)\n"
        "    return times\n"
    )
    exec(source, names)  # noqa: S102 # the source stands above
    # The method that waits for nothing, because the host time of the body is compared, not the
    # work on the GPU.
    options = f"-o -q --method naive -r {_N_CALLS}"
    by_hand_s, by_magic_s = [], []
    for _ in range(_N_ROUNDS):
        by_hand_s.append(statistics.median(names["written_out"](_N_CALLS)))
        by_magic_s.append(shell.run_cell_magic("cudatime", options, body).median_s)
    added = [magic_s - hand_s for magic_s, hand_s in zip(by_magic_s, by_hand_s, strict=True)]
    return {
        "written_out_us": round(statistics.median(by_hand_s) * 1e6, 3),
        "cudatime_us": round(statistics.median(by_magic_s) * 1e6, 3),
        "added_us": round(statistics.median(added) * 1e6, 3),
    }
