"""The controls of an explorer: one widget for each choice, updated with its options."""

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from gpulab.figures.widgets import JupyterLoop, chips_class
from gpulab.views.explorers._scene import Selector

_LABEL, _SHORT_LABEL = {"description_width": "7.5em"}, {"description_width": "initial"}
_WIDE, _MENU = {"width": "100%"}, {"width": "auto", "margin": "2px 16px 2px 2px"}


class Controls:
    """One widget for each choice.

    Parameters
    ----------
    choices
        The choices with their options.
    state
        The choices at the start.
    chosen
        Called with the name and the new value when you choose, on the thread of ``loop``.
    loop
        The loop on whose thread controls are updated.

    Attributes
    ----------
    widgets
        By name of the choice.
    """

    def __init__(
        self,
        choices: tuple[Selector, ...],
        state: object,
        chosen: Callable[[str, Hashable], object],
        loop: JupyterLoop,
    ) -> None:
        self._chosen, self._take_in_turn = chosen, loop.in_turn(self._take)
        self._choices = {choice.name: choice for choice in choices}
        self._values = {choice.name: getattr(state, choice.name) for choice in choices}
        # Choices that arrived on the thread of the messages and wait for their turn, and the
        # thread that is updating the widgets: changes that it makes are not choices of the reader.
        self._waiting: dict[str, Hashable] = {}
        self._teller: int | None = None
        self.widgets: Mapping[str, Any] = {
            choice.name: _widget(choice, getattr(state, choice.name)) for choice in choices
        }
        # By index, not by value: for ipywidgets a value of None means that nothing is selected.
        for name, widget in self.widgets.items():
            widget.observe(lambda change, name=name: self._notice(name, change["new"]), "index")

    @property
    def short(self) -> list[Any]:
        """The widgets that stand beside each other."""
        return [self.widgets[name] for name in self.widgets if not self._is_long(name)]

    @property
    def long(self) -> list[Any]:
        """The widgets that take a row each."""
        return [self.widgets[name] for name in self.widgets if self._is_long(name)]

    def _is_long(self, name: str) -> bool:
        return self._choices[name].kind in {"slider", "several"}

    def tell(self, choices: tuple[Selector, ...], state: object) -> None:
        """Update the options and values of all widgets."""
        self._teller = threading.get_ident()
        try:
            for choice in choices:
                # Skip a control with a newer choice that waits for its turn: this would undo it.
                if choice.name not in self._waiting:
                    self._update(choice, getattr(state, choice.name))
        finally:
            self._teller = None

    def _update(self, choice: Selector, value: Hashable) -> None:
        # Only differences are sent, because each message makes the browser lay out the page.
        widget, place = self.widgets[choice.name], _place(choice, value)
        self._choices[choice.name] = choice
        if tuple(widget.options) != _texts(choice):
            # The index comes second: ipywidgets selects the first option when the options change.
            widget.options = list(_texts(choice))
            widget.index = place
        # Compared with the last known value, not with the widget, which the reader may be moving.
        elif value != self._values[choice.name]:
            widget.index = place
        self._values[choice.name] = value
        widget.disabled = _is_settled(choice)

    def close(self) -> None:
        """Remove the widgets from the page."""
        for widget in self.widgets.values():
            widget.close()

    def _notice(self, name: str, place: int | Sequence[int] | None) -> None:
        """Store a choice, on whichever thread it arrives, until its turn."""
        if place is None or threading.get_ident() == self._teller:
            return
        offered = self._choices[name].offered
        self._waiting[name] = (
            offered[place] if isinstance(place, int) else tuple(offered[each] for each in place)
        )
        self._take_in_turn(name)

    def _take(self, name: str) -> None:
        # Otherwise the turn of an earlier choice has already taken this one.
        if name in self._waiting:
            self._values[name] = value = self._waiting.pop(name)
            self._chosen(name, value)


def _widget(choice: Selector, value: Hashable) -> Any:  # noqa: ANN401 # ipywidgets has no types
    import ipywidgets  # type: ignore[import-untyped] # it ships no types

    kinds: dict[str, tuple[Any, dict[str, Any]]] = {
        "menu": (ipywidgets.Dropdown, {"layout": _MENU}),
        "buttons": (ipywidgets.ToggleButtons, {"style": {**_SHORT_LABEL, "button_width": "auto"}}),
        "slider": (ipywidgets.SelectionSlider, {"layout": _WIDE, "style": _LABEL}),
    }
    if choice.kind == "several":
        return chips_class()(
            description=choice.label,
            options=list(_texts(choice)),
            index=_place(choice, value),
            families=choice.families,
        )
    make, options = kinds[choice.kind]
    return make(
        description=choice.label,
        options=_texts(choice),
        index=_place(choice, value),
        disabled=_is_settled(choice),
        **{"style": _SHORT_LABEL, **options},
    )


def _texts(choice: Selector) -> tuple[str, ...]:
    return tuple(text for text, _ in choice.options)


def _place(choice: Selector, value: Any) -> int | list[int]:  # noqa: ANN401 # of either kind
    offered = choice.offered
    if choice.kind == "several":
        return [offered.index(each) for each in value if each in offered]
    return offered.index(value)


def _is_settled(choice: Selector) -> bool:
    """Return whether there is only one option; the widget is disabled then."""
    return len(choice.options) == 1
