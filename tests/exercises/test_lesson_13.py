"""The clinic: each patient fails as it should, its cure is right, and nonsense is refused."""

import ast
from functools import cache
from typing import Any

import pytest
import torch

import gpulab
from gpulab import exercises
from gpulab.errors import CutOffError
from gpulab.exercises import lesson_13 as lab
from gpulab.exercises._api import exercise
from gpulab.exercises.lesson_13._cut_off import few_polls
from gpulab.exercises.lesson_13._exercises import EXERCISES
from gpulab.lessons import _build as build
from tests.support.lessons import source_of

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
    """Return the programs of the notebook: each patient, and after its name ``-mended``."""
    names: dict[str, Any] = {}
    found: dict[str, Any] = {}
    for cell in build.solved(source_of("13_clinic")).cells:
        if cell.cell_type == "code":
            kinds = ast.Import | ast.ImportFrom | ast.FunctionDef
            kept = [node for node in ast.parse(cell.source).body if isinstance(node, kinds)]
            exec(compile(ast.Module(kept, []), "13_clinic", "exec"), names)
            for name in (node.name for node in kept if isinstance(node, ast.FunctionDef)):
                patient = list(found)[-1] if name == "mended" else name.replace("_", "-")
                found[f"{patient}-mended" if name == "mended" else patient] = names[name]
    return found


def test_there_are_twelve() -> None:
    """Each patient of the notebook has its judge."""
    assert len(EXERCISES) == 12
    assert {each.exercise_id for each in EXERCISES} == {f"13.{name}" for name in PATIENTS}


@pytest.mark.parametrize(("name", "code"), PATIENTS.items())
def test_each_patient_is_diagnosed_and_cured(name: str, code: str) -> None:
    """The program as shown has its diagnosis; the mended one is right."""
    ill = exercises.check(f"13.{name}", programs()[name])
    assert (ill.ok, ill.diagnosis_code) == (False, code), ill.message
    cured = exercises.check(f"13.{name}", programs()[f"{name}-mended"])
    assert (cured.ok, cured.diagnosis_code) == (True, ""), cured.message


@pytest.mark.parametrize("name", PATIENTS)
def test_what_is_no_cure(name: str) -> None:
    """Nothing yet is no mistake; nonsense is one."""
    judge = exercise(f"13.{name}").judge
    assert [judge(answer, None).ok for answer in (..., None, lambda *_: None)] == [None] * 3
    assert judge(lambda *_: "soon", None).ok is False
    assert judge("soon", None).diagnosis_code == "not-a-choice"
    assert judge(lambda: 1.0, None).diagnosis_code == "raised"


def test_a_program_without_an_end_is_cut_off() -> None:
    """The message says how often the event was asked; afterwards query is as it was."""
    original = torch.cuda.Event.query
    with gpulab.virtual_gpu("H200", first_use=False):
        inside = torch.cuda.Event.query
        message = lab.cut_off(programs()["endless"], lab.kernel(1), lab.kernel(0.2))
        assert torch.cuda.Event.query is inside
        assert lab.cut_off(lambda: 3) == 3
        late = torch.cuda.Event()
        torch.cuda._sleep(10**9)
        late.record()
        with pytest.raises(CutOffError, match="asked 2 times"), few_polls(2):
            [late.query() for _ in range(3)]
    assert str(message).startswith("Cut off: the program asked 500 times whether an event is ")
    assert torch.cuda.Event.query is original
