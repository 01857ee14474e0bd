"""Lesson 07: right answers pass, wrong ones are named, and what is asked is so on the GPU."""

from collections.abc import Callable

import pytest
import torch

import gpulab
from gpulab.errors import NotCapturableError, UnknownNameError
from gpulab.exercises._exercise import Exercise, Verdict
from gpulab.exercises.answers._forms import Choice, Table
from gpulab.exercises.lesson_07 import _exercises as lesson
from gpulab.exercises.lesson_07 import program
from gpulab.timing import take_samples

TABLES = [lesson.GAPS, lesson.CAPTURABLE, lesson.WHICH_RUNG]
REASONS = {"host late": "host", "device": "gpu", "synchronize": "wait"}


def check(exercise: Exercise, answer: object) -> Verdict:
    """Judge an answer as the door of the exercises does."""
    return exercise.judge(answer, None)


@pytest.mark.parametrize("exercise", TABLES, ids=lambda exercise: exercise.exercise_id)
def test_tables(exercise: Exercise) -> None:
    """The right words pass, each known mistake has its diagnosis, any other the general one."""
    judge = exercise.judge
    assert isinstance(judge, Table)
    right = {key: str(word) for key, word in judge.right.items()}
    assert check(exercise, right) == Verdict(ok=True, message=judge.why)
    for key, word in ((key, word) for key in right for word in judge.allowed[0]):
        if word != right[key]:
            diagnosis = judge.wrong.get((key, word), judge.otherwise[0])
            verdict = check(exercise, right | {key: word})
            assert verdict.diagnosis_code == diagnosis.code
            assert verdict.message == f"{diagnosis.message} (Wrong so far: {key}.)"
    assert all(right[key] != word for key, word in judge.wrong)


def test_choice() -> None:
    """One letter is right, and every other has a diagnosis of its own."""
    judge = lesson.SYNC_INSIDE.judge
    assert isinstance(judge, Choice)
    found = {key: check(lesson.SYNC_INSIDE, key) for key in lesson.SYNC_INSIDE.choices or ()}
    codes = ["sleep-absorbs", "first-half-ahead", "", "deadlock"]
    assert [found[key].diagnosis_code for key in "abcd"] == codes


# What is asked is so


def right_of(exercise: Exercise) -> dict[str, str]:
    """Return the key of a table."""
    assert isinstance(exercise.judge, Table)
    return {key: str(word) for key, word in exercise.judge.right.items()}


def test_the_three_programs_are_held_up_as_said() -> None:
    """The cause of the longest gap of each program is what the exercise calls its pace."""
    with gpulab.virtual_gpu("H200"):
        longest = {key: gpulab.timeline(program(key)).summary().gaps[0] for key in "abc"}
    assert {key: REASONS[gap.cause] for key, gap in longest.items()} == right_of(lesson.GAPS)


def test_unknown_program() -> None:
    """A letter that is none is refused, with those that are."""
    with pytest.raises(UnknownNameError) as error:
        program("d")
    assert str(error.value) == "unknown program 'd'; Known: a, b, c"


def lines() -> dict[str, Callable[[torch.Tensor, list[int]], object]]:
    """Return the lines of the exercise; each gets x and a list of the numbers of Python."""
    return {
        "a": lambda x, _: torch.relu(x),
        "b": lambda x, _: x + 1 if x.sum().item() > 0 else x,
        "c": lambda _, numbers: numbers.append(1),
        "d": lambda x, _: x[x > 0],
        "e": lambda x, _: torch.zeros_like(x),
        "f": lambda x, numbers: x * len(numbers),
        "g": lambda x, _: x.cpu(),
        "h": lambda x, _: x + torch.rand_like(x),
    }


def test_lines_raise_in_a_capture_as_said() -> None:
    """A capture refuses the lines that the exercise says raise, and no others."""
    refused = set()
    with gpulab.virtual_gpu("H200"):
        x = torch.ones(8, device="cuda")
        for key, line in lines().items():
            try:
                take_samples("graph", lambda line=line: line(x, []), n_samples=1)
            except NotCapturableError:
                refused.add(key)
    answers = right_of(lesson.CAPTURABLE)
    assert refused == {key for key, word in answers.items() if word == "raises"}


def replayed(key: str) -> tuple[list[float], list[float], int]:
    """Capture a line, replay it twice, and return both results and what Python counted."""
    numbers, x = [0, 0], torch.full((8,), -3.0, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x.add_(4)
        result = lines()[key](x, numbers)
    numbers.append(0)
    values = []
    for _ in range(2):
        graph.replay()
        values.append(result.tolist() if isinstance(result, torch.Tensor) else [])
    return values[0], values[1], len(numbers)


def test_lines_are_frozen_as_said() -> None:
    """Every replay computes anew from x; a counter stands still, and a number stays."""
    with gpulab.virtual_gpu("H200"):
        assert replayed("a")[:2] == ([1.0] * 8, [5.0] * 8)
        assert replayed("c")[2] == 4  # two at first, one at the capture, one by the test
        assert replayed("e")[:2] == ([0.0] * 8, [0.0] * 8)
        assert replayed("f")[:2] == ([2.0] * 8, [10.0] * 8)
        first, second, _ = replayed("h")
    assert [x - 1 for x in first] != [x - 5 for x in second]


@pytest.mark.parametrize("sleep_cycles", [20_000_000, 0])
def test_the_host_is_never_ahead_of_a_wait(sleep_cycles: int) -> None:
    """Behind a sleep of 10 ms as without, no sample of work that waits has the host ahead."""
    with gpulab.virtual_gpu("H200"):
        loss, n_ahead = torch.ones(64, device="cuda"), 0
        torch.cuda._sleep(sleep_cycles)
        for _ in range(40):
            start, end = torch.cuda.Event(), torch.cuda.Event()
            start.record()
            loss.sum().item()
            end.record()
            n_ahead += not start.query()
    assert n_ahead == 0


def test_the_rungs_are_off_by_as_much_as_said() -> None:
    """Of a kernel of 0.3 ms events are within 2 %, and the stopwatch is not."""
    with gpulab.virtual_gpu("H200"):
        a = torch.ones(2048, 2048, device="cuda")
        climbed = gpulab.ladder(lambda: a @ a, progress=False, max_time_s=0.05)
    errors = {rung.name: rung.error or 0.0 for rung in climbed.rungs}
    assert 250e-6 < (climbed.rungs[-2].referee_s or 0.0) < 350e-6
    assert errors["events"] < 0.02 < errors["synchronized"]
