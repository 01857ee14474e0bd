"""Stand-ins for modules of PyTorch that take long to import and much memory."""

import importlib
import sys
from types import ModuleType
from typing import Any


class StandIn(ModuleType):
    """A module that has a few names, and imports the real module when another one is asked for.

    Examples
    --------
    >>> import sys
    >>> sys.modules["colorsys"] = StandIn("colorsys", {"answer": 42})
    >>> import colorsys
    >>> colorsys.answer
    42
    >>> colorsys.rgb_to_hsv(1, 1, 1)  # now the real module is imported
    (0.0, 0.0, 1)
    """

    def __init__(self, name: str, known: dict[str, Any]) -> None:
        super().__init__(name)
        vars(self).update(known)

    def __getattr__(self, name: str) -> Any:
        # The import system itself asks a module for __path__, __spec__ and the like.
        if name.startswith("__"):
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            # This module is in the place of the real one, which could not be imported otherwise.
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)


def is_imported(name: str) -> bool:
    """Return whether the module of this name is imported, and not only a stand-in for it.

    Examples
    --------
    >>> is_imported("sys")
    True
    """
    return name in sys.modules and type(sys.modules[name]) is not StandIn
