"""The magic runs the user's code as IPython would, compiles it once, and isolates its names."""

import re
from types import SimpleNamespace

import pytest

from gpulab.magic import _cell
from tests.support.ipython import Notebook, shows_our_frames

pytestmark = pytest.mark.slow

# IPython 8 and newer name the cell and the line, version 7 the file and marks the line.
TIMED_CELL = (
    r"Cell In\[2\], line {0}, in <timed>\(\)|<ipython-input-2-\w+> in <timed>\(\)\n(.*\n)*-+> {0} "
)


def test_an_ipython_without_names_of_cells() -> None:
    """IPython 7 cannot name a cell: its number is the count, and the line that of the caller."""
    scope: dict[str, object] = {"find": _cell._find_cell}
    scope["shell"] = SimpleNamespace(compile=None, user_ns=scope, execution_count=7)
    exec("def ask():\n    return find(shell)\n\nanswer = ask()", scope)
    assert scope["answer"] == (7, 2)


def test_braces_are_not_expanded(notebook: Notebook) -> None:
    """IPython does not expand braces: ``{n}`` stays a set and is not replaced by n's value."""
    ran = notebook.last(
        "n, seen = 3, set()", "%cudatime -q -r 1 seen.add(str({n}))", "print(seen)"
    )
    assert ran.out == "{'{3}'}\n"


def test_code_reaches_the_compiler_byte_for_byte(notebook: Notebook) -> None:
    """Spaces and line breaks inside strings are unchanged, in a line and in a cell."""
    ran = notebook.last(
        "seen = set()",
        '%cudatime -q -r 1 seen.add("a  b")',
        '%%cudatime -q -r 1 c = "c  d"\nseen.add(c)\nseen.add("""e\n  f""")',
        "print(sorted(seen))",
    )
    assert ran.out == "['a  b', 'c  d', 'e\\n  f']\n"


def test_code_may_begin_with_a_minus(notebook: Notebook) -> None:
    """A line like ``-a + 2`` is timed as an expression, not refused as an unknown option."""
    ran = notebook.last("a = torch.ones(3, device='cuda')", "%cudatime -a + 2")
    assert ran.error is None
    assert "per call" in ran.out


def test_setup_runs_once_and_is_seen_by_the_body(notebook: Notebook) -> None:
    """The magic's line runs once, and the body reads and changes its variables."""
    ran = notebook.last(
        "log = []",
        "%%cudatime -q -r 4 --warmup 0 q = 5; log.append('setup')\nq += 1\nlog.append(q)",
        "print(log)",
    )
    assert ran.out == "['setup', 6, 7, 8, 9]\n"


@pytest.mark.parametrize(
    ("setup", "body"),
    [
        ("i = 0", "for i in range(3): pass\nlog.append(i)"),
        ("i = 0", "import math as i\nlog.append(i.floor(2.5))"),
        ("i = 0", "def i(): return 2\nlog.append(i())"),
        ("i = 0", "global j\nj = 2\nlog.append(j + i)"),
        ("j = 1", "global j\nj = 2\nlog.append(j)"),
        ("j = [i for i in range(3)]", "i = j[-1]\nlog.append(i)"),
        ("j = [i for i in range(3)]", "log.append([i for i in j][-1])"),
        ("i: int = 1", "i: int = 2\nlog.append(i)"),
        ("i: int = 1", "i += 1\nlog.append(i)"),
        ("i = 1", "i: int\ni += 1\nlog.append(i)"),
        ("i: int = 1", "if i:\n    i: int = i + 1\nelse:\n    i: str = ''\nlog.append(i)"),
        (
            "i: int = 1",
            "try:\n    1 / 0\nexcept ZeroDivisionError:\n    i: int = 2\nlog.append(i)",
        ),
        ("", "class A:\n    b: int = 2\nlog.append([A.b][len(A.__annotations__) - 1])"),
        ("j = {i for i in range(3)}", "i = 2\nlog.append(i)"),
        ("i = 1", "i = [i for i in (1, 2)][-1]\nlog.append(i)"),
        ("class A: b = 2", "log.append(A.b)"),
        ("", "# a comment alone, and a value\nlog.append(2)"),
    ],
)
def test_setup_and_body_share_one_scope(notebook: Notebook, setup: str, body: str) -> None:
    """Names bound in setup or body, by any statement, are visible in both."""
    ran = notebook.last("log = []", f"%%cudatime -q -r 1 --warmup 0 {setup}\n{body}", "print(log)")
    assert ran.out == "[2]\n"


def test_names_do_not_leak(notebook: Notebook) -> None:
    """Neither names that a timed cell binds nor the magic's own appear in the notebook."""
    ran = notebook.last(
        "before = None; before = set(globals())",
        "%%cudatime -q -r 1 s = 1\nb = s",
        "%cudatime -q -r 1 c = 1",
        "print(sorted(name for name in set(globals()) - before if name[:2] not in ('_i', '_o')))",
    )
    assert ran.out == "[]\n"


def test_a_line_sees_the_scope_of_its_function(notebook: Notebook) -> None:
    """A line inside a function reads its local variables, and does not change them."""
    ran = notebook.last(
        "log = []\n"
        "def f():\n"
        "    local = 1\n"
        "    %cudatime -q -r 1 --warmup 2 local += 1; log.append(local)\n"
        "    return local\n"
        "print(f(), log, 'local' in globals())"
    )
    assert ran.out == "1 [2, 3, 4] False\n"


def test_a_name_bound_only_in_the_body_is_local(notebook: Notebook) -> None:
    """As in %timeit, ``a += 1`` fails because a is local to the cell; a note says what to do."""
    ran = notebook.last("a = 1", "%%cudatime\na += 1")
    assert ran.error == "UnboundLocalError"
    assert ran.notes[-1] == (
        "gpulab: a name that a timed cell assigns is local to it; assign it on the magic's "
        "line (%%cudatime y = x.clone()), or work in place (x.add_(1))"
    )


def test_the_note_on_local_names_is_only_for_the_cell(notebook: Notebook) -> None:
    """An UnboundLocalError of a function that the cell calls gets no note."""
    ran = notebook.last("def f():\n    a += 1", "%cudatime f()")
    assert ran.error == "UnboundLocalError"
    assert not any("timed cell" in note for note in ran.notes)


def test_cell_may_use_the_shells_syntax(notebook: Notebook) -> None:
    """Shell commands and other magics inside a timed cell work as they do outside."""
    ran = notebook.last(
        "seen = []", "%%cudatime -q -r 1 --warmup 0\nx = !echo hi\nseen.extend(x)", "print(seen)"
    )
    assert ran.out == "['hi']\n"


def test_syntax_tree_transformers_apply(notebook: Notebook) -> None:
    """The user's AST transformers also change timed cells."""
    ran = notebook.last(
        "import ast\n"
        "class Double(ast.NodeTransformer):\n"
        "    def visit_Constant(self, node):\n"
        "        two = isinstance(node.value, int)\n"
        "        return ast.copy_location(ast.Constant(node.value * 2), node) if two else node\n"
        "seen = set()\n"
        "get_ipython().ast_transformers.append(Double());",
        "%cudatime -q seen.add(21)",
        "print(seen)",
    )
    assert ran.out == "{42}\n"


def test_cell_is_compiled_before_it_is_timed(notebook: Notebook) -> None:
    """All calls run the same code object, and nothing is compiled after the first call."""
    ran = notebook.last(
        "import sys\n"
        "log, codes = [], set()\n"
        "def hook(event, arguments, log=log):\n"
        "    if event == 'compile' and str(arguments[1]).startswith('<ipython'):\n"
        "        log.append('compile')\n"
        "sys.addaudithook(hook)",
        "%%cudatime -q -r 3 -n 2 --warmup 1\n"
        "codes.add(sys._getframe().f_code)\n"
        "log.append('call')",
        "print(len(codes), log[log.index('call') :][:7])",
    )
    assert ran.out == f"1 {['call'] * 7}\n"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("return 3", "return has no function to leave; write the expression alone"),
        (
            "yield 3",
            "yield has no function to leave; define the generator in a cell of its own",
        ),
        (
            "yield from f()",
            "yield has no function to leave; define the generator in a cell of its own",
        ),
        ("nonlocal z", "nonlocal declaration not allowed at module level"),
        (
            "from math import *",
            "import * cannot stand in a timed cell; import in a cell of its own",
        ),
    ],
)
def test_statements_that_cannot_be_timed_are_refused(
    notebook: Notebook, code: str, message: str
) -> None:
    """Statements that cannot be timed are refused in line, cell and setup, with their place."""
    line = notebook.last(f"%cudatime {code}")
    cell = notebook.last(f"%%cudatime\nx = 1\nif x:\n    {code}")
    setup = notebook.last(f"%%cudatime {code}\n1")
    for ran, where in ((line, "line 1"), (cell, "line 4"), (setup, "line 1")):
        assert ran.error == "SyntaxError"
        assert ran.out.splitlines()[-2] == f"SyntaxError: {message}"
        assert str(ran.message).endswith(f", {where})")
        assert not shows_our_frames(ran.out)


def test_a_refusal_of_a_measurement_shows_only_the_users_lines(notebook: Notebook) -> None:
    """The error that names what cannot be captured has no frame of the magic."""
    ran = notebook.last("%%cudatime --method graph\ntorch.ones(3, device='cuda').cpu()")
    assert ran.error == "NotCapturableError"
    assert not shows_our_frames(ran.out)


def test_a_traceback_shows_only_the_users_lines(notebook: Notebook) -> None:
    """A traceback has the notebook's cell and line numbers, and no file of gpulab."""
    ran = notebook.last("%%cudatime x = 1\n\n\ny = 2\ny / (x - 1)")
    assert re.search(TIMED_CELL.format(5), ran.out)
    assert "----> 5 y / (x - 1)" in ran.out
    assert not shows_our_frames(ran.out)


def test_the_magic_works_outside_a_cell(notebook: Notebook) -> None:
    """The magic called by a module on another thread raises the error of the timed code."""
    source = (
        "def f(shell, errors):\n"
        "    try:\n"
        "        shell.run_line_magic('cudatime', '1 / 0')\n"
        "    except ZeroDivisionError as error:\n"
        "        errors.append(error)"
    )
    ran = notebook.last(
        "import threading, types\n"
        "module, errors = types.ModuleType('module'), []\n"
        f"exec({source!r}, module.__dict__)",
        # The virtual GPU belongs to one thread, so the main thread must release it first.
        "gpulab.device._notebook_session.session.release()\n"
        "thread = threading.Thread(target=module.f, args=(get_ipython(), errors))\n"
        "thread.start(); thread.join(); print(errors)",
    )
    assert ran.out == "[ZeroDivisionError('division by zero')]\n"
