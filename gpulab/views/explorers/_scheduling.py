"""Schedule an explorer's measurements on the thread of the notebook's cells.

Messages of the page and measurements share this thread with the cells. So messages wait for their
turn, and a measurement runs in steps with a pause after each.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from gpulab.core.foreign_text import one_line
from gpulab.views.explorers._scene import Measured, Step
from gpulab.views.explorers._sources import too_long
from gpulab.workloads.sweeps import Point

_PAUSE_S = 0.02  # between two steps, for messages that arrived during the first


class MeasurementJob:
    """Measures steps one after the other, on the thread of the cells.

    A virtual GPU replaces ``torch.cuda`` for the whole process, and a measurement must not share
    the GPU with a running cell. So steps run between two cells, and not on a thread of their own.
    What was found by a stop is kept; ``n_done`` counts the steps that were measured or skipped,
    those of an earlier job included. ``error`` is what ended the job early, or empty.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        *,
        measure_step: Callable[[Step], Measured],
        report: Callable[[], object],
        n_done: int = 0,
    ) -> None:
        self.steps = tuple(steps)
        self.found: list[Measured] = []
        self.n_done = n_done
        self.error = ""
        self.is_running = False
        self._n_skipped = 0
        self._measure_step, self._report = measure_step, report
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def is_complete(self) -> bool:
        """Whether every step was measured or skipped."""
        return self.n_done == len(self.steps)

    def __str__(self) -> str:
        points = [item for item in self.found if isinstance(item, Point)]
        n_points = sum(point.ok for point in points)
        failed = f", {len(points) - n_points} failed" if n_points < len(points) else ""
        why_skipped = "a smaller size failed or took too long"
        skipped = f", {self._n_skipped} skipped ({why_skipped})" if self._n_skipped else ""
        so_far = f"{n_points} points measured{failed}{skipped}"
        if self.is_running:
            return f"{self.n_done + 1} of {len(self.steps)}: {self.steps[self.n_done]}"
        if self.is_complete:
            return f"{so_far}."
        why = f": {one_line(self.error)}" if self.error else ""
        return f"Stopped{why}. {so_far}; press again for the rest."

    def start(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """Measure in steps on an event loop; without one, measure everything at once."""
        self.is_running = not self.is_complete
        self._loop = loop
        self._report()
        if loop is None:
            while self.is_running:
                self._step()
        else:
            # Not at once, so that the report reaches the page before the first step blocks it.
            loop.call_soon(self._step)

    def stop(self) -> None:
        """Start no further step; the result of the current one is kept."""
        self.is_running = False

    def _step(self) -> None:
        if not self.is_running:
            return
        try:
            self._measure(self.steps[self.n_done])
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 # shown; a loop would hide it
            self._end(error)
        self.is_running = self.is_running and not self.is_complete
        self._report()
        if self.is_running and self._loop is not None:
            self._loop.call_later(_PAUSE_S, self._step)

    def _measure(self, step: Step) -> None:
        if too_long(step, self.found):
            self._n_skipped += 1
        else:
            self.found.append(self._measure_step(step))
        self.n_done += 1

    def _end(self, error: BaseException) -> None:
        self.is_running = False
        text: Any = "interrupted" if isinstance(error, KeyboardInterrupt) else error
        self.error = str(text) or type(error).__name__
