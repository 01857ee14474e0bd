"""Read a lesson's text for the tests of its style: core, prose, visible code, numbers, strings."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from benchmarks.lessons.minutes import Core, parsed
from gpulab.lessons import _build as build
from tests.support.lessons import ROOT

_CLOCK = re.compile(
    r"\btorch\b|\btime\.|%cudatime|%%cudatime|timeit|\bmeasure\b|\bexplorer|_explorer\b"
    r"|\.compare\(|gpulab\.(?:timeline|compare|ladder|crossover|hazards|live|clocks)"
    r"|\bclocks\.|\blab\.|\bbenchmark\b"
)
# Lines that belong to exercises are left out of the count.
_SCAFFOLD = re.compile(
    r"^(?:from|import) |^exercises\.|^\w+ = exercises\.(?:predict|draw)\(|^answer = \.\.\.$|^\w+$"
)
_UNIT = r"(?:ns|µs|ms|s|seconds|MHz|GHz|TFLOP/s|GFLOP/s|GB/s|TB/s|W|°C|%|percent)"
_QUANTITY = re.compile(rf"(?<![\w^])\d[\d,.]* ?{_UNIT}(?![\w^])")
# A limit or a step that a sentence chooses is not a measured number.
_CHOSEN = re.compile(
    r"\b(?:below|above|under|over|at least|at most|less than|more than|every|within|if each takes"
    rf"|ask for|by more than|computes) (?:[\d,.]+(?:,| or| and)? ?)*{_UNIT}"
)
_SOURCED = re.compile(r"ecorded|data sheet|documentation|[Bb]y definition|95 % interval")
FORBIDDEN = {
    "blocks": r"\bkeeps? the host\b|\bholds? up the host\b",
    "another beginning": r"(?:^|\. )(?:Of such|Whoever|Who [^?]*\.)",
    "after it": r"\bbehind it\b",
    "expensive": r"\bdear(?:er|est)?\b",
    "accurate to, useful for": r"\bgood for\b",
    "says, shows": r"\btells\b",
    "isn't a valid answer": r"\bno possible answer\b",
    "long, blocked": r"\bHow long does the host stand\b|\bstands? still\b",
    "matmul": r"\bmatrix product\b",
    "set up": r"\bput right\b",
    "so it is": r"\band so it came\b",
}


@dataclass(frozen=True)
class LessonText:
    """A lesson in percent format, and the strings of its exercises."""

    source: Path

    @cached_property
    def cells(self) -> list[Any]:
        """All cells, with the solutions in them."""
        cells: list[Any] = build.read_source(self.source).cells
        return cells

    @property
    def number(self) -> str:
        """The lesson's number, such as ``"03"``."""
        return self.source.stem[:2]

    @property
    def room(self) -> str:
        """The package with its exercises, such as ``"lesson_03"``; the cases share one."""
        return "cases" if self.source.parent.name == "cases" else f"lesson_{self.number}"

    @cached_property
    def core(self) -> Core:
        """The cells before the extras, as shipped."""
        return Core.of(self.source)

    @property
    def headings(self) -> list[str]:
        """The headings of the core, in order."""
        texts = (cell.source for cell in self.core.cells if cell.cell_type == "markdown")
        return [name for text in texts for name in re.findall(r"^##+ (.+)$", text, re.MULTILINE)]

    @property
    def prose(self) -> Iterator[str]:
        """Yield each paragraph of the lesson without its listings and code."""
        for cell in self.cells:
            if cell.cell_type == "markdown":
                text = re.sub(r"^```.*?^```", "", cell.source, flags=re.MULTILINE | re.DOTALL)
                yield from re.split(r"\n\s*\n", re.sub(r"`[^`]*`", "CODE", text))

    @property
    def unsourced(self) -> list[str]:
        """Paragraphs with a number and a unit, but without a source."""
        paragraphs, before = [], ""
        for paragraph in self.prose:
            if paragraph.startswith(">"):  # a quotation, whose author is named
                continue
            # A table has its source in the sentence above it.
            context = f"{before} {paragraph}" if paragraph.startswith("|") else paragraph
            if _QUANTITY.search(
                _CHOSEN.sub("", " ".join(paragraph.replace("95 %", "").split()))
            ) and not _SOURCED.search(context):
                paragraphs.append(paragraph)
            before = paragraph
        return paragraphs

    @property
    def strings(self) -> Iterator[str]:
        """Yield all texts that a learner reads: prose, prompts, and the exercises' texts."""
        yield from self.prose
        for cell in self.cells:
            if cell.cell_type == "code":
                yield from _strings(cell.source)
        for path in sorted((ROOT / "gpulab" / "exercises" / self.room).glob("*.py")):
            yield from _strings(path.read_text("utf-8"))

    def code_lines(self) -> tuple[int, int]:
        """Count the visible lines that use torch, a clock or an explorer, and all of them."""
        n_touched = n_visible = 0
        known: set[str] = set()
        for cell in self.cells:
            if cell.cell_type != "code" or "hide-input" in cell.metadata.get("tags", ()):
                continue
            is_exercise = "exercise" in cell.metadata.get("tags", ())
            for statement in _statements(cell.source):
                if _SCAFFOLD.match(statement) or statement.startswith("###"):
                    continue
                n_lines = len(statement.splitlines())
                n_visible += n_lines
                if is_exercise or _touches(statement, known):
                    n_touched += n_lines
        return n_touched, n_visible


def words_to_mend(text: str) -> list[str]:
    """Return the words for which the project's style has a better one."""
    return [
        f"{match[0]!r} (better: {better})"
        for better, pattern in FORBIDDEN.items()
        for match in re.finditer(pattern, text)
    ]


def _touches(statement: str, known: set[str]) -> bool:
    """Return whether a statement uses torch or a clock; add names that it binds to ``known``."""
    direct = bool(_CLOCK.search(statement))
    uses = any(re.search(rf"\b{name}\b", statement) for name in known)
    if (direct or uses) and not re.match(r"(?:exercises|plots|pd)\.", statement):
        bound = re.match(r"^([\w, ]+?) = (?!exercises|plots|pd)", statement)
        known |= set(re.findall(r"\w+", bound[1])) if bound else set()
        known |= set(re.findall(r"^def (\w+)", statement, re.MULTILINE))
        return True
    return direct


def _statements(source: str) -> Iterator[str]:
    """Yield the statements of a cell as text; a magic is a statement, too."""
    if source.startswith("%%"):
        yield from source.splitlines()
        return
    lines = source.splitlines()
    yield from (line for line in lines if line.startswith("%"))
    for node in parsed(source).body:
        if not isinstance(node, ast.Pass):
            yield "\n".join(lines[node.lineno - 1 : node.end_lineno])


def _strings(source: str) -> Iterator[str]:
    """Yield the strings in code that are not docstrings."""
    tree = parsed(source)
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value


def literal_outcomes(source: str) -> list[str]:
    """Return the calls of ``compare`` with a literal in place of a measured outcome."""
    tree = parsed(source)
    return [
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "compare"
        and len(node.args) == (2 if ast.unparse(node.func) == "exercises.compare" else 1)
        and isinstance(node.args[-1], ast.Constant)
    ]
