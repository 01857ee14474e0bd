"""Compile a timed cell once: its body is a function, inside a function that runs the setup."""

import ast
import inspect
import itertools
import re
import sys
from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from types import CodeType
from typing import Any, TypeAlias

Shell: TypeAlias = Any  # IPython's InteractiveShell, which is typed only in parts

# Names of the functions. They are not valid identifiers, so the user's code has no such name.
_PREPARE, _TIMED, _EACH = "<setup>", "<timed>", "<each>"

_REFUSED: dict[type[ast.AST], str] = {
    ast.Return: "return has no function to leave; write the expression alone",
    ast.Yield: "yield has no function to leave; define the generator in a cell of its own",
    ast.YieldFrom: "yield has no function to leave; define the generator in a cell of its own",
}
_REFUSED_STAR = "import * cannot stand in a timed cell; import in a cell of its own"


@dataclass(frozen=True, slots=True)
class TimedCode:
    """A cell after parsing and checking, ready to become work that can be timed.

    The statements are those after IPython's transformations; setup and body have no annotations of
    variables. ``each``, often empty, runs before each sample and is not timed. Tracebacks find the
    body's ``source`` under ``filename``.
    """

    setup: list[ast.stmt]
    body: list[ast.stmt]
    each: list[ast.stmt]
    source: str
    filename: str

    def names(self) -> set[str]:
        """Return every name that the code mentions."""
        nodes = _walked([*self.setup, *self.each, *self.body])
        return {node.id for node in nodes if isinstance(node, ast.Name)}

    @property
    def awaits(self) -> bool:
        """Whether the code awaits something outside functions that the user defines."""
        tree = ast.Module([*self.setup, *self.each, *self.body], type_ignores=[])
        return any(
            isinstance(node, ast.Await | ast.AsyncFor | ast.AsyncWith)
            or getattr(node, "is_async", 0)
            for node in _walk_top_level(tree)
        )

    @property
    def adds_gradients(self) -> bool:
        """Whether each call adds to the gradients of earlier ones: a backward pass, none reset."""
        repeated = list(_walked([*self.each, *self.body]))
        attributes = [node for node in repeated if isinstance(node, ast.Attribute)]
        is_reset = any(
            node.attr == "zero_grad"
            or (node.attr == "grad" and isinstance(node.ctx, ast.Store | ast.Del))
            for node in attributes
        )
        return not is_reset and any(node.attr == "backward" for node in attributes)


def _walked(statements: Iterable[ast.stmt]) -> Iterator[ast.AST]:
    return itertools.chain.from_iterable(map(ast.walk, statements))


def parse_cell(  # noqa: PLR0913  # the last three are keyword-only
    shell: Shell, setup: str, body: str, *, is_cell: bool, line: str, each: str = ""
) -> TimedCode:
    """Parse the setup and the body as the shell would, and check that they can be timed.

    The code passes the shell's transformations of input and of the syntax tree. Line numbers are
    those of the notebook's cell; the line of the magic is its first. ``is_cell`` says that the
    body stands below the magic's line, and not on it. ``SyntaxError`` if the code is not Python,
    or has ``return`` or ``yield`` outside a function.
    """
    setup, each, text = (_transform(shell, code) for code in (setup, each, body))
    number, line_number = _find_cell(shell)
    # Empty lines in front give the code the line numbers that it has in the notebook.
    text = "\n" * (1 + _count_blank_lines(body) if is_cell else line_number - 1) + text
    source = f"%%cudatime {line}{text}" if is_cell else text
    filename = shell.compile.cache(source, number=number)
    # Parsed separately. Otherwise an incomplete setup like "if x:" would make the body its block.
    trees = [_parse(shell, source, filename) for source in (setup, text, each)]
    before, timed, before_each = (_Unannotated().visit(tree).body for tree in trees)
    return TimedCode(before, timed, before_each, text, filename)


def build_work(
    shell: Shell,
    code: TimedCode,
    local_scope: Mapping[str, object],
    loop: AbstractEventLoop,
) -> Callable[[], tuple[Callable[[], object], Callable[[], object]]]:
    """Compile the cell into a function that runs the setup and returns two functions.

    They run the body, and what comes before each sample. The shell's namespace is the code's
    global one, and gains no name. ``local_scope`` has the variables of the function in which a
    line magic was called; ``loop`` runs code that awaits.
    """
    # Local variables are passed as arguments and become closure variables. So the user's globals
    # do not change, and the timed code reads them as fast as its own local names.
    local = {name: local_scope[name] for name in code.names() if name in local_scope}
    functions = [
        _inner(shell, code, name, statements, local)
        for name, statements in ((_TIMED, code.body), (_EACH, code.each))
    ]
    names: list[ast.expr] = [ast.Name(id=name, ctx=ast.Load()) for name in (_TIMED, _EACH)]
    give = ast.Return(value=ast.Tuple(elts=names, ctx=ast.Load()))
    statements = [*code.setup, *functions, give]
    prepare = _function(_PREPARE, statements, arguments=local, awaits=code.awaits)
    tree = _module([prepare])
    made: dict[str, Callable[..., Any]] = {}
    compiled = shell.compile(tree, code.filename, "exec")
    exec(compiled, shell.user_ns, made)  # noqa: S102  # running the user's cell is the purpose
    if not code.awaits:
        return lambda: made[_PREPARE](**local)

    def complete(function: Callable[..., Any], **arguments: object) -> Any:  # noqa: ANN401  # the code's
        return loop.run_until_complete(function(**arguments))

    def prepared() -> tuple[Callable[[], object], Callable[[], object]]:
        timed, each = complete(made[_PREPARE], **local)
        return partial(complete, timed), partial(complete, each)

    return prepared


def _inner(
    shell: Shell, code: TimedCode, name: str, statements: list[ast.stmt], local: Iterable[str]
) -> ast.stmt:
    """Return a function inside that of the setup, which shares its variables."""
    shared = _shared_names(shell, code, statements, local)
    # A variable that the body assigns would be local to it, and unbound when it is read first. As
    # nonlocal it is the variable of the setup.
    scope: list[ast.stmt] = [ast.Nonlocal(names=shared)] if shared else []
    return _function(name, [*scope, *statements] or [ast.Pass()], awaits=code.awaits)


def run_once(
    shell: Shell, code: TimedCode, local_scope: dict[str, object], loop: AbstractEventLoop
) -> object:
    """Execute the cell as an ordinary one: store its names, and return its last expression.

    The shell's namespace is the code's global one, and names are stored in ``local_scope``;
    ``loop`` runs code that awaits. The value is None if the cell ends in a statement.
    """
    statements = [*code.setup, *code.each, *code.body]
    last = statements.pop() if statements and isinstance(statements[-1], ast.Expr) else None
    parts: list[tuple[ast.AST, str]] = [(ast.Module(body=statements, type_ignores=[]), "exec")]
    if isinstance(last, ast.Expr):
        parts.append((ast.Expression(body=last.value), "eval"))
    value = None
    for part, kind in parts:
        compiled = _compile(shell, part, code.filename, kind)
        value = eval(compiled, shell.user_ns, local_scope)  # noqa: S307  # the user asked for it with --run
        if compiled.co_flags & inspect.CO_COROUTINE:
            value = loop.run_until_complete(value)
    return value


def _compile(shell: Shell, tree: ast.AST, filename: str, kind: str = "exec") -> CodeType:
    """Compile code that may await outside functions."""
    with shell.compile.extra_flags(ast.PyCF_ALLOW_TOP_LEVEL_AWAIT):
        compiled: CodeType = shell.compile(tree, filename, kind)
    return compiled


def _find_cell(shell: Shell) -> tuple[int, int]:
    """Return the number of the cell that called the magic, and the line in it."""
    # shell.execution_count is no substitute: some versions of IPython increase it before the cell
    # runs. IPython 7 increases it afterwards, and has no names of cells.
    cell_name = getattr(shell.compile, "format_code_name", None)
    frame = sys._getframe().f_back  # noqa: SLF001  # Python has no public name for it
    while frame is not None:
        if cell_name is None and frame.f_globals is shell.user_ns:
            return shell.execution_count, frame.f_lineno
        label = cell_name and cell_name(frame.f_code.co_filename)
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
    # Compiling finds errors that parsing does not, such as a stray break or nonlocal. The user
    # sees them at his own line, before the GPU is used.
    _compile(shell, tree, filename)
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
    """Yield the nodes outside functions that the user defines."""
    pending = [node]  # not recursive: a long chain of operators would be too deep
    while pending:
        for child in ast.iter_child_nodes(pending.pop()):
            if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                yield child
                pending.append(child)


class _Unannotated(ast.NodeTransformer):
    """Turns ``x: int = 1`` into ``x = 1``, except in classes and functions that the user defines.

    A function, as which the cell is compiled, does not evaluate the annotation, and it may not
    declare a variable with an annotation as nonlocal.
    """

    def visit(self, node: ast.AST) -> Any:  # noqa: ANN401  # as the original
        # Not into expressions either: a long chain of operators is too deep.
        skipped = ast.expr | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
        return node if isinstance(node, skipped) else super().visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        if node.value is not None:
            plain: ast.stmt = ast.Assign(targets=[node.target], value=node.value)
        elif isinstance(node.target, ast.Name):
            plain = ast.Pass()
        else:
            return node
        return ast.copy_location(plain, node)


def _shared_names(
    shell: Shell, code: TimedCode, statements: list[ast.stmt], local: Iterable[str]
) -> list[str]:
    """Return the variables of the setup, or of the caller, that statements write."""
    timed = _function(_TIMED, [*statements] or [ast.Pass()], awaits=code.awaits)
    compiled = shell.compile(_module([timed]), code.filename, "exec")
    function = next(item for item in compiled.co_consts if isinstance(item, CodeType))
    # These include variables of comprehensions, which are dropped below: no setup binds them.
    names = {*function.co_varnames, *function.co_cellvars}
    local_names = frozenset(local)
    return sorted(name for name in names if name in local_names or _is_bound(shell, code, name))


def _is_bound(shell: Shell, code: TimedCode, name: str) -> bool:
    """Return whether the setup binds a name, by asking the compiler."""
    # `nonlocal x` is a SyntaxError unless an enclosing function binds x.
    inner = _function(_TIMED, [ast.Nonlocal(names=[name])])
    tree = _module([_function(_PREPARE, [*code.setup, inner], awaits=code.awaits)])
    try:
        shell.compile(tree, code.filename, "exec")
    except SyntaxError:
        return False
    return True


def _function(
    name: str, body: list[ast.stmt], *, arguments: Iterable[str] = (), awaits: bool = False
) -> ast.stmt:
    names = [ast.arg(arg=argument) for argument in arguments]
    parameters = ast.arguments(
        posonlyargs=[], args=[], kwonlyargs=names, kw_defaults=[None] * len(names), defaults=[]
    )
    kind = ast.AsyncFunctionDef if awaits else ast.FunctionDef
    return kind(name=name, args=parameters, body=body, decorator_list=[])


def _module(body: list[ast.stmt]) -> ast.Module:
    """Return a module of generated functions, with the line numbers that the compiler needs."""
    tree = ast.Module(body=body, type_ignores=[])
    # Not ast.fix_missing_locations: it is recursive, and a long chain of operators is too deep.
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt | ast.expr | ast.arg) and not hasattr(node, "lineno"):
            node.lineno, node.col_offset = 1, 0
            node.end_lineno, node.end_col_offset = 1, 0
    return tree
