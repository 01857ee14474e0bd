"""The records between an explorer and its model: choices, and steps to measure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from gpulab.core.errors import InvalidOptionError, shown
from gpulab.figures import Figure
from gpulab.roofline import Ceilings
from gpulab.workloads.sweeps import Point, Task

if TYPE_CHECKING:
    import pandas as pd


State = TypeVar("State")
Measured = Point | Ceilings


@dataclass(frozen=True, slots=True)
class CeilingsStep:
    """The step that measures the roofs of the GPU in use."""

    def __str__(self) -> str:
        return "roofs of the GPU"


Step = Task | CeilingsStep


@dataclass(frozen=True, slots=True)
class Selector:
    """One choice, the field of the state that it sets, with the values that are offered.

    Its kind is ``"menu"``, ``"slider"``, ``"size"`` for any number between the first and the last,
    ``"rate"`` for one of them or a positive number, or ``"several"`` for a list.
    """

    name: str
    kind: str
    offered: tuple[Any, ...]

    def fits(self, value: Any) -> bool:  # noqa: ANN401 # it is asked whether it fits
        """Return whether a value can be chosen."""
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if self.kind == "size":
            return isinstance(value, int) and bool(self.offered[0] <= value <= self.offered[-1])
        if self.kind == "rate" and is_number and len(self.offered) > 1:
            return bool(value > 0)
        return value in self.offered

    def read(self, value: Any) -> Any:  # noqa: ANN401 # it is asked whether it fits
        """Return a value in the form of the state; for a slider, the nearest number offered."""
        if self.kind == "slider" and isinstance(value, int):
            return nearest(self.offered, value)
        if self.kind in {"size", "rate"} and self.fits(value):
            return value
        if self.kind != "several":
            chosen = (value,)
        else:
            is_list = isinstance(value, Iterable) and not isinstance(value, str)
            chosen = value = tuple(value) if is_list else (value,)
        for each in chosen:
            # The type first: an array or a tensor compares with each of its items.
            if not isinstance(each, str | int | float | None) or each not in self.offered:
                offered = ", ".join(map(repr, self.offered))
                raise InvalidOptionError(f"{self.name}={shown(each)}; choose one of {offered}")
        return value


def nearest(offered: Sequence[Any], value: object) -> Any:  # noqa: ANN401 # one of what is offered
    """Return a value if it is offered, otherwise the nearest number, otherwise the first."""
    if value in offered:
        return value
    numbers = [each for each in offered if isinstance(each, int)]
    if isinstance(value, int) and numbers:
        return min(numbers, key=lambda each: abs(each - value))
    return offered[0]


class Model(Protocol[State]):
    """The functions behind an explorer; none of them measures."""

    name: str
    own_files: tuple[str, ...]

    def choices(self, state: State) -> tuple[Selector, ...]:
        """Return the choices with their options, which may depend on other choices."""

    def settled(self, state: State) -> State:
        """Return the nearest state in which every choice is one of its options."""

    def words(self, state: State, measured: Sequence[Measured]) -> tuple[str, ...]:
        """Return what is shown, with the source of the numbers, and sentences on it."""

    def frame(self, state: State, measured: Sequence[Measured]) -> "pd.DataFrame":
        """Return the table of the points that are shown."""

    def figure(self, state: State, measured: Sequence[Measured]) -> Figure:
        """Return a figure of what is shown, for a page that runs no script."""

    def base_numbers(self) -> dict[str, Any]:
        """Return the numbers that every state shares: recorded times, and names."""

    def state_numbers(self, state: State) -> dict[str, Any]:
        """Return the numbers that only this state needs, such as those of a virtual GPU."""

    def own_numbers(self, measured: Sequence[Measured]) -> dict[str, Any]:
        """Return the numbers that were measured here."""

    def steps(self, state: State) -> tuple[Step, ...]:
        """Return the steps that the button measures, in order."""
