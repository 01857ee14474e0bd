"""``torch.compile`` on the virtual GPU: functions run uncompiled, with one warning."""

import sys
import warnings
from functools import cache, partial
from typing import Any

import torch

from gpulab.core.interrupts import Undo
from gpulab.core.torch_private import current_stance, functions_never_compiled, restore_stance
from gpulab.virtual._stand_ins import StandIn, is_imported
from gpulab.virtual.patches._optimizer_steps import End, OptimizerSteps
from gpulab.virtual.simulator import Machine

_COMPILER = "torch._dynamo"


class NotCompiledWarning(UserWarning):
    """Warns that ``torch.compile`` did nothing, because compiled kernels have no model."""


def replacements(machine: Machine) -> list[tuple[Any, dict[str, Any]]]:  # noqa: ARG001 # as every patch
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


def keep_unloaded(steps: OptimizerSteps, undo: Undo) -> None:
    """Prevent meta kernels and optimizers from importing the compiler, until ``undo`` is closed.

    They import it only to say that they are never compiled. At the first addition, or the first
    step of an optimizer, that would take a second and 80 MiB, although nothing is compiled here.
    """
    if is_imported(_COMPILER):
        return
    undo.callback(_unmark)
    for function in functions_never_compiled():
        # PyTorch takes a function with this attribute for one that is marked already.
        vars(function)["__dynamo_disable"] = function
    stand_in = StandIn(_COMPILER, {"graph_break": lambda: None})
    undo.callback(_put_away, stand_in)
    steps.follow(partial(_put_in_place, stand_in))


def _unmark() -> None:
    for function in functions_never_compiled():
        vars(function).pop("__dynamo_disable", None)


def _put_in_place(
    stand_in: StandIn, optimizer: object, args: tuple[object, ...], kwargs: dict[str, object]
) -> End | None:
    # Every step imports the compiler to call one name of it, which does nothing where nothing is
    # compiled. A step with a closure runs code of the program, which may import anything. A step
    # inside another one leaves the stand-in to the outer one.
    if args != (optimizer,) or kwargs or _COMPILER in sys.modules:
        return None
    sys.modules[_COMPILER] = stand_in
    return partial(_put_away, stand_in)


def _put_away(stand_in: StandIn) -> None:
    # Unless the real one was imported meanwhile.
    if sys.modules.get(_COMPILER) is stand_in:
        del sys.modules[_COMPILER]


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
