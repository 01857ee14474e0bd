"""Find out whether a program uses the answer of a ``query()``, from the source of its callers.

An answer that says "done" orders nothing by itself: with another answer the program would run the
same work at the same place. It orders what the program does because of it.
"""

import ast
import dis
import linecache
import sys
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from gpulab.happens_before._call_sites import is_inner

if TYPE_CHECKING:
    from types import FrameType

# The functions of PyTorch and of this package between the program and the answer.
_QUERIES = {"query", "call", "counting"}
# Functions that show a value to the reader; the program continues in the same way for any value.
_SHOWING = {"print", "display", "write", "log", "debug", "info", "warning", "error"}
# What contains a value or is computed from it.
_VALUES = (
    *(ast.UnaryOp, ast.BinOp, ast.Compare, ast.Tuple, ast.List),
    *(ast.JoinedStr, ast.FormattedValue, ast.keyword),
)


def is_answer_used() -> bool:
    """Return whether the program decides anything by the answer that it is about to get.

    The answer is unused if the program drops it, shows it, or puts it into a variable that it only
    drops or shows. If the source cannot tell, for example because the answer becomes an attribute
    or the argument of another function, it counts as used.
    """
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 # inspect.currentframe takes longer
    asked_by = ""
    while frame is not None and is_inner(frame.f_code.co_filename):
        asked_by, frame = frame.f_code.co_name, frame.f_back
    if frame is None or (asked_by and asked_by not in _QUERIES):
        return True  # PyTorch or this package asks, and acts by the answer
    code, at = frame.f_code, frame.f_lasti
    source = _parsed("".join(linecache.getlines(code.co_filename, frame.f_globals)))
    # Each instruction has two bytes. Not by the start of the call, which for a method is sometimes
    # that of the method's name.
    _, line, _, column = list(code.co_positions())[at // 2]
    call = source.calls.get((line, column))
    if call is not None:
        return _decides(call, source, set())
    following = (each.opname for each in dis.get_instructions(code) if each.offset > at)
    return next(following, "") != "POP_TOP"


@dataclass(frozen=True, slots=True)
class _Source:
    """The parent of each node of a file or cell, and its calls by the place of their end."""

    parents: dict[ast.AST, ast.AST]
    calls: dict[tuple[int | None, int | None], ast.Call]


@lru_cache(maxsize=32)
def _parsed(text: str) -> _Source:
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError):  # not Python, or not the file that runs
        nodes = []
    return _Source(
        {child: node for node in nodes for child in ast.iter_child_nodes(node)},
        {
            (each.end_lineno, each.end_col_offset): each
            for each in nodes
            if isinstance(each, ast.Call)
        },
    )


def _decides(value: ast.AST, source: _Source, visited: set[ast.AST]) -> bool:
    """Return whether anything depends on the value of an expression."""
    if value in visited:
        return False
    visited.add(value)
    parent = source.parents[value]
    match parent:
        case ast.Expr():
            return False
        case ast.Call(func=called) if value is not called:
            return getattr(called, "attr", getattr(called, "id", "")) not in _SHOWING
        case ast.Assign(targets=targets):
            return _is_read(targets, source, visited)
        case ast.AnnAssign(target=target) | ast.AugAssign(target=target):
            return _is_read([target], source, visited)
    return not isinstance(parent, _VALUES) or _decides(parent, source, visited)


def _is_read(targets: list[ast.expr], source: _Source, visited: set[ast.AST]) -> bool:
    """Return whether anything depends on what is assigned to targets, anywhere in the file."""
    parts = [part for target in targets for part in ast.walk(target)]
    if any(isinstance(part, (ast.Attribute, ast.Subscript)) for part in parts):
        return True
    names = {part.id for part in parts if isinstance(part, ast.Name)}
    return any(
        _decides(node, source, visited)
        for node in source.parents
        if isinstance(node, ast.Name) and node.id in names and isinstance(node.ctx, ast.Load)
    )
