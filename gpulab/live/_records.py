"""What a live picture returns: readings of a load, or a series of results, whole or stopped."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from gpulab import clocks
from gpulab.errors import InvalidOptionError
from gpulab.figures import frame_of
from gpulab.foreign_text import one_line, visible
from gpulab.provenance import check_source, device_label
from gpulab.requirements import DURATION, check_fields
from gpulab.serialization import Saved

if TYPE_CHECKING:
    import pandas as pd


ENDED = ""
_WORDS = {
    "interrupt": "stopped by an interrupt",
    "stop": "stopped by the Stop button",
    "error": "stopped by an error",
}


def stop_words(stopped_by: str) -> str:
    """Say what ended a record early; nothing where it is whole.

    Raises
    ------
    InvalidOptionError
        If there is no such reason.
    """
    if stopped_by and stopped_by not in _WORDS:
        raise InvalidOptionError(
            f"stopped_by={stopped_by!r}; it must be '' or one of {', '.join(_WORDS)}"
        )
    return _WORDS.get(stopped_by, "")


@dataclass(frozen=True, slots=True)
class Trace(Saved):
    """What a GPU said of its clock, power, temperature and use while a load ran.

    Attributes
    ----------
    readings
        In the order taken; the first was taken before the load began.
    source, device_name
        As of a measurement.
    asked_s
        How long the load was to run, in seconds.
    stopped_by
        ``"interrupt"``, ``"stop"`` (the button) or ``"error"`` (of the load); empty if it ran to
        the end.
    missing
        Why there is nothing to read; empty if there is.
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
            raise InvalidOptionError("readings=(); a trace must hold at least one")
        for before, after in zip(self.readings, self.readings[1:], strict=False):
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
        """In which regime of clock and power the load ran, as far as the readings tell."""
        return clocks.summarize(self.readings)

    @property
    def stopped(self) -> str:
        """What ended it early and when, in a clause; empty if it ran to the end."""
        words = stop_words(self.stopped_by)
        return words and f"{words} after {self.duration_s:.1f} of {self.asked_s:g} s"

    def to_frame(self) -> "pd.DataFrame":
        """Return one row a reading: ``time_s``, its parts, ``source`` and ``device_name``."""
        frame = clocks.to_frame(self.readings)
        return frame.assign(source=self.source, device_name=visible(self.device_name))

    def __str__(self) -> str:
        n = len(self.readings)
        # What it is not comes first, so that a part is never read as the whole.
        run = self.stopped or f"{self.duration_s:.1f} s under load"
        counted = f"{n} reading{'s' if n > 1 else ''}"
        said = self.missing or str(self.regime)
        return (
            f"{run}, {counted}; {one_line(said)} ({device_label(self.device_name, self.source)})"
        )

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class Series:
    """Results in the order in which they came, and whether they are all.

    Attributes
    ----------
    results
        What came.
    record
        The same as it was drawn, e.g. as a frame; None if nothing came.
    n_expected
        How many were to come; None if nobody knew.
    stopped_by
        As of a :class:`Trace`; the error is that of the results.
    """

    results: tuple[object, ...]
    record: object = None
    n_expected: int | None = None
    stopped_by: str = ENDED

    def __post_init__(self) -> None:
        stop_words(self.stopped_by)

    @property
    def counted(self) -> str:
        """How many results there are, of how many."""
        of = "" if self.n_expected is None else f" of {self.n_expected}"
        return f"{len(self.results)}{of} result{'s' if (self.n_expected or 0) != 1 else ''}"

    @property
    def stopped(self) -> str:
        """What ended it early and when, in a clause; empty if it ran to the end."""
        words = stop_words(self.stopped_by)
        return words and f"{words} after {self.counted}"

    def to_frame(self) -> "pd.DataFrame":
        """Return what was drawn as a frame.

        Raises
        ------
        InvalidOptionError
            If there is nothing.
        """
        if self.record is None:
            raise InvalidOptionError("there are no results; run it again and let one come")
        return frame_of(self.record)

    def __str__(self) -> str:
        return self.stopped or self.counted

    __repr__ = __str__
