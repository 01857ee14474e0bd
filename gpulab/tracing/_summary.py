"""Summarize a timeline in words and percent: busy and idle time, overlap, and the longest gaps."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpulab.core.foreign_text import visible
from gpulab.core.markup import clean
from gpulab.core.units import format_percent, format_time
from gpulab.tracing._counters import at_once
from gpulab.tracing._idle_causes import Gap, Interval, gaps, merged
from gpulab.tracing._spans import Span

_N_GAPS_SHOWN = 5
_LEAST_SHARE = 0.005  # of the window; causes with a smaller share are left out of the text


@dataclass(frozen=True, slots=True)
class BusyTime:
    """How long a stream or an engine was busy.

    Attributes
    ----------
    name
        Lane of the stream, or name of the engine.
    busy_s
        Seconds in which it ran at least one kernel or copy.
    n_works
        Number of kernels and copies.
    """

    name: str
    busy_s: float
    n_works: int


@dataclass(frozen=True, slots=True)
class DeviceShare:
    """How one GPU spent its time.

    Attributes
    ----------
    device
        Index of the GPU, as in ``cuda:0``.
    busy_s
        Seconds in which at least one kernel or copy ran; it may have used a small part of the GPU.
    overlap_s
        Seconds in which at least two streams were busy.
    possible_s
        Seconds that perfect overlap would save compared with one stream after another: the sum of
        the streams' busy times minus the longest busy time of a stream or copy engine.
    saved_s
        Seconds that overlap did save: the sum of the streams' busy times minus ``busy_s``.
    before_s, after_s
        Seconds from the start of the window to the first kernel or copy, and from the end of the
        last one to the end of the window.
    streams, engines
        Busy times of its streams and engines, sorted by name.
    """

    device: int
    busy_s: float
    overlap_s: float
    possible_s: float
    saved_s: float
    before_s: float
    after_s: float
    streams: tuple[BusyTime, ...]
    engines: tuple[BusyTime, ...]

    @property
    def overlap_achieved(self) -> float | None:
        """Share of the possible saving that was reached, 0 to 1; None if there is one stream."""
        return self.saved_s / self.possible_s if self.possible_s > 0 else None


@dataclass(frozen=True, slots=True)
class Summary:
    """A timeline in a few numbers: how busy each GPU was, what overlapped, and why it was idle.

    Attributes
    ----------
    place
        Name of the device with the source of the times, e.g. ``"virtual NVIDIA H200"``.
    window_s
        Seconds from the first start to the last end, host included; percentages are of this time.
    n_spans
        Number of spans of each kind that occurs.
    devices
        One entry for each GPU that ran a kernel or a copy.
    gaps
        All gaps of devices and streams, longest first.
    n_missing
        Number of launches whose records were lost; more ran than the summary says.

    Examples
    --------
    >>> import torch, gpulab
    >>> with gpulab.virtual_gpu("H200"):
    ...     a = torch.ones(64, 64, device="cuda")
    ...     summary = gpulab.timeline(lambda: a @ a).summary()
    >>> summary.n_spans
    (('launch', 1), ('wait', 1), ('kernel', 1))
    """

    place: str
    window_s: float
    n_spans: tuple[tuple[str, int], ...]
    devices: tuple[DeviceShare, ...]
    gaps: tuple[Gap, ...]
    n_missing: int = 0

    def idle_by_cause(self, device: int = 0) -> dict[str, float]:
        """Return the idle seconds of a device between its work, by cause, longest first."""
        lost: dict[str, float] = defaultdict(float)
        for gap in self.gaps:
            if gap.device == device:
                lost[gap.cause] += gap.duration_s
        return dict(sorted(lost.items(), key=lambda item: -item[1]))

    def __str__(self) -> str:
        return visible("\n".join(self.lines()))

    __repr__ = __str__

    def lines(self) -> list[str]:
        """Return the lines of the summary's text."""
        if not self.n_spans:
            return [f"No spans on {self.place}: the work did nothing that leaves a trace."]
        counts = ", ".join(_counted(n, kind) for kind, n in self.n_spans)
        lines = [f"{format_time(self.window_s)} on {self.place}: {counts}."]
        if self.n_missing:
            missing = _counted(self.n_missing, "launch")
            lines.append(f"{missing} left no record: more ran than is shown.")
        for share in self.devices:
            lines += self._lines_of(share)
        if not self.devices:
            lines.append("No GPU did any work.")
        longest = self.gaps[:_N_GAPS_SHOWN]
        if longest:
            lines.append("Longest gaps:")
        lines += [
            f"  {format_time(gap.duration_s)} on {gap.lane} from {format_time(gap.start_s)}: "
            f"{gap.cause}, {gap.detail}"
            for gap in longest
        ]
        return lines

    @property
    def finding(self) -> str:
        """What a picture of the timeline shows first: how busy the GPUs are."""
        window = format_time(self.window_s)
        shares = " and ".join(
            format_percent(share.busy_s / self.window_s if self.window_s else 0.0)
            for share in self.devices
        )
        if not shares:
            return f"No GPU did any work in {window}"
        gpus = "The GPU is" if len(self.devices) == 1 else f"{len(self.devices)} GPUs are"
        return f"{gpus} busy {shares} of {window}"

    def headline(self, share: DeviceShare) -> str:
        """Return the most important line about one device: busy, idle and overlap."""
        idle_s = self.window_s - share.busy_s
        shares = f"busy {self._percent(share.busy_s)}, idle {self._percent(idle_s)}"
        return f"cuda:{share.device}: {shares}, {_overlap(share)}."

    def _lines_of(self, share: DeviceShare) -> list[str]:
        lines = [self.headline(share)]
        for name, parts in (("Streams", share.streams), ("Engines", share.engines)):
            words = [f"{part.name} {self._percent(part.busy_s)}" for part in parts]
            lines.append(f"  {name}: {', '.join(words)}.")
        # The window includes the host, so the device is idle before its first and after its last
        # work. These two are not gaps, but without them the percentages would not add up.
        ends = {"before the first work": share.before_s, "after the last": share.after_s}
        causes = self.idle_by_cause(share.device) | ends
        words = [
            f"{self._percent(lost_s)} {cause}"
            for cause, lost_s in causes.items()
            if lost_s >= _LEAST_SHARE * self.window_s
        ]
        return [*lines, f"  Idle: {', '.join(words)}."] if words else lines

    def _percent(self, time_s: float) -> str:
        return f"{100 * time_s / self.window_s if self.window_s else 0:.1f} %"

    def _repr_html_(self) -> str:
        return f'<pre class="gpulab-summary">{clean(str(self))}</pre>'


def summarize(spans: Sequence[Span], device_label: str, n_missing: int = 0) -> Summary:
    """Return the summary of spans in any order; ``n_missing`` launches have no records."""
    start_s = min((span.start_s for span in spans), default=0.0)
    end_s = max((span.end_s for span in spans), default=0.0)
    kinds: dict[str, int] = defaultdict(int)
    by_device: dict[int, list[Span]] = defaultdict(list)
    for span in spans:
        kinds[span.kind] += 1
        if span.is_work:
            by_device[span.device or 0].append(span)
    shares = [_share(device, by_device[device], (start_s, end_s)) for device in sorted(by_device)]
    longest = sorted(gaps(spans), key=lambda gap: -gap.duration_s)
    return Summary(
        device_label,
        end_s - start_s,
        tuple(kinds.items()),
        tuple(shares),
        tuple(longest),
        n_missing,
    )


def _share(device: int, works: list[Span], window: Interval) -> DeviceShare:
    streams, engines = _unions(works, "lane"), _unions(works, "engine")
    # From the unions of the streams, so that overlapping kernels of one stream count once.
    # Busy means at least one stream, whichever engine it uses.
    busy = merged(interval for union, _ in streams.values() for interval in union)
    times_s, counts = at_once(interval for union, _ in streams.values() for interval in union)
    overlap_s = sum(
        after_s - time_s
        for time_s, after_s, count in zip(times_s, times_s[1:], counts, strict=False)
        if count > 1
    )
    stream_parts, engine_parts = _parts(streams), _parts(engines)
    total_s = sum(part.busy_s for part in stream_parts)
    # The busiest stream or copy engine bounds what overlap can save. The "compute" engine does
    # not, because kernels of several streams can share the multiprocessors.
    bounds = [*stream_parts, *(part for part in engine_parts if part.name != "compute")]
    return DeviceShare(
        device,
        busy_s=_length(busy),
        overlap_s=overlap_s,
        possible_s=total_s - max(part.busy_s for part in bounds),
        saved_s=max(0.0, total_s - _length(busy)),  # not a loss by rounding alone
        before_s=busy[0][0] - window[0],
        after_s=window[1] - busy[-1][1],
        streams=stream_parts,
        engines=engine_parts,
    )


def _unions(works: Iterable[Span], name: str) -> dict[str, tuple[list[Interval], int]]:
    groups: dict[str, list[Interval]] = defaultdict(list)
    for work in works:
        # Spans that a program makes itself may have no engine; a kernel can only have used
        # "compute".
        key = getattr(work, name) or ("compute" if work.kind == "kernel" else "copy")
        groups[key].append((work.start_s, work.end_s))
    return {key: (merged(group), len(group)) for key, group in sorted(groups.items())}


def _parts(unions: dict[str, tuple[list[Interval], int]]) -> tuple[BusyTime, ...]:
    return tuple(BusyTime(name, _length(union), n) for name, (union, n) in unions.items())


def _length(union: Iterable[Interval]) -> float:
    return sum(end_s - start_s for start_s, end_s in union)


def _overlap(share: DeviceShare) -> str:
    if share.overlap_achieved is None:
        return "one stream"
    together = 100 * share.overlap_s / share.busy_s
    return (
        f"streams overlap in {together:.1f} % of the busy time "
        f"({100 * share.overlap_achieved:.0f} % of the possible saving)"
    )


def _counted(n: int, noun: str) -> str:
    plural = {"launch": "launches", "copy": "copies", "host": "host calls"}.get(noun, f"{noun}s")
    singular = {"host": "host call"}.get(noun, noun)
    return f"{n:,} {singular if n == 1 else plural}"
