"""Copies of a syntax tree with one change, such as a typical mistake in a timing program."""

import ast
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial, singledispatch

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
_FUNCTIONS = {"median": "sum", "min": "max", "max": "min", "any": "all", "all": "any"}
_FUNCTIONS |= {"floor": "ceil", "ceil": "floor"}
_WAITS = {"synchronize", "wait_stream", "wait_event", "wait"}
_PAUSE = "__import__('time').sleep(0.01)"
# Parts without behaviour of their own: types, and errors, whose texts have their own tests.
_LEFT_ALONE = {"annotation", "returns", "exc", "cause", "msg", "decorator_list", "bases"}

Change = tuple[str, Callable[[], None]]  # what it is, and a function that makes it


def changed_copies(tree: ast.Module) -> Iterator[tuple[str, ast.Module]]:
    """Yield every change of a syntax tree as text, with a copy in which it is made."""
    for number in range(len(list(_changes(tree)))):
        copy = deepcopy(tree)
        text, make = list(_changes(copy))[number]
        make()
        yield text, ast.fix_missing_locations(copy)


def _changes(owner: ast.AST) -> Iterator[Change]:
    """Yield all changes below a node."""
    for field, value in ast.iter_fields(owner):
        if field in _LEFT_ALONE:
            continue
        for index, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(node, ast.AST) or _says_nothing(node):
                continue
            changed = [*_instead_of(node)]
            if field in {"test", "ifs"} and not _is_negated_anyway(node):
                changed.append(ast.UnaryOp(ast.Not(), node))  # type: ignore[arg-type] # a condition
            for new in changed:
                text = f"{_first_line(node)}  ->  {_first_line(new)}"
                if index is None:
                    yield text, partial(setattr, owner, field, new)
                else:
                    yield text, partial(value.__setitem__, index, new)
            if index is not None and field == "body" and not isinstance(owner, ast.Module):
                pair = slice(index, index + 2)
                if value[index + 1 :]:
                    swapped = value[pair][::-1]
                    yield f"swap: {_first_line(node)}", partial(value.__setitem__, pair, swapped)
            yield from _changes(node)


def _first_line(node: ast.AST) -> str:
    return ast.unparse(node).partition("\n")[0]  # the body of a block does not change


def _is_negated_anyway(node: ast.AST) -> bool:
    """Return whether a change of its operator already negates this condition."""
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Not)
    symmetric = ast.Eq | ast.NotEq | ast.Is | ast.IsNot | ast.In | ast.NotIn
    return isinstance(node, ast.Compare) and isinstance(node.ops[0], symmetric)


def _says_nothing(node: ast.AST) -> bool:
    """Return whether a statement is a docstring, ``__all__``, or for type checkers only."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.Assign):
        return ast.unparse(node.targets[0]) == "__all__"
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


@singledispatch
def _instead_of(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that may replace a node."""
    if isinstance(node, ast.Raise | ast.Break | ast.Continue | ast.Delete):
        yield ast.Pass()


@_instead_of.register
def _(node: ast.Compare) -> Iterator[ast.AST]:
    for index, old in enumerate(node.ops):
        ops = [*node.ops[:index], _COMPARISONS[type(old)](), *node.ops[index + 1 :]]
        yield ast.Compare(node.left, ops, node.comparators)


@_instead_of.register
def _(node: ast.BinOp) -> Iterator[ast.AST]:
    if new := _ARITHMETIC.get(type(node.op)):
        yield ast.BinOp(node.left, new(), node.right)


@_instead_of.register
def _(node: ast.AugAssign) -> Iterator[ast.AST]:
    yield ast.Pass()
    if new := _ARITHMETIC.get(type(node.op)):
        yield ast.AugAssign(node.target, new(), node.value)


@_instead_of.register
def _(node: ast.BoolOp) -> Iterator[ast.AST]:
    yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)


@_instead_of.register
def _(node: ast.UnaryOp) -> Iterator[ast.AST]:
    yield node.operand


@_instead_of.register
def _(node: ast.Name) -> Iterator[ast.AST]:
    if node.id in _FUNCTIONS:
        yield ast.Name(_FUNCTIONS[node.id], node.ctx)


@_instead_of.register
def _(node: ast.Expr) -> Iterator[ast.AST]:
    yield ast.Pass()
    match node.value:
        case ast.Call(func=ast.Attribute(attr=name)) if name in _WAITS:
            yield ast.parse(_PAUSE).body[0]


@_instead_of.register
def _(node: ast.For) -> Iterator[ast.AST]:
    first = ast.parse(f"next(iter({ast.unparse(node.iter)}))", mode="eval").body
    assignment = ast.copy_location(ast.Assign([node.target], first), node)
    yield ast.If(ast.Constant(value=True), [assignment, *node.body], [])  # its first round alone


@_instead_of.register
def _(node: ast.Constant) -> Iterator[ast.AST]:
    # Before the numbers, because a bool is an int in Python.
    if isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node.value, int | float):
        yield ast.Constant(node.value + 1)
        yield ast.Constant(node.value - 1)


@_instead_of.register
def _(node: ast.Return) -> Iterator[ast.AST]:
    if node.value is not None and ast.unparse(node.value) != "None":
        yield ast.Return(ast.Constant(None))


@_instead_of.register
def _(node: ast.Assign) -> Iterator[ast.AST]:
    # Only fields and items: a name that is never set would fail at once, in any test.
    if all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets):
        yield ast.Pass()
