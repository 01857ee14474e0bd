"""Replace attributes of modules, classes and functions, and put the originals back."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any, NamedTuple


class _Originals(NamedTuple):
    """The attributes of an object before they were replaced, and the names that it lacked."""

    owner: Any
    before: dict[str, Any]
    added: Sequence[str]

    @classmethod
    def of(cls, owner: Any, names: Collection[str]) -> "_Originals":
        """Return the attributes of an object with these names as they are now."""
        members = vars(owner)
        before = {name: members[name] for name in names if name in members}
        is_complete = len(before) == len(names)
        return cls(owner, before, () if is_complete else [x for x in names if x not in members])

    def restore(self) -> None:
        """Put them back."""
        _put(self.owner, self.before)
        for name in self.added:
            if name in vars(self.owner):
                delattr(self.owner, name)


class Replaced:
    """The attributes that are replaced now, with their originals."""

    def __init__(self) -> None:
        self._originals: list[_Originals] = []

    def put(self, owner: Any, names: Mapping[str, Any]) -> None:
        """Replace attributes of ``owner``: a new value for each name."""
        # First the way back, then the change: an error in the middle can be undone, too.
        self._originals.append(_Originals.of(owner, names))
        _put(owner, names)

    def restore(self) -> None:
        """Put all originals back, the last replaced first."""
        # An entry is dropped only after it has run, so a second call can finish after an error.
        while self._originals:
            self._originals[-1].restore()
            self._originals.pop()

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Put all originals back inside a ``with`` block; then replace them again."""
        replacements = [
            _Originals.of(owner, [*before, *added]) for owner, before, added in self._originals
        ]
        try:
            # In reverse: if a name was replaced twice, the first entry has the original.
            for originals in reversed(self._originals):
                originals.restore()
            yield
        finally:
            for each in replacements:
                each.restore()


def put_back(owner: Any, name: str, own: Any) -> None:
    """Restore one attribute of an object; None means that it was the class's own."""
    if own is None:
        vars(owner).pop(name, None)
    else:  # it was replaced on this object before
        vars(owner)[name] = own


def _put(owner: Any, names: Mapping[str, Any]) -> None:
    if isinstance(owner, ModuleType):
        # Much faster than one by one: NVML alone has hundreds of names.
        vars(owner).update(names)
    else:
        for name, value in names.items():
            setattr(owner, name, value)
