"""Public names of a package that load at first use, from their module or as one (PEP 562)."""

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
        The full name of each public name's module; a module that is public itself is its own.
    """

    def load(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = importlib.import_module(homes[name])
        value = home if homes[name] == f"{package}.{name}" else getattr(home, name)
        setattr(sys.modules[package], name, value)
        return value

    return load
