"""Let TorchScript take what stands in for an operator of PyTorch for that operator.

TorchScript knows operators by the identity of their Python functions. PyTorch compiles functions
of its own, too: the first derivative in forward mode makes it compile a dozen.
"""

from typing import Any

from gpulab.interrupts import Undo
from gpulab.torch_private import script_operators


def register(owner: Any, replacements: dict[str, Any], undo: Undo) -> None:
    """Make known which operator each replacement of a name of ``owner`` stands for."""
    operators, members = script_operators(), vars(owner)
    for name, replacement in replacements.items():
        operator = operators.get(id(members.get(name)))
        if operator is not None:
            undo.callback(operators.pop, id(replacement), None)
            operators[id(replacement)] = operator
