"""Hold freed blocks back while work on other streams may still use them (``record_stream``)."""

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass

from gpulab.virtual.simulator.memory._blocks import MemoryBlock, PrivatePool


def _nothing(_argument: object) -> None:
    pass


def _always(_mark: object) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class DeviceHooks:
    """How an allocator learns what the device has done, and says what it asks of it.

    Attributes
    ----------
    mark
        Takes a stream; returns what stands for all work submitted to it so far, or None if
        that is done.
    is_done, wait
        Take a mark; the first tells whether the device has got there, the second lets the host
        wait until it has.
    on_malloc, on_free
        Called with the bytes of each segment that the device is asked for or gets back, before
        it happens; there its time can be charged.
    """

    mark: Callable[[int], object | None] = _nothing
    is_done: Callable[[object], bool] = _always
    wait: Callable[[object], None] = _nothing
    on_malloc: Callable[[int], None] = _nothing
    on_free: Callable[[int], None] = _nothing


class PendingFrees:
    """The freed blocks that :meth:`torch.Tensor.record_stream` keeps from being reused at once.

    As in PyTorch, each stream has a queue of its own, and only the oldest mark of a queue is
    looked at; so a block may stay a little longer than it must, never shorter. Blocks released
    while requests go to a private pool are marked at the next request after that; PyTorch marks
    some of them a little earlier.
    """

    def __init__(self, hooks: DeviceHooks) -> None:
        self._hooks = hooks
        self._queues: dict[int, deque[tuple[object | None, MemoryBlock]]] = {}
        self._unmarked: list[MemoryBlock] = []

    def __bool__(self) -> bool:
        return bool(self._queues or self._unmarked)

    def hold(self, block: MemoryBlock) -> None:
        """Keep a block until the work submitted by now to the streams that use it is done."""
        streams = block.used_on or set()
        block.used_on = None
        # A set has no order, and two runs of a program must not differ.
        for stream in sorted(streams):
            queue = self._queues.setdefault(stream, deque())
            queue.append((self._hooks.mark(stream), block))
            block.n_waits += 1

    def hold_unmarked(self, block: MemoryBlock) -> None:
        """Keep a block at least until the next look; during a capture nothing can be marked."""
        self._unmarked.append(block)

    def done(self) -> list[MemoryBlock]:
        """Return the blocks that are used no more, and keep them no longer."""
        self._mark_all()
        found = []
        for stream, queue in list(self._queues.items()):
            while queue and (queue[0][0] is None or self._hooks.is_done(queue[0][0])):
                found += self._passed(queue.popleft()[1])
            if not queue:
                del self._queues[stream]
        return found

    def wait(self, pool: PrivatePool | None = None) -> list[MemoryBlock]:
        """Let the host wait for all blocks, or for those of one pool; return them."""
        self._mark_all()
        for queue in list(self._queues.values()):  # first: a wait may be interrupted
            for mark, block in list(queue):
                if mark is not None and pool in {None, block.segment.arena.pool}:
                    self._hooks.wait(mark)
        found = []
        for stream, queue in list(self._queues.items()):
            later: deque[tuple[object | None, MemoryBlock]] = deque()
            for mark, block in queue:
                if pool is not None and block.segment.arena.pool is not pool:
                    later.append((mark, block))
                    continue
                found += self._passed(block)
            self._queues[stream] = later
        self._queues = {stream: queue for stream, queue in self._queues.items() if queue}
        return found

    def recount(self) -> set[MemoryBlock]:
        """Count anew how many streams each block waits for, and return all that are kept."""
        waiting = [block for queue in self._queues.values() for _, block in queue]
        for block, n_waits in Counter(waiting).items():
            block.n_waits = n_waits
        return {*waiting, *self._unmarked}

    def _mark_all(self) -> None:
        for block in self._unmarked:
            self.hold(block)
        self._unmarked.clear()

    @staticmethod
    def _passed(block: MemoryBlock) -> list[MemoryBlock]:
        block.n_waits -= 1
        return [] if block.n_waits else [block]
