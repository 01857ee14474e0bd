"""The syntax trees of files, parsed once for all tests of a worker."""

import ast
from functools import cache
from pathlib import Path


@cache
def tree_of(path: Path) -> ast.Module:
    """Parse a file."""
    return ast.parse(path.read_text("utf-8"))


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """Return everything in a file."""
    return tuple(ast.walk(tree_of(path)))
