"""Names that stand-ins have taken: they are given back at the end, or hidden for a while."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any


class Replaced:
    """The names of modules, classes and functions that have a stand-in now."""

    def __init__(self) -> None:
        self._owners: list[tuple[Any, tuple[str, ...]]] = []
        self._restorers: list[Callable[[], None]] = []

    def put(self, owner: Any, names: Mapping[str, Any]) -> None:
        """Put stand-ins in the place of an object's names."""
        self._restorers.append(_restorer(owner, names))
        self._owners.append((owner, tuple(names)))
        _put(owner, names)

    def restore(self) -> None:
        """Give every name back."""
        while self._restorers:
            self._restorers[-1]()
            self._restorers.pop()
        self._owners.clear()

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Give every name back for a while; then each has again what it has now."""
        show = [_restorer(owner, names) for owner, names in self._owners]
        try:
            for restore in reversed(self._restorers):
                restore()
            yield
        finally:
            for each in show:
                each()


def put_back(owner: Any, name: str, own: Any) -> None:
    """Give one object's name back as it was: None stands for what its class has."""
    if own is None:
        vars(owner).pop(name, None)
    else:  # somebody else had replaced it, too
        vars(owner)[name] = own


def _restorer(owner: Any, names: Iterable[str]) -> Callable[[], None]:
    """Return what gives an object's names back as they are now."""
    members = vars(owner)
    before = {name: members[name] for name in names if name in members}
    added = [name for name in names if name not in members]

    def restore() -> None:
        _put(owner, before)
        for name in added:
            if name in members:
                delattr(owner, name)

    return restore


def _put(owner: Any, names: Mapping[str, Any]) -> None:
    if isinstance(owner, ModuleType):
        vars(owner).update(names)  # NVML alone has hundreds of names
    else:
        for name, value in names.items():
            setattr(owner, name, value)
