"""A timeline as a frozen record: what ran when and where, and the source of the times."""

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from gpulab.core.disk import write_whole
from gpulab.core.foreign_text import visible
from gpulab.core.requirements import COUNT_OR_ZERO, PATH, check_fields
from gpulab.core.serialization import Saved
from gpulab.gpus.provenance import check_source, device_label
from gpulab.tracing._chrome_trace import trace
from gpulab.tracing._counters import CounterSeries, queue_depth
from gpulab.tracing._spans import Span
from gpulab.tracing._summary import Summary, summarize

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Timeline"]


@dataclass(frozen=True, slots=True)
class Timeline(Saved):
    """What host and devices did in one run: calls, kernels, copies, events and waits.

    A notebook displays it as a picture: one to zoom and pan where widgets run, otherwise a static
    one.

    Attributes
    ----------
    spans
        The spans, in any order; empty if nothing ran.
    source
        ``"measured"``, ``"recorded"`` or ``"virtual"``.
    device_name
        Name of the GPU as the driver reports it, e.g. ``"NVIDIA H200"``.
    memory
        Bytes in use on each device, as PyTorch's allocator counts them.
    n_missing
        Number of launches whose records the profiler lost; more ran than the spans show.

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
        """Name of the device with the source of the times, e.g. ``"virtual NVIDIA H200"``."""
        return device_label(self.device_name, self.source)

    @property
    def queue_depth(self) -> tuple[CounterSeries, ...]:
        """How many launches of each device were not finished, over time."""
        return queue_depth(self.spans)

    def summary(self) -> Summary:
        """Return how busy each device was, what overlapped, and why it was idle.

        Percentages are of the time from the first start to the last end. A device is *busy* while
        at least one kernel or copy runs on it, even if that uses a small part of the GPU; it is
        *idle* for the rest of the time. *Overlap* is the time in which at least two streams are
        busy, in percent of the busy time. The cause of a gap is the last thing that the next
        kernel or copy had to wait for; see :class:`gpulab.tracing._idle_causes.Gap`.
        """
        return summarize(self.spans, self.place, self.n_missing)

    def to_chrome_trace(self, path: str | Path) -> Path:
        """Write a file that Perfetto (ui.perfetto.dev) and ``chrome://tracing`` open.

        Parameters
        ----------
        path
            The file to write, usually with the ending ``.json``; an existing file is replaced.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        NotSavedError
            If the file cannot be written; an existing file is then unchanged.
        """
        PATH.check(path=path)
        series = (*self.queue_depth, *self.memory)
        content = trace(self.spans, series, self.place, self.device_name)
        path = Path(path)
        write_whole(path, json.dumps(content).encode())
        return path

    def to_frame(self) -> "pd.DataFrame":
        """Return a table with one row for each span.

        The columns are the fields of :class:`Span`, ``duration_s``, ``source`` and
        ``device_name``. A number that is None in a span is a missing value in the table.
        """
        import pandas as pd

        names = [field.name for field in fields(Span)]
        # Column by column: one dict for each span takes most of a minute for a million spans.
        columns = {name: [getattr(span, name) for span in self.spans] for name in names}
        # Names may come from a trace file of somebody else; visible() shows control characters.
        for name in ("name", "lane"):
            columns[name] = list(map(visible, columns[name]))
        # "Int64" with a capital I has missing values; in int64 they would turn numbers to floats.
        nullable = dict.fromkeys(
            ("stream", "device", "correlation", "waits_for", "size_bytes"), "Int64"
        )
        return (
            pd.DataFrame(columns)
            .astype(nullable)
            .assign(
                duration_s=[span.duration_s for span in self.spans],
                source=self.source,
                device_name=visible(self.device_name),
            )
        )

    def __str__(self) -> str:
        return str(self.summary())

    __repr__ = __str__

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        # Imported here: a program without a notebook needs no matplotlib.
        from gpulab.tracing._page import bundle

        return bundle(self)
