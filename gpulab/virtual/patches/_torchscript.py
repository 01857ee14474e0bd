"""Let TorchScript recognize the replacement of a PyTorch function as the same operator.

TorchScript finds operators by the ``id`` of their Python functions. PyTorch itself compiles
functions with TorchScript, too: the first derivative in forward mode compiles a dozen.
"""

from functools import cache
from typing import Any

from gpulab.core.interrupts import Undo
from gpulab.core.torch_private import script_operators


def register(owner: Any, replacements: dict[str, Any], undo: Undo) -> None:
    """Register each replacement of a name of ``owner`` with TorchScript, until ``undo`` closes."""
    # Most owners have no operator, and those with operators have many other names.
    for name in _operators_of(owner).intersection(replacements):
        operators = script_operators()
        # A program may have replaced the name itself, by a function that is no operator.
        operator = operators.get(id(vars(owner).get(name)))
        if operator is not None:
            replacement = replacements[name]
            # Removed again, because the id of a replacement can later belong to another function.
            undo.callback(operators.pop, id(replacement), None)
            operators[id(replacement)] = operator


@cache
def _operators_of(owner: Any) -> frozenset[str]:
    """Return the names of a module or class whose values are operators of TorchScript."""
    operators = script_operators()
    return frozenset(name for name, value in vars(owner).items() if id(value) in operators)
