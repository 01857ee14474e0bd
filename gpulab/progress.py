"""A text progress bar that appears after one second and disappears at the end."""

from collections.abc import Iterable
from typing import Any

from tqdm import tqdm  # type: ignore[import-untyped]  # tqdm ships no types


class Bar(tqdm):  # type: ignore[misc]  # as above
    """Show how far a measurement is, unless it ends within a second.

    Examples
    --------
    >>> [n * n for n in Bar([1, 2, 3], desc="squares", unit="number", disable=False)]
    [1, 4, 9]
    """

    # tqdm starts a monitor thread by default. It would wake up inside timed intervals.
    monitor_interval = 0

    def __init__(
        self,
        iterable: Iterable[Any] | None = None,
        *,
        total: int | None = None,
        desc: str,
        unit: str,
        disable: bool,
    ) -> None:
        super().__init__(
            iterable, total=total, disable=disable, desc=desc, unit=unit, delay=1, leave=False
        )
