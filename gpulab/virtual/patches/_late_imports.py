"""Import modules of torch while the virtual GPU is in use, as if it were not in use."""

import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from gpulab.core.interrupts import Undo
from gpulab.virtual._replaced import Replaced
from gpulab.virtual._stand_ins import is_imported, submodule_spec
from gpulab.virtual.patches import _benchmark_timer, _torch_compile
from gpulab.virtual.simulator import Machine, is_owner

# These modules are patched when the program imports them. Importing them here would take long, and
# most programs need neither.
_FEATURES = {
    "torch._dynamo": _torch_compile.install,
    "torch.utils.benchmark.utils.timer": _benchmark_timer.install,
}


def install(machine: Machine, replaced: Replaced, undo: Undo) -> None:
    """Handle the imports of this thread until ``undo`` is closed."""
    waiting = dict(_FEATURES)
    late = Undo()
    undo.callback(late.close)

    def follow() -> None:
        for name in list(filter(is_imported, waiting)):
            waiting.pop(name)(machine, late)

    # A program may have imported some of them before it entered the virtual GPU.
    follow()
    finder = _Finder(replaced, follow)
    undo.callback(_forget, finder)
    # The first finder, because the first one that finds a module loads it.
    sys.meta_path.insert(0, finder)


def _forget(finder: MetaPathFinder) -> None:
    if finder in sys.meta_path:
        sys.meta_path.remove(finder)


class _Finder(MetaPathFinder):
    """Finds modules of torch as Python does, and loads them while no name is replaced.

    When such a module is imported, it may store functions and classes of ``torch.cuda`` for the
    rest of the process, and look for the real driver.
    """

    def __init__(self, replaced: Replaced, follow: Callable[[], None]) -> None:
        self._replaced = replaced
        self._follow = follow
        self._is_loading = False

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        of_stand_in = submodule_spec(name)
        if of_stand_in is not None:
            return of_stand_in
        # While a module is being loaded, the modules that it imports load in the same way: the
        # names are restored until the outermost one is done.
        if self._is_loading or not name.startswith("torch.") or not is_owner():
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        specs = (finder.find_spec(name, path, target) for finder in others)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self)
        return spec

    def load(self, loader: Loader, module: ModuleType) -> None:
        """Execute a module and all modules that it imports, and then apply their patches."""
        self._is_loading = True
        try:
            with self._replaced.hidden():
                loader.exec_module(module)
                self._follow()
        finally:
            self._is_loading = False


class _Loader(Loader):
    """Replaces the loader of a module while the module is loaded."""

    def __init__(self, loader: Loader, finder: _Finder) -> None:
        self._loader = loader
        self._finder = finder

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        # The module must not keep this loader: reload() and importlib.resources ask it later.
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._finder.load(self._loader, module)
