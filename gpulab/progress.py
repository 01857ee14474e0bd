"""A progress bar in text that appears after a second and leaves no trace."""

from collections.abc import Iterable
from typing import Any

from tqdm import tqdm  # type: ignore[import-untyped]  # tqdm ships no types


class Bar(tqdm):  # type: ignore[misc]  # as above
    """Shows how far a measurement is; nothing is shown of one that ends within a second."""

    monitor_interval = 0  # its watching thread would wake up inside timed intervals

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
