"""Refuse device work outside the thread and the process that entered the virtual GPU."""

import os
import threading
from collections.abc import Callable
from typing import Any

import torch

from gpulab.core.torch_private import DispatchMode
from gpulab.virtual.dispatch import VirtualMode
from gpulab.virtual.simulator import Machine, active, disown, is_entered
from gpulab.virtual.tensors import VirtualTensor


class OtherThreadMode(DispatchMode):  # type: ignore[no-untyped-call] # torch's is untyped
    """A dispatch mode for other threads: runs host work in real time, refuses device work."""

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,  # torch's signature
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        options = kwargs or {}
        device = options.get("device")
        is_device_work = VirtualTensor in types or (device is not None and device.type == "cuda")
        if is_device_work and is_entered():
            # Raises an error on every thread but the owner.
            active()
        return func(*args, **options)


def replacements(machine: Machine) -> list[tuple[Any, dict[str, Any]]]:  # noqa: ARG001 # as every patch
    """Return the replacement that starts threads."""
    original = threading.Thread.start

    def start(self: threading.Thread) -> None:
        work = self.run

        def run() -> None:
            # Drops the attribute set below, which hides the method of the class.
            del self.run
            with OtherThreadMode():  # type: ignore[no-untyped-call] # torch's is untyped
                work()

        # A dispatch mode belongs to one thread, so the new thread itself must enter it.
        self.run = run  # type: ignore[method-assign] # for this thread alone
        try:
            original(self)
        # The thread was started before, or the system has no room for another.
        except RuntimeError:
            vars(self).pop("run", None)
            raise

    return [(threading.Thread, {"start": start})]


def _lose_device() -> None:
    """Remove the virtual GPU from a forked process, where only host work continues."""
    if not is_entered():
        return
    disown()
    VirtualMode.__torch_dispatch__ = OtherThreadMode.__torch_dispatch__  # type: ignore[method-assign, assignment] # in this process alone
    vars(torch.cuda).update(_is_in_bad_fork=lambda: True, is_initialized=lambda: False)


# Registered once and never removed, because Python cannot unregister it. The function does nothing
# if no virtual GPU is in use.
_register: Callable[..., None] | None = getattr(os, "register_at_fork", None)
if _register is not None:
    _register(after_in_child=_lose_device)
