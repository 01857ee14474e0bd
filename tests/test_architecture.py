"""The page on the architecture shows every room, in the words of the room itself."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"
PICTURE = ROOT / "docs" / "images" / "architecture.svg"


def rooms() -> dict[str, str]:
    """Return the first sentence of each package and module of the top level, by its name."""
    paths = [*(ROOT / "gpulab").glob("*.py"), *(ROOT / "gpulab").glob("*/__init__.py")]
    found = {}
    for path in paths:
        name = path.parent.name if path.name == "__init__.py" else path.stem
        docstring = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
        found[name] = docstring.partition("\n")[0]
    return {name: text for name, text in found.items() if name not in {"gpulab", "_version"}}


def test_every_room_is_in_the_table() -> None:
    """Each has its row, with the first sentence of its docstring."""
    lines = PAGE.read_text("utf-8").splitlines()
    rows = {
        line.split("|")[1].strip(): line.split("|")[2].strip() for line in lines if "|" in line
    }
    assert {name: rows.get(f"`{name}`") for name in rooms()} == rooms()


def test_the_picture_names_rooms_that_exist() -> None:
    """What is written in bold are packages, parts of the virtual GPU, or what is not ours."""
    outside = {"gpulab.measure", "torch.cuda", "CUDA GPU", "a program on the virtual GPU"}
    parts = {path.parent.name for path in (ROOT / "gpulab/virtual").glob("*/__init__.py")}
    heads = [
        part.partition("<")[0]
        for part in PICTURE.read_text("utf-8").split('font-weight="700" font-size="16">')[1:]
    ]
    named = {name.strip() for head in heads for name in head.split(",")}
    assert len(named) > 15
    assert named - outside - parts - set(rooms()) == set()
