"""Collect operators that a real GPU runs as the kernels of one library call."""

from collections.abc import Sequence

from gpulab.happens_before import MemoryAccess
from gpulab.virtual.simulator._task import Kind, ModelledKernel, SimulatedStream, StreamTask
from gpulab.virtual.simulator.costs import KernelWork


class Unrolled:
    """What was launched while a layer was taken apart: values to compute, and no time.

    Attributes
    ----------
    accesses
        What the operators read and write.
    """

    def __init__(self) -> None:
        self._tasks: list[StreamTask] = []
        self.accesses: list[MemoryAccess] = []

    def add(self, task: StreamTask, accesses: Sequence[MemoryAccess]) -> None:
        """Take a task that was about to be launched."""
        if task.payload is not None:
            self._tasks.append(task)
        self.accesses += accesses

    def kernels(self, works: Sequence[KernelWork], stream: SimulatedStream) -> list[StreamTask]:
        """Return the tasks to launch instead: the last one leaves all the values."""
        made = [
            StreamTask(Kind.KERNEL, stream, name=work.name, demand=ModelledKernel(work, ()))
            for work in works
        ]
        parts = [task.payload for task in self._tasks if task.payload is not None]
        if parts:
            # Each part has random numbers of its own, and all come from the draw of one.
            draws = [task.draw for task in self._tasks if task.draw is not None]
            made[-1].draw = draws[0] if draws else None

            def compute(seed: int) -> None:
                for i, part in enumerate(parts):
                    part(seed + i)

            made[-1].payload = compute
        return made
