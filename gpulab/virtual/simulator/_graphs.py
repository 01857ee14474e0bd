"""Simulate CUDA graphs: capture work instead of running it, and launch all of it at once."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from gpulab.happens_before import MemoryAccess
from gpulab.virtual.simulator._host import Host
from gpulab.virtual.simulator._task import Gaps, Kind, SimulatedStream, StreamTask

# Inside a graph the GPU starts the next kernel by itself.
GRAPH_GAPS = Gaps(mark_to_work_ns=1_300, work_to_mark_ns=1_400, work_to_work_ns=100)
_LAUNCH_NS = 2_200
_LAUNCH_PER_NODE_NS = 3

Follower = Callable[[StreamTask], None]


@dataclass(frozen=True, slots=True)
class GraphNode:
    """One piece of captured work.

    Attributes
    ----------
    task
        What runs; it is a pattern, copied for every launch of the graph.
    accesses
        What memory it reads and writes.
    site
        File and line of the program that captured it.
    """

    task: StreamTask
    accesses: Sequence[MemoryAccess]
    site: tuple[str, int]


class Capture:
    """What has been captured so far, from the streams that take part.

    Attributes
    ----------
    origin
        The stream on which the capture began, and on which it must end.
    pool
        The memory pool that captured allocations come from.
    nodes
        The captured work in the order of the program.
    failure
        What made the capture impossible, or None.
    """

    def __init__(self, origin: SimulatedStream, pool: Hashable) -> None:
        self.origin = origin
        self.pool = pool
        self.nodes: list[GraphNode] = []
        self.failure: str | None = None
        self._tails: dict[SimulatedStream, StreamTask | None] = {origin: None}
        self._before: dict[StreamTask, tuple[StreamTask, ...]] = {}
        self._followers: dict[StreamTask, Follower] = {}

    def has(self, stream: SimulatedStream) -> bool:
        """Tell whether work on ``stream`` is captured."""
        return stream in self._tails

    def includes(self, task: StreamTask) -> bool:
        """Tell whether ``task`` is captured: its stream takes part, or joins by waiting."""
        return self.has(task.stream) or any(other in self._before for other in task.waits_for)

    def depends_on_outside(self, task: StreamTask) -> bool:
        """Tell whether ``task`` waits for work that is not in the capture."""
        return any(other not in self._before for other in task.waits_for)

    def add(
        self, task: StreamTask, accesses: Sequence[MemoryAccess], site: tuple[str, int]
    ) -> None:
        """Write ``task`` down behind what its stream has captured."""
        tail = self._tails.get(task.stream)
        self._before[task] = (*task.waits_for, *(() if tail is None else (tail,)))
        self._tails[task.stream] = task
        self.nodes.append(GraphNode(task, accesses, site))

    def follow(self, task: StreamTask, follower: Follower) -> None:
        """Let ``follower`` know, at every launch of the graph, which task stands for ``task``."""
        self._followers[task] = follower

    def captured(self, task: StreamTask | None) -> bool:
        """Tell whether ``task`` is part of the capture."""
        return task in self._before

    def is_joined(self) -> bool:
        """Tell whether the origin's last work comes after that of every other stream."""
        reached: set[StreamTask] = set()
        pending = [tail for tail in (self._tails[self.origin],) if tail is not None]
        while pending:
            task = pending.pop()
            if task not in reached:
                reached.add(task)
                pending += self._before[task]
        return all(tail is None or tail in reached for tail in self._tails.values())

    def graph(self) -> "Graph":
        """Return what was captured as a graph."""
        return Graph(self.nodes, self._before, self._followers)


class Graph:
    """Captured work with its order, ready to be launched again and again."""

    def __init__(
        self,
        nodes: Sequence[GraphNode],
        before: dict[StreamTask, tuple[StreamTask, ...]],
        followers: dict[StreamTask, Follower],
    ) -> None:
        self.nodes = tuple(nodes)
        self._before = before
        self._followers = followers
        self._own: dict[SimulatedStream, SimulatedStream] = {}
        followed = {other for others in before.values() for other in others}
        self._leaves = [node.task for node in nodes if node.task not in followed]

    @property
    def host_ns(self) -> int:
        """What a launch takes the host, in nanoseconds."""
        return _LAUNCH_NS + _LAUNCH_PER_NODE_NS * len(self.nodes)

    def launch(self, host: Host, stream: SimulatedStream) -> list[tuple[GraphNode, StreamTask]]:
        """Launch all of it on ``stream`` with one call, and return each node with its task.

        The work starts when ``stream`` reaches the launch, and the stream goes on when all of it
        is done.
        """
        # All nodes take one entry of the launch queue, and the host makes one call.
        root = host.launch(StreamTask(Kind.MARK, stream, name="graph"), self.host_ns)
        launched: dict[StreamTask, StreamTask] = {}
        for node in self.nodes:
            launched[node.task] = self._again(node.task, root, launched)
            host.submit(launched[node.task])
        for task, follower in self._followers.items():
            follower(launched[task])
        ends = [launched[leaf] for leaf in self._leaves]
        host.submit(StreamTask(Kind.MARK, stream, name="graph", waits_for=ends, takes_room=False))
        return [(node, launched[node.task]) for node in self.nodes]

    def _again(
        self, task: StreamTask, root: StreamTask, launched: dict[StreamTask, StreamTask]
    ) -> StreamTask:
        waits_for = [launched[other] for other in self._before[task]] or [root]
        return StreamTask(
            task.kind,
            self._stream_for(task.stream),
            name=task.name,
            demand=task.demand,
            waits_for=waits_for,
            payload=task.payload,
            draw=task.draw,
            takes_room=False,
        )

    def _stream_for(self, captured: SimulatedStream) -> SimulatedStream:
        """Return the stream of the graph's own that stands for a captured one."""
        if captured not in self._own:
            self._own[captured] = captured.device.add_stream(GRAPH_GAPS)
        return self._own[captured]
