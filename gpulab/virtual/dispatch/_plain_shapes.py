"""Let PyTorch's kernels for shapes do without symbols: all sizes of the virtual GPU are numbers.

Nearly every such kernel asks torch's ``symbolic_shapes`` whether something holds, which for
numbers is the question itself. Importing it imports sympy: 480 modules, 33 MiB, half a second.
"""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

_SYMBOLIC_SHAPES = "torch.fx.experimental.symbolic_shapes"


class _NoExpression:
    """Stands for the class of sympy's expressions: nothing is one."""


def _same(value: Any) -> Any:
    return value


def _all(*values: bool) -> bool:
    return all(values)


def _any(*values: bool) -> bool:
    return any(values)


def _equal(first: Any, second: Any) -> bool:
    """Compare numbers, or sequences of numbers whatever their types."""
    if isinstance(first, (list, tuple)) and isinstance(second, (list, tuple)):
        return list(first) == list(second)
    return bool(first == second)


_KNOWN: dict[str, dict[str, Any]] = {
    "sympy": {"Basic": _NoExpression},
    _SYMBOLIC_SHAPES: {
        **dict.fromkeys(
            (
                *("expect_true", "guard_or_false", "guard_or_true", "guard_size_oblivious"),
                *("guarding_hint_or_throw", "statically_known_true"),
            ),
            _same,
        ),
        "has_guarding_hint": lambda _size: True,
        "is_nested_int": lambda _size: False,
        "sym_and": _all,
        "sym_eq": _equal,
        "sym_or": _any,
    },
}


class _StandIn(ModuleType):
    """A module that knows a few names; asked for another one, it imports the real module."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)


def _stand_in(name: str) -> ModuleType:
    made = _StandIn(name)
    vars(made).update(_KNOWN[name])
    return made


_STAND_INS = {name: _stand_in(name) for name in _KNOWN}


@contextmanager
def without_symbols() -> Iterator[None]:
    """Answer for ``symbolic_shapes`` and sympy inside, unless they are imported already."""
    if _SYMBOLIC_SHAPES in sys.modules:
        yield
        return
    missing = {name: module for name, module in _STAND_INS.items() if name not in sys.modules}
    sys.modules.update(missing)
    try:
        yield
    finally:
        for name, module in missing.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]
