"""Which stream of a GPU is current, and which one was when an operator ran."""

from bisect import bisect_right
from weakref import WeakKeyDictionary

from gpulab.virtual.core.machine import Gpu
from gpulab.virtual.core.task import Stream
from gpulab.virtual.private import next_sequence_number

# Beyond it the older half is forgotten; backward then runs what is older on the oldest known.
_N_CHANGES_KEPT = 10_000

# By GPU, from which of autograd's numbers on a stream was current. PyTorch numbers the nodes of
# autograd as it makes them, and each operator that backward must know of makes one.
_changes: WeakKeyDictionary[Gpu, list[tuple[int, Stream]]] = WeakKeyDictionary()


def make_current(gpu: Gpu, stream: Stream) -> None:
    """Make ``stream`` the current one of its GPU."""
    if stream is gpu.stream:
        return
    changes = _changes.setdefault(gpu, [(0, gpu.stream)])
    number = next_sequence_number()
    if changes[-1][0] == number:
        changes.pop()  # nothing was made since, as in most blocks that only copy
    if not changes or changes[-1][1] is not stream:
        changes.append((number, stream))
    if len(changes) > _N_CHANGES_KEPT:
        del changes[: _N_CHANGES_KEPT // 2]
    gpu.stream = stream


def has_changed(gpu: Gpu) -> bool:
    """Tell whether operators that backward may know of ran on more than one stream."""
    return len(_changes.get(gpu, ())) > 1


def stream_at(gpu: Gpu, number: int) -> Stream:
    """Return the stream that was current when autograd's node of this number was made."""
    changes = _changes.get(gpu)
    if changes is None:
        return gpu.stream
    place = bisect_right(changes, number, key=lambda change: change[0])
    return changes[max(0, place - 1)][1]
