"""Hand the process back as it was found, and say when the timed work failed."""

from collections.abc import Iterator

import torch

from gpulab.errors import StreamLeftOpenError
from gpulab.interrupts import Undo, contextmanager
from gpulab.work import collector_paused

__all__ = ["calling_work", "left_as_found", "restore_settings_at_exit"]


@contextmanager
def left_as_found() -> Iterator[None]:
    """Drain the device at the end, and put back what the work may have changed.

    That is the current stream and device, gradients, the choice of deterministic algorithms and
    cuDNN's flags. The garbage collector is paused meanwhile. Everything is put back on any way
    out of the block, an interrupt included.
    """
    undo = Undo()
    try:
        restore_settings_at_exit(undo)
        undo.callback(_drain)
        with collector_paused():
            yield
    finally:
        undo.close()


def restore_settings_at_exit(undo: Undo) -> None:
    """Have the settings of PyTorch that work may change put back when ``undo`` is closed."""
    # They run in the reverse order, each of them even if another one fails.
    undo.callback(torch.cuda.set_stream, torch.cuda.current_stream())  # and its device
    undo.callback(torch.set_grad_enabled, torch.is_grad_enabled())
    undo.callback(_put_determinism_back, *_determinism())
    for flag in ("enabled", "benchmark", "deterministic"):
        was = getattr(torch.backends.cudnn, flag)
        undo.callback(setattr, torch.backends.cudnn, flag, was)


def _determinism() -> tuple[bool, bool]:
    is_asked = torch.are_deterministic_algorithms_enabled()
    return is_asked, torch.is_deterministic_algorithms_warn_only_enabled()


def _put_determinism_back(is_asked: bool, only_warns: bool) -> None:  # noqa: FBT001  # as torch has them
    # Only where it was changed: the call imports PyTorch's compiler, which takes 5 s.
    if _determinism() != (is_asked, only_warns):
        torch.use_deterministic_algorithms(is_asked, warn_only=only_warns)


def _drain() -> None:
    # After a CUDA error every wait raises again what the user is being told already.
    _is_context_lost()


def _is_context_lost() -> bool:
    """Tell whether the device fails at a wait after it has reported an error already."""
    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return True
    return False


@contextmanager
def calling_work(when: str, kept: str = "nothing was measured") -> Iterator[None]:
    """Note on an exception of the work when it came, and refuse a stream left open.

    Parameters
    ----------
    when
        Completes the sentence "raised ...".
    kept
        What there is of the measurement, in a clause.

    Raises
    ------
    StreamLeftOpenError
        If the block ends with another current stream or device than it began with.
    """
    stream, index = torch.cuda.current_stream(), torch.cuda.current_device()
    try:
        yield
    except Exception as error:
        error.add_note(f"gpulab: raised {when}; {kept}")
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
    if torch.cuda.current_device() != index:
        raise StreamLeftOpenError(
            f"the work returned with cuda:{torch.cuda.current_device()} as the current device, "
            f"and was given cuda:{index}; write `with torch.cuda.device(...):` in it, which puts "
            "the first one back"
        )
    if torch.cuda.current_stream() != stream:
        raise StreamLeftOpenError(
            "the work returned with another current stream than it was given; write "
            "`with torch.cuda.stream(s):` in it, which puts the first one back"
        )
