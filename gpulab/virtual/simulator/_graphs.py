"""Simulate CUDA graphs: capture work instead of running it, and launch all of it at once."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from gpulab.happens_before import Checker, MemoryAccess, Snapshot
from gpulab.virtual.simulator._host import Host
from gpulab.virtual.simulator._task import Gaps, Kind, SimulatedStream, StreamTask

# Inside a graph the GPU starts the next kernel without the host, so the pauses are shorter than
# those of a stream (``Gaps``).
GRAPH_GAPS = Gaps(mark_to_work_ns=1_300, work_to_mark_ns=1_400, work_to_work_ns=100)
# The host's time of a graph launch: a fixed part, and a little for each node.
_LAUNCH_NS = 2_200
_LAUNCH_PER_NODE_NS = 3

Follower = Callable[[StreamTask], None]


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A captured task, which never runs itself: each launch of the graph makes a copy."""

    task: StreamTask
    accesses: Sequence[MemoryAccess]
    site: tuple[str, int]


class Capture:
    """A capture in progress: the streams that take part, and their work so far."""

    def __init__(self, origin: SimulatedStream, pool: Hashable) -> None:
        self.origin = origin
        self.pool = pool
        self.nodes: list[GraphNode] = []
        self.failure: str | None = None
        # The last captured task of each stream that takes part.
        self._tails: dict[SimulatedStream, StreamTask | None] = {origin: None}
        # The edges of the graph: for each task those that it comes right after.
        self._before: dict[StreamTask, tuple[StreamTask, ...]] = {}
        self._followers: dict[StreamTask, Follower] = {}

    def has(self, stream: SimulatedStream) -> bool:
        """Return whether work on ``stream`` is captured."""
        return stream in self._tails

    def includes(self, task: StreamTask) -> bool:
        """Return whether ``task`` will be captured: its stream takes part, or joins by waiting.

        As on CUDA, a stream joins a capture when it waits for a captured event.
        """
        return self.has(task.stream) or any(other in self._before for other in task.waits_for)

    def depends_on_outside(self, task: StreamTask) -> bool:
        """Return whether ``task`` waits for work outside the capture, which CUDA refuses."""
        return any(other not in self._before for other in task.waits_for)

    def add(
        self, task: StreamTask, accesses: Sequence[MemoryAccess], site: tuple[str, int]
    ) -> None:
        """Capture ``task``, after the earlier captured work of its stream."""
        tail = self._tails.get(task.stream)
        self._before[task] = (*task.waits_for, *(() if tail is None else (tail,)))
        self._tails[task.stream] = task
        self.nodes.append(GraphNode(task, accesses, site))

    def follow(self, task: StreamTask, follower: Follower) -> None:
        """Call ``follower`` at every launch of the graph, with the copy of ``task``."""
        self._followers[task] = follower

    def captured(self, task: StreamTask | None) -> bool:
        """Return whether ``task`` is part of the capture."""
        return task in self._before

    def is_joined(self) -> bool:
        """Return whether the origin's last work comes after the work of all other streams.

        CUDA requires this at the end of a capture.
        """
        reached: set[StreamTask] = set()
        pending = [tail for tail in (self._tails[self.origin],) if tail is not None]
        while pending:
            task = pending.pop()
            if task not in reached:
                reached.add(task)
                pending += self._before[task]
        return all(tail is None or tail in reached for tail in self._tails.values())

    def graph(self) -> "Graph":
        """Return a graph of the captured work."""
        return Graph(self.nodes, self._before, self._followers)


class Graph:
    """Captured work with its order, which can be launched many times."""

    def __init__(
        self,
        nodes: Sequence[GraphNode],
        before: dict[StreamTask, tuple[StreamTask, ...]],
        followers: dict[StreamTask, Follower],
    ) -> None:
        self.nodes = tuple(nodes)
        self._before = before
        self._followers = followers
        # Copies run on streams of the graph's own: at a replay the captured streams may have
        # other work, and the pauses inside a graph are shorter.
        self._own: dict[SimulatedStream, SimulatedStream] = {}
        followed = {other for others in before.values() for other in others}
        # The stream of a launch waits for these; all other tasks are done before one of them.
        self._leaves = [node.task for node in nodes if node.task not in followed]

    @property
    def host_ns(self) -> int:
        """The host's time for a launch, in nanoseconds."""
        return _LAUNCH_NS + _LAUNCH_PER_NODE_NS * len(self.nodes)

    def launch(self, host: Host, stream: SimulatedStream) -> list[tuple[GraphNode, StreamTask]]:
        """Launch the graph on ``stream`` with one call; return each node with its new task.

        The work starts when ``stream`` reaches the launch. Later work of the stream starts when
        all of it is done.
        """
        # The host makes one call, and all nodes together take one entry of the launch queue.
        root = host.launch(StreamTask(Kind.MARK, stream, name="graph"), self.host_ns)
        launched: dict[StreamTask, StreamTask] = {}
        for node in self.nodes:
            launched[node.task] = self._again(node.task, root, launched)
            host.submit(launched[node.task])
        # An external event that was recorded in the graph now means the mark of this launch.
        for task, follower in self._followers.items():
            follower(launched[task])
        ends = [launched[leaf] for leaf in self._leaves]
        host.submit(
            StreamTask(Kind.MARK, stream, name="graph", waits_for=ends, is_in_launch_queue=False)
        )
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
            is_in_launch_queue=False,
        )

    def _stream_for(self, captured: SimulatedStream) -> SimulatedStream:
        """Return the graph's own stream for the work of a captured stream."""
        if captured not in self._own:
            self._own[captured] = captured.device.add_stream(GRAPH_GAPS)
        return self._own[captured]


def report_launch(
    checker: Checker, stream: SimulatedStream, launched: Sequence[tuple[GraphNode, StreamTask]]
) -> None:
    """Report the launch of a graph on ``stream`` to the race detector, which knows no graphs.

    It gets each edge as a wait for an event: from the launch to every node, between the nodes, and
    from every node to later work of the stream.
    """
    start = checker.record(stream.key)
    after: dict[StreamTask, Snapshot] = {}
    for node, task in launched:
        checker.stream_wait(task.stream.key, start)
        for other in task.waits_for:
            checker.stream_wait(task.stream.key, after.get(other))
        checker.launch(task.stream.key, task.name, node.accesses, node.site)
        after[task] = checker.record(task.stream.key)
    for snapshot in after.values():
        checker.stream_wait(stream.key, snapshot)
