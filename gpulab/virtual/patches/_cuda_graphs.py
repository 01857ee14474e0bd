"""Put captured graphs of the simulator behind ``torch.cuda.CUDAGraph``."""

import warnings
import weakref
from collections.abc import Callable
from itertools import count
from typing import Any

import torch

from gpulab.errors import NotModelledError, VirtualGpuError
from gpulab.torch_private import C
from gpulab.virtual._generators import Philox, begin_capture, end_capture
from gpulab.virtual._lasting import lasting_class
from gpulab.virtual.simulator import Capture, Graph, Machine, active

_pools = count(1)


class GraphBase:
    """A CUDA graph: captured once, replayed as often as wanted."""

    def __new__(cls, keep_graph: bool = False) -> Any:  # noqa: ARG004, FBT001, FBT002 # torch's signature
        """Make a graph without work."""
        instance: Any = object.__new__(lasting_class(cls, GraphBase))
        instance.graph = None
        instance.pool_id = None
        instance.draws = []
        instance.let_go = _nothing
        instance.machine = active()
        return instance

    def __init__(self, *_args: object, **_kwargs: object) -> None:
        pass

    graph: Graph | None
    pool_id: tuple[int, int] | None
    draws: list[tuple[Philox, int]]
    let_go: Callable[[], object]
    machine: Machine

    def capture_begin(
        self,
        pool: tuple[int, int] | None = None,
        **_options: object,  # how other threads are treated: here they launch nothing
    ) -> None:
        """Write down, from here on, what is launched on the current stream."""
        if self.graph is not None:
            raise RuntimeError(
                "This CUDAGraph instance already owns a captured graph. "
                "To capture a new graph, create a new instance."
            )
        machine = self._machine_in_use()
        stream = machine.gpu.stream
        if stream is machine.gpu.device.streams[0]:
            raise RuntimeError(
                "CUDA graphs must be captured on a non-default stream. "
                "(However, after capture, it's ok to replay them on the default stream.)"
            )
        machine.require_no_capture()
        self.pool_id = pool if pool is not None else (next(_pools), 0)
        # The pool serves the streams that take part, those that join later too.
        capture = Capture(stream, self.pool_id)
        streams = machine.gpu.device.streams
        machine.gpu.memory.pools.route(self.pool_id, lambda number: capture.has(streams[number]))
        machine.capture = capture
        begin_capture()
        # A finalizer, because torch's own class has a __del__ that calls no other.
        finalizer = weakref.finalize(self, machine.gpu.memory.pools.release, self.pool_id)
        finalizer.atexit = False
        self.let_go = finalizer

    def capture_end(self) -> None:
        """End the capture; nothing is left of one that failed."""
        machine = self._machine_in_use()
        capture = machine.capture
        if capture is None:
            raise machine.cuda_error("CUDA error: operation failed: no capture is under way")
        self.draws = abandon_captures(machine)
        failure = capture.failure
        if failure is None and machine.gpu.stream is not capture.origin:
            failure = "stream was not the one that the capture began on"
        elif failure is None and not capture.is_joined():
            failure = "capturing stream has unjoined work"
        elif failure is not None:
            failure = "operation failed due to a previous error during capture"
        # PyTorch's own graph is of no use then either, and keeps its memory.
        if failure is not None:
            self.reset()
            raise machine.cuda_error(f"CUDA error: {failure}")
        if not capture.nodes:
            warnings.warn(
                "The CUDA Graph is empty. This usually means that the graph was attempted to be "
                "captured on wrong device or stream.",
                stacklevel=3,
            )
        self.graph = capture.graph()

    def instantiate(self) -> None:
        """Make the graph ready; it is from the end of the capture."""

    def replay(self) -> None:
        """Launch what was captured on the current stream."""
        if self.graph is None:
            raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
        machine = self._machine_in_use()
        machine.replay(self.graph, machine.gpu.stream)
        for philox, step in self.draws:
            philox.offset += step

    def _machine_in_use(self) -> Machine:
        """Return the machine that the graph belongs to, if its context is entered."""
        if active() is not self.machine:
            raise VirtualGpuError(
                f"a graph of another virtual GPU ({self.machine.spec.name}) is used; use it while "
                "that one is entered"
            )
        return self.machine

    def reset(self) -> None:
        """Drop the graph and its hold on the memory of its pool."""
        self.graph = None
        self.pool_id = None
        self.let_go()

    def pool(self) -> tuple[int, int]:
        """Return the identity of the memory pool that the graph uses."""
        if self.pool_id is None:
            raise RuntimeError("Called CUDAGraph::pool() without a preceding successful capture.")
        return self.pool_id

    def register_generator_state(self, _generator: object) -> None:
        """Accept a generator: each replay goes on where the last one that drew from it ended."""

    def enable_debug_mode(self) -> None:
        """Accept the call; there is nothing to dump."""

    def debug_dump(self, _path: str) -> None:
        """Refuse: the graph of the virtual GPU has no CUDA form."""
        raise NotModelledError(
            "the virtual GPU has no model of CUDAGraph.debug_dump; use a CUDA GPU"
        )

    def raw_cuda_graph(self) -> int:
        """Refuse: the graph of the virtual GPU has no CUDA form."""
        raise NotModelledError(
            "the virtual GPU has no model of CUDAGraph.raw_cuda_graph; use a CUDA GPU"
        )

    raw_cuda_graph_exec = raw_cuda_graph


def _nothing() -> None:
    """Let go of what a graph holds that has captured nothing."""


def new_pool() -> tuple[int, int]:
    """Return the identity of a memory pool that several graphs may share."""
    return 0, next(_pools)


def is_capturing(machine: Machine) -> bool:
    """Tell whether work on the current stream is captured."""
    return machine.capture is not None and machine.capture.has(machine.gpu.stream)


def abandon_captures(machine: Machine) -> list[tuple[Philox, int]]:
    """Stop capturing; return how far each replay uses up which generators."""
    if machine.capture is None:
        return []
    gpu = machine.gpus[machine.capture.origin.device.index]
    gpu.memory.pools.unroute(machine.capture.pool)
    machine.capture = None
    return end_capture()


def tidy_graph(original: type) -> type:
    """Make a ``torch.cuda.graph`` that gives the stream back when the capture failed, too."""

    def enter(self: Any) -> None:
        original.__enter__(self)  # type: ignore[attr-defined] # as a step, being called from here

    def leave(self: Any, *error: object) -> None:
        try:
            self.cuda_graph.capture_end()
        finally:
            self.stream_ctx.__exit__(*error)

    names = {
        "__enter__": enter,
        "__exit__": leave,
        "default_capture_stream": None,
        "__doc__": original.__doc__,
    }
    return type(original.__name__, (original,), names)


def replacements(machine: Machine) -> list[tuple[Any, dict[str, Any]]]:
    """Return what to put in the place of which names of torch."""

    def capturing() -> bool:
        return is_capturing(machine)

    return [
        (C, {"_cuda_isCurrentStreamCapturing": capturing, "_graph_pool_handle": new_pool}),
        (
            torch.cuda.graphs,
            {
                "_cuda_isCurrentStreamCapturing": capturing,
                "_graph_pool_handle": new_pool,
                "graph": (tidy := tidy_graph(torch.cuda.graph)),
            },
        ),
        (torch.cuda, {"graph": tidy}),
    ]
