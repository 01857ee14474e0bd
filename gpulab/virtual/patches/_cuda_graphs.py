"""``torch.cuda.CUDAGraph`` and ``torch.cuda.graph`` on the virtual GPU."""

import warnings
import weakref
from collections.abc import Callable
from itertools import count
from typing import Any

import torch

from gpulab.core.errors import VirtualGpuError
from gpulab.core.torch_private import C
from gpulab.virtual._after_exit import lasting_class
from gpulab.virtual._generators import Philox, VirtualGenerator, begin_capture, end_capture
from gpulab.virtual.simulator import Capture, Graph, Machine, active

# As in PyTorch, the pool of one graph has the id (n, 0), and a pool to be shared the id (0, n).
_pools = count(1)


class GraphBase:
    """A CUDA graph of the virtual GPU: captured once, replayed any number of times."""

    def __new__(cls, *_args: object, **_kwargs: object) -> Any:
        """Return a new graph that has captured nothing."""
        instance: Any = object.__new__(lasting_class(cls, GraphBase))
        instance.graph = None
        instance.pool_id = None
        instance.draws = []
        instance.registered = []
        instance.release_pool = None
        instance.machine = active()
        return instance

    def __init__(self, *_args: object, **_kwargs: object) -> None:
        pass

    graph: Graph | None
    pool_id: tuple[int, int] | None
    draws: list[tuple[Philox, int]]
    registered: list[VirtualGenerator]
    release_pool: Callable[[], object] | None
    machine: Machine

    def capture_begin(
        self,
        pool: tuple[int, int] | None = None,
        **_options: object,  # error modes for other threads, which cannot launch here
    ) -> None:
        """Begin to capture the launches on the current stream instead of running them."""
        if self.graph is not None:
            raise RuntimeError(
                "This CUDAGraph instance already owns a captured graph. "
                "To capture a new graph, create a new instance."
            )
        machine = self._machine_in_use()
        stream = machine.gpu.stream
        # As on CUDA: the default stream waits for others, and a capture cannot hold such waits.
        if stream is machine.gpu.device.streams[0]:
            raise RuntimeError(
                "CUDA graphs must be captured on a non-default stream. "
                "(However, after capture, it's ok to replay them on the default stream.)"
            )
        machine.require_no_capture()
        self.pool_id = pool if pool is not None else (next(_pools), 0)
        # The pool is for all streams of the capture, including those that join it later.
        capture = Capture(stream, self.pool_id)
        streams = machine.gpu.device.streams
        machine.gpu.memory.pools.route(self.pool_id, lambda number: capture.has(streams[number]))
        machine.capture = capture
        begin_capture(self.registered)
        # A finalizer and not __del__, because PyTorch's class has a __del__ that does not call
        # that of its base class.
        finalizer = weakref.finalize(self, machine.gpu.memory.pools.release, self.pool_id)
        # At exit the modules that it needs may be gone already.
        finalizer.atexit = False
        self.release_pool = finalizer

    def capture_end(self) -> None:
        """End the capture and make the graph; if the capture failed, raise PyTorch's error."""
        machine = self._machine_in_use()
        capture = machine.capture
        if capture is None:
            raise machine.cuda_error("CUDA error: operation failed: no capture is under way")
        # Before the checks: a capture that fails ends, too, or no other could ever start.
        self.draws = abandon_capture(machine)
        failure = capture.failure
        if failure is None and machine.gpu.stream is not capture.origin:
            failure = "stream was not the one that the capture began on"
        elif failure is None and not capture.is_joined():
            failure = "capturing stream has unjoined work"
        elif failure is not None:
            failure = "operation failed due to a previous error during capture"
        if failure is not None:
            raise machine.cuda_error(f"CUDA error: {failure}")
        if not capture.nodes:
            warnings.warn(
                "The CUDA Graph is empty. This usually means that the graph was attempted to be "
                "captured on wrong device or stream.",
                stacklevel=3,
            )
        self.graph = capture.graph()

    def instantiate(self) -> None:
        """Do nothing: the graph is ready when the capture ends."""

    def replay(self) -> None:
        """Launch the captured work on the current stream."""
        if self.graph is None:
            raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
        machine = self._machine_in_use()
        machine.replay(self.graph, machine.gpu.stream)
        # Each replay uses the next random numbers, so that two replays draw different ones.
        for philox, step in self.draws:
            philox.offset += step

    def _machine_in_use(self) -> Machine:
        """Return the machine that the graph belongs to, if that machine is in use."""
        if active() is not self.machine:
            raise VirtualGpuError(
                f"a graph of another virtual GPU ({self.machine.spec.name}) is used; use it while "
                "that GPU is in use"
            )
        return self.machine

    def reset(self) -> None:
        """Drop the graph and release its memory pool."""
        self.graph = None
        self.pool_id = None
        if self.release_pool is not None:
            self.release_pool()

    def pool(self) -> tuple[int, int]:
        """Return the id of the memory pool that the graph uses."""
        if self.pool_id is None:
            raise RuntimeError("Called CUDAGraph::pool() without a preceding successful capture.")
        return self.pool_id

    def register_generator_state(self, generator: VirtualGenerator) -> None:
        """Let the graph draw from a generator that is not the default one."""
        # Each replay already continues the random numbers of the one before.
        self.registered.append(generator)

    def enable_debug_mode(self) -> None:
        """Do nothing: there is no CUDA graph to dump."""


def new_pool() -> tuple[int, int]:
    """Return the id of a new memory pool that several graphs may share."""
    return 0, next(_pools)


def is_capturing(machine: Machine) -> bool:
    """Return whether work on the current stream is being captured."""
    return machine.capture is not None and machine.capture.has(machine.gpu.stream)


def abandon_capture(machine: Machine) -> list[tuple[Philox, int]]:
    """Stop a capture that is under way, and return its use of random numbers.

    Returns
    -------
    list of tuple
        Each generator that the capture drew from, and how many numbers a replay uses.
    """
    if machine.capture is None:
        return []
    gpu = machine.gpus[machine.capture.origin.device.index]
    gpu.memory.pools.unroute(machine.capture.pool)
    machine.capture = None
    return end_capture()


def tidy_graph(original: type) -> type:
    """Return a ``torch.cuda.graph`` that restores the stream even if the capture failed."""
    # In torch 2.13 __exit__ calls capture_end() and then leaves the stream. If capture_end()
    # raises, the program goes on with the capture's stream as its current stream.

    def enter(self: Any) -> None:
        # Called from this package, and so a step that Ctrl-C does not divide.
        original.__enter__(self)  # type: ignore[attr-defined] # a class of torch

    def leave(self: Any, *error: object) -> None:
        try:
            self.cuda_graph.capture_end()
        finally:
            self.stream_ctx.__exit__(*error)

    names = {
        "__enter__": enter,
        "__exit__": leave,
        # PyTorch keeps its stream for captures on the class, where it would outlive its machine.
        "default_capture_stream": None,
        "__doc__": original.__doc__,
    }
    return type(original.__name__, (original,), names)


def replacements(machine: Machine) -> list[tuple[Any, dict[str, Any]]]:
    """Return the replacements for CUDA graphs, by module."""

    def capturing() -> bool:
        return is_capturing(machine)

    # One for all contexts of a machine, because the class keeps the stream for captures: a stream
    # takes host time to create.
    if machine.graph_class is None:
        machine.graph_class = tidy_graph(torch.cuda.graph)
    return [
        (C, {"_cuda_isCurrentStreamCapturing": capturing, "_graph_pool_handle": new_pool}),
        (
            torch.cuda.graphs,
            {
                "_cuda_isCurrentStreamCapturing": capturing,
                "_graph_pool_handle": new_pool,
                "graph": machine.graph_class,
            },
        ),
        (torch.cuda, {"graph": machine.graph_class}),
    ]
