"""``torch.compile`` on the virtual GPU: functions run uncompiled, with one warning."""

import sys
import warnings
from functools import cache
from typing import Any

import torch

from gpulab.interrupts import Undo
from gpulab.torch_private import current_stance, kernels_never_compiled, restore_stance
from gpulab.virtual.simulator import Machine


class NotCompiledWarning(UserWarning):
    """Warns that ``torch.compile`` did nothing, because compiled kernels have no model.

    Examples
    --------
    >>> import gpulab, torch, warnings
    >>> with gpulab.virtual_gpu("H200"), warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", NotCompiledWarning)
    ...     torch.compile(torch.add) is torch.add
    True
    """


def replacements(machine: Machine) -> list[tuple[Any, dict[str, Any]]]:  # noqa: ARG001 # the seam's signature
    """Return the replacements for ``torch.compile`` and ``Module.compile``."""
    return [
        (torch, {"compile": _uncompiled}),
        (torch.nn.Module, {"compile": _module_uncompiled}),
    ]


def install(_machine: Machine, undo: Undo) -> None:
    """Run functions uncompiled that the program compiled before, until ``undo`` is closed."""
    # The compiled code would call Triton, which looks for the real driver. A stance also applies
    # to functions compiled before, and one call restores it.
    undo.callback(restore_stance, current_stance())
    torch.compiler.set_stance("force_eager")


def keep_unloaded(undo: Undo) -> None:
    """Prevent PyTorch's meta kernels from importing the compiler, until ``undo`` is closed.

    They import it only to mark themselves as never compiled. At the first addition that would take
    a second and 80 MiB, although nothing is compiled here.
    """
    if "torch._dynamo" in sys.modules:
        return
    undo.callback(_unmark_kernels)
    for kernel in kernels_never_compiled():
        # PyTorch takes a function with this attribute for one that is marked already.
        vars(kernel)["__dynamo_disable"] = kernel


def _unmark_kernels() -> None:
    for kernel in kernels_never_compiled():
        vars(kernel).pop("__dynamo_disable", None)


def _uncompiled(model: Any = None, **_options: object) -> Any:
    """Return the function itself: ``torch.compile``, also as a decorator with options."""
    _warn()
    return model if model is not None else lambda decorated: decorated


def _module_uncompiled(_module: torch.nn.Module, *_args: object, **_options: object) -> None:
    """Warn and do nothing: ``torch.nn.Module.compile``."""
    _warn()


@cache  # one warning for each process
def _warn() -> None:
    warnings.warn(
        "torch.compile did nothing: the virtual GPU has no model of compiled kernels, so the "
        "function runs as it is written, with its times uncompiled; compile it on a CUDA GPU to "
        "see what fusion saves",
        NotCompiledWarning,
        stacklevel=3,
    )
