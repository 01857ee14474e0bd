"""Run a survey: measure a machine for as long as the time allows, and write a recording."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch

from gpulab import device, roofline
from gpulab.core.disk import growing
from gpulab.core.errors import GpulabError
from gpulab.core.foreign_text import first_line
from gpulab.core.progress import Bar
from gpulab.core.requirements import FLAG, PATH
from gpulab.roofline.survey._plan import CEILINGS, EFFORT, LEFT_OUT, SurveyPlan, plan
from gpulab.workloads import recordings, workload
from gpulab.workloads.recordings import Recording
from gpulab.workloads.sweeps import (
    Journal,
    Point,
    RunningSweep,
    Task,
    open_again,
    provenance,
    take,
)

__all__ = ["record"]

LONGEST_CALL_S = 0.1  # a size whose call should take longer is left out
TOO_LONG = "one call takes too long"


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
        :class:`gpulab.workloads.sweeps.Sweep` of the points that this call has measured.
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
        # GPU. Only now, so that reading the file takes nothing off the time.
        end_s = time.monotonic() + to_do.limit_s
        with device.active(), open_again(file):
            journal = Journal(file)
            facts = journal.begin(provenance())
            running = RunningSweep({task.key: task for task in to_do.tasks}, facts, journal)
            bar = Bar(
                total=len(to_do.tasks), desc="recording", unit=" points", disable=not progress
            )
            with running.shown_on(bar), running.kept_in_memory():
                survey = _Survey(running, to_do, end_s)
                missing = survey.run(partial(_take_ceilings, journal, quick=quick))
                rows = [{"what": name, "reason": reason} for name, reason in missing.items()]
                journal.add_section(LEFT_OUT, rows)
    return recordings.load(path)


class _Survey:
    """One run of a survey over its plan."""

    def __init__(self, running: RunningSweep, to_do: SurveyPlan, end_s: float) -> None:
        self._running = running
        self._to_do = to_do
        self._end_s = end_s
        self._gpu_failure = ""
        # The points of each kind of task, which differ in their size only.
        self._points: dict[Task, list[Point]] = defaultdict(list)
        for point in to_do.before.values():
            self._note(point)

    def run(self, take_ceilings: Callable[[], str]) -> dict[str, str]:
        """Measure all for which there is time; return what is missing, and why.

        ``take_ceilings`` returns why they could not be measured, or an empty text.
        """
        steps = {CEILINGS: take_ceilings} if self._to_do.has_ceilings else {}
        steps |= {each.key: partial(self._take, each) for each in self._to_do.tasks}
        missing = {**self._to_do.left_out, **dict.fromkeys(steps, "the recording was interrupted")}
        with suppress(KeyboardInterrupt):
            for name, step in steps.items():
                missing[name] = step()
        return {name: reason for name, reason in missing.items() if reason}

    def _take(self, task: Task) -> str:
        """Measure a task; return why it is left out, or an empty text."""
        if self._gpu_failure:
            return self._gpu_failure
        if time.monotonic() >= self._end_s:
            return "the time was over"
        if expected_s(task, self._points[_kind(task)]) > LONGEST_CALL_S:
            return TOO_LONG
        self._running.task_started(task)
        # take does not raise, so sizes that do not fit do not end the survey.
        point = take(task, precision=EFFORT.precision, max_time_s=EFFORT.max_time_s)
        if not point.ok:
            self._gpu_failure = _gpu_failure()
        if not self._gpu_failure:
            self._running.point_measured(point)
            self._note(point)
        return self._gpu_failure

    def _note(self, point: Point) -> None:
        if point.ok:
            self._points[_kind(point.task)].append(point)


def _kind(task: Task) -> Task:
    return replace(task, size=1)


def expected_s(task: Task, points: Iterable[Point]) -> float:
    """Return about how long a call should take, by points of other sizes; 0 without smaller ones.

    The time of the smallest size is mostly a fixed cost, which does not grow.
    """
    smaller = sorted(
        (point for point in points if point.task.size < task.size),
        key=lambda point: point.task.size,
    )
    if not smaller:
        return 0.0
    work, last = workload(task.workload), smaller[-1]
    growth = work.bytes(task.size, task.dtype) / work.bytes(last.task.size, task.dtype)
    # The faster growing of the two, because which one bounds the work is unknown here. Copies of
    # the data take most of the time if there are any.
    if task.transfers == "none":
        growth = max(growth, work.flops(task.size) / max(1, work.flops(last.task.size)))
    fixed_s = smaller[0].median_s
    return fixed_s + growth * max(0.0, last.median_s - fixed_s)


def _take_ceilings(journal: Journal, *, quick: bool) -> str:
    try:
        # All of them before the line is written: half a section would look like a whole one.
        rows = roofline.measure_ceilings(max_time_s=0.05 if quick else 0.2).to_rows()
    # A machine may be unable to measure them; the points are still measured.
    except (GpulabError, RuntimeError, OSError) as error:
        return _gpu_failure() or first_line(error)
    journal.add_section(CEILINGS, rows)
    return ""


def _gpu_failure() -> str:
    """Return how the GPU has failed, because all further points would only repeat that error."""
    try:
        torch.cuda.synchronize()
    except RuntimeError as error:
        return f"the GPU failed: {first_line(error)}"
    return ""
