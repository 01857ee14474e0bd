"""The clinic: each program has the intended fault, its cure is right, nonsense is refused."""

import ast
import re
from functools import cache
from typing import Any

import pytest
import torch

import gpulab
from gpulab import exercises
from gpulab.exercises import lesson_13 as lab
from gpulab.exercises.lesson_13 import _guesses, _works
from gpulab.exercises.lesson_13._guesses import ENDLESS as NO_END
from gpulab.exercises.lesson_13._guesses import NEVER, TEN_TIMES
from gpulab.lessons import _build as build
from tests.support.lessons import source_of

LESSONS = ("13_clinic", "13b_clinic")
PATIENTS = {
    "unwaited": "launch",
    "backlog": "backlog",
    "too-early": "not-completed",
    "first-call": "first-use",
    "each-layer": "waits-each-layer",
    "pageable": "no-overlap",
    "two-streams": "no-order",
    "freed": "memory-reused",
    "read-too-early": "not-arrived",
    "wait-before-record": "no-order",
    "refilled": "refilled",
    "endless": "endless",
}


@cache
def programs() -> dict[str, Any]:
    """Return the notebooks' programs by patient; the cure has the name with ``-mended``."""
    names: dict[str, Any] = {}
    by_patient: dict[str, Any] = {}
    shown = ""
    for cell in (cell for lesson in LESSONS for cell in build.solved(source_of(lesson)).cells):
        if cell.cell_type == "code":
            kinds = ast.Import | ast.ImportFrom | ast.FunctionDef
            definitions = [node for node in ast.parse(cell.source).body if isinstance(node, kinds)]
            exec(compile(ast.Module(definitions, []), "the clinic", "exec"), names)
            if "exercises.predict(" in cell.source:
                shown = last_function(cell.source)
            if checked := re.search(r'check\("13\.([\w-]+)"', cell.source):
                by_patient |= {checked[1]: names[shown], f"{checked[1]}-mended": names["mended"]}
    return by_patient


def last_function(code: str) -> str:
    """Return the name of the last function in a cell: of a patient's program."""
    return [node.name for node in ast.parse(code).body if isinstance(node, ast.FunctionDef)][-1]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "code"), PATIENTS.items())
def test_each_patient_is_diagnosed_and_cured(name: str, code: str) -> None:
    """The shown program gets its diagnosis, and the mended one is right."""
    ill = exercises.check(f"13.{name}", programs()[name])
    assert (ill.ok, ill.diagnosis_code) == (False, code), ill.message
    cured = exercises.check(f"13.{name}", programs()[f"{name}-mended"])
    assert (cured.ok, cured.diagnosis_code) == (True, ""), cured.message


RACES_OF = {
    "two-streams": "read before the write is done",
    "freed": "read after free",
    "read-too-early": "host read before the copy is done",
    "wait-before-record": "read before the write is done",
    "refilled": "host write into a buffer in flight",
}


@pytest.mark.parametrize(("name", "kind"), RACES_OF.items())
def test_the_race_of_a_patient_has_a_name(name: str, kind: str) -> None:
    """The race of the shown program has the name in the quiz; the mended one has no race."""
    inputs = (lab.batches,) if name == "refilled" else (lab.numbers,)
    doubled = (_works.slow_double,) if name not in {"read-too-early", "refilled"} else ()
    with gpulab.virtual_gpu("H200", first_use=False):
        kinds = [
            lab.race(programs()[each], *(make() for make in inputs), *doubled)
            for each in (name, f"{name}-mended")
        ]
    assert kinds == [kind, "no race"]
    assert kind in _guesses.RACES


def test_nothing_is_given_away_before_a_question() -> None:
    """Each prediction comes before its program runs, and no program's name says its fault."""
    cells = [cell for lesson in LESSONS for cell in build.read_source(source_of(lesson)).cells]
    asked = [cell for cell in cells if "exercises.predict(" in cell.source]
    for cell, number in zip(asked, range(1, 13), strict=True):
        program = last_function(cell.source)
        before = cells[: cells.index(cell) + 1]
        assert f'.patient-{number}")' in cell.source
        assert not [each for each in before if re.search(rf"(?<!def )\b{program}\(", each.source)]
        assert program.replace("_", "-") not in PATIENTS


def test_the_picture_says_which_stream_was_first() -> None:
    """Its title says that y is read too early, or not; both times are marked."""

    def ordered(x: torch.Tensor) -> None:
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            y = x * 2
        torch.cuda.current_stream().wait_stream(side)
        y.sum()

    with gpulab.virtual_gpu("H200", first_use=False):
        early = lab.first_reader(
            gpulab.timeline(lambda: programs()["two-streams"](lab.numbers(), _works.slow_double))
        )
        right = lab.first_reader(gpulab.timeline(lambda: ordered(lab.numbers())))
    assert re.match(r"The current stream reads y \d+ µs before it is written \(", early.title)
    assert right.title.startswith("The current stream reads y after it is written (")
    texts = [text.get_text() for text in early.picture.peek().axes[0].texts]
    assert {"y.sum() reads y", "y is written"} < set(texts)
    assert re.search(r"\d+ µs: y is not written yet", " ".join(texts))
    assert "not written yet" not in str(right.picture.peek().axes[0].texts)


def test_how_often_a_program_filled_the_time() -> None:
    """A text is a program that was cut off; a count is one that ended."""
    assert [lab.how_often(each) for each in (0, 9, "Cut off")] == [NEVER, TEN_TIMES, NO_END]


def test_a_program_without_an_end_is_cut_off() -> None:
    """An endless loop is cut off with a message; what a program raises is raised."""
    with gpulab.virtual_gpu("H200", first_use=False):
        message = lab.cut_off(programs()["endless"], lab.kernel(1), lab.kernel(0.2))
        assert lab.cut_off(lambda: 3) == 3
        with pytest.raises(ZeroDivisionError):
            lab.cut_off(lambda: 1 / 0)
    assert str(message).startswith("Cut off: it called the work 500 times and had not returned;")
