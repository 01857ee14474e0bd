"""Lesson 07: right answers pass, wrong ones get a diagnosis, and the GPU confirms the keys."""

from collections.abc import Callable
from itertools import count

import pytest
import torch

import gpulab
from gpulab.core.errors import NotCapturableError, UnknownNameError
from gpulab.exercises import lesson_07
from gpulab.exercises._exercise import Exercise, Verdict
from gpulab.exercises.lesson_07 import _exercises as lesson
from gpulab.exercises.lesson_07 import _host_lead, program
from gpulab.timing import take_samples
from tests.exercises.test_function_answers import half_more_than_the_host
from tests.support.judging import right_of

REASONS = {"host late": "host", "device": "gpu", "synchronize": "wait"}


def check(exercise: Exercise, answer: object) -> Verdict:
    """Judge an answer as ``exercises.check`` does."""
    return exercise.judge(answer, None)


LINES = right_of("07.capturable")


@pytest.mark.parametrize("key", LINES)
@pytest.mark.parametrize("word", ["runs", "raises", "frozen"])
def test_wrong_lines_are_counted_and_not_named(key: str, word: str) -> None:
    """The message says how many lines are right and why, but not which line is wrong."""
    if word == LINES[key]:
        return
    codes = {"runs": "gpu-work", "raises": "needs-a-value", "frozen": "python-is-not-replayed"}
    verdict = check(lesson.CAPTURABLE, LINES | {key: word})
    assert (verdict.ok, verdict.diagnosis_code) == (False, codes[LINES[key]])
    assert verdict.message.startswith("7 of 8 are right. ")
    alike = next(other for other in LINES if other != key and LINES[other] == LINES[key])
    assert check(lesson.CAPTURABLE, LINES | {alike: word}).message == verdict.message


# The sleep


def sleeping(cycles: float) -> Callable[[Callable[[], object]], float]:
    """Return an answer that calls the work and returns so many cycles."""
    return lambda work: (work(), cycles)[1]


@pytest.mark.parametrize(
    ("cycles", "part"),
    [
        (30_000, "samples. There is one sleep for all of them."),
        (100_000, "The host was ahead in 6 of 40 samples. work() is not all"),
        (2_000_000, "for one of 16: there the host was ahead in 25 of 40 samples."),
        (1e12, "times as long as the host needs."),
    ],
)
def test_the_message_says_in_how_many_samples_the_host_was_ahead(cycles: float, part: str) -> None:
    """The numbers are those of the tries, and a sleep of eight minutes is not tried."""
    with gpulab.virtual_gpu("H200") as entered:
        before_s = entered.now_s
        assert part in check(lesson.LONG_ENOUGH, sleeping(cycles)).message
        assert entered.now_s - before_s < 1


def test_a_host_that_was_delayed_once_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge tries a sleep three times, and the best try counts."""
    number, real = count(), _host_lead._lead
    # Calls 0 and 4 are the judge's own look at each work; after each come its tries, of which
    # the first two are delayed here.
    delayed = (1, 2, 5, 6)

    def lead(work: Callable[[], object], n_cycles: int) -> tuple[int, float]:
        n_ahead, host_s = real(work, n_cycles)
        return (7 if next(number) in delayed else n_ahead), host_s

    monkeypatch.setattr(_host_lead, "_lead", lead)
    assert check(lesson.LONG_ENOUGH, half_more_than_the_host).ok


# What the lesson shows


def test_a_capture_is_tried_and_described() -> None:
    """The result says that work was captured, or why it cannot be."""
    with gpulab.virtual_gpu("H200"):
        x = torch.ones(8, device="cuda")
        assert lesson_07.try_to_capture(lambda: torch.relu(x)) == "captured"
        assert "capturing" in lesson_07.try_to_capture(lambda: x.sum().item())


# The keys agree with the virtual GPU


@pytest.mark.slow
def test_the_three_programs_wait_for_what_the_key_says() -> None:
    """The cause of each program's longest gap is the right answer of the exercise."""
    with gpulab.virtual_gpu("H200"):
        longest = {key: gpulab.timeline(program(key)).summary().gaps[0] for key in "abc"}
    assert {key: REASONS[gap.cause] for key, gap in longest.items()} == right_of("07.gaps")


def test_an_unknown_program_is_refused() -> None:
    """The error for an unknown letter lists the known ones."""
    with pytest.raises(UnknownNameError) as error:
        program("d")
    assert str(error.value) == "unknown program 'd'; Known: a, b, c"


def lines() -> dict[str, Callable[[torch.Tensor, list[int]], object]]:
    """Return the lines of the exercise as functions of x and of a Python list."""
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
    assert refused == {key for key, word in LINES.items() if word == "raises"}


def replayed(key: str) -> tuple[list[float], list[float], int]:
    """Capture a line, replay it twice, and return both results and the length of the list."""
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
    """A replay reads x again, but the list does not grow and numbers of Python do not change."""
    with gpulab.virtual_gpu("H200"):
        assert replayed("a")[:2] == ([1.0] * 8, [5.0] * 8)
        assert replayed("c")[2] == 4  # two at first, one at the capture, one by the test
        assert replayed("e")[:2] == ([0.0] * 8, [0.0] * 8)
        assert replayed("f")[:2] == ([2.0] * 8, [10.0] * 8)
        first, second, _ = replayed("h")
    assert [x - 1 for x in first] != [x - 5 for x in second]


@pytest.mark.slow
def test_the_errors_of_the_rungs_are_as_the_lesson_says() -> None:
    """For a kernel of 0.3 ms, events are within 2 % and the stopwatch is not."""
    with gpulab.virtual_gpu("H200"):
        a = torch.ones(2048, 2048, device="cuda")
        climbed = gpulab.ladder(lambda: a @ a, progress=False, max_time_s=0.05)
    errors = {rung.name: rung.error or 0.0 for rung in climbed.rungs}
    assert 250e-6 < (climbed.rungs[-2].referee_s or 0.0) < 350e-6
    assert errors["events"] < 0.02 < errors["synchronized"]
