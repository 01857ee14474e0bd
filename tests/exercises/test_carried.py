"""A learner's benchmark is kept with what it uses, and put into the cell of the next lesson."""

import linecache
import statistics
from collections.abc import Callable, Iterator
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import pytest

from gpulab import exercises
from gpulab.core import shell as shells
from gpulab.core.errors import UnknownNameError
from gpulab.exercises import _carried
from gpulab.exercises._entries import Version
from gpulab.exercises._history import versions_of
from tests.exercises.test_journal import folder
from tests.support.journals import forget_all

__all__ = ["folder"]  # a fixture: an empty folder with a journal of its own

N = 20
RIGHT = """def benchmark(fn):
    return 1.0
"""


@pytest.fixture(autouse=True)
def _own_journal(folder: object, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the versions be kept in the folder of the test."""
    monkeypatch.setattr(_carried, "journal", exercises._api.journal)  # type: ignore[attr-defined]  # private
    yield
    del folder
    forget_all()


def cell(code: str, **given: object) -> Callable[..., Any]:
    """Run a cell of a notebook and return its function ``benchmark``."""
    name = "<cell of a test>"
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    room: dict[str, Any] = {"__name__": "__main__", **given}
    exec(compile(code, name, "exec"), room)
    made: Callable[..., Any] = room["benchmark"]
    return made


def test_a_version_is_kept_with_all_that_it_uses() -> None:
    """Imports and functions come first; a value that no import gives is named in a comment."""
    code = """def once(fn):
    start = perf_counter()
    fn()
    return perf_counter() - start


def benchmark(fn):
    return stat.median([once(fn) for _ in range(N)])
"""
    kept = _carried.code_of(cell(code, perf_counter=perf_counter, stat=statistics, N=N))
    head, _, functions = kept.partition("\n\n\n")
    assert head.splitlines() == [
        "from time import perf_counter",
        "import statistics as stat",
        "# It uses N, which another cell defines.",
    ]
    assert functions == code.rstrip()
    # What was kept makes the same function again.
    assert _carried.code_of(cell(kept, N=N)) == kept


@pytest.mark.parametrize("answer", [..., 3, print, lambda fn: fn, eval("lambda fn: fn")])
def test_what_is_no_function_of_the_notebook_is_not_kept(answer: object) -> None:
    """A placeholder, a number, a lambda and a function of Python leave no version."""
    assert _carried.code_of(answer) == ""


def test_check_keeps_the_version_and_the_next_lesson_begins_with_it() -> None:
    """The nearest lesson counts, and in it a right version before a later wrong one."""
    exercises.check("02.who-blocks", cell(RIGHT))
    for _ in range(2):  # the same version is kept once
        exercises.check("02.benchmark", cell(RIGHT))
    (kept,) = versions_of(exercises._api.journal().entries)  # type: ignore[attr-defined]  # private
    assert (kept.exercise_id, kept.ok, kept.code) == ("02.benchmark", False, RIGHT.rstrip())
    carried = exercises.continue_from("03.benchmark")
    assert carried.code == f'{RIGHT.rstrip()}\n\n\nexercises.check("03.benchmark", benchmark)'
    assert "from 02.benchmark, which was not right yet" in str(carried)
    own = exercises._api.journal()  # type: ignore[attr-defined]  # private
    for exercise_id, ok, code in (
        ("02.benchmark", True, "right"),
        ("02.benchmark", False, "later"),
        ("05.benchmark", True, "of a later lesson"),
    ):
        own.add(Version(exercise_id, "2026-11-22T10:00:00+00:00", ok, code))
    assert exercises.continue_from("03.benchmark").code.startswith("right\n")
    assert exercises.continue_from("05.benchmark").code.startswith("of a later lesson\n")
    exercises.reset("05")
    assert exercises.continue_from("05.benchmark").code.startswith("right\n")


def test_without_a_version_it_begins_with_the_solution_or_empty(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A clone has the solution of the lesson before; the wheel has none."""
    solution = exercises.continue_from("05.benchmark")
    assert "This one solves 04.benchmark" in str(solution)
    assert "fn()" in solution.code
    assert "fn()" not in exercises.continue_from("01.benchmark").code
    monkeypatch.setattr(_carried, "_solution", lambda _: "")
    assert exercises.continue_from("02.benchmark").code.startswith("def benchmark(fn):\n    ...")
    with pytest.raises(UnknownNameError, match="unknown exercise on benchmark"):
        exercises.continue_from("02.who-blocks")


@pytest.mark.parametrize(
    ("code", "is_replaced"),
    [
        ('exercises.continue_from("02.benchmark")  # run it\n# answer here', True),
        ('exercises.continue_from("02.benchmark")\ndef benchmark(fn): ...', False),
        ("%time 3", False),
    ],
)
def test_only_a_cell_without_other_code_is_replaced(
    code: str, monkeypatch: pytest.MonkeyPatch, *, is_replaced: bool
) -> None:
    """What a learner wrote below the call stays."""
    replaced: list[str] = []
    shell = SimpleNamespace(
        kernel=True,
        get_parent=lambda: {"content": {"code": code}, "metadata": {"cellId": "a"}},
        set_next_input=lambda text, replace: replaced.append(text) if replace else None,
    )
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    assert shells.is_watched()
    carried = exercises.continue_from("02.benchmark")
    assert replaced == ([carried.code] if is_replaced else [])
    assert ("def benchmark" in str(carried)) is not is_replaced
    assert ("<pre>" in carried._repr_html_()) is not is_replaced
