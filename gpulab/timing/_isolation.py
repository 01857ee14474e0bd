"""Restore PyTorch's settings after a measurement, and say on an error when the work failed."""

from collections.abc import Iterator

import torch

from gpulab.core.errors import StreamLeftOpenError
from gpulab.core.interrupts import Undo, contextmanager
from gpulab.device.work import collector_paused

__all__ = ["calling_work", "left_as_found"]


@contextmanager
def left_as_found() -> Iterator[None]:
    """At the end of the block, wait for the device and restore what the work may have changed.

    It restores the current stream and device, whether gradients are computed, the choice of
    deterministic algorithms, and cuDNN's flags. Python's garbage collector is paused inside the
    block. Everything is restored however the block ends, also after an interrupt.
    """
    undo = Undo()
    try:
        # The callbacks run in reverse order, each even if another one fails.
        undo.callback(torch.cuda.set_stream, torch.cuda.current_stream())  # also sets the device
        undo.callback(torch.set_grad_enabled, torch.is_grad_enabled())
        undo.callback(_put_determinism_back, *_determinism())
        for flag in ("enabled", "benchmark", "deterministic"):
            was = getattr(torch.backends.cudnn, flag)
            undo.callback(setattr, torch.backends.cudnn, flag, was)
        # It waits. After a CUDA error every wait raises it again, and the user has that error.
        undo.callback(_is_context_lost)
        with collector_paused():
            yield
    finally:
        undo.close()


def _determinism() -> tuple[bool, bool]:
    is_asked = torch.are_deterministic_algorithms_enabled()
    return is_asked, torch.is_deterministic_algorithms_warn_only_enabled()


def _put_determinism_back(is_asked: bool, only_warns: bool) -> None:  # noqa: FBT001  # as torch has them
    # Only if it was changed: the call imports PyTorch's compiler, which takes 5 s.
    if _determinism() != (is_asked, only_warns):
        torch.use_deterministic_algorithms(is_asked, warn_only=only_warns)


def _is_context_lost() -> bool:
    """Return whether a wait fails, after the device has already reported an error."""
    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return True
    return False


@contextmanager
def calling_work(when: str, outcome: str = "nothing was measured") -> Iterator[None]:
    """Add a note to an exception of the work, and refuse work that changes stream or device.

    The note is "raised", when the work was called, and, in a clause, what is left of the
    measurement. If stream or device are not the same at the end, this raises
    `StreamLeftOpenError`.
    """
    stream, index = torch.cuda.current_stream(), torch.cuda.current_device()
    try:
        yield
    # Ctrl-C is no Exception, so it gets no note: the work did not fail.
    except Exception as error:
        error.add_note(f"gpulab: raised {when}; {outcome}")
        if isinstance(error, torch.AcceleratorError):
            error.add_note(
                "gpulab: CUDA errors are asynchronous, so the kernel that failed may be an "
                "earlier one; CUDA_LAUNCH_BLOCKING=1 in the environment finds it"
            )
            if _is_context_lost():
                error.add_note(
                    "gpulab: the CUDA context of this process is lost, as after an index out of "
                    "range in a kernel, and every later call on the GPU will fail; restart the "
                    "process (in a notebook: the kernel)"
                )
        raise
    # Before the streams: another device also has another current stream, and the advice about
    # streams would be wrong then.
    if torch.cuda.current_device() != index:
        raise StreamLeftOpenError(
            f"the work returned with cuda:{torch.cuda.current_device()} as the current device, "
            f"and was given cuda:{index}; write `with torch.cuda.device(...):` in it, which "
            "restores the first one"
        )
    if torch.cuda.current_stream() != stream:
        raise StreamLeftOpenError(
            "the work returned with another current stream than it was given; write "
            "`with torch.cuda.stream(s):` in it, which restores the first one"
        )
