"""The case files: the solution is right, and each typical mistake gets its diagnosis."""

import ast
from collections.abc import Callable
from functools import cache
from importlib import import_module
from statistics import fmean, median
from typing import Any

import pytest

from gpulab import exercises
from gpulab.exercises._api import exercise
from gpulab.exercises.answers import Mended
from gpulab.lessons import _build as build
from tests.support.lessons import CASES

IDS = [source.stem[:2] for source in CASES]


# Each wrong program in a case's module, with the code of its diagnosis.
MISTAKES = {
    "01": {
        "as_posted": "launch",
        "wait_before_only": "launch",
        "wait_after_only": "backlog",
        "no_warm_up": "first-use",
        "in_milliseconds": "milliseconds",
        "in_flop": "flop",
    },
    "02": {
        "as_posted": "warm-new",
        "other_order": "warm-old",
        "no_flush": "both-warm",
        "flush_inside": "flush-timed",
        "upside_down": "upside-down",
    },
    "03": {
        "as_posted": "mixed",
        "burst": "burst",
        "with_pauses": "burst",
        "in_milliseconds": "milliseconds",
        "not_divided": "not-divided",
    },
    "04": {
        "as_posted": "both-races",
        "arrival_only": "overwritten",
        "free_only": "not-arrived",
        "wait_for_all": "no-overlap",
    },
    "05": {"as_posted": "other-stream", "end_only": "backlog"},
    "06": {
        "as_posted": "mean",
        "median_only": "one-number",
        "extremes": "outlier-as-mode",
        "percent": "percent",
        "share_of_fast": "share-of-fast",
        "median_as_fast": "median-as-fast",
        "in_milliseconds": "milliseconds",
    },
    "07": {
        "as_posted": "a-first",
        "b_first": "b-first",
        "upside_down": "upside-down",
        "no_warm_up": "no-warm-up",
    },
    "08": {
        "as_posted": "copies-in-each-step",
        "one_way": "copies-out-in-each-step",
        "no_copies": "copies-left-out",
        "no_copy_out": "no-copy-out",
        "not_divided": "not-divided",
    },
    "09": {
        "as_posted": "stale-input",
        "stale_input": "stale-input",
        "aliased_output": "aliased-output",
        "copied_too_late": "one-behind",
        "no_graph": "no-graph",
        "not_divided": "not-divided",
    },
    "10": {
        "as_posted": "launch",
        "mean_of_launches": "mean-of-both",
        "wait_each_call": "wait-each-call",
        "not_divided": "not-divided",
    },
}
# Cases whose programs flush a cache in every sample, or simulate many copies and kernels.
MUCH_WORK = ("02", "04", "08")
# The wrong program that each notebook shows, with the arguments and the result of an answer.
POSTED: dict[str, Callable[[dict[str, Any]], Callable[..., object]]] = {
    "01": lambda names: names["tflops"],
    "02": lambda names: names["speedup"],
    "03": lambda names: names["seconds_per_call"],
    "04": lambda names: names["run"],
    "05": lambda names: names["seconds"],
    "06": lambda names: lambda step: fmean(names["times_s"](step)),
    "07": lambda names: names["ratio"],
    "08": lambda names: names["gpu_seconds"],
    "09": lambda names: names["serve"],
    "10": lambda names: lambda work: median(names["call_times_s"](work)),
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
def test_the_solution_is_right(number: str) -> None:
    """The notebook's mended program passes on the judge's own works."""
    verdict = exercises.check(f"case-{number}.mend", functions_of(number)["mended"])
    assert (verdict.ok, verdict.diagnosis_code) == (True, ""), verdict.message


@pytest.mark.parametrize(
    ("number", "name", "code"),
    [
        pytest.param(number, name, code, marks=pytest.mark.slow if number in MUCH_WORK else ())
        for number, known in MISTAKES.items()
        for name, code in known.items()
    ],
)
def test_each_mistake_gets_its_diagnosis(number: str, name: str, code: str) -> None:
    """A program with a typical mistake gets its diagnosis, in complete sentences."""
    program = getattr(import_module(f"gpulab.exercises.cases._case_{number}"), name)
    verdict = exercises.check(f"case-{number}.mend", program)
    assert (verdict.ok, verdict.diagnosis_code) == (False, code), verdict.message
    assert verdict.message.endswith(".")


@pytest.mark.slow
@pytest.mark.parametrize("number", IDS)
def test_the_posted_program_is_diagnosed(number: str) -> None:
    """The program in the notebook gets the diagnosis of the judge's copy of it."""
    posted = POSTED[number](functions_of(number))
    verdict = exercises.check(f"case-{number}.mend", posted)
    assert (verdict.ok, verdict.diagnosis_code) == (False, MISTAKES[number]["as_posted"])


@pytest.mark.parametrize("number", ["03", "05", pytest.param("08", marks=pytest.mark.slow), "10"])
def test_milliseconds_are_diagnosed(number: str) -> None:
    """A right value in milliseconds gets the diagnosis of its unit, in every case."""
    mended = functions_of(number)["mended"]
    verdict = exercises.check(f"case-{number}.mend", lambda *given: 1e3 * mended(*given))
    assert (verdict.ok, verdict.diagnosis_code) == (False, "milliseconds")


def _raises(*_given: object) -> object:
    message = "lost"
    raise ValueError(message)


@pytest.mark.slow
@pytest.mark.parametrize("number", IDS)
def test_stubs_are_open_and_nonsense_is_wrong(number: str) -> None:
    """A stub counts as not answered, nonsense as wrong, and neither makes the judge raise."""
    judge = exercise(f"case-{number}.mend").judge
    assert [judge(answer, None).ok for answer in (..., None, lambda *_: None)] == [None] * 3
    nonsense = {
        "not-a-choice": 3,
        "raised": _raises,
        "unexplained": lambda *_: "fast",
    }
    verdicts = {code: judge(answer, None) for code, answer in nonsense.items()}
    assert not any(verdict.ok for verdict in verdicts.values())
    assert verdicts["not-a-choice"].message.endswith(judge.how)
    assert verdicts["raised"].message.startswith("Your function raised ValueError: lost")
    for value in (float("nan"), True, (None, None), [[]]):
        assert judge(lambda *_, value=value: value, None).ok is False


def test_an_unexplained_value_is_shown() -> None:
    """The message shows the value, the true time, and how many works were timed correctly."""
    judge = exercise("case-10.mend").judge
    assert isinstance(judge, Mended)
    message = judge(lambda _work: 90e-6, None).message
    assert message.startswith("For a kernel of 25 µs your function returned 90.0 µs. ")
    assert message.endswith("It is right for 1 of 2 works.")
