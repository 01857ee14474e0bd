"""Estimate how long the core of a lesson takes a learner, and count what it asks and shows."""

import ast
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from benchmarks.common.folders import ROOT
from benchmarks.common.markdown import padded_table
from gpulab.lessons._build import EXTRAS, clear_solutions, read_source

# Ten minutes more go into outputs, questions and help: 35 minutes fill a lab hour of 45.
MOST_MINUTES = 35
_WORDS_PER_MIN, _LINE_S, _CELL_S, _PREDICTION_S, _EXERCISE_S = 150, 4, 8, 45, 180
_PREDICTION = re.compile(r"exercises\.(?:predict|draw)\(")
_EXERCISE = re.compile(r"exercises\.(?:ask|check|continue_from)\(\s*\"([\w.-]+)")
# Cells in which the learner writes a function.
_TO_WRITE = re.compile(r"exercises\.continue_from\(|^(?!answer\b)\w+ = \.\.\.$", re.MULTILINE)
# What shows a number of an experiment: an outcome, a reading, a picture of a program.
_NUMBER = re.compile(
    r"\.compare\(|%cudatime|gpulab\.(?:measure|compare|ladder|timeline|crossover)\("
)


@dataclass(frozen=True)  # without slots, for the cached table of names
class Core:
    """The cells of a lesson, as shipped, above the heading "Going further"."""

    cells: tuple[Any, ...]

    @classmethod
    def of(cls, source: Path) -> "Core":
        """Return the core of a lesson from its source."""
        cells = clear_solutions(read_source(source)).cells
        ends = (
            number
            for number, cell in enumerate(cells)
            if cell.cell_type == "markdown" and re.match(rf"# {EXTRAS}\b", cell.source)
        )
        return cls(tuple(cells[: next(ends, None)]))

    @property
    def codes(self) -> list[str]:
        """The text of each code cell."""
        return [cell.source for cell in self.cells if cell.cell_type == "code"]

    @property
    def n_words(self) -> int:
        """The words to read."""
        texts = (cell.source for cell in self.cells if cell.cell_type == "markdown")
        return sum(len(re.sub(r"[#*`|>\-]", " ", text).split()) for text in texts)

    @property
    def n_lines(self) -> int:
        """The lines of code to read, without comments."""
        lines = (line.strip() for code in self.codes for line in code.splitlines())
        return sum(bool(line) and not line.startswith("#") for line in lines)

    @property
    def n_predictions(self) -> int:
        """The guesses that are asked for."""
        return sum(len(_PREDICTION.findall(code)) for code in self.codes)

    @property
    def exercises(self) -> set[str]:
        """The names of the exercises."""
        return {name for code in self.codes for name in _EXERCISE.findall(code)}

    @property
    def minutes(self) -> float:
        """An estimate of the time that reading, running, guessing and answering take."""
        seconds = (
            self.n_lines * _LINE_S
            + len(self.codes) * _CELL_S
            + self.n_predictions * _PREDICTION_S
            + len(self.exercises) * _EXERCISE_S
        )
        return self.n_words / _WORDS_PER_MIN + seconds / 60

    @property
    def n_cells_before_a_number(self) -> int:
        """The cells before the first one that shows a number of an experiment."""
        numbers = (
            number
            for number, cell in enumerate(self.cells)
            if cell.cell_type == "code" and _NUMBER.search(cell.source)
        )
        return next(numbers, len(self.cells))

    @property
    def n_own(self) -> int:
        """The code cells with code as people write it at work, and not only calls of ours."""
        return sum(not self._is_ours(code) for code in self.codes)

    @cached_property
    def _our_names(self) -> set[str]:
        """The names under which the lesson imports parts of gpulab."""
        names = {"gpulab"}
        for node in (node for code in self.codes for node in parsed(code).body):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gpulab"):
                names |= {each.asname or each.name for each in node.names}
        return names

    def _is_ours(self, code: str) -> bool:
        if code.startswith("%%") or _TO_WRITE.search(code):
            return False
        return all(map(self._calls_us, parsed(code).body))

    def _calls_us(self, node: ast.stmt) -> bool:
        """Return whether a statement is an import, a bare name, or a call of ours without code."""
        if isinstance(node, ast.Import | ast.ImportFrom | ast.Pass):
            return True
        if not isinstance(node, ast.Expr | ast.Assign):
            return False
        value = node.value
        if isinstance(value, ast.Name | ast.Constant):
            return True
        if not isinstance(value, ast.Call) or "lambda" in ast.unparse(value):
            return False
        called = ast.unparse(value.func)
        return called.split(".")[0] in self._our_names or called.endswith(".compare")


def parsed(code: str) -> ast.Module:
    """Return the syntax tree of a cell without its lines of magic; of a cell magic, nothing."""
    lines = [] if code.startswith("%%") else code.splitlines()
    return ast.parse("\n".join("pass" if line.startswith("%") else line for line in lines))


def print_minutes() -> None:
    """Print a table with a row for each lesson."""
    head = ["lesson", "minutes", "words", "cells", "own", "lines", "predictions", "exercises"]
    rows = []
    for source in sorted((ROOT / "notebooks" / "source").glob("*.py")):
        core = Core.of(source)
        counts = (
            *(core.n_words, len(core.codes), core.n_own, core.n_lines, core.n_predictions),
            len(core.exercises),
        )
        rows.append([source.stem, f"{core.minutes:.0f}", *(f"{count:,}" for count in counts)])
    print(*padded_table(head, rows), sep="\n")
