"""Right answers pass, typical mistakes get a diagnosis, and no answer breaks a notebook."""

import re
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest

from gpulab import exercises
from gpulab.core.errors import InvalidOptionError, UnknownNameError
from gpulab.core.markup import table
from gpulab.device.measurement import Conditions, Measurement
from gpulab.exercises import _html, _progress
from gpulab.exercises._api import exercise as keyed
from gpulab.exercises._api import exercise_ids
from gpulab.exercises.lesson_01._queue_length import first_blocked
from tests.support.journals import forget_all

IDS = exercise_ids()
SOURCES = {"a": "virtual", "b": "measured", "c": "recorded", "d": "virtual"}
# Calls that fill an H200's launch queue: the first one pays for loading the kernel, and call
# 1,022 waits for one second because the queue is full.
CALLS_S = [400e-6] + [5e-6] * 1020 + [1.0] + [5e-6] * 278

WRONG: list[tuple[str, object, str]] = [
    ("01.queue-length", 5e-6, "duration"),
    ("01.queue-length", -1, "not-a-choice"),
    ("01.queue-length", float("nan"), "not-a-choice"),
    ("01.queue-length", 999, "too-few"),
    ("01.queue-length", 1051, "too-many"),
    ("02.snippet-quiz", {"a": ("launch",)}, "not-a-choice"),
    ("02.snippet-quiz", {"a": ("launch", "wait after", "none")}, "not-a-choice"),
    ("02.snippet-quiz", {"a": "launch"}, "not-a-choice"),
    ("02.who-blocks", {"event.synchronize": "host"}, "incomplete"),
]


@pytest.fixture(autouse=True)
def _nothing_answered() -> Iterator[None]:
    """Start and end each test with no saved answers."""
    forget_all()
    yield
    forget_all()


@pytest.mark.parametrize(("exercise_id", "answer", "code"), WRONG)
def test_typical_mistakes_are_recognised(exercise_id: str, answer: object, code: str) -> None:
    """Each typical mistake gets its code and at least a sentence that explains it."""
    verdict = exercises.check(exercise_id, answer)
    assert (verdict.ok, verdict.diagnosis_code) == (False, code)
    assert not verdict
    assert re.fullmatch(r"Not yet\. .{30,}[.?)]", str(verdict), re.DOTALL)


@pytest.mark.parametrize("exercise_id", IDS)
def test_a_placeholder_counts_as_not_answered(exercise_id: str) -> None:
    """For a placeholder, the verdict says how to answer, and nothing is counted."""
    for blank in (..., None):
        verdict = exercises.check(exercise_id, blank)
        assert verdict.ok is None
        assert str(verdict) == f"Not answered yet. {exercises.ask(exercise_id).how}"
    assert exercise_id in dict(exercises.progress().rows)
    assert _progress.exercise_progress() == {}


def test_several_mistakes_are_counted_and_one_is_explained() -> None:
    """The verdict explains the most important mistake and only counts the others."""
    message = exercises.check("01.hidden-sync", "bd").message
    assert message.startswith("b: the host knows the shape")
    assert message.endswith("(6 more to find after this one.)")
    table = exercises.check("00.sources", SOURCES | {"a": "measured", "c": "measured"}).message
    assert table.endswith("(Wrong so far: a, c.)")


def test_unknown_exercises_name_the_nearest() -> None:
    """A misspelt id raises an error that suggests the nearest one and lists all."""
    known = ", ".join(sorted(IDS))
    for door in (exercises.ask, exercises.hint, exercises.readings):
        with pytest.raises(UnknownNameError) as error:
            door("01.hidden-sink")
        assert str(error.value) == (
            f"unknown exercise '01.hidden-sink'; did you mean '01.hidden-sync'? Known: {known}"
        )
    with pytest.raises(UnknownNameError, match="unknown exercise"):
        exercises.check("01.hidden-sink", ...)


@pytest.mark.parametrize("exercise_id", IDS)
def test_every_exercise_is_complete(exercise_id: str) -> None:
    """Each exercise has two hints, and shows its question and how to answer."""
    asked = keyed(exercise_id)
    assert len(asked.hints) >= 2
    shown = str(exercises.ask(exercise_id))
    assert shown.startswith(f"{exercise_id}: {asked.question}")
    call = f'Your answer goes in place of the dots: exercises.check("{exercise_id}", ...)'
    assert shown.endswith(asked.judge.how if asked.judge.fields is None else f".\n{call}")
    assert asked.judge.how in shown


def test_questions_show_choices_listings_and_readings_as_text() -> None:
    """The HTML of a question shows choices as a list, code as code, readings as a table."""
    page = exercises.ask("01.hidden-sync")._repr_html_()
    assert "<li><strong>a</strong>: <code>y.sum().item()</code></li>" in page
    assert "<pre>t0 = time.perf_counter()\ny = x @ x              # on the GPU\nLINE\n" in page
    assert "if (y &gt; 0).any(): pass" in page
    assert "<td>1.28\u00a0µs</td>" in exercises.ask("03.floor")._repr_html_()


def test_boxes_and_tables_escape_their_text() -> None:
    """Markup in text, listings, choices, captions, headings and cells is escaped."""
    tag = "<b>"
    parts = [
        _html.paragraphs(f"{tag}\n\n    {tag}"),
        _html.options({tag: f"{tag} `{tag}`"}),
        table([[tag]], caption=tag, headings=[tag]),
    ]
    assert [part.count("&lt;b&gt;") for part in parts] == [2, 3, 3]
    assert not any(tag in part for part in parts)


def test_verdicts_are_announced_with_sign_and_word() -> None:
    """Verdicts differ in a sign and in words, not only in colour, and screen readers hear them."""
    pages = [
        exercises.check("00.read-the-line", answer)._repr_html_() for answer in ("c", "a", ...)
    ]
    words = ["✓</span> Right.", "✗</span> Not yet.", "?</span> Not answered yet."]
    assert all(word in page for word, page in zip(words, pages, strict=True))
    assert all(page.startswith('<div role="status"') for page in pages)
    assert "&lt;b&gt;" in exercises.check("00.read-the-line", "<b>")._repr_html_()


def test_hints_come_one_after_the_other() -> None:
    """Each call returns the next hint, and after the last one the last one again."""
    first, second, third = (exercises.hint("03.floor") for _ in range(3))
    assert str(first) == (
        "Hint 1 of 2. What hardly changes from row to row: the ratio of the columns, or their "
        "difference?"
    )
    assert (
        str(second)
        == str(third)
        == (
            "Hint 2 of 2. One row has no kernel at all. Leave it out, and take the median of the "
            "others."
        )
    )
    assert 'role="status"' in first._repr_html_()


def test_progress_counts_answers_and_hints() -> None:
    """An exercise stays right after a wrong try; tries and hints are counted, blanks are not."""
    exercises.check("00.read-the-line", "c")
    exercises.check("00.read-the-line", "a")
    exercises.check("01.what-was-timed", "a")
    exercises.hint("01.what-was-timed")
    assert str(exercises.progress()).splitlines() == [
        "1 of 5 exercises right, and 0 of 1 in Going further",
        "  00.read-the-line        right             2 answers, 0 hints",
        "  00.sources              not yet           0 answers, 0 hints",
        "  01.what-was-timed       tried             1 answer, 1 hint",
        "  01.hidden-sync          not yet           0 answers, 0 hints",
        "  01.benchmark            not yet           0 answers, 0 hints",
        "  01.queue-length         in Going further  0 answers, 0 hints",
    ]
    page = exercises.progress()._repr_html_()
    assert page.startswith(
        "<table><caption>1 of 5 exercises right, and 0 of 1 in Going further</caption>"
    )
    assert "<td>01.what-was-timed</td><td>tried</td><td>1</td><td>1</td>" in page


def test_progress_separates_notebooks_with_one_number() -> None:
    """Notebooks 08 and 08b share a package of exercises; each lists only its own."""
    exercises.ask("08.record-stream")
    names = ["08.record-stream", "08.benchmark", "08.backward"]
    assert [name for name, _ in exercises.progress().rows] == names
    others = {name for name, _ in exercises.progress("08").rows}
    assert others == {name for name in IDS if name[:2] == "08"} - set(names)


def as_measurement(samples_s: list[float]) -> Measurement:
    """Return a measurement of these samples."""
    here = Conditions(
        "NVIDIA H200",
        torch_version="",
        python_version="",
        gpulab_version="",
        cuda_version=None,
        driver_version=None,
        cache="hot",
        taken_at="",
    )
    return Measurement(tuple(samples_s), "naive", "virtual", here)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (1021, ""),
        (1072, ""),
        (970, ""),
        (1300, "all-launches"),
        (279, "blocked-calls"),
        (960, "too-few"),
        (1100, "too-many"),
        (5e-6, "duration"),
    ],
)
def test_the_queue_is_judged_by_the_learners_own_readings(answer: float, code: str) -> None:
    """Call 1,022 waited, so the right answer is 1,021 within 5 %, from any kind of readings."""
    for readings in (CALLS_S, np.array(CALLS_S), as_measurement(CALLS_S)):
        assert exercises.check("01.queue-length", answer, readings=readings).diagnosis_code == code
    frame = pd.DataFrame({"duration_s": CALLS_S})
    assert exercises.check("01.queue-length", answer, readings=frame).diagnosis_code == code


@pytest.mark.parametrize("calls_s", [[5e-6] * 300, [2.0] + [5e-6] * 300, [5e-6] * 20 + [1.0]])
def test_readings_of_a_queue_that_never_filled_up_are_diagnosed(calls_s: list[float]) -> None:
    """Too few readings, or readings without a jump after the first call, get a diagnosis."""
    verdict = exercises.check("01.queue-length", 1021, readings=calls_s)
    assert verdict.diagnosis_code == "never-blocked"


@pytest.mark.parametrize("bend", [300, 1300])
def test_a_queue_that_fills_up_slowly_is_found_at_the_bend(bend: int) -> None:
    """Without a long kernel first, the queue is full where calls become slow and stay slow."""
    rng = np.random.default_rng(0)
    calls_s = np.r_[np.full(bend, 6e-6), np.full(2000 - bend, 18e-6)] * rng.normal(1, 0.05, 2000)
    calls_s[200] = 200e-6  # one slow call, as the operating system causes
    found = first_blocked([float(value) for value in calls_s])
    assert found is not None
    assert abs(found - bend) <= 1


@pytest.mark.parametrize("readings", [["5 ms"], 5e-6, [None] * 300])
def test_readings_that_are_no_durations_are_refused(readings: object) -> None:
    """Unusable readings raise an error, because the mistake is in the cell, not in the answer."""
    with pytest.raises(InvalidOptionError, match=r"^readings=.*; it must be a list of numbers"):
        exercises.check("01.queue-length", 1021, readings=readings)


def test_recorded_readings_name_their_source() -> None:
    """The frame of readings has a column that names its source."""
    frame = exercises.readings("03.floor")
    assert list(frame.columns) == ["work", "kernel_s", "pair_s", "source", "device_name"]
    assert set(frame["source"]) == {"recorded"}
    floors_us = ((frame["pair_s"] - frame["kernel_s"])[1:] * 1e6).round(1)
    assert (floors_us.min(), floors_us.median(), floors_us.max()) == (3.0, 3.1, 4.1)


def test_an_exercise_without_readings_refuses_to_return_any() -> None:
    """The error says that the exercise has no readings and what to do."""
    with pytest.raises(InvalidOptionError) as error:
        exercises.readings("00.sources")
    assert str(error.value) == "exercise '00.sources' has no readings; take your own"
