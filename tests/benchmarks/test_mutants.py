"""Mutants differ from their original in one place."""

import ast

import pytest

from benchmarks.judges.mutants import changed_copies


@pytest.mark.parametrize(
    ("code", "changes"),
    [
        ("if a < b: pass", ["a <= b", "not a < b"]),
        ("if a is b: pass", ["a is not b"]),
        ("if not a: pass", ["a"]),
        ("x = a + b", ["a - b"]),
        ("x = a and b", ["a or b"]),
        ("x = 3", ["4", "2"]),
        ("x = True", ["False"]),
        ("x = min(a)", ["max"]),
        ("x += a", ["pass", "x -= a"]),
        ("a.b = c", ["pass"]),
        ("f()", ["pass"]),
        ("stream.synchronize()", ["pass", "__import__('time').sleep(0.01)"]),
        ("for i in x: i.f()", ["if True:", "pass"]),
        ("raise f(3)", ["pass"]),
        ("def f(): return a", ["return None"]),
        ("'words'", []),
        ("__all__ = ['a']", []),
    ],
)
def test_changes_of_a_line(code: str, changes: list[str]) -> None:
    """Each mutant names the old code and the new, and its tree contains the new code."""
    mutants = list(changed_copies(ast.parse(code)))
    assert [change.partition("  ->  ")[2] for change, _ in mutants] == changes
    for (_, tree), new in zip(mutants, changes, strict=True):
        compile(tree, "code.py", "exec")
        assert new in ast.unparse(tree)
        assert ast.unparse(tree) != ast.unparse(ast.parse(code))


def test_statements_change_places() -> None:
    """Two statements of a block are swapped, and those of a module are not."""
    mutants = list(changed_copies(ast.parse("def f():\n    a()\n    b()\nf()")))
    texts = [ast.unparse(tree) for change, tree in mutants if change.startswith("swap: ")]
    assert texts == ["def f():\n    b()\n    a()\nf()"]
