"""Replace the operators of a layer by the few kernels that a library such as cuDNN runs for it."""

from collections.abc import Sequence

from gpulab.happens_before import MemoryAccess
from gpulab.virtual.simulator._task import Kind, ModelledKernel, SimulatedStream, StreamTask
from gpulab.virtual.simulator.costs import KernelWork


class Unrolled:
    """The operators of one layer, which compute its values and take no virtual time.

    Attributes
    ----------
    accesses
        The memory that the operators read and write.
    """

    def __init__(self) -> None:
        self._tasks: list[StreamTask] = []
        self.accesses: list[MemoryAccess] = []

    def add(self, task: StreamTask, accesses: Sequence[MemoryAccess]) -> None:
        """Take over a task instead of launching it."""
        # Without a payload there is nothing to compute: its values are missing, or switched off.
        if task.payload is not None:
            self._tasks.append(task)
        self.accesses += accesses

    def kernels(self, works: Sequence[KernelWork], stream: SimulatedStream) -> list[StreamTask]:
        """Return the library's tasks, to be launched instead; the last one computes all values."""
        made = [
            StreamTask(Kind.KERNEL, stream, name=work.name, demand=ModelledKernel(work, ()))
            for work in works
        ]
        parts = [task.payload for task in self._tasks if task.payload is not None]
        if parts:
            # The last task has one seed, from the first operator that draws. Each part adds its
            # position, so that no two get the same random numbers.
            draws = [task.draw for task in self._tasks if task.draw is not None]
            made[-1].draw = draws[0] if draws else None

            def compute(seed: int) -> None:
                for i, part in enumerate(parts):
                    part(seed + i)

            made[-1].payload = compute
        return made
