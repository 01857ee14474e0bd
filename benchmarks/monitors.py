"""Record what a monitor shows while six programs run, for the quiz of lesson 11b.

    CUDA_VISIBLE_DEVICES= python -m benchmarks.monitors     on the virtual H200
    python -m benchmarks.monitors                           on a CUDA GPU, as recorded values

It reads NVML once a second and changes no setting. With a CUDA GPU the recorded rows are replaced,
without one the virtual rows. It takes about a minute on a CUDA GPU, and three on the virtual one.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch

import gpulab
from benchmarks.common.command_line import parser_of
from benchmarks.common.folders import ROOT
from gpulab import clocks, device
from gpulab.exercises.lesson_11._monitors import MONITORS, MONITORS_SCHEMA

_OUT = ROOT / "gpulab" / "data" / MONITORS
_MIB = 2**20


class Programs:
    """Six programs, each a step that is called repeatedly, with a row of the monitor a second."""

    def __init__(self) -> None:
        self.second = 0
        self.copied_bytes = 0
        self.held: list[torch.Tensor] = []
        self.a = torch.randn(8192, 8192, device="cuda", dtype=torch.half)
        self.out = torch.empty_like(self.a)
        self.batch = torch.ones(64 * _MIB, dtype=torch.uint8)

    def a_matmuls(self) -> None:
        """Multiply large matrices without a pause."""
        torch.mm(self.a, self.a, out=self.out)

    def b_waits_for_data(self) -> None:
        """Use the GPU for some milliseconds, then prepare data on the host for longer."""
        for _ in range(4):
            self.a_matmuls()
        torch.cuda.synchronize()
        time.sleep(0.02)

    def c_one_thread(self) -> None:
        """Run a kernel of a single thread."""
        torch.cuda._sleep(10_000_000)  # a spinning kernel of one thread

    def d_keeps_results(self) -> None:
        """Multiply matrices, and keep 4 GiB of results more each second: a leak."""
        self.a_matmuls()
        if len(self.held) < self.second:
            self.held.append(torch.ones(4096 * _MIB, device="cuda", dtype=torch.uint8))

    def e_copies(self) -> None:
        """Copy a batch from pageable memory for each small kernel."""
        self.batch.to("cuda").mul_(2)
        self.copied_bytes += self.batch.nbytes

    def f_every_other_second(self) -> None:
        """Multiply matrices for one second, and leave the GPU idle for the next."""
        if self.second % 2:
            time.sleep(0.1)
        else:
            self.a_matmuls()

    def steps(self) -> dict[str, Callable[[], None]]:
        """Return the step of each program by its letter."""
        names = [name for name in dir(self) if name[1:2] == "_" and name[0] in "abcdef"]
        return {name[0]: getattr(self, name) for name in sorted(names)}

    def rows(self, step: Callable[[], None], n_seconds: int) -> list[dict[str, Any]]:
        """Run a step for some seconds; return what the monitor showed at the end of each."""
        shown = []
        for self.second in range(n_seconds):
            self.copied_bytes, start_s = 0, time.perf_counter()
            last = list(clocks.watch(step, duration_s=1, period_s=0.25))[-1]
            torch.cuda.synchronize()
            elapsed_s = time.perf_counter() - start_s
            free_bytes, all_bytes = torch.cuda.mem_get_info()
            shown.append(
                {
                    "pwr_w": None if last.power_w is None else round(last.power_w),
                    "gtemp_c": last.temperature_c,
                    "sm_percent": last.utilization,
                    "pclk_mhz": last.sm_mhz,
                    "mclk_mhz": last.memory_mhz,
                    "fb_mib": round((all_bytes - free_bytes) / _MIB),
                    "rxpci_mbps": round(self.copied_bytes / elapsed_s / 1e6),
                    "reasons": ", ".join(last.reasons or ()),
                }
            )
        self.held.clear()
        torch.cuda.empty_cache()
        return shown


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the programs, print the rows, and write the file."""
    options = parser().parse_args(arguments)
    kept = json.loads(options.out.read_text("utf-8")) if options.out.exists() else {}
    worlds = dict(kept.get("worlds", {}))
    with ExitStack() as open_gpu:
        if not torch.cuda.is_available():
            open_gpu.enter_context(gpulab.virtual_gpu("H200", first_use=False))
        place, programs = device.current(), Programs()
        rows = {}
        for letter, step in programs.steps().items():
            # Power is an average over a second (docs/clocks.md): without a pause the first row of
            # a program would show the one before.
            time.sleep(1)
            rows[letter] = programs.rows(step, options.seconds)
            print(letter, *rows[letter], sep="\n  ", flush=True)
    world = "virtual" if place.source == "virtual" else "recorded"
    worlds[world] = {"device_name": place.name, "rows": rows}
    text = json.dumps(
        {"schema": MONITORS_SCHEMA, "worlds": dict(sorted(worlds.items()))}, indent=1
    )
    options.out.write_text(f"{text}\n", "utf-8")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = parser_of("benchmarks.monitors", __doc__)
    made.add_argument("--seconds", type=int, default=6, help="rows for each program")
    made.add_argument("--out", type=Path, default=_OUT, help="file of the rows")
    return made


if __name__ == "__main__":
    sys.exit(main())
