"""Restore the shell and PyTorch after a timed cell, and make its errors easy to read."""

from collections.abc import Iterator
from contextlib import suppress
from types import TracebackType

from gpulab.core.errors import GpulabError
from gpulab.core.interrupts import Undo, contextmanager
from gpulab.core.tracebacks import drop_our_frames
from gpulab.magic._cell import Shell


@contextmanager
def settings_kept(shell: Shell) -> Iterator[None]:
    """Restore settings that only a timed cell or its setup changes, however the block ends.

    These are the default type and device, the precision of matmuls, and the shell's syntax-tree
    transformers. `left_as_found` restores what every work may change.
    """
    import torch

    from gpulab.core.torch_private import default_device_context

    cuda, mkldnn = torch.backends.cuda, torch.backends.mkldnn
    undo = Undo()
    try:
        undo.callback(torch.set_default_dtype, torch.get_default_dtype())
        chosen = default_device_context()
        undo.callback(torch.set_default_device, None if chosen is None else chosen.device)
        for backend in (cuda, mkldnn):
            matmul = getattr(backend, "matmul", None)
            if matmul is not None and hasattr(matmul, "fp32_precision"):  # from torch 2.9 on
                undo.callback(setattr, matmul, "fp32_precision", matmul.fp32_precision)
        # The old setting writes both of the new ones, so it must be restored before them:
        # callbacks run in reverse order. Reading it raises if the user has set a new one.
        with suppress(RuntimeError):
            precision = torch.get_float32_matmul_precision()
            undo.callback(torch.set_float32_matmul_precision, precision)
        undo.callback(shell.ast_transformers.__setitem__, slice(None), [*shell.ast_transformers])
        yield
    finally:
        undo.close()


def wait_for_earlier_work() -> None:
    """Raise an earlier failure on the GPU now, so that the timed code does not get the blame."""
    import torch

    try:
        torch.cuda.synchronize()
    except Exception as error:
        error.add_note(
            "gpulab: CUDA errors are asynchronous; this one comes from work that was launched "
            "before the timed cell, so restart the kernel and look there"
        )
        raise


def explain(error: BaseException, filename: str) -> None:
    """Make the traceback start at the user's own line, and add a hint to errors about names.

    ``filename`` is the name under which the code was compiled.
    """
    drop_our_frames(error)
    frame = error.__traceback__
    if isinstance(error, GpulabError) and _is_of_the_magic(frame):
        # Its message says everything. measure() has dropped its own frames; ours are left.
        error.__traceback__ = None
    # No frame after the cell's own: a function that the cell calls has other reasons.
    if (
        isinstance(error, UnboundLocalError)
        and frame is not None
        and frame.tb_next is None
        and frame.tb_frame.f_code.co_filename == filename
    ):
        error.add_note(
            "gpulab: a name that a timed cell assigns is local to it; assign it on the magic's "
            "line (%%cudatime y = x.clone()), or work in place (x.add_(1))"
        )


def _is_of_the_magic(frame: TracebackType | None) -> bool:
    return frame is not None and str(frame.tb_frame.f_globals.get("__name__")).startswith(
        "gpulab."
    )
