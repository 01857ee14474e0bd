"""The GPU's clock, power and temperature: read them, judge them, and lock the clock."""

from gpulab.device.clocks._lock import Lock, lock
from gpulab.device.clocks._processes import OtherProcesses, other_processes
from gpulab.device.clocks._read import PARTS, QUICK, read, try_read, watch, watch_by
from gpulab.device.clocks._reading import Reading, to_frame
from gpulab.device.clocks._regime import TOLERANCE, Regime, flag, summarize

__all__ = [
    "PARTS",
    "QUICK",
    "TOLERANCE",
    "Lock",
    "OtherProcesses",
    "Reading",
    "Regime",
    "flag",
    "lock",
    "other_processes",
    "read",
    "summarize",
    "to_frame",
    "try_read",
    "watch",
    "watch_by",
]
