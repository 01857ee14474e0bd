"""Find out whether a program uses the answer of a ``query()``, from the source of its callers.

An answer that says "done" orders nothing by itself: with another answer the program would run the
same work at the same place. It orders what the program does because of it.
"""

import ast
import dis
import linecache
import sys
from functools import lru_cache
from types import FrameType

from gpulab.happens_before._call_sites import is_inner

# The functions of PyTorch and of this package between the program and the answer.
_QUERIES = {"query", "call", "counting"}
# Functions that show a value to the reader; the program continues in the same way for any value.
_SHOWING = {"print", "display", "write", "log", "debug", "info", "warning", "error"}
# What contains a value or is computed from it.
_VALUES = (
    *(ast.UnaryOp, ast.BinOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Subscript, ast.Attribute),
    *(ast.Tuple, ast.List, ast.Set, ast.Dict, ast.Starred, ast.Await, ast.YieldFrom),
    *(ast.JoinedStr, ast.FormattedValue, ast.keyword, ast.NamedExpr),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
# Until Python 3.12 these have frames of their own, generators still have.
_COMPREHENSIONS = {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}


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
    return _Call(frame).is_used()


class _Call:
    """The call that a frame is making now, with what becomes of its result."""

    def __init__(self, frame: FrameType) -> None:
        self._frame = frame
        self._source = _parsed(
            "".join(linecache.getlines(frame.f_code.co_filename, frame.f_globals))
        )
        self._visited: set[ast.AST] = set()

    def is_used(self) -> bool:
        """Return whether the program decides anything by the result."""
        call = self._source.call_that_ends_at(_end_of_call(self._frame))
        if call is None:
            return not _is_dropped(self._frame)
        return self._decides(call)

    def _decides(self, value: ast.AST | None) -> bool:
        """Return whether anything depends on the value of an expression."""
        if value is None or value in self._visited:
            return False
        self._visited.add(value)
        parent = self._source.parents.get(value)
        match parent:
            case ast.Expr():
                return False
            case ast.Return() | ast.Lambda() | ast.Yield():
                return self._caller_decides(value)
            case ast.Call():
                return self._call_decides(parent, value)
        targets = _targets_of(parent)
        is_part = isinstance(parent, _VALUES) and not _is_branch(parent, value)
        other = self._decides(parent) if is_part else not targets
        return other or any(map(self._target_decides, targets))

    def _call_decides(self, call: ast.Call, value: ast.AST) -> bool:
        """Return whether a call with the value as an argument decides anything."""
        called = call.func
        if isinstance(called, ast.Attribute):
            name, changed = called.attr, called.value
        else:
            name, changed = getattr(called, "id", ""), None
        if name in _SHOWING and value is not called:
            return False
        if value is called and changed is None:
            return True
        if value is called or not isinstance(self._source.parents.get(call), ast.Expr):
            return self._decides(call)
        # Nothing uses the result, so the call is made for what it does: it changes its object, as
        # ``answers.append(...)`` does, or acts by its argument.
        return changed is None or self._target_decides(changed)

    def _target_decides(self, target: ast.AST) -> bool:
        """Return whether anything depends on what is assigned to a target."""
        match target:
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                return any(map(self._target_decides, parts))
            case ast.Starred(value=inner) | ast.Subscript(value=inner):
                return self._target_decides(inner)
            case ast.Name(id=name):
                return any(map(self._decides, self._reads_of(name, target)))
        return True

    def _reads_of(self, name: str, target: ast.AST) -> list[ast.AST]:
        """Return where the function around ``target``, or the module, reads a variable."""
        nodes = list(ast.walk(self._source.scope_of(target)))
        declared = (ast.Global, ast.Nonlocal)
        if any(isinstance(node, declared) and name in node.names for node in nodes):
            nodes = list(ast.walk(self._source.module))
        return [
            node
            for node in nodes
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
        ]

    def _caller_decides(self, value: ast.AST) -> bool:
        """Return whether the caller of the function that returns the value uses it."""
        frame: FrameType | None = self._frame
        while frame is not None and frame.f_code.co_name in _COMPREHENSIONS:
            frame = frame.f_back
        # A variable may be returned by another function than the one that runs now.
        scope = self._source.scope_of(value)
        runs = frame is not None and frame.f_code.co_name == getattr(scope, "name", "<lambda>")
        caller = frame.f_back if frame is not None else None
        if not runs or caller is None or is_inner(caller.f_code.co_filename):
            return True
        return _Call(caller).is_used()


def _is_branch(node: ast.AST, value: ast.AST) -> bool:
    """Return whether an expression chooses by ``value`` which of its parts to compute."""
    match node:
        case ast.IfExp(test=test):
            return value is test
        case ast.BoolOp(values=values):
            return value is not values[-1]
    return False


def _targets_of(node: ast.AST | None) -> list[ast.expr]:
    """Return what an assignment assigns to; an empty list for anything else."""
    match node:
        case ast.Assign(targets=targets):
            return targets
        case ast.AnnAssign(target=target) | ast.AugAssign(target=target):
            return [target]
        case ast.NamedExpr(target=name):
            return [name]
    return []


class _Source:
    """The syntax tree of a file or cell, with the parent of each node."""

    def __init__(self, module: ast.Module) -> None:
        self.module = module
        self.parents = {
            child: node for node in ast.walk(module) for child in ast.iter_child_nodes(node)
        }
        self._calls = {
            (node.end_lineno, node.end_col_offset): node
            for node in self.parents
            if isinstance(node, ast.Call)
        }

    def call_that_ends_at(self, end: tuple[int | None, int | None]) -> ast.Call | None:
        """Return the call whose closing parenthesis is at a line and a column."""
        # Not by its start, which for a method is sometimes that of the method's name.
        return self._calls.get(end)

    def scope_of(self, node: ast.AST) -> ast.AST:
        """Return the function around a node, or the module."""
        around = self.parents.get(node, self.module)
        while not isinstance(around, (ast.Module, *_FUNCTIONS)):
            around = self.parents[around]
        return around


@lru_cache(maxsize=32)
def _parsed(text: str) -> _Source:
    try:
        return _Source(ast.parse(text))
    except (SyntaxError, ValueError):  # not Python, or not the file that runs
        return _Source(ast.Module([], []))


def _end_of_call(frame: FrameType) -> tuple[int | None, int | None]:
    """Return line and column at which the frame's present instruction ends in the source."""
    # Each instruction has two bytes.
    _, line, _, column = list(frame.f_code.co_positions())[frame.f_lasti // 2]
    return line, column


def _is_dropped(frame: FrameType) -> bool:
    """Return whether the frame drops the result of its present instruction, without its source."""
    following = (
        each for each in dis.get_instructions(frame.f_code) if each.offset > frame.f_lasti
    )
    return next((each.opname for each in following), "") == "POP_TOP"
