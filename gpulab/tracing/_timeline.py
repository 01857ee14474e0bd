"""A timeline as a frozen record: what ran when, on which lane, and where that is known from."""

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from gpulab.disk import write_whole
from gpulab.foreign_text import visible
from gpulab.provenance import check_source, device_label
from gpulab.requirements import COUNT_OR_ZERO, PATH, check_fields
from gpulab.serialization import Saved
from gpulab.tracing._chrome_trace import trace
from gpulab.tracing._counters import CounterSeries, queue_depth
from gpulab.tracing._spans import Span
from gpulab.tracing._summary import Summary, summarize

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Timeline"]


# The pictures are made of records and so know them; the record knows only where they are made.


@dataclass(frozen=True, slots=True)
class Timeline(Saved):
    """Spans of one run, on all its lanes.

    In a notebook it shows itself: as a picture to zoom and pan where widgets run, else as a
    static one.

    Attributes
    ----------
    spans
        In any order; none at all when nothing ran.
    source
        ``"measured"``, ``"recorded"`` or ``"virtual"``.
    device_name
        As the driver reports it, e.g. ``"NVIDIA H200"``.
    memory
        Bytes in use on each device, as PyTorch's allocator counts them.
    n_missing
        Launches whose records the profiler lost; more ran than the spans say.

    Raises
    ------
    UnknownNameError
        If the source is not one of the three.

    Examples
    --------
    >>> import torch, gpulab
    >>> with gpulab.virtual_gpu("H200"):
    ...     a = torch.ones(64, 64, device="cuda")
    ...     timeline = gpulab.timeline(lambda: a @ a)
    >>> [span.kind for span in timeline.spans]
    ['launch', 'wait', 'kernel']
    """

    schema: ClassVar[str] = "gpulab.timeline/1"

    spans: tuple[Span, ...]
    source: str
    device_name: str
    memory: tuple[CounterSeries, ...] = ()
    n_missing: int = 0

    def __post_init__(self) -> None:
        check_fields(self)
        check_source(self.source)
        COUNT_OR_ZERO.check(n_missing=self.n_missing)

    @property
    def duration_s(self) -> float:
        """Seconds from the first start to the last end; gaps count, overlaps count once."""
        if not self.spans:
            return 0.0
        return max(span.end_s for span in self.spans) - min(span.start_s for span in self.spans)

    @property
    def place(self) -> str:
        """The device with the source, e.g. ``"virtual NVIDIA H200"``."""
        return device_label(self.device_name, self.source)

    @property
    def queue_depth(self) -> tuple[CounterSeries, ...]:
        """How many launches each device had before it or in work; computed from the spans."""
        return queue_depth(self.spans)

    def summary(self) -> Summary:
        """Say how busy each device was, what overlapped, and why it stood still.

        Shares are of the time from the first start to the last end. *Busy* is a device while at
        least one kernel or copy runs on it, which says nothing of how much of the chip is in
        use; *idle* is the rest. *Overlap* is the time in which at least two streams have work
        running, as a share of the busy time. A gap's cause is what was released last before the
        device went on; see :class:`gpulab.tracing._idle_causes.Gap`.
        """
        return summarize(self.spans, self.place, self.n_missing)

    def to_chrome_trace(self, path: str | Path) -> Path:
        """Write a file that Perfetto (ui.perfetto.dev) and ``chrome://tracing`` open.

        Parameters
        ----------
        path
            Where to write it, usually with the ending ``.json``; a file there is replaced.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        NotSavedError
            If the file cannot be written; one that was there before is as it was.
        """
        PATH.check(path=path)
        series = (*self.queue_depth, *self.memory)
        content = trace(self.spans, series, self.place, self.device_name)
        path = Path(path)
        write_whole(path, json.dumps(content).encode())
        return path

    def to_frame(self) -> "pd.DataFrame":
        """Return a table with one row a span.

        Columns are the fields of :class:`Span` and ``duration_s``, ``source`` and
        ``device_name``. Whole numbers that are not known are missing values.
        """
        import pandas as pd

        names = [field.name for field in fields(Span)]
        # By columns: a dict a span would take most of a minute for a million of them.
        columns = {name: [getattr(span, name) for span in self.spans] for name in names}
        for name in ("name", "lane"):
            columns[name] = list(map(visible, columns[name]))
        whole = dict.fromkeys(
            ("stream", "device", "correlation", "waits_for", "size_bytes"), "Int64"
        )
        return (
            pd.DataFrame(columns)
            .astype(whole)
            .assign(
                duration_s=[span.duration_s for span in self.spans],
                source=self.source,
                device_name=visible(self.device_name),
            )
        )

    def __str__(self) -> str:
        return str(self.summary())

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        from gpulab.tracing._widget import bundle

        return bundle(self)
