"""Read the answers in a submitted notebook without running it, and report faulty cells."""

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gpulab.core.errors import shown
from gpulab.course._question import normal_id

# nbformat's notebooks are dictionaries with attributes, and untyped
Notebook = Any

KERNEL = "python3"
LEARNER = "learner"
_MODULES = {
    *("collections", "contextlib", "functools", "itertools", "math", "statistics", "time"),
    *("torch", "torch.cuda", "torch.nn", "torch.nn.functional"),
}
_NAMES = {
    *("__import__", "breakpoint", "compile", "delattr", "eval", "exec", "exit", "getattr", "help"),
    *("globals", "hasattr", "input", "locals", "memoryview", "open", "quit", "setattr", "vars"),
}
# Attributes that are named like a module of Python, but are something else in torch.
_NO_MODULES = {"copy", "numbers", "profile", "random", "select", "signal", "trace"}
# Other ways to run a text, to reach an attribute by a text (such as "{0.__closure__}".format(work)
# or update_wrapper(assigned=...)), and to reach the variables of a closure.
_ATTRIBUTES = {
    *("attrgetter", "cell_contents", "exc_info", "format", "format_map", "itemgetter"),
    *("methodcaller", "modules", "partialmethod", "update_wrapper", "vformat", "wraps"),
    *("backends", "classes", "distributed", "fx", "hub", "jit", "library", "load", "onnx"),
    *("ops", "overrides", "package", "save", "serialization", "testing", "utils"),
}
# Frames, tracebacks, code and generators lead to the variables of the checker.
_INNER_PREFIXES = ("f_", "tb_", "co_", "gi_", "cr_", "ag_")
_METHODS = {"__call__", "__enter__", "__exit__", "__init__"}
_PRIVATE_ALLOWED = {"_sleep"}  # the lessons use torch.cuda._sleep


@dataclass(frozen=True, slots=True)
class Unread:
    """The reason why an answer cannot be judged: a short name, and a sentence for the learner."""

    flag: str
    text: str


UNANSWERED = Unread("unanswered", "There is no answer.")


def answer_cell(lab: str, question: str) -> str:
    """Return the id of the cell in which the learner answers a question."""
    return f"{lab}-{question}"


def marks_cell(lab: str, question: str) -> str:
    """Return the id of the cell in which the grader writes the marks of a question."""
    return f"{lab}-{question}-marks"


def grade_id(cell: Notebook) -> str:
    """Return nbgrader's id of a cell, or an empty text if it has none."""
    metadata = cell.get("metadata")
    described = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    return str(described.get("grade_id", "")) if isinstance(described, dict) else ""


def _text_of(cell: Notebook) -> str:
    """Return the source of a cell: a text, a list of lines, or "" for anything else."""
    source = cell.get("source")
    lines = source if isinstance(source, list) else [source]
    return "".join(lines) if all(isinstance(line, str) for line in lines) else ""


def forget_copies(notebook: Notebook, expected: tuple[str, ...]) -> None:
    """Remove nbgrader's ids from copied cells and from cells that the lab does not have.

    If several cells have one id, the last of them keeps it. This runs before nbgrader's own
    clean-up, because nbgrader stops at such cells.
    """
    free = set(expected)
    for cell in reversed(notebook.cells):
        if grade_id(cell) in free:
            free.remove(grade_id(cell))
        elif isinstance(cell.get("metadata"), dict):
            cell.metadata.pop("nbgrader", None)


def source_of(notebook: Notebook, cell_id: str) -> str | None:
    """Return the source of the last cell with this id of nbgrader, or None if there is none."""
    sources = [_text_of(cell) for cell in notebook.cells if grade_id(cell) == cell_id]
    return sources[-1] if sources else None


def value_in(source: str | None, name: str) -> object:
    """Return the literal value that a cell assigns to a name, or an `Unread`; nothing is run."""
    tree = _parsed(source)
    if isinstance(tree, Unread):
        return tree
    values = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        if any(isinstance(target, ast.Name) and target.id == name for target in node.targets)
    ]
    if not values:
        return UNANSWERED
    try:
        # The last assignment counts, as it would if the cell were run. A text that is nested a
        # hundred thousand times deep raises MemoryError or RecursionError.
        value = ast.literal_eval(values[-1])
    except (ValueError, TypeError, MemoryError, RecursionError):
        return Unread(
            "no-value", f"{name} is computed in the cell; write the value itself, for example 1.5."
        )
    return UNANSWERED if value is ... or value is None else value


def function_in(source: str | None, name: str) -> str | Unread:
    """Return the source of a cell if it defines the function and uses only what is allowed."""
    tree = _parsed(source)
    if isinstance(tree, Unread):
        return tree
    defined = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    if all(node.name != name or _is_stub(node) for node in defined):
        return UNANSWERED
    broken = next(_broken_rules(tree), None)
    return broken or str(source)


def _is_stub(node: ast.FunctionDef) -> bool:
    """Return whether a function has only ``...``, constants or a docstring as its body."""
    return all(
        isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant) for each in node.body
    )


def _parsed(source: str | None) -> ast.Module | Unread:
    if source is None:
        return Unread("cell-missing", "The cell of the answer is missing from the notebook.")
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        return Unread(
            "syntax", f"Python cannot read the cell ({type(error).__name__}, line {line})."
        )


def _broken_rules(tree: ast.Module) -> Iterator[Unread]:
    """Yield an `Unread` for each forbidden name that an answer uses.

    It judges names only and cannot see what a text composes at run time. The limits of the process
    keep that from the grader's files (`_confine`).
    """
    for node in ast.walk(tree):
        for name in _refused(node):
            text = f"Line {node.lineno} uses {shown(name)}, which an answer may not."  # type: ignore[attr-defined]  # those that use names have lines
            yield Unread("misuse", text)


def _refused(node: ast.AST) -> list[str]:  # noqa: PLR0911  # one for each kind of node
    """Return the forbidden names that one node of an answer uses."""
    match node:
        case ast.Import():
            return [each.name for each in node.names if each.name not in _MODULES]
        case ast.ImportFrom(module=module):
            names = [each.name for each in node.names if _is_inner(each.name) or each.name == "*"]
            return names if module in _MODULES and not node.level else [module or "."]
        case ast.Name(id=name) if name in _NAMES or name.startswith("__"):
            return [name]
        case ast.Attribute(attr=name) if _is_inner(name):
            return [name]
        case ast.MatchClass(kwd_attrs=names):  # `case object(__closure__=cells)` reads attributes
            return [name for name in names if _is_inner(name)]
        case ast.FunctionDef(name=name) if name.startswith("__") and name not in _METHODS:
            return [name]
        case ast.Constant(value=str(text)) if "__" in text:
            return [text]
    return []


def _is_inner(name: str) -> bool:
    """Return whether an attribute or an imported name leads to what an answer may not use."""
    is_private = name.startswith("_") and name not in _PRIVATE_ALLOWED
    is_module = name in sys.stdlib_module_names - _MODULES - _NO_MODULES
    return (
        is_private
        or is_module
        or name.startswith(_INNER_PREFIXES)
        # As an attribute, `compile` is usually torch.compile, which an answer may use.
        or name in _ATTRIBUTES | _NAMES - {"compile"}
    )


def problems_of(notebook: Notebook, expected: tuple[str, ...], student: str) -> list[str]:
    """Return what is wrong with the cells of a submission, one sentence for each fault.

    ``expected`` has nbgrader's ids of all cells of the lab; ``student`` is the id from nbgrader.
    """
    counts = Counter(filter(None, map(grade_id, notebook.cells)))
    described = notebook.metadata.get("kernelspec")
    kernel = described.get("name", "none") if isinstance(described, dict) else "none"
    written = _learner_named_in(notebook)
    problems = [f"cell {name} is missing" for name in expected if not counts[name]]
    problems += [f"cell {name} exists {n} times" for name, n in counts.items() if n > 1]
    if kernel != KERNEL:
        problems.append(f"the kernel is {shown(kernel)} and not {KERNEL!r}")
    if normal_id(written) != normal_id(student):
        problems.append(
            f"the notebook is for learner {shown(written)}; it was submitted by {shown(student)}"
        )
    return problems


def _learner_named_in(notebook: Notebook) -> str:
    """Return the learner's id that is written in the notebook, or an empty text."""
    values = (value_in(_text_of(cell), LEARNER) for cell in notebook.cells)
    return next((value for value in values if isinstance(value, str)), "")
