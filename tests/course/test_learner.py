"""Each learner gets their own questions, always the same, with keys that the GPU confirms."""

import hashlib
import time
from pathlib import Path

import pytest
import torch

import gpulab
from gpulab import course
from gpulab.core.errors import UnknownNameError
from gpulab.core.torch_private import spin
from gpulab.course import _timing
from gpulab.course._folder import read_keys
from gpulab.course._labs import LABS
from gpulab.course._notebook import source_notebook

KEYS = Path(__file__).parents[2] / "course"
LEARNERS = [f"learner-{number}" for number in range(12)]


def test_questions_belong_to_a_learner() -> None:
    """An id always gets the same questions, in upper or lower case; another id gets others."""
    ada, same, bob = (
        course.lab("timing", token="t", learner=learner) for learner in ("ada", " ADA", "bob")
    )
    assert repr(ada) == "Lab: time GPU work, 3 questions, 11 points, for ada"
    assert str(ada.ask("readings")) == str(same.ask("readings")) != str(bob.ask("readings"))
    # They must not change: learner and grader may have different versions of Python and gpulab.
    questions = [question for each in LABS.values() for question in each.questions]
    variants = [question.variant("t", learner) for question in questions for learner in LEARNERS]
    numbers = repr([(variant.numbers, variant.choices) for variant in variants])
    assert hashlib.sha256(numbers.encode()).hexdigest()[:16] == "2d2d06c296e66f27"
    assert ada.form("readings", {}).startswith("readings: not answered yet. Answer with four")
    assert ada.form("tail", {"tail": 5}).startswith("tail is 5, and no function. Answer with the")
    assert ada.form("tail", {"tail": print}).startswith("tail: there is an answer.")


def test_wrong_names_are_refused() -> None:
    """An unknown lab and an unknown question each get a message."""
    with pytest.raises(UnknownNameError, match="unknown lab 'stream'; did you mean 'streams'"):
        course.lab("stream", token="t", learner="ada")
    with pytest.raises(UnknownNameError, match="unknown question 'wait'; did you mean 'waits'"):
        course.lab("timing", token="t", learner="ada").ask("wait")


@pytest.mark.slow
@pytest.mark.parametrize("name", LABS)
def test_a_notebook_runs_from_top_to_bottom(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A solved notebook runs without output, as in nbgrader's check of a learner's notebook."""
    keys = read_keys(KEYS / f"{name}.py")
    notebook = source_notebook(LABS[name], "t", keys)
    names: dict[str, object] = {}
    for cell in notebook.cells:
        if cell.cell_type == "code":
            source = cell.source.partition("### BEGIN HIDDEN TESTS")[0]
            exec(source.replace('learner = ""', 'learner = "ada"'), names)
    assert all(question.name in names for question in LABS[name].questions)
    assert capsys.readouterr().out == ""


def test_every_question_has_a_key_and_a_key_for_every_learner() -> None:
    """Every question has a key, which is right for the variants of many learners."""
    for name, lab in LABS.items():
        keys = read_keys(KEYS / f"{name}.py")
        assert keys.keys() == {question.name for question in lab.questions}
        values = [question for question in lab.questions if not question.trial]
        for question in values:
            key = keys[question.name]
            for learner in LEARNERS:
                variant = question.variant("t", learner)
                answer = eval(key.solution(variant))
                assert {part.share for part in key.judge(answer, variant)} == {1.0}, variant
                if isinstance(key, course.LettersKey):  # all of them, or none, would be 0.5
                    [one_wrong] = key.judge("".join({*answer} ^ {"k"}), variant)
                    assert one_wrong.share == 0.75


@pytest.mark.slow
def test_the_waiting_lines_of_the_key_wait_on_the_gpu() -> None:
    """The lines that take long after a long kernel are the right answer of the first question."""
    keys = read_keys(KEYS / "timing.py")
    waiting = set()
    for line in (line for pair in _timing._PAIRS for line in pair):
        with gpulab.virtual_gpu("H200", first_use=False):
            y, z = torch.ones(64, 64, device="cuda"), torch.zeros(64, 64, device="cuda")
            names = {"y": y, "z": z, "end": torch.cuda.Event(enable_timing=True), "torch": torch}
            torch.cuda.synchronize()
            spin(20_000_000)
            start_s = time.perf_counter()
            exec(line.strip("`"), names)
            if time.perf_counter() - start_s > 5e-3:
                waiting.add(line)
    for learner in LEARNERS:
        variant = LABS["timing"].question("waits").variant("t", learner)
        assert sum(line in waiting for line in variant.choices.values()) == 4
        right = "".join(letter for letter, line in variant.choices.items() if line in waiting)
        assert keys["waits"].solution(variant) == repr(right)


def test_the_four_readings_are_those_of_the_gpu() -> None:
    """The question's program, run with a learner's numbers, gives the key's four readings."""
    keys = read_keys(KEYS / "timing.py")
    variant = LABS["timing"].question("readings").variant("t", "ada")
    numbers = {name: float(str(value)) for name, value in variant.numbers.items()}
    found = {}
    for name in ("waited", "moved"):
        with gpulab.virtual_gpu("H200", first_use=False):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            spin(round(numbers["backlog"] * 1_980_000))
            if name == "moved":
                torch.cuda.synchronize()
            t0 = time.perf_counter()
            start.record()
            spin(round(numbers["kernel"] * 1_980_000))
            end.record()
            time.sleep(numbers["host"] / 1000)
            t1 = time.perf_counter()
            torch.cuda.synchronize()
            found[name] = 1000 * (time.perf_counter() - t0)
            found |= {"slept": 1000 * (t1 - t0), "events": start.elapsed_time(end)}
    assert [part.share for part in keys["readings"].judge(found, variant)] == [1.0] * 4
