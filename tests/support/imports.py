"""What the modules of gpulab import from each other, read from their source."""

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

from tests.support.trees import nodes_of

PACKAGE = Path(__file__).parents[2] / "gpulab"


def name_of(path: Path) -> str:
    """Return the full name of a module of the package."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


MODULES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


# Nobody outside needs the parts of these.
CLOSED = {"gpulab.exercises", "gpulab.virtual"}


def room_of(module: str) -> str:
    """Return the top-level module or package that a module belongs to."""
    return ".".join(module.split(".")[:2])


def door_of(module: str) -> str:
    """Return the module or package through which others import what a module defines.

    It is the part of a room, such as ``gpulab.views.plots``, or the room itself for its own
    modules and for the parts of a closed one.
    """
    parts = module.split(".")[:3]
    if room_of(module) in CLOSED or parts[-1].startswith("_"):
        return room_of(module)
    return ".".join(parts)


@cache
def imports_of(path: Path) -> list[tuple[int, str, str]]:
    """Return line, module and name of each import, those inside functions included."""
    found = []
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: write the import with its full name"
            found += [(node.lineno, str(node.module), alias.name) for alias in node.names]
    return found


def own_imports(module: str) -> list[tuple[int, str, str]]:
    """Return line, module and name of each import from the package; the name may be empty."""
    found = []
    for line, owner, name in imports_of(MODULES[module]):
        if owner.partition(".")[0] == "gpulab":
            full_name = f"{owner}.{name}"
            found.append((line, full_name, "") if full_name in MODULES else (line, owner, name))
    return found


def graph_of_rooms() -> dict[str, set[str]]:
    """Return for each room the other rooms that its modules import."""
    graph: dict[str, set[str]] = defaultdict(set)
    for module in MODULES:
        owners = {room_of(owner) for _, owner, _ in own_imports(module)}
        graph[room_of(module)] |= owners - {room_of(module)}
    return dict(graph)
