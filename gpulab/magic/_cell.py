"""A timed cell is compiled once, as a function whose enclosing function is the setup."""

import ast
import itertools
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import CodeType
from typing import Any, TypeAlias

Shell: TypeAlias = Any  # IPython's InteractiveShell, which is typed only in parts

# These names are no identifiers, so that no name of the user can meet them.
_PREPARE, _TIMED = "<setup>", "<timed>"

_REFUSED: dict[type[ast.AST], str] = {
    ast.Await: "await cannot be timed; await it in a cell of its own, and time plain calls",
    ast.AsyncFor: "async for cannot be timed; time a plain loop",
    ast.AsyncWith: "async with cannot be timed; time a plain with",
    ast.Return: "return has no function to leave; write the expression alone",
    ast.Yield: "yield has no function to leave; define the generator in a cell of its own",
    ast.YieldFrom: "yield has no function to leave; define the generator in a cell of its own",
}
_REFUSED_STAR = "import * cannot stand in a timed cell; import in a cell of its own"


@dataclass(frozen=True, slots=True)
class TimedCode:
    """A cell that was parsed and checked, and can be made into work to time.

    Attributes
    ----------
    setup, body
        The statements, after IPython's transformations, without annotations of variables.
    source
        Text of the body, after IPython's transformations.
    filename
        The name under which tracebacks find the source.
    """

    setup: list[ast.stmt]
    body: list[ast.stmt]
    source: str
    filename: str

    def names(self) -> set[str]:
        """Return every name that the code mentions."""
        nodes = itertools.chain.from_iterable(map(ast.walk, [*self.setup, *self.body]))
        return {node.id for node in nodes if isinstance(node, ast.Name)}


def parse_cell(shell: Shell, setup: str, body: str, *, is_cell: bool, line: str) -> TimedCode:
    """Parse the setup and the body as the shell would, and check that they can be timed.

    Line numbers are those of the notebook's cell, whose first line is the magic's.

    Parameters
    ----------
    shell
        Its input and syntax-tree transformations apply.
    setup, body
        Code, as typed.
    is_cell
        Whether ``body`` stands below the magic's line rather than on it.
    line
        The magic's own line, for tracebacks.

    Returns
    -------
    TimedCode
        Not yet compiled.

    Raises
    ------
    SyntaxError
        If the code is not Python, or has ``await``, ``return`` or ``yield`` outside a
        function.
    """
    setup, text = _transform(shell, setup), _transform(shell, body)
    number, line_number = _find_cell(shell)
    # Empty lines in front give the code the line numbers that it has in the notebook.
    text = "\n" * (1 + _count_blank_lines(body) if is_cell else line_number - 1) + text
    shown = f"%%cudatime {line}{text}" if is_cell else text
    filename = shell.compile.cache(shown, number=number)
    # Parsed one by one, so that a setup like "if x:" cannot swallow the body.
    trees = [_parse(shell, source, filename) for source in (setup, text)]
    before, timed = map(_drop_annotations, trees)
    return TimedCode(before, timed, text, filename)


def build_work(
    shell: Shell, code: TimedCode, local_scope: Mapping[str, object]
) -> Callable[[], Callable[[], object]]:
    """Compile the cell into a function that runs the setup and returns the work.

    Parameters
    ----------
    shell
        Its namespace is the code's global one, and gains no name.
    code
        What to compile.
    local_scope
        Variables of the function in which a line magic was called.

    Returns
    -------
    callable
        Called once, it runs the setup; what it returns runs the body.
    """
    # Arguments become closure variables: the user's globals stay as they are, and a reading
    # costs the timed code no more than a local name.
    local = {name: local_scope[name] for name in code.names() if name in local_scope}
    shared = _shared_names(shell, code, local)
    scope: list[ast.stmt] = [ast.Nonlocal(names=shared)] if shared else []
    timed = _function(_TIMED, [*scope, *code.body] or [ast.Pass()])
    give = ast.Return(value=ast.Name(id=_TIMED, ctx=ast.Load()))
    prepare = _function(_PREPARE, [*code.setup, timed, give], arguments=local)
    tree = _module([prepare])
    made: dict[str, Callable[..., Callable[[], object]]] = {}
    compiled = shell.compile(tree, code.filename, "exec")
    exec(compiled, shell.user_ns, made)  # noqa: S102  # running the user's cell is the purpose
    return lambda: made[_PREPARE](**local)


def run_once(shell: Shell, code: TimedCode, local_scope: dict[str, object]) -> object:
    """Execute the cell as an ordinary one: names are kept, the last expression returned.

    Parameters
    ----------
    shell
        Its namespace is the code's global one.
    code
        What to execute: the setup, then the body.
    local_scope
        Where names are stored.

    Returns
    -------
    object
        Value of the last expression; ``None`` when the cell ends in a statement.
    """
    statements = [*code.setup, *code.body]
    last = statements.pop() if statements and isinstance(statements[-1], ast.Expr) else None
    module = shell.compile(ast.Module(body=statements, type_ignores=[]), code.filename, "exec")
    exec(module, shell.user_ns, local_scope)  # noqa: S102  # the user asked for it with --run
    if not isinstance(last, ast.Expr):
        return None
    value = shell.compile(ast.Expression(body=last.value), code.filename, "eval")
    return eval(value, shell.user_ns, local_scope)  # noqa: S307  # the same


def _find_cell(shell: Shell) -> tuple[int, int]:
    """Return the number of the cell that called the magic, and the line in it."""
    # The execution count will not do: some versions of IPython raise it before the cell runs.
    frame = sys._getframe().f_back  # noqa: SLF001  # Python has no public name for it
    while frame is not None:
        label = shell.compile.format_code_name(frame.f_code.co_filename)
        if label is not None:
            return int(re.sub(r"\D", "", label[1])), frame.f_lineno
        frame = frame.f_back
    return shell.execution_count, 1


def _transform(shell: Shell, code: str) -> str:
    return str(shell.transform_cell(code)) if code.strip() else ""


def _count_blank_lines(code: str) -> int:
    """Count the blank lines in front, which the shell's transformation drops."""
    return sum(1 for _ in itertools.takewhile(lambda line: not line.strip(), code.splitlines()))


def _parse(shell: Shell, source: str, filename: str) -> ast.Module:
    tree: ast.Module = shell.compile.ast_parse(source, filename)
    _refuse_untimeable(tree, filename, source)
    # A stray break, or nonlocal, is shown at the user's line before any GPU is touched.
    shell.compile(tree, filename, "exec")
    transformed: ast.Module = shell.transform_ast(tree)
    return transformed


def _refuse_untimeable(tree: ast.Module, filename: str, source: str) -> None:
    for node in _walk_top_level(tree):
        message = _REFUSED.get(type(node))
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            message = _REFUSED_STAR
        if isinstance(node, ast.stmt | ast.expr) and message is not None:
            text = source.splitlines()[node.lineno - 1]
            raise SyntaxError(message, (filename, node.lineno, node.col_offset + 1, text))


def _walk_top_level(node: ast.AST) -> Iterator[ast.AST]:
    """Walk the nodes that belong to no function of the user's own."""
    pending = [node]  # a long chain of operators is too deep for recursion
    while pending:
        for child in ast.iter_child_nodes(pending.pop()):
            if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                yield child
                pending.append(child)


def _drop_annotations(tree: ast.Module) -> list[ast.stmt]:
    """Make ``x = 1`` of ``x: int = 1``: a function does not evaluate it, and forbids sharing x.

    Those in classes and functions of the user's own are theirs.
    """
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, [])
            if isinstance(block, list):  # that of a conditional expression is none
                block[:] = map(_without_annotation, block)
        pending += [
            child
            for child in ast.iter_child_nodes(node)
            if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case)
            and not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        ]
    return tree.body


def _without_annotation(statement: ast.stmt) -> ast.stmt:
    if not isinstance(statement, ast.AnnAssign):
        return statement
    if statement.value is not None:
        plain: ast.stmt = ast.Assign(targets=[statement.target], value=statement.value)
    elif isinstance(statement.target, ast.Name):
        plain = ast.Pass()
    else:
        return statement
    return ast.copy_location(plain, statement)


def _shared_names(shell: Shell, code: TimedCode, local: Iterable[str]) -> list[str]:
    """Return the variables of the setup, or of the caller, that the body writes."""
    timed = _function(_TIMED, [*code.body] or [ast.Pass()])
    compiled = shell.compile(_module([timed]), code.filename, "exec")
    function = next(item for item in compiled.co_consts if isinstance(item, CodeType))
    # It has the variables of its comprehensions, too, which are found in no setup.
    names = {*function.co_varnames, *function.co_cellvars}
    given = frozenset(local)
    return sorted(name for name in names if name in given or _is_bound(shell, code, name))


def _is_bound(shell: Shell, code: TimedCode, name: str) -> bool:
    """Ask the compiler whether the setup binds a name."""
    inner = _function(_TIMED, [ast.Nonlocal(names=[name])])
    tree = _module([_function(_PREPARE, [*code.setup, inner])])
    try:
        shell.compile(tree, code.filename, "exec")
    except SyntaxError:
        return False
    return True


def _function(
    name: str, body: list[ast.stmt], *, arguments: Iterable[str] = ()
) -> ast.FunctionDef:
    names = [ast.arg(arg=argument) for argument in arguments]
    given = ast.arguments(
        posonlyargs=[], args=[], kwonlyargs=names, kw_defaults=[None] * len(names), defaults=[]
    )
    return ast.FunctionDef(name=name, args=given, body=body, decorator_list=[])


def _module(body: list[ast.stmt]) -> ast.Module:
    """Return a module of functions made here, with the positions that the compiler asks for."""
    tree = ast.Module(body=body, type_ignores=[])
    # Not ast.fix_missing_locations: it calls itself for each operator of a chain.
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt | ast.expr | ast.arg) and not hasattr(node, "lineno"):
            node.lineno, node.col_offset = 1, 0
            node.end_lineno, node.end_col_offset = 1, 0
    return tree
