"""Lessons with a first cell that blocks the network, and a last one that checks the exercises."""

import dis
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any

from gpulab.lessons import _build as build

if TYPE_CHECKING:
    from nbformat import NotebookNode

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "notebooks" / "source").glob("*.py"))
CASES = sorted((ROOT / "notebooks" / "source" / "cases").glob("*.py"))
# Their later cells read what a learner's cell assigns, so they also run as shipped.
USING_ANSWERS = ("08_streams",)
NO_NETWORK = """
import socket
def refuse(*_args, **_kwargs):
    raise OSError("a lesson must not use the network")
socket.create_connection = socket.getaddrinfo = socket.socket.connect = refuse
"""
LOOK = "from gpulab.exercises import _progress\nentries = _progress.exercise_progress()\n"
# Keeps each figure that a cell shows, and looks at its texts when the lesson is over.
KEEP_FIGURES = """
from gpulab.figures import Figure
shown_figures, draw_page = [], Figure._repr_html_
Figure._repr_html_ = lambda figure: shown_figures.append(figure) or draw_page(figure)
"""
TEXTS_ARE_APART = """
from tests.support.overprints import touching
touches = {figure.title: touching(figure.canvas) for figure in shown_figures}
assert not any(touches.values()), touches
"""
EXERCISES_ARE = {
    "right": f"{LOOK}assert len(entries) >= 2 and all(e.ok for e in entries.values()), entries",
    # Of its own exercises: other notebooks in the folder keep their tries in the same journal.
    "not tried": "from gpulab import exercises\n"
    "rows = exercises.progress().rows\n"
    "assert rows and not any(entry.n_tries for _, entry in rows), rows",
}


_ASKED = re.compile(r'exercises\.predict\(\s*"([^"]+)"')
_COMPARED = re.compile(r'exercises\.compare\(\s*"([^"]+)"')
_OUTCOME = re.compile(
    r"No guess\. (?:It was|The outcome:) (.+?)(?: \([^)]*\))?\. Give your guess", re.DOTALL
)
# Fewer digits, or a single word, may stand anywhere by chance.
_TELLING = re.compile(r"\d\D?\d\D?\d|^\D+ \D+$")
# A text in quotes, alone or in a list, a number with an exponent or of more digits than anybody
# reads, a record, a tensor with its gradient function, a column with its type, and a stack.
_RAW = re.compile(
    r"^\s*[\[({]*['\"]|(?<![\w.])\d\.?\d*e[+-]?\d\d|[1-9]\d*\.\d{6}|^\w+\(\w+="
    r"|grad_fn=|^dtype: |^Traceback|\d%|-0\.0+(?!\d)",
    re.MULTILINE,
)
_WIDTH = 95  # letters of a line of text in a cell of 1,400 pixels; JupyterLab breaks longer ones


# The lesson's own cells are solved by then; nothing that they computed is changed by these.
UNANSWERED = f"{LOOK}n_tries = {{name: entry.n_tries for name, entry in entries.items()}}"
NOT_COUNTED = (
    f"{LOOK}assert n_tries == {{name: e.n_tries for name, e in entries.items()}}, entries"
)


def source_of(lesson: str) -> Path:
    """Return the file that a lesson is built from."""
    return ROOT / "notebooks" / "source" / f"{lesson}.py"


def checked(notebook: "NotebookNode", expected: str) -> "NotebookNode":
    """Return a lesson that fails if it uses the network or shows a figure whose texts overlap.

    It also fails if its exercises are not as expected; ``expected`` is a key of ``EXERCISES_ARE``.
    """
    import nbformat

    first, last = (
        nbformat.v4.new_code_cell(code)
        for code in (NO_NETWORK + KEEP_FIGURES, EXERCISES_ARE[expected] + TEXTS_ARE_APART)
    )
    notebook.cells = [first, *notebook.cells, last]
    return notebook


def with_open_cells(notebook: "NotebookNode", source: Path) -> "NotebookNode":
    """Return a solved lesson that runs each learner's cell as shipped, too, at its end.

    An open cell must run without the names that its answer assigns, and must not count as a try.
    """
    import nbformat

    code = [UNANSWERED]
    for shipped, solved in _pairs(source):
        if shipped != solved:
            forget = f"for name in {[*_assigned(solved)]}:\n    globals().pop(name, None)"
            code += [forget, shipped]
    notebook.cells += [nbformat.v4.new_code_cell(each) for each in (*code, NOT_COUNTED)]
    return notebook


def answers_in_sight(cells: Sequence[Any]) -> list[str]:
    """Return the outcomes of an unanswered notebook that were shown before their question."""
    in_sight, before, told, earlier = "", dict[str, str](), [], set[str]()
    for cell in cells:
        shown = ""
        if cell.cell_type == "code":
            before |= dict.fromkeys(_ASKED.findall(cell.source), in_sight)
            shown = "\n".join(map(_text_of, cell.outputs))
            outcomes = zip(_COMPARED.findall(cell.source), _OUTCOME.findall(shown), strict=False)
            for name, outcome in outcomes:
                is_seen = re.search(rf"(?<![\d.]){re.escape(outcome)}\b", before.get(name, ""))
                # A class of cases, such as a kind of race, may come out of several questions.
                if _TELLING.search(outcome) and is_seen and outcome not in earlier:
                    told.append(f"{name}: {outcome}")
                earlier.add(outcome)
        # Questions with the same choices list each other's outcomes.
        shown = re.sub(r"one of '.*?'\.", "", shown, flags=re.DOTALL)
        in_sight += f"{cell.source if cell.cell_type == 'markdown' else ''}\n{shown}\n"
    return told


def raw_in_sight(cells: Sequence[Any]) -> list[str]:
    """Return outputs of a notebook with values as Python writes them, or with lines too long."""
    outputs = (each for cell in cells if cell.cell_type == "code" for each in cell.outputs)
    return [text for text, is_page in map(_shown, outputs) if _is_raw(text, is_page=is_page)]


def _shown(output: Any) -> tuple[str, bool]:  # noqa: ANN401  # an output of nbformat
    is_page = bool({"text/html", "image/png"} & {*output.get("data", {})})
    return ("" if output.get("name") == "stderr" else _text_of(output)), is_page


def _is_raw(text: str, *, is_page: bool) -> bool:
    is_wide = any(len(line) > _WIDTH for line in text.splitlines()) and not is_page
    return is_wide or bool(_RAW.search(text))


def _text_of(output: Any) -> str:  # noqa: ANN401  # an output of nbformat
    return str(output.get("text", output.get("data", {}).get("text/plain", "")))


def uses_answers_later(source: Path) -> bool:
    """Return whether a cell reads a name that the learner's cells assign."""
    answered: set[str] = set()
    for shipped, solved in _pairs(source):
        if shipped != solved:
            answered |= _assigned(solved)
        elif answered & _read(solved):
            return True
        else:
            answered -= _assigned(solved)
    return False


def _pairs(source: Path) -> Iterator[tuple[str, str]]:
    """Yield the text of each code cell as shipped and solved."""
    shipped, solved = build.clear_solutions(build.read_source(source)), build.solved(source)
    for as_shipped, as_solved in zip(shipped.cells, solved.cells, strict=True):
        if as_solved.cell_type == "code":
            yield as_shipped.source, as_solved.source


def _assigned(source: str) -> set[str]:
    """Return the global names that a cell assigns."""
    return {*_names(_compiled(source), {"STORE_NAME"})}


def _read(source: str) -> set[str]:
    """Return the global names that a cell and its functions read."""
    codes, names = [_compiled(source)], set[str]()
    while codes:
        code = codes.pop()
        names |= {*_names(code, {"LOAD_NAME", "LOAD_GLOBAL"})}
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return names


def _compiled(source: str) -> CodeType:
    lines = [line for line in source.splitlines() if not line.startswith("%")]
    return compile("\n".join(lines), "cell", "exec", dont_inherit=True)


def _names(code: CodeType, operations: Collection[str]) -> Iterator[str]:
    return (each.argval for each in dis.get_instructions(code) if each.opname in operations)
