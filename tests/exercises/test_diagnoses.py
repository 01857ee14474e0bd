"""Each exercise whose answer is data reaches each of its diagnoses, whatever lesson it is in.

The tests read the keys and the mistakes from the exercises: they change the right answer as an
entry of the mistakes says, and expect the diagnosis of this entry.
"""

import ast
import re
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from itertools import combinations
from math import inf, isfinite
from types import MappingProxyType
from typing import Any, NamedTuple, get_args

import numpy as np
import pytest
import torch

from gpulab.exercises._api import exercise, exercise_ids
from gpulab.exercises.answers import (
    CaseFunction,
    Choice,
    Diagnosis,
    Duration,
    Letters,
    Quantities,
    Table,
)
from gpulab.exercises.answers._judging import FORGOT_UNITS
from gpulab.exercises.lesson_06._flush_choice import FlushChoice
from tests.support.lesson_text import LessonText
from tests.support.lessons import ROOT

Form = Choice | Letters | Table | Quantities | Duration | CaseFunction
Words = str | tuple[str, ...]


def form_of(exercise_id: str) -> Any:  # noqa: ANN401  # a Form, or a judge without a key
    """Return the judge that contains the key of an exercise."""
    match exercise(exercise_id).judge:
        case FlushChoice(reason=reason):
            return reason
        case Table(counts_only=True) as table:  # whose own messages name no key
            return replace(table, counts_only=False)
        case judge:
            return judge


LESSONS = [LessonText(source) for source in sorted((ROOT / "notebooks/source").rglob("*.py"))]
IN_A_FORM = (*get_args(Form), FlushChoice)
FORMS = [each for each in exercise_ids() if isinstance(exercise(each).judge, IN_A_FORM)]
TABLES = [each for each in FORMS if isinstance(exercise(each).judge, Table)]


class Mistake(NamedTuple):
    """A wrong answer that differs from the right one in one place, with what is expected."""

    answer: object
    diagnosis: Diagnosis
    message: str


def replaced(words: Words, position: int, word: str) -> Words:
    """Return the words of a key with another one at a position."""
    if isinstance(words, str):
        return word
    return (*words[:position], word, *words[position + 1 :])


def wrong_words(table: Table) -> Iterator[tuple[str, int, str]]:
    """Yield each wrong word that a table allows, with its key and its position."""
    for key, words in table.right.items():
        right = (words,) if isinstance(words, str) else words
        for position, allowed in enumerate(table.allowed):
            yield from ((key, position, word) for word in allowed if word != right[position])


def mistakes_in_table(table: Table) -> Iterator[Mistake]:
    """Yield an answer for each word that is allowed and wrong."""
    for key, position, word in wrong_words(table):
        diagnosis = table.wrong.get((key, word), table.otherwise[position])
        answer = {**table.right, key: replaced(table.right[key], position, word)}
        yield Mistake(answer, diagnosis, f"{diagnosis.message} (Wrong so far: {key}.)")


def mistakes_in_letters(letters: Letters) -> Iterator[Mistake]:
    """Yield an answer with each wrong letter, without each right one, with all and with none."""
    known = letters.right | letters.wrongly_in.keys()
    for letter, diagnosis in letters.wrongly_in.items():
        yield Mistake(letters.right | {letter}, diagnosis, diagnosis.message)
    for letter, diagnosis in letters.missing.items():
        yield Mistake(letters.right - {letter}, diagnosis, diagnosis.message)
    for answer, diagnosis in ((known, letters.all_chosen), (set(), letters.none_chosen)):
        yield Mistake(answer, diagnosis, diagnosis.message)


def mistakes_in_quantities(quantities: Quantities) -> Iterator[Mistake]:
    """Yield an answer with each wrong number, and for each key one that no mistake explains."""
    for key, number, diagnosis in quantities.wrong:
        yield Mistake({**quantities.right, key: number}, diagnosis, diagnosis.message)
    for key, number in quantities.right.items():
        message = f"{key}: {quantities.otherwise.message}"
        answer = {**quantities.right, key: -7.3 * number}
        yield Mistake(answer, quantities.otherwise, message)


def mistakes_in_duration(duration: Duration) -> Iterator[Mistake]:
    """Yield a time inside each wrong range, in a wrong unit, and that no range explains."""
    for low_s, high_s, diagnosis in duration.wrong:
        ends_s = [end_s for end_s in (low_s, high_s) if isfinite(end_s)]
        time_s = ends_s[0] * (2 if high_s == inf else 0.5 if low_s == -inf else 1)
        yield Mistake(time_s, diagnosis, diagnosis.message)
    for factor in (1e3, 1e6):
        yield Mistake(factor * duration.right_s, FORGOT_UNITS, FORGOT_UNITS.message)
    yield Mistake(7.3 * duration.right_s, duration.otherwise, duration.otherwise.message)


def mistakes_in(form: Form) -> Iterator[Mistake]:
    """Yield a wrong answer for each diagnosis of an exercise."""
    match form:
        case Table():
            yield from mistakes_in_table(form)
        case Letters():
            yield from mistakes_in_letters(form)
        case Quantities():
            yield from mistakes_in_quantities(form)
        case Duration():
            yield from mistakes_in_duration(form)
        case Choice():
            for letter, diagnosis in form.wrong.items():
                yield Mistake(letter, diagnosis, diagnosis.message)
        case CaseFunction():
            for formula, diagnosis in form.mistakes:
                yield Mistake(formula, diagnosis, diagnosis.message)


def as_written(value: Words) -> object:
    """Return a value as a careless learner writes it: a number, a list, in capitals."""
    if not isinstance(value, str):
        return [f" {word.title()}" for word in value]
    return int(value) if value.isdigit() else f"{value.upper()} "


def as_numbers(value: Words) -> object:
    """Return numbers in place of their texts, each of another type."""
    if isinstance(value, str):
        return np.float64(value) if value.isdigit() else value
    return tuple(torch.tensor(int(word)) if word.isdigit() else word for word in value)


def right_answers(form: Form) -> list[object]:
    """Return the right answer, and the same in other forms."""
    match form:
        case Table():
            items = form.right.items()
            return [
                form.right,
                {f" {key.title()}()": as_written(value) for key, value in items},
                MappingProxyType(dict(reversed(items))),
                {np.str_(key): np.array(value) for key, value in items},
                {key: as_numbers(value) for key, value in items},
                {key: value if isinstance(value, str) else deque(value) for key, value in items},
            ]
        case Letters():
            letters = sorted(form.right, reverse=True)
            chosen = {
                letter: letter in form.right for letter in form.right | form.wrongly_in.keys()
            }
            texts = ["".join(letters), ", ".join(letters).upper()]
            return [form.right, letters, tuple(letters), np.array(letters), chosen, *texts]
        case Quantities():
            items = form.right.items()
            return [
                form.right,
                {key: 1.02 * number for key, number in items},
                {key: torch.tensor(float(number), dtype=torch.double) for key, number in items},
                {key: np.float64(number) for key, number in items},
                MappingProxyType({key: Decimal(f"{number:.4g}") for key, number in items}),
            ]
        case Duration():
            time_s = form.right_s
            rounded = [float(f"{time_s:.2g}"), f"{1e6 * time_s:.4g} µs"]
            return [time_s, np.float64(time_s), torch.tensor(time_s).double(), *rounded]
        case Choice():
            letter = form.right
            return [
                letter,
                f" {letter.upper()} ",
                f"{letter})",
                [letter],
                {letter},
                np.str_(letter),
            ]
        case CaseFunction():
            return [form.right]


@pytest.mark.parametrize("exercise_id", FORMS)
def test_the_right_answer_passes(exercise_id: str) -> None:
    """The right answer passes, however it is written, and the verdict explains it."""
    form = form_of(exercise_id)
    for answer in right_answers(form):
        verdict = form(answer)
        assert (verdict.ok, verdict.diagnosis_code) == (True, ""), answer
        assert verdict.message == form.why


@pytest.mark.parametrize("exercise_id", FORMS)
def test_each_mistake_reaches_its_diagnosis(exercise_id: str) -> None:
    """Each mistake alone gets its own diagnosis, which is at least a whole sentence."""
    form = form_of(exercise_id)
    for answer, diagnosis, message in mistakes_in(form):
        verdict = form(answer)
        assert (verdict.ok, verdict.diagnosis_code) == (False, diagnosis.code), answer
        assert verdict.message == message, answer
        assert re.fullmatch(r".{30,}[.?)]", message, re.DOTALL), message


@pytest.mark.parametrize("exercise_id", TABLES)
def test_no_diagnosis_of_a_table_is_dead(exercise_id: str) -> None:
    """Each entry of the mistakes names a key and a word that is allowed there and wrong."""
    table = form_of(exercise_id)
    assert table.wrong.keys() <= {(key, word) for key, _, word in wrong_words(table)}


@pytest.mark.parametrize("exercise_id", TABLES)
def test_of_several_mistakes_the_first_is_explained(exercise_id: str) -> None:
    """Two wrong keys are both named, and the mistake that is listed first is explained."""
    table = form_of(exercise_id)
    wrong = {(key, word): (key, at, word) for key, at, word in wrong_words(table)}
    for first, second in combinations(table.wrong, 2):
        if first[0] == second[0]:
            continue
        answer = dict(table.right)
        for key, position, word in (wrong[first], wrong[second]):
            answer[key] = replaced(table.right[key], position, word)
        keys = ", ".join(sorted((first[0], second[0])))
        verdict = table(answer)
        assert verdict.diagnosis_code == table.wrong[first].code, answer
        assert verdict.message == f"{table.wrong[first].message} (Wrong so far: {keys}.)"


@pytest.mark.parametrize("exercise_id", FORMS)
def test_incomplete_and_unknown_answers_are_not_judged(exercise_id: str) -> None:
    """A missing key and an unknown key are named, and an unknown value is refused."""
    form = form_of(exercise_id)
    if not isinstance(form, Table | Quantities):
        return
    whole: Mapping[str, object] = form.right
    for key in whole:
        assert form({**whole, key: ...}).message == f"There is no answer yet for {key}."
        assert form({**whole, key: "no such word"}).diagnosis_code == "not-a-choice"
    unknown = form({**whole, "no such key": 1})
    assert unknown.diagnosis_code == "unknown-key"
    assert unknown.message.startswith("'no such key' is no key of this table; ")
    assert form(dict.fromkeys(whole, ...)).ok is None


@pytest.mark.parametrize("exercise_id", TABLES)
def test_the_skeleton_of_a_table_stands_in_the_cell(exercise_id: str) -> None:
    """A learner fills a dict with dots or a form, and the question gives no entry away."""
    table = form_of(exercise_id)
    skeleton = ast.literal_eval(table.skeleton)
    asked = str(exercise(exercise_id).asked)
    assert "example" not in exercise(exercise_id).judge.how
    assert table.skeleton in asked
    assert table(skeleton).ok is None
    cells = (cell for text in LESSONS for cell in text.cells)
    codes = [cell.source for cell in cells if cell.cell_type == "code"]
    (place,) = (at for at, code in enumerate(codes) if f'exercises.ask("{exercise_id}")' in code)
    if "### BEGIN SOLUTION" in codes[place]:  # the form fills the skeleton in
        return
    cell = next(code for code in codes[place:] if code.startswith("answer = "))
    given = cell.partition("### BEGIN SOLUTION")[0].removeprefix("answer = ")
    assert ast.literal_eval(given) == skeleton


@pytest.mark.parametrize("exercise_id", FORMS)
def test_every_exercise_is_complete(exercise_id: str) -> None:
    """There are two diagnoses, and a text for each letter that may be chosen."""
    form, choices = form_of(exercise_id), exercise(exercise_id).choices
    assert len({mistake.diagnosis.code for mistake in mistakes_in(form)}) >= 2
    if isinstance(form, Choice):
        assert choices is not None
        assert set(choices) == {form.right, *form.wrong}
    if isinstance(form, Letters):
        assert choices is not None
        assert set(choices) == form.right | form.wrongly_in.keys()
        assert form.right == form.missing.keys()
