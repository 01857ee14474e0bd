"""Replace attributes of modules, classes and functions, and put the originals back."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any


class Replaced:
    """The attributes that are replaced now, with what restores them."""

    def __init__(self) -> None:
        self._owners: list[tuple[Any, tuple[str, ...]]] = []
        self._restorers: list[Callable[[], None]] = []

    def put(self, owner: Any, names: Mapping[str, Any]) -> None:
        """Replace attributes of ``owner``: a new value for each name."""
        # First the way back, then the change: an error in the middle can be undone, too.
        self._restorers.append(_restorer(owner, names))
        self._owners.append((owner, tuple(names)))
        _put(owner, names)

    def restore(self) -> None:
        """Put all originals back, the last replaced first."""
        # An entry is dropped only after it has run, so a second call can finish after an error.
        while self._restorers:
            self._restorers[-1]()
            self._restorers.pop()
        self._owners.clear()

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Put all originals back inside a ``with`` block; then replace them again."""
        show = [_restorer(owner, names) for owner, names in self._owners]
        try:
            # In reverse: if a name was replaced twice, the first entry has the original.
            for restore in reversed(self._restorers):
                restore()
            yield
        finally:
            for each in show:
                each()


def put_back(owner: Any, name: str, own: Any) -> None:
    """Restore one attribute of an object; None means that it was the class's own."""
    if own is None:
        vars(owner).pop(name, None)
    else:  # it was replaced on this object before
        vars(owner)[name] = own


def _restorer(owner: Any, names: Iterable[str]) -> Callable[[], None]:
    """Return a function that restores these attributes as they are now."""
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
        # Much faster than one by one: NVML alone has hundreds of names.
        vars(owner).update(names)
    else:
        for name, value in names.items():
            setattr(owner, name, value)
