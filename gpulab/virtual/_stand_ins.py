"""Stand-ins for modules of PyTorch that take long to import and much memory."""

import importlib
import importlib.util
import sys
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class StandIn(ModuleType):
    """A module that has a few names, and imports the real module when another one is asked for."""

    def __init__(self, name: str, members: dict[str, Any]) -> None:
        super().__init__(name)
        # Python looks for submodules only in a module with a path; see `submodule_spec`.
        vars(self).update(members, __path__=[])

    def __getattr__(self, name: str) -> Any:
        # The import system itself asks a module for __path__, __spec__ and the like.
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.real(), name)

    def real(self) -> ModuleType:
        """Import the real module, in the place of this one, and return it."""
        if sys.modules.get(self.__name__) is self:
            # This module is in the place of the real one, which could not be imported otherwise.
            del sys.modules[self.__name__]
        return importlib.import_module(self.__name__)


def is_imported(name: str) -> bool:
    """Return whether the module of this name is imported, and not only a stand-in for it."""
    return name in sys.modules and type(sys.modules[name]) is not StandIn


def submodule_spec(name: str) -> ModuleSpec | None:
    """Return how to import a submodule of a stand-in, after importing the real package.

    None if the module's parent is no stand-in, or if the real package has no such submodule.
    """
    parent = sys.modules.get(name.rpartition(".")[0])
    if not isinstance(parent, StandIn):
        return None
    parent.real()
    if name in sys.modules:
        # The package imported it. Executing it again would double its classes and its state.
        module = sys.modules[name]
        spec = ModuleSpec(name, _Imported(module))
        # Python prefers the module's own spec; `exec_module` restores that.
        module.__spec__ = spec
        return spec
    return importlib.util.find_spec(name)


class _Imported(Loader):
    """The loader of a module that is imported already."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._spec = module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:  # noqa: ARG002 # Python's signature
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec
