"""A program reads the same bytes, at the same times, whenever its values are computed."""

from collections.abc import Callable

import pytest

from gpulab.virtual.simulator.values import LogEntry, PendingValues, _pending_values
from tests.support.value_programs import outcome

WAYS = "at once", "when read", "few pending"


def _at_once(append: Callable[..., None]) -> Callable[..., None]:
    """Return a method that computes each entry at the end of its kernel, whatever it knows."""

    def append_and_compute(self: PendingValues, entry: LogEntry, *spans: object) -> None:
        entry.key = None
        append(self, entry, *spans)
        while entry.compute is not None:
            self._compute_oldest(entry.number)

    return append_and_compute


def _outcome(seed: int, way: str) -> object:
    """Return what a random program reads, and when, if its values are computed in one way."""
    with pytest.MonkeyPatch.context() as patch:
        if way == "at once":
            patch.setattr(PendingValues, "append", _at_once(PendingValues.append))
            patch.setattr(PendingValues, "is_used", lambda *_: True)
        elif way == "few pending":
            patch.setattr(_pending_values, "MOST_ENTRIES", 5)
        return outcome(seed)


def _differing(seeds: range) -> list[int]:
    """Return the programs whose values or times depend on when values are computed."""
    return [seed for seed in seeds if len({repr(_outcome(seed, way)) for way in WAYS}) > 1]


def test_a_program_does_not_see_when_its_values_are_computed() -> None:
    """Values and clock are equal: at the ends of kernels, when read, and with few pending."""
    assert _differing(range(8)) == []
