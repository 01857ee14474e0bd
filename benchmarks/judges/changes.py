"""Changes of right answers in one place: functions by their source, and data by their form."""

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any, NamedTuple

from benchmarks.judges.mutants import changed_copies
from gpulab.exercises._fields import Fields
from tests.support.answers import as_given

Function = Callable[..., Any]

ANSWERS = (
    "test_lesson_answers",
    "test_clinic_answers",
    "test_case_answers",
    "test_function_answers",
)
_FACTORS = (-1.0, 0.0, 1e-3, 0.5, 0.8, 0.99, 1.01, 1.3, 2.0, 1e3)


class Changed(NamedTuple):
    """A right answer with one change."""

    exercise_id: str
    name: str
    change: str
    answer: object  # a function or data
    given: object  # as it is given to the check


def changed_answers(exercise_id: str) -> Iterator[Changed]:
    """Yield the changes of all right answers of the tests that are functions."""
    for module_name in ANSWERS:
        module = import_module(f"tests.exercises.{module_name}")
        for answer in module.ANSWERS:
            if answer.exercise_id == exercise_id and not answer.code:
                for change, function in changed_functions(answer.function):
                    given = as_given(exercise_id, function)
                    yield Changed(exercise_id, answer.function.__name__, change, function, given)


def changed_data(exercise_id: str, fields: Fields, truth: Any) -> Iterator[Changed]:  # noqa: ANN401
    """Yield a right answer that is data with each entry changed, and with two."""
    match fields.kind:
        case "one":
            changes: Iterator[tuple[str, object]] = ((key, key) for key in fields.keys)
        case "some":
            changes = ((f"{key} in or out", set(truth) ^ {key}) for key in fields.keys)
        case "number":
            changes = ((f"times {factor:g}", truth * factor) for factor in _FACTORS)
        case _:
            changes = _changed_tables(fields, truth)
    for change, answer in changes:
        yield Changed(exercise_id, "truth", change, answer, answer)


def _changed_tables(fields: Fields, truth: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    for key in fields.keys:
        parts = truth[key] if isinstance(truth[key], tuple) else (truth[key],)
        for number, words in enumerate(fields.parts):
            new = words or [factor * parts[number] for factor in _FACTORS]
            for word in new:
                changed = (*parts[:number], word, *parts[number + 1 :])
                value = changed if len(changed) > 1 else changed[0]
                yield f"{key}: {value}", {**truth, key: value}
    for first, second in zip(fields.keys, fields.keys[1:], strict=False):
        yield f"swap {first} and {second}", {**truth, first: truth[second], second: truth[first]}


def changed_functions(function: Function) -> Iterator[tuple[str, Function]]:
    """Yield a function with each change, and the change as text."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    for definition in tree.body:
        if isinstance(definition, ast.FunctionDef):
            definition.decorator_list = []
    for change, copy in changed_copies(tree):
        names = dict(function.__globals__)
        try:
            code = compile(copy, inspect.getfile(function), "exec")
        except SyntaxError:  # such as a break without its loop
            continue
        exec(code, names)  # noqa: S102  # our own tests
        yield change, names[function.__name__]
