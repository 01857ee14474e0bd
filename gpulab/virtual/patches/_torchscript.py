"""Let TorchScript recognize the replacement of a PyTorch function as the same operator.

TorchScript finds operators by the ``id`` of their Python functions. PyTorch itself compiles
functions with TorchScript, too: the first derivative in forward mode compiles a dozen.
"""

from collections.abc import Iterable
from functools import cache
from typing import Any

from gpulab.core.interrupts import Undo
from gpulab.core.torch_private import script_operators


def register(owner: Any, replacements: dict[str, Any], undo: Undo) -> None:
    """Register each replacement of a name of ``owner`` with TorchScript, until ``undo`` closes."""
    names = _operators_of(owner)
    if not names:
        return
    operators, members = script_operators(), vars(owner)
    # A program may have replaced a name itself, by a function that is no operator.
    originals = {
        id(replacements[name]): operators.get(id(members.get(name)))
        for name in names.intersection(replacements)
    }
    added = {key: operator for key, operator in originals.items() if operator is not None}
    # Removed again, because the id of a replacement can later belong to another function.
    undo.callback(_remove, added)
    operators.update(added)


def _remove(keys: Iterable[int]) -> None:
    operators = script_operators()
    for key in keys:
        operators.pop(key, None)


@cache
def _operators_of(owner: Any) -> frozenset[str]:
    """Return the names of a module or class whose values are operators of TorchScript."""
    operators = script_operators()
    return frozenset(name for name, value in vars(owner).items() if id(value) in operators)
