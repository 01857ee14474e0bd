"""Packages are imported through their doors and in one direction; no name hides another."""

import ast
import graphlib
import pkgutil
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from functools import cache

import pytest

import gpulab
from tests.support.imports import MODULES, door_of, graph_of_rooms, imports_of, own_imports
from tests.support.trees import nodes_of, tree_of

PUBLIC_MODULES = {
    *("animations", "clocks", "cluster", "errors", "explorers", "live", "plots", "recordings"),
    "roofline",
}
# The simulator is pure arithmetic: it must not wait for torch or for a real clock.
TORCH_FREE = ("happens_before", "virtual/simulator")
# It describes PyTorch's tensors for what is free of torch.
OF_TORCH = "gpulab.happens_before.tensor_accesses"
FORBIDDEN_IN_TORCH_FREE = {"torch", "time", "asyncio"}
HEAVY = {"torch", "matplotlib", "ipywidgets", "IPython", "pandas", "numpy", "scipy"}


@cache
def exports_of(module: str) -> set[str]:
    """Return what a package lets others have: ``__all__``, or the names of its stub."""
    path = MODULES[module]
    if (stub := path.with_suffix(".pyi")).exists():
        imports = [node for node in nodes_of(stub) if isinstance(node, ast.ImportFrom)]
        return {str(alias.asname) for node in imports for alias in node.names}
    for node in tree_of(path).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return set(ast.literal_eval(node.value))
    return set()


def test_packages_are_entered_by_their_doors() -> None:
    """A package is imported through its ``__init__``, and a ``_module`` only in its folder."""
    wrong = [
        f"{MODULES[module]}:{line}: {owner} {name}"
        for module in MODULES
        for line, owner, name in own_imports(module)
        if not is_allowed(module, owner, name)
    ]
    assert not wrong, "\n".join(wrong)


def is_allowed(module: str, owner: str, name: str) -> bool:
    """Return whether a module may import a name from its owner."""
    folder = owner.rpartition("._")[0]
    if folder or door_of(owner) in {door_of(module), "gpulab"}:
        return f"{module}.".startswith(folder and f"{folder}.")
    is_package = MODULES[door_of(owner)].name == "__init__.py"
    if owner != door_of(owner):
        return False
    return not (is_package and name and name not in exports_of(owner))


def test_no_import_is_hidden_in_a_string() -> None:
    """No string names a private module, because tools would not see such an import."""
    private = re.compile(r"gpulab(\.\w+)*\._\w+")
    found = []
    for module, path in MODULES.items():
        nodes = nodes_of(path)
        expressions = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        found += [
            f"{module}:{node.lineno}: {node.value}"
            for node in nodes
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
            if id(node) not in expressions  # docstrings may say where to read on
            if private.search(node.value)
        ]
    assert not found, "\n".join(found)


def require_one_way(graph: dict[str, set[str]]) -> None:
    """Fail with the circle that imports form, if they form one."""
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def test_packages_import_one_way() -> None:
    """The rooms form no circle, not even by imports inside functions or for types alone."""
    require_one_way(graph_of_rooms())


def test_packages_inside_packages_import_one_way() -> None:
    """The parts of a large package, such as the virtual GPU, form no circle either."""
    parts = {name for name, path in MODULES.items() if path.name == "__init__.py"}
    graph: dict[str, set[str]] = defaultdict(set)
    for module in MODULES:
        part = module if module in parts else module.rpartition(".")[0]
        others = {
            owner if owner in parts else owner.rpartition(".")[0]
            for _, owner, _ in own_imports(module)
        }
        # A package and the packages inside it count as one: they import each other's modules.
        graph[part] |= {
            other
            for other in others
            if not f"{part}.".startswith(f"{other}.") and not f"{other}.".startswith(f"{part}.")
        }
    require_one_way(graph)


def test_no_module_bears_the_name_of_a_public_function() -> None:
    """Importing a module of the same name would hide the function."""
    rooms = {module.name for module in pkgutil.iter_modules(gpulab.__path__)}
    assert rooms & set(gpulab.__all__) <= PUBLIC_MODULES


@pytest.mark.parametrize(
    "module",
    [
        name
        for name, path in MODULES.items()
        if any(f"gpulab/{part}/" in path.as_posix() for part in TORCH_FREE) and name != OF_TORCH
    ],
)
def test_the_simulator_is_arithmetic(module: str) -> None:
    """The simulator imports neither torch nor a clock, so it cannot wait for either."""
    imports = imports_of(MODULES[module])
    wrong = [
        (line, owner)
        for line, owner, _ in imports
        if owner.partition(".")[0] in FORBIDDEN_IN_TORCH_FREE
    ]
    assert not wrong, MODULES[module]


def run_python(
    code: str, python: Sequence[str] = (sys.executable,)
) -> subprocess.CompletedProcess[str]:
    """Run code in a Python of its own; in the usual one nothing has been imported yet."""
    done = subprocess.run([*python, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize("module", ["gpulab", "gpulab.cli", "gpulab.lessons"])
def test_import_is_light(module: str) -> None:
    """The package and its command import no heavy package at the start."""
    names = run_python(f"import {module}, sys; print(*sys.modules)").stdout.split()
    assert HEAVY.isdisjoint(names), f"import {module} loads {sorted(HEAVY & set(names))}"


@pytest.mark.slow
def test_pictures_load_no_widgets() -> None:
    """Importing what can be shown as a widget imports neither a widget library nor pyplot."""
    code = "import gpulab.views.explorers, gpulab.tracing._page, sys; print(*sys.modules)"
    loaded = set(run_python(code).stdout.split())
    assert loaded.isdisjoint({"ipywidgets", "anywidget", "matplotlib.pyplot"})


def test_public_names_are_sorted() -> None:
    """``gpulab.__all__`` is sorted, and ``dir`` shows nothing else."""
    assert gpulab.__all__ == sorted(gpulab.__all__)
    assert dir(gpulab) == gpulab.__all__


@pytest.mark.slow
@pytest.mark.parametrize(
    "imported",
    [[], sorted(MODULES), sorted(MODULES, reverse=True)],
    ids=["first use", "in order", "backwards"],
)
def test_public_names_resolve(imported: list[str], warm_python: list[str]) -> None:
    """Each name is found, and importing a module of the same name does not hide it."""
    code = (
        # A warm Python has imported the modules in an order of its own.
        "from tests.support.other_system import forget_gpulab; forget_gpulab()\n"
        "import gpulab, importlib\n"
        f"for name in {imported}: importlib.import_module(name)\n"
        "for name in gpulab.__all__: print('@', name, type(getattr(gpulab, name)).__name__)"
    )
    lines = run_python(code, warm_python).stdout.splitlines()
    kinds = dict(line.split()[1:] for line in lines if line.startswith("@"))
    assert sorted(kinds) == gpulab.__all__
    assert {name for name, kind in kinds.items() if kind == "module"} == PUBLIC_MODULES


def test_unknown_name_is_an_attribute_error() -> None:
    """A misspelt name fails as on any module."""
    with pytest.raises(AttributeError) as error:
        gpulab.mesure  # noqa: B018 # reading it is the test
    assert str(error.value) == "No gpulab attribute mesure"
