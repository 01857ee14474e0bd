"""A timeline as frozen records: what ran when, on which lane, and where that is known from."""

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, ClassVar

from gpulab._schema import Saved
from gpulab._sources import check_source
from gpulab.errors import InvalidOptionError, UnknownNameError

if TYPE_CHECKING:
    import pandas as pd

SPAN_KINDS = ("host", "launch", "kernel", "copy", "event", "wait")
_COLUMNS = ("kind", "name", "lane", "start_s", "end_s", "stream")


@dataclass(frozen=True, slots=True)
class Span:
    """Something that had a start and an end.

    Attributes
    ----------
    kind
        One of ``"host"``, ``"launch"``, ``"kernel"``, ``"copy"``, ``"event"``, ``"wait"``.
    name
        Of the kernel, the copy, the call.
    lane
        Row of the timeline that it belongs to, e.g. ``"host"`` or ``"stream 7"``.
    start_s, end_s
        Seconds from the start of the timeline; equal for something without duration.
    stream
        Number of the stream; None on the host.

    Raises
    ------
    UnknownNameError
        If the kind is not one of the six.
    InvalidOptionError
        If a time is not finite, or the end lies before the start.
    """

    kind: str
    name: str
    lane: str
    start_s: float
    end_s: float
    stream: int | None = None

    def __post_init__(self) -> None:
        if self.kind not in SPAN_KINDS:
            raise UnknownNameError("span kind", self.kind, SPAN_KINDS)
        if not -math.inf < self.start_s <= self.end_s < math.inf:
            raise InvalidOptionError(
                f"start_s={self.start_s}, end_s={self.end_s}; "
                "both must be finite seconds, and the end not before the start"
            )

    @property
    def duration_s(self) -> float:
        """Seconds from start to end, waiting inside included."""
        return self.end_s - self.start_s


@dataclass(frozen=True, slots=True)
class Timeline(Saved):
    """Spans of one run, on all its lanes.

    Attributes
    ----------
    spans
        In any order; none at all when nothing ran.
    source
        ``"measured"``, ``"recorded"`` or ``"virtual"``.
    device_name
        As the driver reports it, e.g. ``"NVIDIA H200"``.

    Raises
    ------
    UnknownNameError
        If the source is not one of the three.
    """

    schema: ClassVar[str] = "gpulab.timeline/1"

    spans: tuple[Span, ...]
    source: str
    device_name: str

    def __post_init__(self) -> None:
        check_source(self.source)

    @property
    def duration_s(self) -> float:
        """Seconds from the first start to the last end; gaps count, overlaps count once."""
        if not self.spans:
            return 0.0
        return max(span.end_s for span in self.spans) - min(span.start_s for span in self.spans)

    def to_frame(self) -> "pd.DataFrame":
        """Return a table with one row a span.

        Columns are the fields of :class:`Span` and ``duration_s``, ``source`` and
        ``device_name``.
        """
        import pandas as pd

        table = pd.DataFrame([asdict(span) for span in self.spans], columns=list(_COLUMNS))
        return table.assign(
            duration_s=[span.duration_s for span in self.spans],
            source=self.source,
            device_name=self.device_name,
        )
