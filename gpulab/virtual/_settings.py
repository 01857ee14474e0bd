"""Settings of PyTorch and Python that outlive the context of a virtual GPU, and whose they are.

The rule: a program inside the context changes settings as it does on hardware, and PyTorch keeps
what was set: the default type, gradients, autocast, deterministic algorithms, precision, flags of
cuDNN, threads. All of that stays. The current device and stream, generators and limits of memory
belong to the machine, and are gone with it. Ours to put back are two kinds only:

- what gpulab sets for its own sake, unless the program has set it anew since;
- what would name a virtual device after the context has ended: the default device.

A block that the program has opened and not closed, such as ``with torch.device("cuda"):``, is no
setting: whoever opened it closes it.
"""

import gc

import torch

from gpulab.interrupts import Undo
from gpulab.torch_private import default_device_context

_GC_THRESHOLD = 10_000  # allocations between collections of the youngest objects
_N_THREADS = 1


def install(default_device: "DefaultDevice", undo: Undo) -> None:
    """Set what the simulation needs; ``undo`` gets what puts the settings back."""
    # Values are computed in small pieces, which several threads make slower, not faster.
    undo.callback(_put_threads_back, torch.get_num_threads())
    torch.set_num_threads(_N_THREADS)
    # Pending work is a few dozen objects a launch, none of them garbage: with Python's own
    # thresholds its collector would take longer than the simulation.
    before = gc.get_threshold()
    ours = (max(_GC_THRESHOLD, before[0]), *before[1:])
    undo.callback(_put_thresholds_back, ours, before)
    gc.set_threshold(*ours)
    default_device.enter(undo)


def _put_threads_back(n_threads: int) -> None:
    if torch.get_num_threads() == _N_THREADS:
        torch.set_num_threads(n_threads)


def _put_thresholds_back(ours: tuple[int, ...], before: tuple[int, ...]) -> None:
    if gc.get_threshold() == ours:
        gc.set_threshold(*before)


class DefaultDevice:
    """What the program chose by ``torch.set_default_device``, if that is the virtual GPU.

    It is in force in one context after the other, as in one notebook cell after the other, and
    never in between.
    """

    def __init__(self) -> None:
        self._chosen: torch.device | None = None

    def enter(self, undo: Undo) -> None:
        """Choose it again; ``undo`` gets what puts back the default device from before."""
        before = default_device_context()
        undo.callback(self._leave, before, None if before is None else before.device)
        if self._chosen is not None:
            torch.set_default_device(self._chosen)

    def _leave(self, before: object, device_before: torch.device | None) -> None:
        now = default_device_context()
        is_ours = now is not before and now is not None and now.device.type == "cuda"
        self._chosen = now.device if is_ours else None
        if is_ours:
            torch.set_default_device(device_before)
