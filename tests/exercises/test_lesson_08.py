"""Lesson 08: right answers pass, each typical mistake gets its diagnosis, and pipelines run."""

import gc
import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import matplotlib as mpl
import pytest
import torch

import gpulab
from gpulab.exercises import machines
from gpulab.exercises._exercise import Verdict
from gpulab.exercises.answers import fresh_gpu
from gpulab.exercises.lesson_08 import (
    draw_overlap,
    draw_reuse,
    host_times,
    how_they_ran,
    line_that_raises,
    pipelines,
    run_the_puzzle,
    share_of_serial,
)
from gpulab.exercises.lesson_08._exercises import DOUBLE_BUFFER
from gpulab.tracing.trials import Trial
from tests.support.judging import right_of

mpl.use("agg")


def judge(answer: object) -> Verdict:
    """Judge a double buffer."""
    return DOUBLE_BUFFER.judge(answer, None)


# The double buffer

Pipeline = Callable[..., None]


def buffered(  # noqa: PLR0913  # each is one fault
    *,
    host: bool = True,
    device: bool = True,
    arrival: bool = True,
    device_sync: bool = False,
    one_stream: bool = False,
    shift: int = 0,
) -> Pipeline:
    """Return a double buffer; each argument adds or removes one fault."""

    def pipeline(slots: Any, copying: Any, fill: Any, compute: Any, n_steps: int) -> None:  # noqa: ANN401  # as learners write it
        current = torch.cuda.current_stream()
        stream = current if one_stream else copying
        for step in range(n_steps):
            slot = slots[step % 2]
            if host:
                slot.copied.synchronize()
            fill(slot.pinned, step)
            if device:
                stream.wait_event(slot.computed)
            with torch.cuda.stream(stream):
                slot.on_device.copy_(slot.pinned, non_blocking=True)
                slot.copied.record()
            if arrival:
                current.wait_event(slot.copied)
            compute(slots[(step + shift) % 2].on_device, step)
            slots[(step + shift) % 2].computed.record()
            if device_sync:
                torch.cuda.synchronize()

    return pipeline


def raising(*_arguments: object) -> None:
    """Raise, as a learner's function may."""
    raise KeyError("slot")


def lazy(slots: Any, _copying: object, fill: Any, _compute: object, n_steps: int) -> None:  # noqa: ANN401  # as learners write it
    """Fill the buffers, and never compute."""
    for step in range(n_steps):
        fill(slots[step % 2].pinned, step)


def as_proposed(slots: Any, copying: Any, fill: Any, compute: Any, n_steps: int) -> None:  # noqa: ANN401  # as learners write it
    """Wait for whole queues, as the race detector proposes for the listing."""
    current = torch.cuda.current_stream()
    for step in range(n_steps):
        slot = slots[step % 2]
        copying.synchronize()
        fill(slot.pinned, step)
        copying.wait_stream(current)
        with torch.cuda.stream(copying):
            slot.on_device.copy_(slot.pinned, non_blocking=True)
            slot.copied.record()
        current.wait_event(slot.copied)
        compute(slot.on_device, step)


def in_turn(first: Pipeline, second: Pipeline) -> Pipeline:
    """Return a pipeline that does something else when it is called again."""
    turns = itertools.cycle([first, second])

    def pipeline(*arguments: Any) -> None:  # noqa: ANN401  # as learners write it
        next(turns)(*arguments)

    return pipeline


PIPELINES: list[tuple[object, str, str]] = [
    (buffered(), "", "gpulab.hazards() finds nothing, and the overlap is"),
    (buffered(host=False, device=False), "both-races", "38 of 40 steps computed on wrong data."),
    (buffered(host=False), "host-race", "38 of 40 steps computed on wrong data."),
    (buffered(device=False), "device-race", "37 of 40 steps computed on wrong data."),
    (buffered(arrival=False), "copy-not-awaited", "Every value was right this time, by luck: "),
    (buffered(device_sync=True), "speed", "torch.cuda.synchronize() waits for all streams"),
    (as_proposed, "speed", "It waits for whole streams"),
    (buffered(one_stream=True), "speed", "The copies run in the stream of the computing"),
    (
        buffered(device_sync=True, shift=1),
        "wrong-data",
        "40 of 40 steps computed on wrong data, although their order is fixed",
    ),
    (raising, "raised", "Your function raised KeyError: 'slot'"),
    (in_turn(buffered(), raising), "raised", "Your function raised KeyError: 'slot'"),
    (in_turn(buffered(), lazy), "steps-missing", "For 8 steps your function called fill 8 times"),
    (
        in_turn(buffered(), buffered(device_sync=True, shift=1)),
        "wrong-data",
        "8 of 8 steps computed on wrong data",
    ),
    (lazy, "steps-missing", "For 40 steps your function called fill 40 times and compute 0 times"),
]


@pytest.mark.slow
@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(("pipeline", "code", "part"), PIPELINES)
def test_each_pipeline_gets_its_verdict(pipeline: object, code: str, part: str) -> None:
    """Values are judged first, then order, then overlap, and the message has their numbers."""
    verdict = judge(pipeline)
    assert (verdict.diagnosis_code, bool(verdict)) == (code, code == "")
    assert part in verdict.message


def ran(hidden_s: float, n_wrong: int) -> pipelines.PipelineRun:
    """Return the record of a run of 41 steps in which overlap can save 6 ms."""
    each_s = 6.15e-3  # for all copies, and for all computations
    times_s = (2 * each_s - hidden_s, each_s, each_s)
    return pipelines.PipelineRun(41, n_wrong, 41, 41, *times_s, Trial(None), "here")


@pytest.mark.parametrize(
    ("overlaps", "n_wrong", "code", "part"),
    [
        ((0.9,), 0, "", "the overlap is 90 %"),
        ((0.1, 0.2, 0.9), 0, "", "the overlap is 90 %"),
        ((0.1, 0.3, 0.2), 0, "speed", "the overlap is 30 %"),
        ((0.1, 0.9), 3, "wrong-data", "3 of 41 steps computed on wrong data"),
    ],
)
def test_only_a_slow_pipeline_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
    overlaps: tuple[float, ...],
    n_wrong: int,  # of the last run
    code: str,
    part: str,
) -> None:
    """A slow one gets three tries, of which the best counts; each is judged by its values."""
    runs = [ran(6e-3 * share, 0) for share in overlaps]
    runs[-1] = replace(runs[-1], n_wrong=n_wrong)
    monkeypatch.setattr(pipelines, "run", lambda _pipeline: runs.pop(0))
    monkeypatch.setattr(pipelines, "run_for_races", lambda _pipeline: ran(0.0, 0))
    verdict = judge(buffered())
    assert (verdict.diagnosis_code, runs) == (code, [])
    assert part in verdict.message


@pytest.mark.usefixtures("gpu")
def test_wide_waits_are_counted_and_the_methods_restored() -> None:
    """Waits for the device and for a queue are counted separately, without the stopwatch's."""
    before = torch.cuda.synchronize
    stream_type = type(torch.cuda.Stream())
    own = dict(vars(stream_type))
    finished = pipelines.run(as_proposed, n_steps=4)
    assert (finished.n_device_waits, finished.n_queue_waits) == (0, 8)
    assert pipelines.run(buffered(device_sync=True), n_steps=4).n_device_waits == 4
    assert torch.cuda.synchronize is before
    # A method that stayed would hide waits of streams from hazards().
    assert dict(vars(stream_type)) == own


@pytest.mark.usefixtures("gpu")
def test_other_hazards_are_named_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kind of hazard without its own diagnosis still makes the verdict wrong."""
    with gpulab.hazards() as races:
        side, x = torch.cuda.Stream(), torch.ones(8, device="cuda")
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            x.add_(1)
        x.fill_(0)
    assert [hazard.kind for hazard in races] == ["write over a write"]
    watched = replace(ran(0.0, 0), trial=Trial(None, hazards=tuple(races)))
    monkeypatch.setattr(pipelines, "run_for_races", lambda _pipeline: watched)
    assert judge(buffered()).diagnosis_code == "order-open"


@pytest.mark.usefixtures("gpu")
def test_a_run_describes_its_result() -> None:
    """One line has the wrong steps, the time, the overlap and the source."""
    finished = pipelines.run(buffered(device_sync=True), n_steps=4)
    assert str(finished) == (
        "0 of 4 steps computed on wrong data; 1.81 ms, overlap 0 % of what is possible "
        "(virtual NVIDIA H200)"
    )


def test_overlap_is_a_share_of_what_is_possible() -> None:
    """Every shorter step but the first can be hidden, and the share is between 0 and 1."""
    finished = pipelines.PipelineRun(4, 0, 4, 4, 6.5, 4.0, 6.0, Trial(None), "here")
    assert (finished.possible_s, finished.hidden_s, finished.overlap) == (3.0, 3.0, 1.0)
    slow = pipelines.PipelineRun(4, 0, 4, 4, 12.0, 4.0, 6.0, Trial(None), "here")
    assert (slow.hidden_s, slow.overlap) == (0.0, 0.0)
    half = pipelines.PipelineRun(4, 0, 4, 4, 8.5, 4.0, 6.0, Trial(None), "here")
    assert half.overlap == 0.5


# What the notebook calls


@pytest.mark.usefixtures("gpu")
def test_how_work_ran() -> None:
    """Work on two streams ran together, work on one stream sequentially."""
    sides = [torch.cuda.Stream() for _ in range(2)]

    def sleep(*streams: torch.cuda.Stream) -> None:
        for stream in streams:
            with torch.cuda.stream(stream):
                torch.cuda._sleep(200_000)

    apart, same = (
        gpulab.timeline(lambda: sleep(*sides)),
        gpulab.timeline(lambda: sleep(*sides[:1] * 2)),
    )
    assert (how_they_ran(apart), how_they_ran(same)) == ("together", "sequentially")
    assert 0.5 < share_of_serial(apart) < 0.6
    assert share_of_serial(same) == pytest.approx(1)


@pytest.mark.usefixtures("gpu")
def test_the_host_is_timed_apart_from_the_gpu() -> None:
    """A launch returns at once and a wait does not, and both times include earlier work."""
    calls = {"launch": lambda: torch.cuda._sleep(2_000_000), "wait": torch.cuda.synchronize}
    table = host_times(calls, before=lambda: torch.cuda._sleep(2_000_000))
    assert list(table.index) == ["launch", "wait"]
    assert table.loc["launch", "host_s"] < 1e-4
    assert table.loc["launch", "done_s"] > 1.9e-3
    assert 0.9e-3 < table.loc["wait", "host_s"] <= table.loc["wait", "done_s"] < 1.1e-3
    shown = host_times({"tensor": lambda: torch.ones(2), "word": lambda: True})
    assert list(shown["returned"]) == ["", "True"]


@pytest.mark.usefixtures("gpu")
def test_the_puzzle_run_is_its_key() -> None:
    """For each of the six lines, the virtual GPU gives the right answer of the exercise."""
    table = run_the_puzzle()
    ran = [(now, f"after {before}") for now, before in table.itertuples(index=False)]
    assert ran == list(right_of("08.five-waits").values())


def failing(look: Callable[[], object] = lambda: None) -> object:
    """Look up an index that does not exist, like the program of the lesson."""
    element = torch.zeros(4, device="cuda")[torch.tensor([7], device="cuda")]  # the look-up
    look()
    return element.tolist()  # the wait


def test_the_line_that_raises_is_named() -> None:
    """The error is raised at the first line that waits; a correct program has no such line."""
    late, early = line_that_raises(failing), line_that_raises(failing, look=torch_wait)
    assert (late["line"], early["line"]) == ("the wait", "the look-up")
    assert "Error: " in late["error"]
    assert line_that_raises(lambda: None)["line"] == "no line"


def torch_wait() -> None:
    """Wait for the GPU that is in use during the call."""
    torch.cuda.synchronize()


# Memory


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(
    ("n_cycles", "title"),
    [(200_000, "The sevens are in the memory "), (1, "side has added up the ones before")],
)
def test_the_picture_of_reused_memory_says_what_came_first(n_cycles: int, title: str) -> None:
    """The title compares the end of the sevens with the start of the sum."""
    side = torch.cuda.Stream()

    def call() -> None:
        x = torch.ones(1024, device="cuda")
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            torch.cuda._sleep(n_cycles)
            x.sum()
        if n_cycles == 1:
            side.synchronize()
        torch.full((1024,), 7.0, device="cuda")

    assert draw_reuse(gpulab.timeline(call)).title.startswith(title)


# Borrowed machines


def test_two_gpus_replace_one() -> None:
    """The two GPUs replace the one in use, which comes back even after an error."""
    with gpulab.virtual_gpu("A100") as mine:
        with pytest.raises(ZeroDivisionError), machines.two_gpus() as lent:
            1 / ((torch.cuda.device_count() - 2) or (lent.virtual is mine))
        assert torch.cuda.device_count() == 1
        assert mine.entered


def test_a_fresh_gpu_is_another_one() -> None:
    """A fresh GPU has no memory in use, and tensors of the other GPU survive."""
    with gpulab.virtual_gpu("A100"):
        tensor = torch.ones(1 << 20, device="cuda")
        with fresh_gpu():
            assert torch.cuda.device_count() == 1
            assert torch.cuda.memory_allocated() == 0
        assert tensor.sum().item() == 1 << 20


# The figure


def test_overlap_figure() -> None:
    """A hatch marks saved time with wrong data, and the title names only right programs."""
    faulty = ran(5.9e-3, 38)
    shown = draw_overlap({"slow": ran(0.0, 0), "faulty": faulty, "right": ran(5.4e-3, 0)})
    assert shown.title == "With right values, right saves most: 90 % of what overlap can (here)"
    assert "faulty: 38 of 41 steps computed on wrong data" in shown.caption
    (ax,) = shown.canvas.axes
    saved = [(round(bar.get_width(), 6), bar.get_hatch()) for bar in ax.patches if bar.get_fill()]
    assert sorted(saved) == [(0.0, None), (5.4, None), (5.9, "//")]
    none_right = draw_overlap({"faulty": faulty}).title
    assert none_right == "No program that overlaps has right values (here)"


def test_a_run_that_is_kept_keeps_no_tensors() -> None:
    """A notebook keeps many results; their tensors must be free without the garbage collector."""
    with gpulab.virtual_gpu("H200", first_use=False) as gpu:
        gc.disable()
        try:
            finished = pipelines.run(buffered(), n_steps=2)
        finally:
            gc.enable()
        assert finished.n_wrong == 0
        assert gpu.machine.value_bytes == 0
