"""The house rules of the code, checked with ``ast``."""

import ast
import doctest
import importlib
import inspect
import io
import re
import statistics
import subprocess
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest
import yaml

from tests.support.trees import nodes_of, tree_of

ROOT = Path(__file__).parents[1]
PACKAGE, TESTS = ROOT / "gpulab", ROOT / "tests"

LONG_FILE_LINES = 500  # cohesion decides where a file ends; a longer one says why
MAX_FUNCTION_MEDIAN = 8
MAX_FUNCTION_P90 = 30
# Names of other packages need no example: their tests show how they are used.
FOR_USERS = (
    *("gpulab", "gpulab.views.plots", "gpulab.exercises", "gpulab.device.clocks"),
    *("gpulab.roofline", "gpulab.workloads.recordings"),
)
# A character class of one letter, so that no pattern matches its own text in this file.
FORBIDDEN = {
    "a path of one machine": r"(?<![\w.])/(?:wor[k]|roo[t]|hom[e]/\w+|User[s]/\w+)/",
    "a path on a drive": r"\b[C]:\\\w",
    "the host of a package registry": r"pyp[i]\.org|pythonhoste[d]\.org|npmj[s]\.|anacond[a]\.org",
    "an address of a private network": r"//(?:10|192\.168|172\.16)\.\d",
    "a note to oneself": r"\b(?:TOD[O]|FIXM[E]|XX[X])\b",
    "the number of an issue": r"\b[Ii]ssu[e]s? #?\d|\bPR #\d",
}
# They fit anything, so they say nothing. ``found=`` of the explorers is public.
GENERAL_NAMES = frozenset({"found", "given", "kept", "one", "place", "seen"})
PUBLIC_ALL_THE_SAME = frozenset({"roofline_explorer", "__init__"})
MOST_GENERAL = 10  # functions; this number only goes down
# The marker, the rule, and then a second comment with the reason.
SUPPRESSION = re.compile(r"#\s*(?:noqa|type:\s*ignore)\b")
EXPLAINED = re.compile(r"(?:noqa: [A-Z]+\d+(?:, ?[A-Z]+\d+)*|type: ignore\[[\w, -]+\])\s+# ?\w")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Definition:
    """A function or a class and its place."""

    path: Path
    node: Function | ast.ClassDef

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.node.lineno}: {self.node.name}"

    @property
    def n_lines(self) -> int:
        """Lines from ``def`` to the end, docstring included and decorators not."""
        return (self.node.end_lineno or 0) - self.node.lineno + 1


def definitions_in(path: Path) -> Iterator[Definition]:
    """Yield every function and class of a file, those inside others included."""
    for node in nodes_of(path):
        if isinstance(node, Function | ast.ClassDef):
            yield Definition(path, node)


@cache
def package_files() -> tuple[Path, ...]:
    """Return the modules of the package."""
    return tuple(sorted(PACKAGE.rglob("*.py")))


@cache
def package_definitions() -> tuple[Definition, ...]:
    """Return every function and class of the package."""
    return tuple(found for path in package_files() for found in definitions_in(path))


def package_functions() -> list[Definition]:
    """Return every function and method of the package."""
    return [found for found in package_definitions() if isinstance(found.node, Function)]


def n_lines_of(path: Path) -> int:
    """Return the number of lines of a file."""
    return len(path.read_text("utf-8").splitlines())


def p90(values: list[int]) -> float:
    """Return the value that nine tenths of the others do not exceed."""
    return statistics.quantiles(values, n=10, method="inclusive")[-1]


def at(path: Path, line: int, text: str) -> str:
    """Return a place as text that editors turn into a link."""
    return f"{path.relative_to(ROOT)}:{line}: {text}"


def test_long_files_say_why() -> None:
    """A file of more than 500 lines says in its docstring why it is one file."""
    sizes = {path: n_lines_of(path) for path in package_files()}
    long = [
        at(path, 1, f"{n} lines and no 'One file, because ...' in the docstring")
        for path, n in sizes.items()
        if n > LONG_FILE_LINES
        and "One file, because" not in (ast.get_docstring(tree_of(path)) or "")
    ]
    assert not long, "\n".join(long)


def test_functions_are_short() -> None:
    """Half of the functions have at most 8 lines, nine tenths at most 30."""
    functions = sorted(package_functions(), key=lambda function: -function.n_lines)
    lengths = [function.n_lines for function in functions]
    longest = "\n".join(f"{function}: {function.n_lines} lines" for function in functions[:20])
    assert statistics.median(lengths) <= MAX_FUNCTION_MEDIAN, longest
    assert p90(lengths) <= MAX_FUNCTION_P90, longest


def names_made_in(function: Definition) -> set[str]:
    """Return the names that a function gives to its arguments and variables."""
    nodes = list(ast.walk(function.node))
    stored = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return stored | {node.arg for node in nodes if isinstance(node, ast.arg)}


def test_locals_are_named_after_what_they_contain() -> None:
    """Hardly any function has a variable or an argument with a name that fits anything."""
    general = [
        f"{function}: {', '.join(sorted(names))}"
        for function in package_functions()
        if function.node.name not in PUBLIC_ALL_THE_SAME
        if (names := GENERAL_NAMES & names_made_in(function))
    ]
    assert len(general) <= MOST_GENERAL, "\n".join(general)


def public_functions_of(door: ModuleType) -> Iterator[Any]:
    """Yield the functions and classes of gpulab that a door offers; of a command its function."""
    own = [name for name, found in vars(door).items() if module_of(found) == door.__name__]
    for name in getattr(door, "__all__", own):
        found = function_of(getattr(door, name))
        is_callable = inspect.isroutine(found) or inspect.isclass(found)
        if not name.startswith("_") and is_callable and module_of(found).startswith("gpulab"):
            yield found


def function_of(found: object) -> object:
    """Return what a public name stands for: the function, if click made a command of it."""
    return found.callback if isinstance(found, click.Command) else found


def module_of(found: object) -> str:
    """Return the name of the module that defines something, or an empty text."""
    return str(getattr(function_of(found), "__module__", None) or "")


@cache
def running_examples_in(module: str) -> frozenset[str]:
    """Return the full names in a module that have an example; doctest runs every line of it."""
    found = doctest.DocTestFinder().find(importlib.import_module(module))
    return frozenset(
        each.name.replace(".__test__", "")
        for each in found
        if each.examples and not any(one.options.get(doctest.SKIP) for one in each.examples)
    )


@pytest.mark.slow  # it imports most modules
@pytest.mark.parametrize("door", FOR_USERS)
def test_names_that_users_reach_have_examples(door: str) -> None:
    """Every function and class that a user reaches has an example, which doctest runs."""
    silent = [
        name
        for found in public_functions_of(importlib.import_module(door))
        # Not __name__, which a class may change to that of the class it stands for.
        if (name := f"{found.__module__}.{found.__qualname__}")
        not in running_examples_in(found.__module__)
    ]
    assert not silent, "\n".join(sorted(silent))


def test_every_class_name_means_one_thing() -> None:
    """No two modules define the same public name of a class, or of a type differently."""
    meanings: dict[str, set[str]] = {}
    for path in package_files():
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef):
                meanings.setdefault(node.name, set()).add(at(path, node.lineno, node.name))
            elif isinstance(node, ast.Assign) and re.fullmatch(
                "[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*", name := ast.unparse(node.targets[0])
            ):
                meanings.setdefault(name, set()).add(f"{name} = {ast.unparse(node.value)}")
    wrong = [each for name, each in meanings.items() if len(each) > 1 and name[0] != "_"]
    assert not wrong, "\n".join(str(sorted(each)) for each in wrong)


def suppressing_comments_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and text of each comment that silences a rule; a string is no comment."""
    text = path.read_text("utf-8")
    lines = text.splitlines()
    # A search costs much less than reading all tokens.
    if all(EXPLAINED.search(line) for line in lines if SUPPRESSION.search(line)):
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and SUPPRESSION.search(token.string):
            yield token.start[0], token.string


def test_suppressions_have_a_reason() -> None:
    """A silenced warning names its rule, and the same line says why."""
    bare = [
        at(path, line, comment)
        for path in [*package_files(), *sorted(TESTS.rglob("*.py"))]
        for line, comment in suppressing_comments_of(path)
        if not EXPLAINED.search(comment)
    ]
    assert not bare, "\n".join(bare)


def tracked_files() -> list[Path]:
    """Return the files under version control, or skip where there is none."""
    listing = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, text=True, check=False
    )
    if listing.returncode != 0:
        pytest.skip("this copy of the project is not a git checkout")
    return [ROOT / name for name in listing.stdout.split("\0") if (ROOT / name).is_file()]


def test_text_speaks_of_the_project_alone() -> None:
    """No tracked file names a machine, a registry, or work that is still to do."""
    wrong = []
    for path in tracked_files():
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError:  # a picture has no words
            continue
        for what, pattern in FORBIDDEN.items():
            for found in re.finditer(pattern, text):
                number = text.count("\n", 0, found.start()) + 1
                wrong.append(at(path, number, f"{what}: {found[0].strip()[:80]}"))
    assert not wrong, "\n".join(wrong)


def repeated_words() -> re.Pattern[str]:
    """Return the pattern of the hook for repeated words, so that there is only one."""
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"][-1]
    (entry,) = (hook["entry"] for hook in hooks["hooks"] if hook["id"] == "repeated-words")
    return re.compile(entry)


def test_no_word_is_written_twice_in_a_row() -> None:
    """What the hook before a commit refuses is in no file, whoever committed it."""
    pattern = repeated_words()
    assert pattern.search("as the " + "the list")
    wrong = [
        at(path, number, line.strip())
        for path in tracked_files()
        if path.suffix in {".py", ".md", ".js"}
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1)
        if pattern.search(line)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("a path of one machine", "see /wor" + "k/main/x.py"),
        ("a path of one machine", "'/hom" + "e/ada/x.py'"),
        ("a path on a drive", "C" + ":\\Users"),
        ("the host of a package registry", "https://pyp" + "i.org/simple"),
        ("an address of a private network", "http:/" + "/10.0.0.7:8888"),
        ("a note to oneself", "# TOD" + "O: later"),
        ("the number of an issue", "as issu" + "e 2 asks"),
    ],
)
def test_forbidden_words_are_found(what: str, text: str) -> None:
    """Each pattern finds the text that it forbids."""
    assert [name for name, pattern in FORBIDDEN.items() if re.search(pattern, text)] == [what]
