"""The case files: the program in each notebook is diagnosed, and nonsense gets a verdict.

Other right programs and the mistakes are in test_case_answers.py.
"""

import ast
from collections.abc import Callable
from functools import cache
from statistics import fmean, median
from typing import Any

import pytest

from gpulab import exercises
from gpulab.exercises._api import exercise
from gpulab.exercises.answers import Mended
from gpulab.lessons import _build as build
from tests.support.lessons import CASES

IDS = [source.stem[:2] for source in CASES]


# The wrong program that each notebook shows, with the arguments and the result of an answer, and
# the code of its diagnosis.
POSTED: dict[str, tuple[Callable[[dict[str, Any]], Callable[..., object]], str]] = {
    "01": (lambda names: names["tflops"], "launch"),
    "02": (lambda names: names["speedup"], "warm-new"),
    "03": (lambda names: names["seconds_per_call"], "mixed"),
    "04": (lambda names: names["run"], "both-races"),
    "05": (lambda names: names["seconds"], "other-stream"),
    "06": (lambda names: lambda step: fmean(names["times_s"](step)), "mean"),
    "07": (lambda names: names["ratio"], "a-first"),
    "08": (lambda names: names["gpu_seconds"], "copies-in-each-step"),
    "09": (lambda names: names["serve"], "stale-input"),
    "10": (lambda names: lambda work: median(names["call_times_s"](work)), "launch"),
}


@cache
def functions_of(number: str) -> dict[str, Any]:
    """Return the functions of a case's solved notebook; the last definition of a name wins."""
    (source,) = (path for path in CASES if path.stem.startswith(number))
    names: dict[str, Any] = {}
    for cell in build.solved(source).cells:
        if cell.cell_type == "code":
            body = ast.parse(cell.source).body
            kept = [
                node
                for node in body
                if isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef)
            ]
            exec(compile(ast.Module(kept, []), str(source), "exec"), names)
    return names


@pytest.mark.slow
@pytest.mark.parametrize("number", IDS)
def test_the_posted_program_is_diagnosed(number: str) -> None:
    """The program in the notebook gets its diagnosis, in complete sentences."""
    program, code = POSTED[number]
    verdict = exercises.check(f"case-{number}.mend", program(functions_of(number)))
    assert (verdict.ok, verdict.diagnosis_code) == (False, code)
    assert verdict.message.endswith(".")


def test_a_work_without_a_result_is_named() -> None:
    """A program that returns nothing for one of the works is told for which."""
    results = iter((25e-6, None))
    verdict = exercise("case-10.mend").judge(lambda _work: next(results), None)
    assert (verdict.ok, verdict.message) == (
        False,
        "For a kernel of 90 µs your function returned nothing; end it with return.",
    )


def test_an_unexplained_value_is_shown() -> None:
    """The message shows the value, the true time, and how many works were timed correctly."""
    judge = exercise("case-10.mend").judge
    assert isinstance(judge, Mended)
    message = judge(lambda _work: 90e-6, None).message
    assert message.startswith("For a kernel of 25 µs your function returned 90.0 µs. ")
    assert message.endswith("It is right for 1 of 2 works.")
    message = judge(lambda _work: "fast", None).message
    assert message.startswith(
        "For a kernel of 25 µs your function returned something of type str. "
    )
