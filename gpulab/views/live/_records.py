"""The records of a live figure: readings of a load or a series of results, maybe stopped."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from gpulab.core.errors import InvalidOptionError
from gpulab.core.foreign_text import one_line, visible
from gpulab.core.requirements import DURATION, check_fields
from gpulab.core.serialization import Saved
from gpulab.device import clocks
from gpulab.figures import frame_of
from gpulab.gpus.provenance import check_source, device_label

if TYPE_CHECKING:
    import pandas as pd


ENDED = ""
_WORDS = {
    "interrupt": "stopped by an interrupt",
    "stop": "stopped by the Stop button",
    "error": "stopped by an error",
}


def stop_words(stopped_by: str) -> str:
    """Return in words what ended a record early; empty if it is complete.

    Raises
    ------
    InvalidOptionError
        If ``stopped_by`` is none of the known reasons.
    """
    if stopped_by and stopped_by not in _WORDS:
        raise InvalidOptionError(
            f"stopped_by={stopped_by!r}; it must be '' or one of {', '.join(_WORDS)}"
        )
    return _WORDS.get(stopped_by, "")


@dataclass(frozen=True, slots=True)
class Trace(Saved):
    """Readings of a GPU's clock, power, temperature and use while a load ran.

    Attributes
    ----------
    readings
        In the order in which they were taken; the first is from before the load.
    source, device_name
        As in a :class:`gpulab.Measurement`.
    asked_s
        The seconds that you asked for.
    stopped_by
        ``"interrupt"``, ``"stop"`` (the button) or ``"error"`` (of the load); empty if it ran to
        the end.
    missing
        Why readings are empty; ``""`` if they are not.

    Examples
    --------
    >>> import torch, gpulab
    >>> with gpulab.virtual_gpu("H200"):
    ...     a = torch.ones(1024, 1024, device="cuda")
    ...     trace = gpulab.live.load(lambda: a @ a, duration_s=0.01, period_s=0.005)
    >>> trace.source, trace.stopped
    ('virtual', '')
    """

    schema: ClassVar[str] = "gpulab.trace/1"

    readings: tuple[clocks.Reading, ...]
    source: str
    device_name: str
    asked_s: float
    stopped_by: str = ENDED
    missing: str = ""

    def __post_init__(self) -> None:
        check_fields(self)
        check_source(self.source)
        DURATION.check(asked_s=self.asked_s)
        stop_words(self.stopped_by)
        if not self.readings:
            raise InvalidOptionError("readings=(); give at least one")
        for before, after in zip(self.readings, self.readings[1:], strict=False):
            # Not `>`, which would let a nan pass.
            if not before.at_s <= after.at_s:
                raise InvalidOptionError(
                    f"readings go from {before.at_s} s to {after.at_s} s; give them in the order "
                    "in which they were taken"
                )

    @property
    def duration_s(self) -> float:
        """Seconds from the first reading to the last."""
        return self.readings[-1].at_s - self.readings[0].at_s

    @property
    def regime(self) -> clocks.Regime:
        """The regime of clock and power in which the load ran, according to the readings."""
        return clocks.summarize(self.readings)

    @property
    def stopped(self) -> str:
        """What ended it early and when, in a clause; empty if it ran to the end."""
        words = stop_words(self.stopped_by)
        return words and f"{words} after {self.duration_s:.1f} of {self.asked_s:g} s"

    def to_frame(self) -> "pd.DataFrame":
        """Return one row per reading: ``time_s``, its values, ``source`` and ``device_name``."""
        frame = clocks.to_frame(self.readings)
        return frame.assign(source=self.source, device_name=visible(self.device_name))

    def __str__(self) -> str:
        n = len(self.readings)
        # First that it was stopped, so that nobody takes a part for the whole.
        run = self.stopped or f"{self.duration_s:.1f} s under load"
        counted = f"{n} reading{'s' if n > 1 else ''}"
        state = self.missing or str(self.regime)
        return (
            f"{run}, {counted} ({device_label(self.device_name, self.source)});\n{one_line(state)}"
        )

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class Series:
    """Results in the order in which they arrived, and whether they are all.

    Attributes
    ----------
    results
        The results.
    record
        What was drawn, e.g. a frame with all results; None without results.
    n_expected
        How many results there would have been; None if unknown.
    stopped_by
        As in a :class:`Trace`; ``"error"`` is an error of the results.

    Examples
    --------
    >>> Series((1.0, 2.0), n_expected=5, stopped_by="interrupt")
    stopped by an interrupt after 2 of 5 results
    """

    results: tuple[object, ...]
    record: object = None
    n_expected: int | None = None
    stopped_by: str = ENDED

    def __post_init__(self) -> None:
        stop_words(self.stopped_by)

    @property
    def counted(self) -> str:
        """How many results there are, and of how many, as text."""
        of = "" if self.n_expected is None else f" of {self.n_expected}"
        return f"{len(self.results)}{of} result{'s' if (self.n_expected or 0) != 1 else ''}"

    @property
    def stopped(self) -> str:
        """What ended it early and when, in a clause; empty if it ran to the end."""
        words = stop_words(self.stopped_by)
        return words and f"{words} after {self.counted}"

    def to_frame(self) -> "pd.DataFrame":
        """Return the record that was drawn, as a frame.

        Raises
        ------
        InvalidOptionError
            If there are no results.
        """
        if self.record is None:
            raise InvalidOptionError("there are no results; run it again and let one come")
        return frame_of(self.record)

    def __str__(self) -> str:
        return self.stopped or self.counted

    __repr__ = __str__
