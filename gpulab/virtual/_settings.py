"""Settings of PyTorch and Python: which of them the end of a virtual GPU's context puts back.

The rule: a program inside the context changes settings as it does on hardware, and they stay as
the program set them: the default type, gradients, autocast, deterministic algorithms, precision,
flags of cuDNN, threads. The current device and stream, generators and memory limits belong to the
machine, and end with it. gpulab puts back two kinds of settings only:

- those that gpulab itself changed, unless the program has changed them again since;
- the default device, which would name a virtual device after the context has ended.

A block that the program has opened and not closed, such as ``with torch.device("cuda"):``, is not
a setting: the program closes it.
"""

import gc

import torch

from gpulab.core.interrupts import Undo
from gpulab.core.torch_private import default_device_context

_GC_THRESHOLD = 10_000  # allocations between collections of the youngest objects
_N_THREADS = 1


def install(default_device: "DefaultDevice", undo: Undo) -> None:
    """Change the settings that the simulation needs; ``undo`` will put them back."""
    # Values are computed in small pieces. With several threads that takes longer.
    undo.callback(_put_threads_back, torch.get_num_threads())
    torch.set_num_threads(_N_THREADS)
    # Each pending launch has a few dozen objects, none of them garbage. With Python's default
    # thresholds the garbage collector would take longer than the simulation.
    before = gc.get_threshold()
    ours = (max(_GC_THRESHOLD, before[0]), *before[1:])
    undo.callback(_put_thresholds_back, ours, before)
    gc.set_threshold(*ours)
    default_device.enter(undo)


def _put_threads_back(n_threads: int) -> None:
    # Another number is the program's own choice, and stays.
    if torch.get_num_threads() == _N_THREADS:
        torch.set_num_threads(n_threads)


def _put_thresholds_back(ours: tuple[int, ...], before: tuple[int, ...]) -> None:
    if gc.get_threshold() == ours:
        gc.set_threshold(*before)


class DefaultDevice:
    """The default device that the program has set, if it is on the virtual GPU.

    It is active in each context of the machine, such as each cell of a notebook, and never
    between two contexts.
    """

    def __init__(self) -> None:
        self._chosen: torch.device | None = None

    def enter(self, undo: Undo) -> None:
        """Set it again; ``undo`` will put back the default device from before."""
        before = default_device_context()
        undo.callback(self._leave, before, None if before is None else before.device)
        if self._chosen is not None:
            torch.set_default_device(self._chosen)

    def _leave(self, before: object, device_before: torch.device | None) -> None:
        now = default_device_context()
        # A "cuda" device that was set before the context is the program's, for another GPU.
        is_ours = now is not before and now is not None and now.device.type == "cuda"
        self._chosen = now.device if is_ours else None
        if is_ours:
            torch.set_default_device(device_before)
