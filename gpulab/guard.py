"""Hand the process back as it was found, and say when the timed work failed."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import torch

from gpulab._events import collector_paused
from gpulab.errors import StreamLeftOpenError

__all__ = ["left_as_found", "watched"]


@contextmanager
def left_as_found() -> Iterator[None]:
    """Drain the device at the end, and put back the stream, gradients and the collector.

    The garbage collector is paused meanwhile. Everything is put back on any way out of the
    block, an interrupt included.
    """
    stream, grad_enabled = torch.cuda.current_stream(), torch.is_grad_enabled()
    try:
        with collector_paused():
            yield
    finally:
        # After a CUDA error every wait raises again what the user is being told already.
        with suppress(RuntimeError):
            torch.cuda.synchronize()
        torch.cuda.set_stream(stream)
        torch.set_grad_enabled(grad_enabled)


@contextmanager
def watched(when: str) -> Iterator[None]:
    """Note on an exception of the work when it came, and refuse a stream left open.

    Parameters
    ----------
    when
        Completes the sentence "raised ...".

    Raises
    ------
    StreamLeftOpenError
        If the block ends with another current stream than it began with.
    """
    stream = torch.cuda.current_stream()
    try:
        yield
    except Exception as error:
        error.add_note(f"gpulab: raised {when}; nothing was measured")
        if isinstance(error, torch.AcceleratorError):
            error.add_note(
                "gpulab: CUDA errors are asynchronous, so the kernel that failed may be an "
                "earlier one; CUDA_LAUNCH_BLOCKING=1 in the environment finds it"
            )
        raise
    if torch.cuda.current_stream() != stream:
        raise StreamLeftOpenError(
            "the work returned with another current stream than it was given; write "
            "`with torch.cuda.stream(s):` in it, which puts the first one back"
        )
