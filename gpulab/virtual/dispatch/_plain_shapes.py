"""Run PyTorch's meta kernels without importing ``symbolic_shapes`` and sympy.

Nearly every meta kernel asks ``symbolic_shapes`` whether a condition on sizes is true. All sizes
of the virtual GPU are numbers, for which the answer is the condition itself. The real module
imports sympy: 480 modules, 33 MiB, half a second.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gpulab.virtual._stand_ins import StandIn

_SYMBOLIC_SHAPES = "torch.fx.experimental.symbolic_shapes"


class _NoExpression:
    """Replaces sympy's class of expressions; nothing is an instance of it."""


def _equal(first: Any, second: Any) -> bool:
    """Return whether two numbers are equal, or two sequences of numbers of any type."""
    if isinstance(first, (list, tuple)) and isinstance(second, (list, tuple)):
        return list(first) == list(second)
    return bool(first == second)


# The names that the meta kernels of torch 2.11 to 2.13 use, with their answers for plain numbers.
# With a torch that uses another name, the real module is imported.
_KNOWN: dict[str, dict[str, Any]] = {
    "sympy": {"Basic": _NoExpression},
    "torch.utils._sympy.functions": {"Max": max},
    _SYMBOLIC_SHAPES: {
        **dict.fromkeys(
            (
                *("expect_true", "guard_or_false", "guard_or_true", "guard_size_oblivious"),
                *("guarding_hint_or_throw", "size_hint", "statically_known_true"),
            ),
            lambda value: value,
        ),
        **dict.fromkeys(("has_guarding_hint", "has_hint"), lambda _size: True),
        "is_nested_int": lambda _size: False,
        "sym_and": lambda *values: all(values),
        "sym_eq": _equal,
        "sym_or": lambda *values: any(values),
    },
}
_STAND_INS = {name: StandIn(name, members) for name, members in _KNOWN.items()}


@contextmanager
def without_symbols() -> Iterator[None]:
    """Replace ``symbolic_shapes`` and sympy inside the block, unless they are imported already."""
    if _SYMBOLIC_SHAPES in sys.modules:
        yield
        return
    missing = {name: module for name, module in _STAND_INS.items() if name not in sys.modules}
    sys.modules.update(missing)
    try:
        yield
    finally:
        for name, module in missing.items():
            # Unless the real one was imported meanwhile.
            if sys.modules.get(name) is module:
                del sys.modules[name]
