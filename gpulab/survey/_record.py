"""Measure a whole machine, as far as the time allows, and write it to a recording."""

import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch

from gpulab import device, recordings
from gpulab.disk import growing
from gpulab.errors import GpulabError
from gpulab.progress import Bar
from gpulab.recordings import Recording
from gpulab.requirements import FLAG, PATH
from gpulab.survey._journal import OpenRecording, recording_in
from gpulab.survey._plan import (
    EFFORT,
    LONGEST_CPU_S,
    TOO_LONG,
    PlannedTask,
    SurveyPlan,
    SurveySection,
    plan,
    scaled_s,
)
from gpulab.sweeps import measure_point, provenance

__all__ = ["record"]


def record(
    out: str | Path,
    *,
    minutes: float = 10.0,
    progress: bool = True,
    sections: Iterable[str] | None = None,
    quick: bool = False,
) -> Recording:
    """Measure what a recording of this machine holds, and write it to a file as it comes.

    The most valuable is measured first. What the time does not suffice for is left out, and the
    section ``left_out`` says so. The same call goes on where the last one ended, and has the
    whole time again. Ctrl-C ends it and keeps what there is. No setting of the GPU is changed.

    Parameters
    ----------
    out
        The file, JSON lines; best named ``.jsonl``.
    minutes
        How long at most; one point more may be in the making when they are over.
    progress
        Whether to print the plan, and to show a bar.
    sections
        Names of :data:`SECTIONS`; None: all.
    quick
        Whether a small recording will do, as for a try.

    Returns
    -------
    Recording
        What the file holds now.

    Raises
    ------
    InvalidOptionError
        If the file was begun on another machine or its folder is missing, or ``minutes`` is
        not above 0.
    FileInUseError
        If another process records to the file; the message names it.
    NotSavedError
        If the file cannot be written, for example on a full disk. What was measured is the
        error's ``partial``, a :class:`gpulab.recordings.Recording`.
    UnknownNameError
        If there is no such section.
    RecordingError
        If the file is something else, or was changed since.

    Examples
    --------
    >>> import gpulab
    >>> gpulab.survey.record("my-gpu.jsonl", quick=True)  # doctest: +SKIP
    """
    PATH.check(out=out)
    FLAG.check(progress=progress)
    path = Path(out)
    with growing(out) as file:
        to_do = plan(path, minutes=minutes, sections=sections, quick=quick)
        if progress:
            Bar.write(str(to_do))
        # Not the clock of the samples, because that one is the virtual GPU's where there is one.
        end_s = time.monotonic() + to_do.limit_s
        with device.active(), recording_in(file, provenance()) as log:
            log.left_out.update(to_do.left_out)
            _Survey(log, end_s, quick=quick).run(to_do, progress=progress)
            log.add_left_out()
    return recordings.load(path)


@dataclass(frozen=True, slots=True)
class _SurveyStep:
    """Something to be measured; ``take`` returns why it was not, or nothing."""

    name: str
    estimate_s: float
    take: Callable[[], str]


class _GpuFailedError(GpulabError):
    """After an error of CUDA this process cannot use the GPU any more."""


class _Survey:
    """One run over a plan."""

    def __init__(self, log: OpenRecording, end_s: float, *, quick: bool) -> None:
        self.log = log
        self.end_s = end_s
        self.quick = quick

    def run(self, to_do: SurveyPlan, *, progress: bool) -> None:
        """Take all steps for which there is time."""
        pending = deque(
            [
                *(
                    _SurveyStep(s.name, s.estimate_s, partial(self._section, s))
                    for s in to_do.sections
                ),
                *(
                    _SurveyStep(t.task.key, t.estimate_s, partial(self._task, t))
                    for t in to_do.tasks
                ),
            ]
        )
        with Bar(total=len(pending), desc="recording", unit=" steps", disable=not progress) as bar:
            try:
                while pending:
                    if reason := self._step(pending[0]):
                        self.log.left_out[pending[0].name] = reason
                    pending.popleft()
                    bar.update()
            except KeyboardInterrupt:
                why = "the recording was interrupted"
            except _GpuFailedError as error:
                why = str(error)
        self.log.left_out.update({step.name: why for step in pending})

    def _step(self, step: _SurveyStep) -> str:
        # A later step may be short enough for the time that is left, so none ends it.
        if time.monotonic() + step.estimate_s > self.end_s:
            return "the time was over"
        return step.take()

    def _section(self, section: SurveySection) -> str:
        try:
            rows = list(section.rows(quick=self.quick))
        # What one machine forbids, such as its clocks, must not cost the rest.
        except (GpulabError, RuntimeError, OSError) as error:
            _check_gpu()
            return _first_line(error)
        self.log.add_section(section.name, rows)
        return ""

    def _task(self, planned: PlannedTask) -> str:
        if planned.task.on == "cpu" and self._expected_s(planned) > LONGEST_CPU_S:
            return TOO_LONG
        # It does not raise: a size that does not fit must not cost the sizes that do.
        point = measure_point(planned.task, EFFORT)
        if not point.ok:
            _check_gpu()
        self.log.add(point)
        return ""

    def _expected_s(self, planned: PlannedTask) -> float:
        """Return what a call will take by what a smaller size took, if one was measured."""
        smaller = [
            point
            for point in self.log.points.values()
            if point.task.on == "cpu"
            and point.ok
            and point.task.size < planned.task.size
            and replace(point.task, size=planned.task.size) == planned.task
        ]
        if not smaller:
            return planned.call_s
        return scaled_s(planned.task, max(smaller, key=lambda point: point.task.size))


def _check_gpu() -> None:
    """Refuse to go on where every further point would only repeat the first one's error."""
    try:
        torch.cuda.synchronize()
    except RuntimeError as error:
        raise _GpuFailedError(f"the GPU failed: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
