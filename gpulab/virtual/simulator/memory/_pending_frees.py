"""Delay the reuse of freed blocks while other streams may still use them (``record_stream``)."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from gpulab.virtual.simulator.memory._blocks import MemoryBlock


@dataclass(frozen=True, slots=True)
class DeviceHooks:
    """The functions through which an allocator uses its device; by default all work is done.

    Attributes
    ----------
    mark
        Takes a stream; returns a mark after all work submitted to it so far, or None if this work
        is done.
    is_done, wait
        Take a mark. The first returns whether the device has reached it, the second makes the
        host wait until it has.
    on_malloc, on_free
        Called with the size of a segment before it is taken from the device or given back, to
        charge the time.
    """

    mark: Callable[[int], object | None] = lambda _stream: None
    is_done: Callable[[object], bool] = lambda _mark: True
    wait: Callable[[object], None] = lambda _mark: None
    on_malloc: Callable[[int], None] = lambda _size_bytes: None
    on_free: Callable[[int], None] = lambda _size_bytes: None


class PendingFrees:
    """Freed blocks that cannot be reused yet, because of :meth:`torch.Tensor.record_stream`.

    As in PyTorch, each stream has a queue, and only the oldest mark of a queue is checked. So a
    block may wait a little longer than necessary, and never too short.
    """

    def __init__(self, hooks: DeviceHooks) -> None:
        self._hooks = hooks
        self._queues: dict[int, deque[tuple[object | None, MemoryBlock]]] = {}

    def __bool__(self) -> bool:
        return bool(self._queues)

    def hold(self, block: MemoryBlock) -> None:
        """Keep a block until the present work of all streams that use it is done."""
        streams = block.used_on or set()
        block.used_on = None
        # Sorted, because a set has no fixed order and two runs of a program must not differ.
        for stream in sorted(streams):
            queue = self._queues.setdefault(stream, deque())
            queue.append((self._hooks.mark(stream), block))
            block.n_waits += 1

    def done(self) -> list[MemoryBlock]:
        """Remove and return the blocks that no stream uses any longer."""
        unused = []
        for stream, queue in list(self._queues.items()):
            # The device reaches the marks of a stream in order, so the first one that it has not
            # reached ends the loop.
            while queue and (queue[0][0] is None or self._hooks.is_done(queue[0][0])):
                unused += self._passed(queue.popleft()[1])
            if not queue:
                del self._queues[stream]
        return unused

    def wait(self) -> list[MemoryBlock]:
        """Make the host wait for all blocks; remove and return them."""
        # All waits come before any change: Ctrl-C may interrupt a wait.
        pending = [each for queue in self._queues.values() for each in queue]
        for mark, _ in pending:
            if mark is not None:
                self._hooks.wait(mark)
        self._queues.clear()
        return [unused for _, block in pending for unused in self._passed(block)]

    @staticmethod
    def _passed(block: MemoryBlock) -> list[MemoryBlock]:
        block.n_waits -= 1
        return [] if block.n_waits else [block]
