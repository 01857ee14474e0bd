"""A kernel that times itself: it reads the GPU's clock at its start and its end."""

import importlib
from collections.abc import Callable
from itertools import count
from statistics import median
from typing import Any

import torch

__all__ = ["TimerKernel", "load"]


# Shortest run of the kernel. The clock advances in steps of 32 ns on an H200. On older GPUs they
# are a microsecond; then the result is more than _TICK_MOST_NS too long, and is not used.
_SPIN_NS = 2_100
_TICK_MOST_NS = 64
_N_KEPT = 256

_NAME = "gpulab_timer"
# Written in PTX, which the driver translates in milliseconds. A compiler (NVRTC) would take a
# third of a second.
_PTX = f"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry {_NAME}(.param .u64 readings, .param .u32 place, .param .u32 spin_ns)
{{
    .reg .pred %again;
    .reg .b32 %place, %spin;
    .reg .b64 %first, %now, %took, %least, %base, %offset;
    mov.u64 %first, %globaltimer;
    ld.param.u64 %base, [readings];
    ld.param.u32 %place, [place];
    ld.param.u32 %spin, [spin_ns];
    cvta.to.global.u64 %base, %base;
    mul.wide.u32 %offset, %place, 8;
    add.u64 %base, %base, %offset;
    cvt.u64.u32 %least, %spin;
READ:
    mov.u64 %now, %globaltimer;
    sub.u64 %took, %now, %first;
    setp.lt.u64 %again, %took, %least;
    @%again bra READ;
    st.global.u64 [%base], %took;
    ret;
}}
"""


class TimerKernel:
    """Launches the kernel, and returns how long its launches took by the GPU's clock."""

    def __init__(self, kernel: Callable[..., Any]) -> None:
        self._kernel = kernel
        self._readings = torch.zeros(_N_KEPT, dtype=torch.int64, device="cuda")
        self._place = count()

    def __call__(self) -> None:
        """Enqueue one launch of a single thread."""
        slot = next(self._place) % _N_KEPT
        self._kernel((1, 1, 1), (1, 1, 1), [self._readings, slot, _SPIN_NS])

    def own_ns(self) -> float | None:
        """Return the median time from first to last instruction, or None if the clock is coarse.

        A profiler's record of the same launch is longer, because it also includes the time until
        the first instruction and after the last.
        """
        read_ns = [reading_ns for reading_ns in self._readings.tolist() if reading_ns]
        own_ns = median(read_ns) if read_ns else 0.0
        return own_ns if _SPIN_NS <= own_ns <= _SPIN_NS + _TICK_MOST_NS else None


def load() -> TimerKernel | None:
    """Return the kernel on the current device; None if torch or the driver cannot load it."""
    try:
        # PyTorch has no public way to load a kernel. The private one exists in 2.11 and in 2.13.
        loading = importlib.import_module("torch.cuda._utils")._cuda_load_module  # noqa: SLF001  # PyTorch has no public name for it
        return TimerKernel(loading(_PTX, [_NAME])[_NAME])
    except Exception:  # noqa: BLE001 # other ways to find the floor remain
        return None
