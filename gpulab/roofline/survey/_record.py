"""Run a survey: measure a machine for as long as the time allows, and write a recording."""

import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch

from gpulab import device
from gpulab.core.disk import growing
from gpulab.core.errors import GpulabError
from gpulab.core.progress import Bar
from gpulab.core.requirements import FLAG, PATH
from gpulab.roofline.survey._journal import OpenRecording, recording_in
from gpulab.roofline.survey._plan import (
    EFFORT,
    LONGEST_CPU_S,
    TOO_LONG,
    PlannedTask,
    SurveyPlan,
    SurveySection,
    plan,
    scaled_s,
)
from gpulab.workloads import recordings
from gpulab.workloads.recordings import Recording
from gpulab.workloads.sweeps import measure_point, provenance

__all__ = ["record"]


def record(
    out: str | Path,
    *,
    minutes: float = 10.0,
    progress: bool = True,
    sections: Iterable[str] | None = None,
    quick: bool = False,
) -> Recording:
    """Measure this machine, write each result to a file at once, and return the recording.

    The most useful results are measured first. If the time is too short for some, they are left
    out, and the section ``left_out`` says so. The same call with the same file continues where
    the last one ended, and has the whole time again. Ctrl-C ends the survey; results so far stay
    in the file. No setting of the GPU is changed.

    Parameters
    ----------
    out
        The file, in JSON lines; a name that ends in ``.jsonl`` is best.
    minutes
        Longest time. A point that has begun is still completed.
    progress
        Whether to print the plan and to show a bar.
    sections
        Names from :data:`SECTIONS`; None: all.
    quick
        Whether to make a small recording, to try it out.

    Returns
    -------
    Recording
        Everything that the file contains now.

    Raises
    ------
    InvalidOptionError
        If the file was begun on another machine, if its folder is missing, or if ``minutes`` is
        not above 0.
    FileInUseError
        If another process records to the file; the message names the process.
    NotSavedError
        If the file cannot be written, for example on a full disk. The error's ``partial`` is a
        :class:`gpulab.recordings.Recording` of what was measured.
    UnknownNameError
        If there is no such section.
    RecordingError
        If the file is not a recording, or was changed after it was finished.

    Examples
    --------
    ::

        survey.record("my-gpu.jsonl", quick=True)

    A misspelt section is refused before anything is measured:

    >>> import tempfile
    >>> from gpulab.roofline import survey
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     try:
    ...         survey.record(f"{folder}/a.jsonl", sections=["ceiling"])
    ...     except ValueError as error:
    ...         print(str(error).partition("?")[0])
    unknown section 'ceiling'; did you mean 'ceilings'
    """
    PATH.check(out=out)
    FLAG.check(progress=progress)
    path = Path(out)
    with growing(out) as file:
        to_do = plan(path, minutes=minutes, sections=sections, quick=quick)
        if progress:
            Bar.write(str(to_do))
        # time.monotonic stays the real clock; time.perf_counter is the virtual clock on a virtual
        # GPU.
        # Set only now, so that reading the file and making the plan take nothing off the time.
        end_s = time.monotonic() + to_do.limit_s
        with device.active(), recording_in(file, provenance()) as log:
            log.left_out.update(to_do.left_out)
            _Survey(log, end_s, quick=quick).run(to_do, progress=progress)
            log.add_left_out()
    return recordings.load(path)


@dataclass(frozen=True, slots=True)
class _SurveyStep:
    """One step of a survey; ``take`` measures it and returns why it failed, or an empty text."""

    name: str
    estimate_s: float
    take: Callable[[], str]


class _GpuFailedError(GpulabError):
    """A CUDA error after which this process cannot use the GPU any more."""


class _Survey:
    """One run of a survey over its plan."""

    def __init__(self, log: OpenRecording, end_s: float, *, quick: bool) -> None:
        self.log = log
        self.end_s = end_s
        self.quick = quick

    def run(self, to_do: SurveyPlan, *, progress: bool) -> None:
        """Measure all steps for which there is time."""
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
                        # A step leaves the queue only after it, so that one that is interrupted
                        # counts as left out.
                        self.log.left_out[pending[0].name] = reason
                    pending.popleft()
                    bar.update()
            except KeyboardInterrupt:
                why = "the recording was interrupted"
            except _GpuFailedError as error:
                why = str(error)
        self.log.left_out.update({step.name: why for step in pending})

    def _step(self, step: _SurveyStep) -> str:
        # Skips this step only: a later one may be short enough for the time that is left.
        if time.monotonic() + step.estimate_s > self.end_s:
            return "the time was over"
        return step.take()

    def _section(self, section: SurveySection) -> str:
        try:
            # The whole section before its line is written: half a section would look like a whole
            # one.
            rows = list(section.rows(quick=self.quick))
        # A machine may be unable to measure a section; the others are still measured.
        except (GpulabError, RuntimeError, OSError) as error:
            _check_gpu()
            return _first_line(error)
        self.log.add_section(section.name, rows)
        return ""

    def _task(self, planned: PlannedTask) -> str:
        # Decided here and not in the plan, because the time of the smaller size is known only now.
        if planned.task.on == "cpu" and self._expected_s(planned) > LONGEST_CPU_S:
            return TOO_LONG
        # measure_point does not raise, so sizes that do not fit do not end the survey.
        point = measure_point(planned.task, EFFORT)
        if not point.ok:
            _check_gpu()
        self.log.add(point)
        return ""

    def _expected_s(self, planned: PlannedTask) -> float:
        """Return the expected seconds of a call, scaled up from a smaller size if there is one."""
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
    """Raise if the GPU has failed, because all further points would only repeat that error."""
    try:
        torch.cuda.synchronize()
    except RuntimeError as error:
        raise _GpuFailedError(f"the GPU failed: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
