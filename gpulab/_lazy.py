"""Public names of a package that load from their module at first use (PEP 562)."""

import importlib
import sys
from collections.abc import Callable, Mapping


def loader(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """Return the ``__getattr__`` of ``package``.

    Parameters
    ----------
    package
        Its full name, ``__name__`` there.
    homes
        The full name of each public name's module.
    """

    def load(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(homes[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return load
