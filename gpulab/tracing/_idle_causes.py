"""Find why a device or a stream was idle: the last thing that its next work had to wait for."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from gpulab.tracing._flows import callers_of, flows, last_ends
from gpulab.tracing._spans import Span

_COPY_CALL, _PAGEABLE = "cudaMemcpy", "Pageable"
# A kernel or copy that starts this soon after the end of another one was waiting for it. An H200
# needs about 1 µs from one kernel to the next; a later start has another reason.
_PROMPT_S = 2e-6

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Gap:
    """A period in which a device or a stream was idle between two kernels or copies.

    Attributes
    ----------
    lane
        ``"cuda:0"`` for the gap of a whole device, or the lane of a stream.
    start_s, end_s
        End of the kernel or copy before the gap, and start of the one after it.
    cause
        ``"host late"``: the launch came too late, because the host did something else than CUDA.
        ``"host call"``: the host was in another call of CUDA, such as an allocation.
        ``"synchronize"``: the host waited for the device, so nothing was in the queue.
        ``"blocking copy"``: the host was in a copy that returns only when it is done.
        ``"event"``: the stream waited for another stream's event.
        ``"engine busy"``: another stream used the multiprocessors or the copy engine.
        ``"device"``: everything was ready; the device needs this time between two tasks.
    detail
        The cause in a few words, with names of kernels, calls or streams.
    device
        Index of the GPU if the whole device was idle; None if another stream of it was busy.
    """

    lane: str
    start_s: float
    end_s: float
    cause: str
    detail: str
    device: int | None = None

    @property
    def duration_s(self) -> float:
        """Seconds without work."""
        return self.end_s - self.start_s


def merged(intervals: Iterable[Interval]) -> list[Interval]:
    """Return the union of intervals as sorted intervals that do not touch."""
    union: list[Interval] = []
    for start_s, end_s in sorted(intervals):
        if union and start_s <= union[-1][1]:
            if end_s > union[-1][1]:
                union[-1] = (union[-1][0], end_s)
        else:
            union.append((start_s, end_s))
    return union


def gaps(spans: Sequence[Span]) -> list[Gap]:
    """Return the gaps of every device and every stream, sorted by start.

    The time that a device lost is the sum of the device's own gaps. A gap of one stream is not a
    loss if another stream was busy meanwhile. If a gap of a stream is also a gap of the device,
    only the device's is returned.
    """
    finder = _Causes(spans)
    works = sorted((span for span in spans if span.is_work), key=lambda span: span.start_s)
    devices: dict[int, list[Span]] = defaultdict(list)
    streams: dict[tuple[int, str], list[Span]] = defaultdict(list)
    for work in works:
        device = work.device or 0
        devices[device].append(work)
        streams[device, work.lane].append(work)
    by_interval: dict[Interval, Gap] = {}
    # Devices before streams, because a gap of both is reported for the device.
    for device, queue in devices.items():
        for start_s, work in _pauses(queue):
            why = finder.explain(start_s, work)
            gap = Gap(f"cuda:{device}", start_s, work.start_s, *why, device)
            by_interval[start_s, work.start_s] = gap
    for (_, lane), queue in streams.items():
        for start_s, work in _pauses(queue):
            # A stream that worked alone has the gaps of its device, which are listed already.
            if (start_s, work.start_s) not in by_interval:
                gap = Gap(lane, start_s, work.start_s, *finder.explain(start_s, work))
                by_interval[start_s, work.start_s] = gap
    return sorted(by_interval.values(), key=lambda gap: (gap.start_s, gap.end_s))


def _pauses(works: Iterable[Span]) -> Iterator[tuple[float, Span]]:
    """Yield each kernel or copy that starts after a pause, with the time when the pause began."""
    end_s = None
    for span in works:
        if end_s is not None and span.start_s > end_s:
            yield end_s, span
        end_s = span.end_s if end_s is None else max(end_s, span.end_s)


class _Sorted:
    """Spans that do not contain one another, sorted by end for fast search."""

    def __init__(self, spans: Iterable[Span]) -> None:
        self.spans = sorted(spans, key=lambda span: (span.end_s, span.start_s))
        self._ends = [span.end_s for span in self.spans]

    def touching(self, start_s: float, end_s: float) -> Iterator[Span]:
        """Yield the spans that overlap or touch the interval, sorted by end."""
        # By index, because a slice would copy the rest of the timeline for every gap.
        for index in range(bisect_left(self._ends, start_s), len(self.spans)):
            span = self.spans[index]
            if span.start_s <= end_s:
                yield span
            elif span.end_s > end_s:
                return

    def last_end(self, start_s: float, end_s: float) -> Span | None:
        """Return the span that ends last within the interval, or None."""
        index = bisect_right(self._ends, end_s) - 1
        return self.spans[index] if index >= 0 and self._ends[index] > start_s else None


class _Causes:
    """Finds what ended last of all that a kernel or copy had to wait for."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self._spans = spans
        self._callers = callers_of(spans)
        self._done = last_ends(spans)
        self._host = _by((span for span in spans if span.is_on_host), "lane")
        self._waits = _by(
            (span for span in spans if span.kind == "wait" and not span.is_on_host),
            *("device", "lane"),
        )
        self._engines = _by((span for span in spans if span.is_work), "engine", "device")
        self._awaited = {
            id(spans[flow.target]): spans[flow.source]
            for flow in flows(spans)
            if flow.kind == "wait"
        }

    def explain(self, start_s: float, work: Span) -> tuple[str, str]:
        """Return the cause of the gap before ``work`` and the detail."""
        reasons = [("device", "from one work to the next", start_s)]
        reasons += self._host_reasons(start_s, work)
        wait = self._stream_wait(start_s, work)
        if wait is not None:
            reasons.append(("event", self._words_of_wait(wait), wait.end_s))
        other = self._user_before(start_s, work)
        if other is not None:
            words = f"{other.name} of {other.lane} used {_of(work)}"
            reasons.append(("engine busy", words, other.end_s))
        # max() returns the first of equal times, so of two reasons that ended at the same time the
        # one added first is reported.
        cause, detail, _ = max(reasons, key=lambda reason: reason[2])
        return cause, detail

    def _user_before(self, start_s: float, work: Span) -> Span | None:
        """Return the work that used the same engine until just before ``work``, or None."""
        first_s = max(start_s, work.start_s - _PROMPT_S)
        return self._engines[work.engine, work.device].last_end(first_s, work.start_s)

    def _stream_wait(self, start_s: float, work: Span) -> Span | None:
        waits = self._waits.get((work.device, work.lane))
        wait = None if waits is None else waits.last_end(start_s, work.start_s)
        if wait is None:
            return None
        awaited = self._awaited.get(id(wait))
        # An event that was reached before the gap began is not its cause: the time until the
        # stream went on is the device's own.
        return None if awaited is not None and awaited.end_s <= start_s else wait

    def _words_of_wait(self, wait: Span) -> str:
        awaited = self._awaited.get(id(wait))
        return "waited for an event" + ("" if awaited is None else f" of {awaited.lane}")

    def _host_reasons(self, start_s: float, work: Span) -> Iterator[tuple[str, str, float]]:
        caller = self._callers.get(work.correlation)
        if work.correlation is None or caller is None:
            return
        launch = self._spans[caller]
        if launch.end_s <= start_s:
            return  # the launch was in the queue before the gap began
        yield *self._what_the_host_did(start_s, launch, work), launch.end_s

    def _what_the_host_did(self, start_s: float, launch: Span, work: Span) -> tuple[str, str]:
        # First, as such a call is a launch, too: below it would count as a late one.
        if _PAGEABLE in work.name and launch.start_s <= start_s:
            return "blocking copy", f"the host prepared {work.name} in {launch.name}"
        before = [
            span
            for span in self._host[launch.lane].touching(start_s, launch.start_s)
            if span is not launch and span.start_s <= launch.start_s
        ]
        # Calls that the host was in when the gap began come first: they explain the whole gap.
        for span in before:
            if span.start_s <= start_s and span.kind == "wait":
                return "synchronize", f"the host was in {span.name}"
            if span.start_s <= start_s and self._is_blocking(span):
                return "blocking copy", f"the host was in {span.name}"
        # A call that took more than half of the gap before the launch is named as its cause.
        longest = max(
            (span for span in before if span.kind != "launch"),
            key=lambda span: span.duration_s,
            default=None,
        )
        if longest is not None and 2 * longest.duration_s > launch.start_s - start_s:
            return "host call", f"the host was in {longest.name}"
        return "host late", f"{launch.name} for {work.name} came late"

    def _is_blocking(self, call: Span) -> bool:
        """Return whether a call is a copy that returned only after the copy was done."""
        copy = self._done.get(call.correlation)
        return (
            call.name.startswith(_COPY_CALL)
            and copy is not None
            and self._spans[copy].end_s <= call.end_s
        )


def _by(spans: Iterable[Span], *names: str) -> dict[Any, _Sorted]:
    groups: dict[Any, list[Span]] = defaultdict(list)
    key_of = attrgetter(*names)
    for span in spans:
        groups[key_of(span)].append(span)
    return {key: _Sorted(group) for key, group in groups.items()}


def _of(work: Span) -> str:
    """Return the name of the part of the device that a kernel or copy needs."""
    # "compute" is a name of ours; a reader knows the multiprocessors.
    if work.engine is None or work.engine == "compute":
        return "the multiprocessors"
    return f"the engine for {work.engine}"
