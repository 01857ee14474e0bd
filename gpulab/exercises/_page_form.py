"""A form on the page: a widget, and below it the same in words for a page without a kernel."""

import secrets
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self
from weakref import WeakSet

from gpulab.figures import widgets

_ON_PAGE: defaultdict[tuple[str, str], WeakSet["PageForm"]] = defaultdict(WeakSet)


class PageForm(ABC):
    """A form with a name, by which it finds the forms that ask the same.

    A cell that runs twice has shown two of them. Without a name there are no others.
    """

    kind: ClassVar[Literal["guess", "answer", "sketch"]]

    def __init__(self, name: str) -> None:
        self.name = name
        # By this class the page finds the words that the widget replaces.
        self.still_class = f"gpulab-still-{secrets.token_hex(4)}"
        self._widget: Any = None
        self._still: Any = None
        # On the cells' thread: it changes an output of a cell.
        self._show_words = widgets.JupyterLoop().in_turn(self._update_words)

    @abstractmethod
    def view(self) -> dict[str, Any]:
        """Return what the widget shows."""

    @abstractmethod
    def words(self) -> dict[str, str]:
        """Return the same for a page without a kernel, by MIME type."""

    @abstractmethod
    def receive(self, content: Mapping[str, Any]) -> None:
        """Take a message of the page."""

    def display(self) -> None:
        """Show the widget, and below it an output with the words."""
        from IPython.display import display

        self._widget = widgets.view_class(self.kind)(view=self.view())
        widgets.listen(self._widget, self.receive)
        if self.name:
            _ON_PAGE[self.kind, self.name].add(self)
        display(widgets.widget_data(self._widget), raw=True)  # type: ignore[no-untyped-call]  # IPython's gap
        self._still = display(self.words(), raw=True, display_id=True)  # type: ignore[no-untyped-call]  # as above

    def show(self) -> None:
        """Show what has changed; a page that is opened later shows it, too."""
        if self._widget is not None:
            widgets.show_view(self._widget, self.view())
            self._show_words()

    @classmethod
    def named(cls, name: str) -> tuple[Self, ...]:
        """Return the forms of a name that are on the page."""
        return tuple(form for form in _ON_PAGE[cls.kind, name] if isinstance(form, cls))

    def _update_words(self) -> None:
        if self._still is not None:
            self._still.update(self.words(), raw=True)
