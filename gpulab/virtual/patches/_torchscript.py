"""Let TorchScript recognize the replacement of a PyTorch function as the same operator.

TorchScript finds operators by the ``id`` of their Python functions. PyTorch itself compiles
functions with TorchScript, too: the first derivative in forward mode compiles a dozen.
"""

from typing import Any

from gpulab.interrupts import Undo
from gpulab.torch_private import script_operators


def register(owner: Any, replacements: dict[str, Any], undo: Undo) -> None:
    """Register each replacement of a name of ``owner`` with TorchScript, until ``undo`` closes."""
    operators, members = script_operators(), vars(owner)
    for name, replacement in replacements.items():
        operator = operators.get(id(members.get(name)))
        if operator is not None:
            # Removed again, because the id of a replacement can later belong to another function.
            undo.callback(operators.pop, id(replacement), None)
            operators[id(replacement)] = operator
