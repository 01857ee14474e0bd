"""The pages on the architecture list every package and module, and in which order they import."""

from functools import cache
from pathlib import Path

from docs.extensions import modules
from tests.support.imports import graph_of_rooms

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"
PICTURE = ROOT / "docs" / "images" / "architecture.svg"


@cache
def imported() -> dict[str, set[str]]:
    """Return the packages that each package imports, by bare names."""
    # `gpulab` itself and its version are no packages of the table, and import nothing.
    return {
        room.rpartition(".")[2]: {
            other.rpartition(".")[2] for other in others - {"gpulab", "gpulab._version"}
        }
        for room, others in graph_of_rooms().items()
    }


def rooms() -> dict[str, str]:
    """Return the first sentence of each package and module of the top level, by its name."""
    paths = [*(ROOT / "gpulab").glob("*.py"), *(ROOT / "gpulab").glob("*/__init__.py")]
    found = {}
    for path in paths:
        name = path.parent.name if path.name == "__init__.py" else path.stem
        found[name] = modules.sentence_of(path)
    return {
        name: text
        for name, text in found.items()
        if name not in {"gpulab", "_version", "__main__"}
    }


def table() -> dict[str, tuple[str, int]]:
    """Return the rows of the page's table from the top down: sentence and level by name."""
    lines = PAGE.read_text("utf-8").splitlines()
    cells = [[cell.strip() for cell in line.split("|")] for line in lines if line[:3] == "| `"]
    return {name.strip("`"): (sentence, int(level)) for _, name, sentence, level, _ in cells}


@cache
def level_of(room: str) -> int:
    """Return one more than the highest level that a room imports, or 0 if it imports none."""
    return max((level_of(other) + 1 for other in imported()[room]), default=0)


def test_every_room_is_in_the_table() -> None:
    """Each package has a row with the first sentence of its docstring, and there are no others."""
    assert {name: sentence for name, (sentence, _) in table().items()} == rooms()


def test_the_levels_of_the_table_follow_from_the_imports() -> None:
    """A room's level is one above the highest that it imports."""
    levels = {name: level for name, (_, level) in table().items()}
    assert levels == {name: level_of(name) for name in rooms()}


def test_a_room_imports_only_rooms_below_it_in_the_table() -> None:
    """The table goes from the top down, so no row imports itself or a row above it."""
    order = list(table())
    wrong = [
        f"{room} imports {other}"
        for room in order
        for other in imported()[room]
        if order.index(other) <= order.index(room)
    ]
    assert wrong == []


def test_the_table_goes_down_by_levels() -> None:
    """No room stands below one of a lower level."""
    levels = [level for _, level in table().values()]
    assert levels == sorted(levels, reverse=True)


def test_every_module_is_on_the_page_of_modules() -> None:
    """Each module has one line with a whole sentence, and each package a heading."""
    lines = modules.page().splitlines()
    entries = [line for line in lines if line.startswith("- `")]
    headings = [line for line in lines if line.startswith("## ")]
    paths = [*(ROOT / "gpulab").rglob("*.py")]
    doors = [path for path in paths if path.name == "__init__.py"]
    assert (len(entries), len(headings)) == (len(paths) - len(doors), len(doors))
    assert [line for line in entries if not line.endswith((".", "?"))] == []


def test_the_picture_names_rooms_that_exist() -> None:
    """Each bold name is a package, a part of one, or a known name from outside."""
    outside = {"gpulab.measure", "torch.cuda", "CUDA GPU", "a program on the virtual GPU"}
    parts = {path.parent.name for path in (ROOT / "gpulab").glob("*/*/__init__.py")}
    heads = [
        part.partition("<")[0]
        for part in PICTURE.read_text("utf-8").split('font-weight="700" font-size="16">')[1:]
    ]
    named = {name.strip() for head in heads for name in head.split(",")}
    assert len(named) > 15
    assert named - outside - parts - set(rooms()) == set()
