"""Read a trace file that PyTorch's profiler wrote, as a timeline."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from gpulab.core.disk import not_read
from gpulab.core.errors import DamagedDataError
from gpulab.core.foreign_text import one_line
from gpulab.core.requirements import PATH, TEXT
from gpulab.core.serialization import parse_json, read_text
from gpulab.happens_before.activity import ActivityRecord, HostCall
from gpulab.tracing._cuda_names import kind_of_call, short_name
from gpulab.tracing._from_activity import spans_of
from gpulab.tracing._timeline import Timeline
from gpulab.tracing.profiling import Records

_KINDS = {"kernel": "kernel", "gpu_memcpy": "memcpy", "gpu_memset": "memset"}
_CALLS = frozenset({"cuda_runtime", "cuda_driver"})
_MOST_US = 1e15  # thirty years; the profiler counts from the start of the machine
_CURE = (
    "give read_trace() a file that torch.profiler wrote with export_chrome_trace(), recorded with "
    "ProfilerActivity.CUDA"
)


class _Event(NamedTuple):
    """A complete event of the trace, in nanoseconds since the first one began."""

    category: str
    name: str
    start_ns: int
    end_ns: int
    lane: object
    args: Mapping[str, Any]

    def number(self, name: str) -> int | None:
        """Return the argument ``name`` if it is a whole number from 0 on, else None."""
        value = self.args.get(name)
        return value if isinstance(value, int) and value >= 0 else None


def read_trace(path: str | Path, *, device_name: str = "") -> Timeline:
    """Return the timeline of a trace file that ``torch.profiler`` wrote.

    Parameters
    ----------
    path
        The file that ``export_chrome_trace`` wrote, gzipped or not.
    device_name
        Name of the GPU; if empty, the name in the file.

    Returns
    -------
    Timeline
        Calls of CUDA, kernels and copies, without operators and ranges of the program. The times
        are those of the machine that recorded them and say nothing about this one. The source is
        ``"recorded"``, or ``"virtual"`` if a virtual GPU wrote the file.

    Raises
    ------
    NotReadError
        If there is no such file, it is a folder, or the system cannot read it.
    DamagedDataError
        If the file is empty, is not a trace, is damaged, or has no kernel and no copy.

    Examples
    --------
    >>> import tempfile, gpulab, torch
    >>> from torch.profiler import profile
    >>> with gpulab.virtual_gpu("H200"), profile() as profiler:
    ...     x = torch.ones(1024, device="cuda").exp()
    >>> path = f"{tempfile.mkdtemp()}/trace.json"
    >>> profiler.export_chrome_trace(path)
    >>> [span.name for span in read_trace(path).spans if span.kind == "kernel"]
    ['ones', 'exp']
    """
    PATH.check(path=path)
    TEXT.check(device_name=device_name)
    try:
        trace = parse_json(_text(path))
        events = sorted(_events(trace), key=lambda event: event.start_ns)
    except DamagedDataError as error:
        # Added here, because the parser does not know the name of the file.
        name = one_line(str(path))
        raise DamagedDataError(f"{name} is not a trace: {error}; {_CURE}") from None
    records = [_record(event) for event in events if event.category in _KINDS]
    calls = [_call(event, number) for number, event in enumerate(events)]
    if not records:
        raise DamagedDataError(f"{one_line(str(path))} has no kernel and no copy; {_CURE}")
    # A timeline in which everything takes no time would be misleading.
    if all(record.duration_ns == 0 for record in records):
        raise DamagedDataError(
            f"in {one_line(str(path))} all times are 0: PyTorch loses the times of a profile when "
            "the next one begins; call export_chrome_trace() before that"
        )
    source, name = _origin(trace)
    of_cuda = [call for call in calls if call is not None]
    captured = Records(tuple(records), tuple(of_cuda), source, device_name or name)
    spans, _ = spans_of(captured, (), short_name)
    return Timeline(spans, source, captured.device_name)


def _text(path: str | Path) -> str:
    try:
        text = read_text(path)
    except OSError as error:
        raise not_read(path, error, _CURE) from error
    if not text.strip():
        raise DamagedDataError("it is empty")
    return text


def _events(trace: object) -> Iterator[_Event]:
    content: dict[str, object] = trace if isinstance(trace, dict) else {"traceEvents": trace}
    other = content.get("otherData")
    if isinstance(other, dict) and "place" in other:
        raise DamagedDataError(
            "Timeline.to_chrome_trace() wrote it, and only viewers read that; save a timeline "
            "with to_json(), which Timeline.from_json() reads"
        )
    listed = content.get("traceEvents")
    if not isinstance(listed, list):
        raise DamagedDataError("it has no list of trace events")
    complete = [each for each in listed if isinstance(each, dict) and each.get("ph") == "X"]
    # Operators and Python frames are far more than all calls of CUDA, and a timeline has no lane
    # for them.
    wanted = [each for each in complete if each.get("cat") in _KINDS.keys() | _CALLS]
    # Times since the start of the machine are so large that a float has no digits left for the
    # nanoseconds, so the first time is subtracted before the conversion.
    zero_us = min((_time_us(each, "ts") for each in wanted), default=0.0)
    for each in wanted:
        start_us = _time_us(each, "ts") - zero_us
        args = each.get("args")
        yield _Event(
            str(each["cat"]),
            str(each.get("name", "")),
            round(start_us * 1e3),
            round((start_us + _time_us(each, "dur")) * 1e3),
            each.get("tid", 0),
            args if isinstance(args, dict) else {},
        )


def _time_us(event: Mapping[str, Any], name: str) -> float:
    value = event.get(name)
    # This also refuses nan, because any comparison with nan is False.
    if isinstance(value, int | float) and 0 <= value <= _MOST_US:
        return float(value)
    raise DamagedDataError(f"an event has {name}={value!r}, which is not a time in microseconds")


def _record(event: _Event) -> ActivityRecord:
    return ActivityRecord(
        _KINDS[event.category],
        event.name,
        event.start_ns,
        event.end_ns,
        event.number("stream") or 0,
        event.number("device") or 0,
        size_bytes=event.number("bytes"),
        correlation=event.number("correlation"),
    )


def _call(event: _Event, number: int) -> HostCall | None:
    """Return the host's call for an event, or None if the event is not a call of CUDA."""
    if event.category not in _CALLS:
        return None
    correlation = event.number("correlation")
    thread = event.lane if isinstance(event.lane, int) else 0
    # A call without a correlation gets a negative number, which no other call has.
    return HostCall(
        kind_of_call(event.name),
        event.name,
        event.start_ns,
        event.end_ns,
        thread,
        -1 - number if correlation is None else correlation,
    )


def _origin(trace: object) -> tuple[str, str]:
    """Return the source and the name of the device; the name is empty if the file has none."""
    content: dict[str, object] = trace if isinstance(trace, dict) else {}
    other, devices = content.get("otherData"), content.get("deviceProperties")
    # The virtual GPU writes this field when torch.profiler saves a trace.
    is_virtual = isinstance(other, dict) and other.get("source") == "virtual"
    first = devices[0] if isinstance(devices, list) and devices else {}
    name = first.get("name", "") if isinstance(first, dict) else ""
    return "virtual" if is_virtual else "recorded", str(name)
