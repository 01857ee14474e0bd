"""The record of a hazard: two operations on the same bytes, and the wait that is missing."""

from dataclasses import dataclass
from typing import Any

from gpulab.core.foreign_text import one_line, visible
from gpulab.happens_before._accesses import RecordedAccess
from gpulab.happens_before._call_sites import Site, site_text
from gpulab.happens_before._vector_clocks import StreamKey

# The key of the host, where the key of a stream is expected.
HOST: StreamKey = (-1, -1)
# By whether the earlier and the later operation write.
_DEVICE_KINDS = {
    (True, False): "read before the write is done",
    (False, True): "write while it is read",
    (True, True): "write over a write",
}
# By whether the earlier operation writes: it still uses memory that is freed and reused.
_FREED_KINDS = {False: "read after free", True: "write after free"}
# By whether the host writes.
_HOST_KINDS = {
    False: "host read before the copy is done",
    True: "host write into a buffer in flight",
}
HAZARD_KINDS = (*_DEVICE_KINDS.values(), *_FREED_KINDS.values(), *_HOST_KINDS.values())


@dataclass(frozen=True, slots=True)
class Operation:
    """One of the two operations of a hazard.

    Attributes
    ----------
    name
        Name of the kernel or the copy, e.g. ``"add_"``.
    stream
        Name of its stream, such as ``"stream 1"``, or ``"the host"``.
    does
        ``"reads"`` or ``"writes"``.
    place
        The line of the program that launched it, e.g. ``"train.py:12"``.
    """

    name: str
    stream: str
    does: str
    place: str

    def __str__(self) -> str:
        return one_line(f"{self.name} on {self.stream} {self.does} it, {self.place}")


@dataclass(frozen=True, slots=True)
class Hazard:
    """Two operations on the same bytes, at least one of them a write, in no fixed order.

    A hazard does not mean that the values of this run are wrong. It means that the program allows
    another order of its operations, which gives other values.

    Attributes
    ----------
    kind
        One of ``HAZARD_KINDS``.
    tensor
        Type and shape of the tensor that the later operation accesses, or of the freed one.
    first, second
        The operations in the order in which the program launched them.
    cure
        The lines of code that are missing, and where they belong.
    count
        How often the same two lines conflicted in this way.
    """

    kind: str
    tensor: str
    first: Operation
    second: Operation
    cure: str
    count: int = 1

    def __str__(self) -> str:
        times = f", {self.count} times" if self.count > 1 else ""
        heading = f"{self.kind}: {one_line(self.tensor)}{times}"
        # With one event for all rounds of a loop, each round would wait for the one before.
        repeats = self.count > 1 and "record_event" in self.cure
        each = (
            "\n  if this is a loop over several buffers, with an event for each" if repeats else ""
        )
        return visible(f"{heading}\n  {self.first}; {self.second}\n  {self.cure}{each}")


def kind_of(earlier: RecordedAccess, later: RecordedAccess) -> str:
    """Return which of ``HAZARD_KINDS`` two conflicting accesses are."""
    if later.thread.key == HOST:
        return _HOST_KINDS[later.is_write]
    if earlier.owner is not None:
        return _FREED_KINDS[earlier.is_write]
    return _DEVICE_KINDS[earlier.is_write, later.is_write]


def judge(earlier: RecordedAccess, later: RecordedAccess) -> Hazard:
    """Return the record of a hazard between two accesses."""
    # After a free the later label is that of the new owner, which the program did not mean.
    tensor = tensor_text(earlier.label if earlier.owner else later.label)
    if earlier.lacks_record:
        cure = record_cure(earlier.thread.key, earlier.site)
    else:
        cure = wait_cure(earlier.thread.key, later.thread.key, earlier.site, later.site)
    return Hazard(kind_of(earlier, later), tensor, _operation(earlier), _operation(later), cure)


def _operation(access: RecordedAccess) -> Operation:
    # In-place operations read as well; the write is what makes them conflict.
    does = "writes" if access.is_write else "reads"
    return Operation(access.name, stream_text(access.thread.key), does, site_text(access.site))


def tensor_text(label: Any) -> str:
    """Return the text for a tensor: ``label`` itself, or its ``dtype`` and ``sizes``."""
    if isinstance(label, str):
        return label
    dtype, sizes = str(label.dtype).removeprefix("torch."), tuple(label.sizes)
    return f"{dtype} tensor of shape {sizes}"


def stream_text(stream: StreamKey) -> str:
    """Return the name of a stream for the report."""
    if stream == HOST:
        return "the host"
    device, number = stream
    name = "the default stream" if number == 0 else f"stream {number}"
    return f"{name} of cuda:{device}" if device else name


def wait_cure(first: StreamKey, second: StreamKey, first_site: Site, second_site: Site) -> str:
    """Return the lines that make ``second`` wait for the work that ``first`` has at a line.

    The wait is for an event and not for the whole stream, because work that the program launches
    later in that stream may run during the wait.
    """
    wait = "done.synchronize()" if second == HOST else f"{_variable(second)}.wait_event(done)"
    record = f"done = {_variable(first)}.record_event()"
    return (
        f"add after {site_text(first_site)}: {record}\n"
        f"  and before {site_text(second_site)}: {wait}{_where(first, second)}"
    )


def record_cure(stream: StreamKey, site: Site) -> str:
    """Return the line that tells the allocator that ``stream`` uses the tensor of ``site``."""
    line = f"x.record_stream({_variable(stream)}), where x is its tensor"
    return f"add after {site_text(site)}: {line}{_where(stream).replace(', where', ' and')}"


def _variable(stream: StreamKey) -> str:
    device, number = stream
    if number == 0:
        return f"torch.cuda.default_stream({device or ''})"
    return f"s{number}" if not device else f"s{number}_{device}"


def _where(*streams: StreamKey) -> str:
    # The host and the default stream need no variable: torch has a name for the latter.
    named = [s for s in streams if s != HOST and s[1] != 0]
    texts = [f"{_variable(stream)} is {stream_text(stream)}" for stream in named]
    return f", where {' and '.join(texts)}" if texts else ""
