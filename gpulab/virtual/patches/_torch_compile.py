"""Run what is passed to ``torch.compile`` uncompiled, with one warning."""

import sys
import warnings
from functools import cache
from typing import Any

import torch

from gpulab.interrupts import Undo
from gpulab.torch_private import current_stance, kernels_never_compiled, restore_stance
from gpulab.virtual.simulator import Machine


class NotCompiledWarning(UserWarning):
    """``torch.compile`` was asked for on the virtual GPU, which has no model of its kernels."""


def replacements(machine: Machine) -> list[tuple[Any, dict[str, Any]]]:  # noqa: ARG001 # the seam's signature
    """Return what to put in the place of which names, by the object that has them."""
    return [
        (torch, {"compile": _uncompiled}),
        (torch.nn.Module, {"compile": _module_uncompiled}),
    ]


def install(_machine: Machine, undo: Undo) -> None:
    """Run what was compiled before uncompiled too, until ``undo`` is closed."""
    # Compiled code would be Triton's, which looks for the real driver; a stance reaches functions
    # that were compiled before, and is given back in one step.
    undo.callback(restore_stance, current_stance())
    torch.compiler.set_stance("force_eager")


def keep_unloaded(undo: Undo) -> None:
    """Keep PyTorch's kernels for shapes from loading the compiler to say that it is off.

    It would take a second and 80 MiB at the first addition, for nothing: nobody compiles here.
    """
    if "torch._dynamo" in sys.modules:
        return
    undo.callback(_unmark_kernels)
    for kernel in kernels_never_compiled():
        vars(kernel)["__dynamo_disable"] = kernel


def _unmark_kernels() -> None:
    for kernel in kernels_never_compiled():
        vars(kernel).pop("__dynamo_disable", None)


def _uncompiled(model: Any = None, **_options: object) -> Any:
    """Stand for ``torch.compile``, as a function and as a decorator with options."""
    _warn()
    return model if model is not None else lambda decorated: decorated


def _module_uncompiled(_module: torch.nn.Module, *_args: object, **_options: object) -> None:
    """Stand for ``torch.nn.Module.compile``."""
    _warn()


@cache  # once a process
def _warn() -> None:
    warnings.warn(
        "torch.compile did nothing: the virtual GPU has no model of compiled kernels, so the "
        "function runs as it is written, with its times uncompiled; compile it on a CUDA GPU to "
        "see what fusion saves",
        NotCompiledWarning,
        stacklevel=3,
    )
