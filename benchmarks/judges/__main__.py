"""Change right answers in one place, and compare each verdict with an independent reference.

    CUDA_VISIBLE_DEVICES= python -m benchmarks.judges                  20 changes for each exercise
    CUDA_VISIBLE_DEVICES= python -m benchmarks.judges 13. 07.graph-it  only these exercises
    CUDA_VISIBLE_DEVICES= python -m benchmarks.judges --most 50        50 changes for each

The right answers are those of the tests. A change drops a statement or swaps two, puts a pause in
place of a wait, runs a loop once, or changes a number, an operator or a word. The reference knows
nothing of the judges: order is right if ``gpulab.hazards()`` finds no race, times are those of the
simulator's records or known beforehand, and values are computed on the CPU. The table counts the
changes and the false verdicts; each false verdict is printed with its change.
"""

import argparse
import ast
import inspect
import random
import signal
import textwrap
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from importlib import import_module
from types import FrameType
from typing import Any, NamedTuple

import gpulab
from benchmarks.common.command_line import parser_of
from benchmarks.judges.references import REFERENCES
from benchmarks.judges.timing_references import TIMING_REFERENCES
from benchmarks.mutation.mutants import changed_copies
from gpulab import exercises

Function = Callable[..., Any]

_ANSWERS = (
    "test_lesson_answers",
    "test_clinic_answers",
    "test_case_answers",
    "test_function_answers",
)
_WAITS = {"synchronize", "wait_stream", "wait_event", "wait"}
_WORDS = {"median": "sum", "min": "max", "max": "min", "floor": "ceil", "ceil": "floor"}
_MOST_S = 15.0  # of the processor's time, because a changed loop may never end


class Changed(NamedTuple):
    """A right answer with one change."""

    exercise_id: str
    name: str
    change: str
    function: Function


class TooLong(BaseException):
    """A changed answer did not end. No ``Exception``, which a judge would take for its error."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Judge changed answers, and print the false verdicts and their number."""
    options = parser().parse_args(arguments)
    n_tried = n_false = 0
    for exercise_id, reference in (TIMING_REFERENCES | REFERENCES).items():
        if not exercise_id.startswith(tuple(options.exercises)):
            continue
        chosen = random.Random(options.seed)  # noqa: S311  # no secret
        changed = list(changes_of(exercise_id))
        sample = chosen.sample(changed, min(options.most, len(changed)))
        false = [each for each in sample if is_false(each, reference)]
        n_tried, n_false = n_tried + len(sample), n_false + len(false)
        print(
            f"{exercise_id:24} tried {len(sample):4}   false verdicts {len(false):4}", flush=True
        )
    print(f"{'all':24} tried {n_tried:4}   false verdicts {n_false:4}")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = parser_of("benchmarks.judges", __doc__)
    made.add_argument("exercises", nargs="*", default=[""], help="how their ids begin")
    made.add_argument("--most", type=int, default=20, help="changes of each (default: 20)")
    made.add_argument("--seed", type=int, default=1)
    return made


def is_false(changed: Changed, reference: Callable[[Function], bool]) -> bool:
    """Return whether the verdict on a changed answer differs from that of the reference."""
    is_right = within_limit(lambda: reference(changed.function))
    with gpulab.virtual_gpu("H200", first_use=False):
        verdict = within_limit(lambda: exercises.check(changed.exercise_id, changed.function))
    if bool(verdict) is bool(is_right):
        return False
    print(f"{changed.exercise_id} {changed.name}: {changed.change}")
    print(textwrap.indent(f"reference: {bool(is_right)}; verdict: {verdict}", "    "), flush=True)
    return True


def within_limit(call: Callable[[], object]) -> object:
    """Return what a call returns; None if it raises an error or takes too long."""
    previous = signal.signal(signal.SIGPROF, _stop)
    signal.setitimer(signal.ITIMER_PROF, _MOST_S)
    try:
        return call()
    except (Exception, TooLong):  # noqa: BLE001  # a changed answer may raise anything
        return None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, previous)


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise TooLong


def changes_of(exercise_id: str) -> Iterator[Changed]:
    """Yield the changes of all right answers to an exercise."""
    for module_name in _ANSWERS:
        module = import_module(f"tests.exercises.{module_name}")
        for answer in module.ANSWERS:
            if answer.exercise_id == exercise_id and not answer.code:
                for change, function in changed_functions(answer.function):
                    yield Changed(exercise_id, answer.function.__name__, change, function)


def changed_functions(function: Function) -> Iterator[tuple[str, Function]]:
    """Yield a function with each change, and the change as text."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    for definition in tree.body:
        if isinstance(definition, ast.FunctionDef):
            definition.decorator_list = []
    for change, copy in (*changed_copies(tree), *_changed_order(tree)):
        names = dict(function.__globals__)
        try:
            code = compile(copy, inspect.getfile(function), "exec")
        except SyntaxError:  # such as a break without its loop
            continue
        exec(code, names)  # noqa: S102  # our own tests
        yield change, names[function.__name__]


def _changed_order(tree: ast.Module) -> Iterator[tuple[str, ast.Module]]:
    """Yield changes of waits, loops, order and words, which are typical of timing programs."""
    for number in range(len(_places(tree))):
        for kind in ("swap", "pause", "once"):
            copy = deepcopy(tree)
            body, index = _places(copy)[number]
            text = _change_statement(body, index, kind)
            if text:
                yield text, ast.fix_missing_locations(copy)
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in _WORDS]
    for number, name in enumerate(names):
        copy = deepcopy(tree)
        nodes = (node for node in ast.walk(copy) if isinstance(node, ast.Name))
        [node for node in nodes if node.id in _WORDS][number].id = _WORDS[name.id]
        yield f"{name.id}  ->  {_WORDS[name.id]}", copy


def _places(tree: ast.Module) -> list[tuple[list[ast.stmt], int]]:
    """Return each statement of a function as a block and an index."""
    bodies = [getattr(node, "body", None) for node in ast.walk(tree) if node is not tree]
    return [
        (body, index) for body in bodies if isinstance(body, list) for index in range(len(body))
    ]


def _change_statement(body: list[ast.stmt], index: int, kind: str) -> str:
    """Change a statement of a block in place; return the change, or an empty text for none."""
    node = body[index]
    text = ast.unparse(node).partition("\n")[0]
    match node:
        case _ if kind == "swap" and index + 1 < len(body):
            body[index : index + 2] = body[index + 1], node
            return f"swap: {text}"
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=name))) if (
            kind == "pause" and name in _WAITS
        ):
            body[index] = ast.parse("__import__('time').sleep(0.01)").body[0]
            return f"pause: {text}"
        case ast.For() if kind == "once":
            body[index] = ast.If(ast.Constant(value=True), [_first_round(node), *node.body], [])
            return f"once: {text}"
    return ""


def _first_round(loop: ast.For) -> ast.stmt:
    """Return the assignment of a loop's first round."""
    first = ast.Call(
        ast.Name("next", ast.Load()),
        [ast.Call(ast.Name("iter", ast.Load()), [loop.iter], [])],
        [],
    )
    return ast.Assign([loop.target], first)


if __name__ == "__main__":
    main()
