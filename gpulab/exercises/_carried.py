"""Carry the learner's benchmark from lesson to lesson: keep its code, and put it into a cell."""

import ast
import inspect
import sys
import textwrap
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType

from gpulab.core import shell
from gpulab.core.errors import UnknownNameError
from gpulab.core.foreign_text import visible
from gpulab.core.markup import clean
from gpulab.exercises import _html
from gpulab.exercises._entries import Version, now
from gpulab.exercises._history import versions_of
from gpulab.exercises._journal import journal
from gpulab.lessons import notebooks_folder

IDS = tuple(f"{number:02}.benchmark" for number in range(1, 9))
_SKELETON = "def benchmark(fn):\n    ...\n"


@dataclass(frozen=True, slots=True)
class Carried:
    """A version of the learner's benchmark, to go on with; the last line of the code checks it.

    ``origin`` is where the code is from and what to do. ``is_placed`` says that it is in the cell.
    """

    code: str
    origin: str
    is_placed: bool = False

    def __str__(self) -> str:
        return visible(self.origin if self.is_placed else f"{self.origin}\n\n{self.code}")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        code = "" if self.is_placed else f"<pre>{clean(self.code)}</pre>"
        tone = _html.Tone("#0072B2", "i", "Your benchmark.")
        return _html.box(tone, _html.paragraphs(self.origin) + code)


def continue_from(exercise_id: str) -> Carried:
    """Put your last version of ``benchmark`` into this cell, so that you can change it.

    Your version is kept by :func:`check`. If you have none, the cell begins with the solution of
    the lesson before, where the sources of the lessons are installed, and else with an empty
    function. Without a front end the code is only shown. A cell with other statements stays as it
    is.

    Parameters
    ----------
    exercise_id
        The exercise to go on with, such as ``"02.benchmark"``.

    Raises
    ------
    UnknownNameError
        If it is no exercise on ``benchmark``.

    Examples
    --------
    >>> from gpulab import exercises
    >>> print(exercises.continue_from("02.benchmark").code.splitlines()[-1])
    exercises.check("02.benchmark", benchmark)
    """
    if not isinstance(exercise_id, str) or exercise_id not in IDS:
        raise UnknownNameError("exercise on benchmark", exercise_id, IDS)
    version, origin = _version(exercise_id)
    code = f'{version.rstrip()}\n\n\nexercises.check("{exercise_id}", benchmark)'
    # What the learner wrote below this call must not be lost.
    is_placed = shell.is_watched() and _is_alone(shell.cell_code())
    if is_placed:
        shell.replace_cell(code)
    return Carried(code, origin, is_placed)


def _is_alone(code: str) -> bool:
    """Return whether a cell has one statement."""
    try:
        return len(ast.parse(code).body) == 1
    except SyntaxError:  # a magic
        return False


def _version(exercise_id: str) -> tuple[str, str]:
    """Return the code to begin with, and where it is from."""
    known = IDS[: IDS.index(exercise_id) + 1]
    versions = [
        (each.exercise_id, each.ok, number, each.code)
        for number, each in enumerate(versions_of(journal().entries))
        if each.exercise_id in known
    ]
    if versions:
        # The one nearest to this lesson; there, one that was right before one that was tried.
        last, is_right, _, code = max(versions)
        was = "" if is_right else ", which was not right yet"
        return code, f"This is your last version, from {last}{was}. Run it, then change it."
    before = known[-2:-1]
    solution = _solution(before[0]) if before else ""
    if solution:
        return solution, f"You have no version yet. This one solves {before[0]}: change it."
    return _SKELETON, "You have no version yet. Write the function, then run the cell."


def _solution(exercise_id: str) -> str:
    """Return the functions of a solution; empty in an installation without the solutions."""
    sources = sorted((notebooks_folder() / "source").glob("*.py"))
    cells = (cell for path in sources for cell in path.read_text("utf-8").split("\n# %%"))
    solved = (cell for cell in cells if f'exercises.check("{exercise_id}"' in cell)
    for cell in solved:
        code = cell.partition("\n")[2]
        functions = (each for each in ast.parse(code).body if isinstance(each, ast.FunctionDef))
        return "\n\n\n".join(ast.get_source_segment(code, each) or "" for each in functions)
    return ""


def keep_version(exercise_id: str, answer: object, *, ok: bool) -> None:
    """Save the code of a ``benchmark`` that was checked, unless it is the last that was saved."""
    code = code_of(answer) if exercise_id in IDS else ""
    versions = [(each.exercise_id, each.code) for each in versions_of(journal().entries)]
    if code and versions[-1:] != [(exercise_id, code)]:
        journal().add(Version(exercise_id, now(), ok, code))


def code_of(function: object) -> str:
    """Return the code of ``benchmark`` with all that it uses of its notebook; empty if unknown.

    Imports and functions that it calls come first. A comment names other values.
    """
    # The class itself: an answer may be an object whose attributes raise anything.
    if type(function) is not FunctionType or function.__name__ != "benchmark":
        return ""
    functions: dict[str, str] = {}
    heads: set[str] = set()
    try:
        _collect(function, functions, heads)
    except (OSError, TypeError):  # it was made by exec, or its file is gone
        return ""
    # The comments come after the imports.
    head = "\n".join(sorted(heads, key=lambda line: (line.startswith("#"), line)))
    return "\n\n\n".join(filter(None, [head, *functions.values()]))


def _collect(function: FunctionType, functions: dict[str, str], heads: set[str]) -> None:
    """Add a function's code after the code of those that it calls."""
    functions[function.__name__] = ""  # it may call itself
    for name in sorted(_names_in(function.__code__) & function.__globals__.keys()):
        value = function.__globals__[name]
        if isinstance(value, FunctionType) and value.__module__ == function.__module__:
            if value.__name__ not in functions:
                _collect(value, functions, heads)
        else:
            heads.add(_import_of(name, value) or f"# It uses {name}, which another cell defines.")
    del functions[function.__name__]
    functions[function.__name__] = textwrap.dedent(inspect.getsource(function)).rstrip()


def _names_in(code: CodeType) -> set[str]:
    inner = (each for each in code.co_consts if isinstance(each, CodeType))
    return set(code.co_names).union(*map(_names_in, inner))


def _import_of(name: str, value: object) -> str:
    """Return the statement that imports a value under its name; empty if there is none."""
    if isinstance(value, ModuleType):
        own = value.__name__
        return f"import {own}" if own == name else f"import {own} as {name}"
    home = getattr(value, "__module__", None)
    is_there = home != "__main__" and getattr(sys.modules.get(home or ""), name, None) is value
    return f"from {home} import {name}" if is_there else ""
