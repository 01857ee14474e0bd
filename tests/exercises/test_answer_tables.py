"""Every exercise has right answers and mistakes in the tests, and its texts give none away."""

import ast
import re
from collections import Counter
from collections.abc import Iterator

import pytest

from benchmarks.judges.data_references import TRUTHS
from benchmarks.judges.references import REFERENCES
from benchmarks.judges.timing_references import TIMING_REFERENCES
from gpulab.exercises._api import exercise, exercise_ids
from gpulab.exercises.answers import CaseFunction
from tests.exercises import (
    test_case_answers,
    test_clinic_answers,
    test_function_answers,
    test_lesson_answers,
)
from tests.exercises.test_diagnoses import FORMS, form_of, mistakes_in, right_answers

TABLES = (test_case_answers, test_clinic_answers, test_function_answers, test_lesson_answers)
GIVEN = [
    *((each.exercise_id, each.code) for table in TABLES for each in table.ANSWERS),
    *((exercise_id, code) for exercise_id, _, code in test_lesson_answers.DATA),
]
FEWEST = 5


def _codes(exercise_id: str) -> Iterator[str]:
    """Yield the codes that the tests expect for an exercise; an empty one is a right answer."""
    yield from (code for each, code in GIVEN if each == exercise_id)
    if exercise_id in FORMS:
        form = form_of(exercise_id)
        if not isinstance(form, CaseFunction):
            yield from ("" for _ in right_answers(form))
        yield from (mistake.diagnosis.code for mistake in mistakes_in(form))


@pytest.mark.parametrize("exercise_id", exercise_ids())
def test_every_exercise_has_five_right_answers_and_a_mistake(exercise_id: str) -> None:
    """At least five right answers and one mistake are tried, whatever lesson it is in."""
    counts = Counter(bool(code) for code in _codes(exercise_id))
    assert counts[False] >= FEWEST, counts
    assert counts[True] >= 1


def test_every_function_has_a_reference() -> None:
    """The benchmark of the judges leaves out no exercise that asks for a function."""
    functions = [each for each in exercise_ids() if exercise(each).judge.fields is None]
    assert sorted([*REFERENCES, *TIMING_REFERENCES]) == sorted(functions)
    assert {*TRUTHS} <= {*exercise_ids()}


@pytest.mark.parametrize("exercise_id", exercise_ids())
def test_no_example_is_a_right_answer(exercise_id: str) -> None:
    """What follows "for example" or "as in", and a skeleton, has no right entry."""
    judge = exercise(exercise_id).judge
    found = re.findall(r"(?:for example|as in|place of the dots in) (\{.*?\}|\".*?\")", judge.how)
    for text in found:
        example = ast.literal_eval(text)
        assert not judge(example, None).ok, text
        if isinstance(example, dict):
            assert all(set(_parts(value)) == {...} for value in example.values()), text


def _parts(value: object) -> tuple[object, ...]:
    return value if isinstance(value, tuple) else (value,)
