"""Lesson 08: right answers pass, each typical mistake gets its diagnosis, and pipelines run."""

import gc
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import matplotlib as mpl
import pytest
import torch

import gpulab
from gpulab.exercises import lesson_08, machines
from gpulab.exercises._exercise import Verdict
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


PIPELINES: list[tuple[object, str, str]] = [
    (buffered(), "", "Every step computed on its own data, gpulab.hazards() finds nothing, and "),
    (
        buffered(host=False, device=False),
        "both-races",
        "38 of 40 steps computed on wrong data. Both waits are missing",
    ),
    (buffered(host=False), "host-race", "38 of 40 steps computed on wrong data. The host refills"),
    (buffered(device=False), "device-race", "37 of 40 steps computed on wrong data. A copy"),
    (
        buffered(arrival=False),
        "copy-not-awaited",
        "Every value was right this time, by luck: nothing fixes the order. compute reads",
    ),
    (
        buffered(device_sync=True),
        "speed",
        "The order is right, the speed not yet: the overlap is ",
    ),
    (
        buffered(one_stream=True),
        "speed",
        "The order is right, the speed not yet: the overlap is ",
    ),
    (
        buffered(device_sync=True, shift=1),
        "wrong-data",
        "40 of 40 steps computed on wrong data, although their order is fixed",
    ),
    (raising, "raised", "Your function raised KeyError: 'slot'"),
    (lazy, "steps-missing", "For 40 steps your function called fill 40 times and compute 0 times"),
    ("pipeline", "not-a-choice", "'pipeline' isn't a valid answer."),
]


@pytest.mark.slow
@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(("pipeline", "code", "beginning"), PIPELINES)
def test_each_pipeline_gets_its_verdict(pipeline: object, code: str, beginning: str) -> None:
    """Values are judged first, then order, then overlap, and the message has their numbers."""
    verdict = judge(pipeline)
    assert (verdict.diagnosis_code, bool(verdict)) == (code, code == "")
    assert verdict.message.startswith(beginning)


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


@pytest.mark.slow
@pytest.mark.usefixtures("gpu")
def test_waits_for_whole_streams_are_not_fast_enough() -> None:
    """Waits for whole streams give the right order, and the verdict says why they are slow."""
    verdict = judge(as_proposed)
    assert verdict.diagnosis_code == "speed"
    assert "It waits for whole streams" in verdict.message
    assert "waits" not in judge(buffered()).message


@pytest.mark.usefixtures("gpu")
def test_wide_waits_are_counted_and_the_methods_restored() -> None:
    """Waits for the device and for a queue are counted separately, without the stopwatch's."""
    before = torch.cuda.synchronize
    stream_type = type(torch.cuda.Stream())
    own = dict(vars(stream_type))
    seen = pipelines.run(as_proposed, n_steps=4)
    assert (seen.n_device_waits, seen.n_queue_waits) == (0, 8)
    assert pipelines.run(buffered(device_sync=True), n_steps=4).n_device_waits == 4
    assert torch.cuda.synchronize is before
    # A method that stayed would hide waits of streams from hazards().
    assert dict(vars(stream_type)) == own


@pytest.mark.usefixtures("gpu")
def test_other_hazards_are_named_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kind of hazard without its own diagnosis still makes the verdict wrong."""
    with gpulab.hazards() as found:
        side, x = torch.cuda.Stream(), torch.ones(8, device="cuda")
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            x.add_(1)
        x.fill_(0)
    assert [hazard.kind for hazard in found] == ["write over a write"]
    monkeypatch.setattr(pipelines, "hazards_of", lambda _pipeline: tuple(found))
    assert judge(buffered()).diagnosis_code == "order-open"


@pytest.mark.slow
@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(("n_disturbed", "code"), [(2, ""), (3, "speed")])
def test_a_host_that_was_busy_once_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, n_disturbed: int, code: str
) -> None:
    """Up to two slow runs are repeated; a pipeline that is slow three times does not pass."""
    runs = [pipelines.run(buffered(device_sync=True))] * n_disturbed
    runs.append(pipelines.run(buffered()))
    monkeypatch.setattr(pipelines, "run", lambda _pipeline: runs.pop(0))
    assert judge(buffered()).diagnosis_code == code


@pytest.mark.usefixtures("gpu")
def test_a_stub_is_not_answered() -> None:
    """A function that does nothing counts as not answered."""
    assert judge(lambda *_: None).ok is None
    assert judge(lambda *_: ...).message == DOUBLE_BUFFER.judge.how


@pytest.mark.usefixtures("gpu")
def test_a_run_describes_its_result() -> None:
    """One line has the wrong steps, the time, the overlap and the source."""
    seen = pipelines.run(buffered(device_sync=True), n_steps=4)
    assert str(seen) == (
        "0 of 4 steps computed on wrong data; 1.81 ms, overlap 0 % of what is possible "
        "(virtual NVIDIA H200)"
    )


def test_overlap_is_a_share_of_what_is_possible() -> None:
    """Every shorter step but the first can be hidden, and the share is between 0 and 1."""
    seen = pipelines.PipelineRun(4, 0, 4, 4, 6.5, 4.0, 6.0, Trial(None), "here")
    assert (seen.possible_s, seen.hidden_s, seen.overlap) == (3.0, 3.0, 1.0)
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
    found = run_the_puzzle()
    ran = [(now, f"after {before}") for now, before in found.itertuples(index=False)]
    assert ran == list(right_of("08.five-waits").values())


def failing(look: Callable[[], object] = lambda: None) -> object:
    """Look up an index that does not exist, like the program of the lesson."""
    found = torch.zeros(4, device="cuda")[torch.tensor([7], device="cuda")]  # the look-up
    look()
    return found.tolist()  # the wait


def test_the_line_that_raises_is_named() -> None:
    """The error is raised at the first line that waits; a correct program has no such line."""
    late, early = line_that_raises(failing), line_that_raises(failing, look=torch_wait)
    assert (late["line"], early["line"]) == ("the wait", "the look-up")
    assert "Error: " in late["error"]
    assert line_that_raises(lambda: None)["line"] == "no line"


def torch_wait() -> None:
    """Wait for the GPU that is in use during the call."""
    torch.cuda.synchronize()


def test_claims_of_the_lesson_can_fail() -> None:
    """Each claim holds for the lesson's value and fails for an opposite one."""
    values = {
        "08.no-fence": (0.34, 1.0),
        "08.prefetch-is-faster": (0.8, 1.2),
        "08.caller-waits": ("-2 and 1", "-2 and -2"),
    }
    assert {claim.claim_id: (True, False) for claim in lesson_08.CLAIMS} == {
        claim.claim_id: tuple(map(claim.holds, values[claim.claim_id]))
        for claim in lesson_08.CLAIMS
    }


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


def test_a_throwaway_gpu_is_another_one() -> None:
    """A throwaway GPU has no memory in use, and tensors of the other GPU survive."""
    with gpulab.virtual_gpu("A100"):
        kept = torch.ones(1 << 20, device="cuda")
        with machines.throwaway_gpu():
            assert torch.cuda.device_count() == 1
            assert torch.cuda.memory_allocated() == 0
        assert kept.sum().item() == 1 << 20


def test_two_gpus_are_taken_as_they_are() -> None:
    """A machine that has two GPUs already is used as it is."""
    with gpulab.virtual_gpu("A100", count=2) as mine, machines.two_gpus() as lent:
        assert lent.virtual is mine


# The figure


def ran(hidden_s: float, n_wrong: int) -> pipelines.PipelineRun:
    """Return the record of a run of 41 steps in which overlap can save 6 ms."""
    each_s = 6.15e-3  # for all copies, and for all computations
    times_s = (2 * each_s - hidden_s, each_s, each_s)
    return pipelines.PipelineRun(41, n_wrong, 41, 41, *times_s, Trial(None), "here")


RUNS = {"slow": ran(0.0, 0), "faulty": ran(5.9e-3, 38), "right": ran(5.4e-3, 0)}


def test_overlap_figure() -> None:
    """Each program has a row with saved and possible time; a hatch marks wrong data."""
    shown = draw_overlap(RUNS)
    assert shown.title == "With right values, right saves most: 90 % of what overlap can (here)"
    assert "faulty: 38 of 41 steps computed on wrong data" in shown.caption
    (ax,) = shown.canvas.axes
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["slow", "faulty", "right"]
    assert [text.get_text() for text in ax.texts] == ["0 %", "98 %", "90 %"]
    widths = {
        (round(bar.get_y() + 0.3), bar.get_hatch(), bar.get_fill()): round(bar.get_width(), 6)
        for bar in ax.patches
    }
    possible = {(row, None, False): 6.0 for row in range(3)}
    hidden = {(0, None, True): 0.0, (1, "//", True): 5.9, (2, None, True): 5.4}
    assert widths == possible | hidden
    legend = ax.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == [
        *("saved, values right", "saved, on wrong data", "possible"),
    ]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("time saved by overlap (ms)", "")


def test_the_title_of_wrong_programs_names_none() -> None:
    """If every program that overlaps computed on wrong data, the title says so."""
    title = draw_overlap({"faulty": ran(5.9e-3, 38)}).title
    assert title == "No program that overlaps has right values (here)"


@pytest.mark.slow
@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(
    ("pipeline", "code", "n_runs"),
    [
        (buffered(shift=1, device_sync=True), "wrong-data", 1),
        (buffered(), "", 1),
        (buffered(device_sync=True), "speed", 3),
    ],
)
def test_only_a_slow_pipeline_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, pipeline: Pipeline, code: str, n_runs: int
) -> None:
    """Right pipelines and wrong data are run once, a pipeline without overlap three times."""
    runs: list[object] = []
    run = pipelines.run
    monkeypatch.setattr(pipelines, "run", lambda tried: runs.append(tried) or run(tried))
    assert judge(pipeline).diagnosis_code == code
    assert runs == [pipeline] * n_runs


@pytest.mark.slow
@pytest.mark.usefixtures("gpu")
def test_a_repeated_run_is_judged_by_its_values_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A repeated run that overlaps but computes on wrong data gets the diagnosis of its data."""
    slow = pipelines.run(buffered(device_sync=True))
    quick = replace(slow, n_wrong=3, duration_s=slow.duration_s - slow.possible_s)
    runs = [slow, quick]
    monkeypatch.setattr(pipelines, "run", lambda _pipeline: runs.pop(0))
    verdict = judge(buffered())
    assert verdict.diagnosis_code == "wrong-data"
    assert verdict.message.startswith("3 of 40 steps computed on wrong data")


@pytest.mark.slow
@pytest.mark.usefixtures("gpu")
def test_the_best_of_the_tries_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message has the largest overlap of the three tries, not the last one."""
    slow = pipelines.run(buffered(device_sync=True))
    alone_s = slow.copies_s + slow.computes_s
    shares = (0.1, 0.3, 0.2)
    runs = [replace(slow, duration_s=alone_s - share * slow.possible_s) for share in shares]
    monkeypatch.setattr(pipelines, "run", lambda _pipeline: runs.pop(0))
    assert "the overlap is 30 % of" in judge(buffered()).message


def test_a_run_that_is_kept_keeps_no_tensors() -> None:
    """A notebook keeps many results; their tensors must be free without the garbage collector."""
    with gpulab.virtual_gpu("H200", first_use=False) as gpu:
        gc.disable()
        try:
            kept = pipelines.run(buffered(), n_steps=2)
        finally:
            gc.enable()
        assert kept.n_wrong == 0
        assert gpu.machine.value_bytes == 0
