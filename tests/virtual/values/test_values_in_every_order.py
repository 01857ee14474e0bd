"""A program reads the same bytes, at the same times, whenever its values are computed."""

from collections.abc import Callable
from typing import Any

import pytest

from gpulab.virtual.dispatch import _moved_values
from gpulab.virtual.values import PendingLimits, PendingValues
from tests.support.value_programs import outcome

Append = Callable[..., Any]


def _at_once(append: Append) -> Append:
    """Return a method that computes each entry at the end of its kernel, whatever it knows."""

    def append_and_compute(self: PendingValues, *args: Any, **options: Any) -> None:  # noqa: ANN401 # append's
        entry = append(self, *args, **{**options, "key": None})
        while self._compute_oldest(entry.number):
            pass

    return append_and_compute


def _differing(seeds: range) -> list[int]:
    """Return the programs whose values or times depend on when values are computed."""
    return [seed for seed in seeds if len({repr(_outcome(seed, how)) for how in WAYS}) > 1]


def _outcome(seed: int, how: str) -> object:
    with pytest.MonkeyPatch.context() as patch:
        if how == "at once":
            patch.setattr(PendingValues, "append", _at_once(PendingValues.append))
            patch.setattr(_moved_values, "_is_there", lambda *_: False)
        elif how == "few pending":
            patch.setattr(PendingValues.__init__, "__defaults__", (PendingLimits(5),))
        return outcome(seed)


WAYS = "at once", "when read", "few pending"


def test_a_program_does_not_see_when_its_values_are_computed() -> None:
    """Values and clock are equal: at the ends of kernels, when read, and with few pending."""
    assert _differing(range(12)) == []


@pytest.mark.slow
def test_no_program_of_many_sees_when_its_values_are_computed() -> None:
    """The same for more programs."""
    assert _differing(range(1_000, 1_080)) == []
