"""Run backward on the streams of forward, as autograd's engine does on a CUDA GPU.

Each node runs on the stream that was current when its forward operator ran, after the nodes that
give it gradients. At the end, the stream that was current at ``backward()`` waits for all of them.
"""

import gc
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

from gpulab.core.interrupts import contextmanager
from gpulab.core.torch_private import overrides_stale_streams, sequence_number
from gpulab.happens_before import Snapshot
from gpulab.virtual._streams import has_changed, make_current, stream_at
from gpulab.virtual.simulator import Machine, SimulatedGpu, SimulatedStream, StreamTask
from gpulab.virtual.tensors import VirtualTensor


def on_forward_streams(machine: Machine, roots: list[Any]) -> AbstractContextManager[None]:
    """Return a context in which a backward pass from the nodes ``roots`` changes streams."""
    # A program that never changed streams needs no hooks on its nodes, which would slow each
    # backward pass down. The values of a recurrent layer's gradients come from a pass of the
    # simulator's own.
    is_program = not machine.values.event_queue.is_in_action
    if is_program and any(has_changed(gpu) for gpu in machine.gpus):
        return _Pass(machine).over(roots)
    return nullcontext()


class _Mark(NamedTuple):
    """A point in a stream at which a gradient is ready, for the device and the race checker.

    Without a task, nothing was ever launched on the stream.
    """

    task: StreamTask | None
    snapshot: Snapshot | None


class _Pass:
    """One backward pass."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._home = {gpu: gpu.stream for gpu in machine.gpus}
        self._ready: dict[Any, list[_Mark]] = {}
        self._used: set[tuple[SimulatedGpu, SimulatedStream]] = set()
        # A leaf has no sequence number and so no forward stream. Its gradient is accumulated on
        # the stream where its first part was computed; in a capture, on that of its first use.
        self._leaves: dict[Any, SimulatedStream] = {}
        # Nodes with several incoming gradients, which the engine adds up after the hook of the
        # node that made the last one.
        self._gathered: list[Any] = []
        self._last: dict[SimulatedGpu, StreamTask | None] = {}
        self._awaited: set[tuple[StreamTask, SimulatedStream]] = set()

    @contextmanager
    def over(self, roots: list[Any]) -> Iterator[None]:
        """Change streams inside the block, in which the engine runs backward from ``roots``."""
        # The roots read what the caller's streams have computed so far, e.g. the loss.
        start = [self._mark(stream) for stream in self._home.values()]
        self._ready = {node: list(start) for node in roots}
        if self._machine.capture is not None:
            self._leaves = _streams_of_leaves(roots)
        self._last = {gpu: stream.last for gpu, stream in self._home.items()}
        handles = [handle for node in nodes_behind(roots) for handle in self._watch(node)]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()
            for gpu, stream in self._home.items():
                make_current(gpu, stream)
        # As PyTorch documents: the caller's stream waits for all streams that backward has used.
        for gpu, stream in self._used:
            self._machine.order(stream, self._home[gpu], 0)

    def _watch(self, node: Any) -> list[Any]:
        def before(gradients: tuple[Any, ...]) -> None:
            tensors = [item for item in gradients if isinstance(item, VirtualTensor)]
            if tensors:
                self._enter(node, tensors)

        def after(results: tuple[Any, ...], _gradients: tuple[Any, ...]) -> None:
            pairs = zip(node.next_functions, results, strict=False)
            edges = [(to, item) for (to, _), item in pairs if isinstance(item, VirtualTensor)]
            if edges:
                self._leave(edges)

        # Both are needed: between the two the engine adds up gradients, on the stream then
        # current.
        return [node.register_prehook(before), node.register_hook(after)]

    def _enter(self, node: Any, gradients: list[VirtualTensor]) -> None:
        """Switch to the stream of a node that is about to run."""
        for gpu, last in self._last.items():
            # Work since the last node: sums of gradients, or hooks of tensors. The engine runs
            # both before the prehook of the node that calls this.
            if gpu.stream.last is not last:
                mark = self._mark(gpu.stream)
                for reader in {node, *self._gathered}:
                    self._ready.setdefault(reader, []).append(mark)
        self._gathered = []
        gpu = gradients[0].storage_block.gpu
        # The hook of the node before could only guess which node comes next.
        self._go_to(node, gpu)
        for storage in [gradient.storage_block for gradient in gradients]:
            if storage.block.stream != gpu.stream.number:
                # Without this, the gradient's memory could be reused before this stream reads it.
                storage.record_stream(gpu.stream)

    def _leave(self, results: list[tuple[Any, VirtualTensor]]) -> None:
        """Note where a node's gradients are ready, and switch to the stream of the next node."""
        gpu_by_node = {node: item.storage_block.gpu for node, item in results}
        marks = {gpu: self._mark(gpu.stream) for gpu in set(gpu_by_node.values())}
        for node, gpu in gpu_by_node.items():
            if not node.next_functions:
                self._leaves.setdefault(node, gpu.stream)
        self._gathered = [node for node in gpu_by_node if node in self._ready]
        for node, gpu in gpu_by_node.items():
            self._ready.setdefault(node, []).append(marks[gpu])
        # The engine runs the node with the highest sequence number next, so it comes last here.
        for node in sorted(self._gathered or gpu_by_node, key=sequence_number):
            self._go_to(node, gpu_by_node[node])
        self._last = {gpu: gpu.stream.last for gpu in self._home}

    def _go_to(self, node: Any, gpu: SimulatedGpu) -> None:
        stream = self._leaves.get(node) or stream_at(gpu, sequence_number(node))
        capture = self._machine.capture
        if capture is not None and not capture.has(stream) and overrides_stale_streams():
            stream = self._home[gpu]
        make_current(gpu, stream)
        self._used.add((gpu, stream))
        for mark in self._ready.get(node, ()):
            if mark.task is None or mark.task.stream is stream:
                continue
            if (mark.task, stream) not in self._awaited:
                self._awaited.add((mark.task, stream))
                self._machine.mark(stream, 0, (mark.task,))
                if self._machine.hazards is not None:
                    self._machine.hazards.stream_wait(stream.key, mark.snapshot)

    def _mark(self, stream: SimulatedStream) -> _Mark:
        checker = self._machine.hazards
        # The last task and not a mark after it: in a pass over one stream the engine records no
        # event, which would take time between two kernels. A capture knows its own tasks alone.
        is_captured = self._machine.capture is not None
        task = self._machine.mark(stream, 0) if is_captured else stream.last
        return _Mark(task, None if checker is None else checker.record(stream.key))


def nodes_behind(roots: list[Any]) -> set[Any]:
    """Return all nodes that a backward pass from ``roots`` can run, with those of leaves."""
    visited, pending = set(roots), list(roots)
    while pending:
        for node, _ in pending.pop().next_functions:
            if node is not None and node not in visited:
                visited.add(node)
                pending.append(node)
    return visited


def _streams_of_leaves(roots: list[Any]) -> dict[Any, SimulatedStream]:
    """Return for the node of each leaf the stream that was current when PyTorch made it.

    PyTorch makes it for the first operator that needs the leaf's gradient, and keeps it as long as
    any graph uses it. So a loss that the program has kept since its warm-up keeps the node of the
    warm-up's stream.
    """
    wanted = {node for node in nodes_behind(roots) if not node.next_functions}
    nodes = [item.grad_fn for item in gc.get_objects() if type(item) is VirtualTensor]
    first_use: dict[Any, int] = {}
    for node in nodes_behind([*roots, *(node for node in nodes if node is not None)]):
        for leaf, _ in node.next_functions:
            if leaf in wanted:
                number = sequence_number(node)
                first_use[leaf] = min(number, first_use.get(leaf, number))
    return {
        leaf: stream_at(leaf.variable.storage_block.gpu, number)
        for leaf, number in first_use.items()
        if isinstance(getattr(leaf, "variable", None), VirtualTensor)
    }
