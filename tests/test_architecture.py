"""The pages on the architecture list every package and module with its first sentence."""

from pathlib import Path

from docs.extensions import modules

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"
PICTURE = ROOT / "docs" / "images" / "architecture.svg"


def rooms() -> dict[str, str]:
    """Return the first sentence of each package and module of the top level, by its name."""
    paths = [*(ROOT / "gpulab").glob("*.py"), *(ROOT / "gpulab").glob("*/__init__.py")]
    found = {}
    for path in paths:
        name = path.parent.name if path.name == "__init__.py" else path.stem
        found[name] = modules.sentence_of(path)
    return {name: text for name, text in found.items() if name not in {"gpulab", "_version"}}


def test_every_room_is_in_the_table() -> None:
    """Each package has a row with the first sentence of its docstring."""
    lines = PAGE.read_text("utf-8").splitlines()
    rows = {
        line.split("|")[1].strip(): line.split("|")[2].strip() for line in lines if "|" in line
    }
    assert {name: rows.get(f"`{name}`") for name in rooms()} == rooms()


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
    """Each bold name is a package, a part of the virtual GPU, or a known name from outside."""
    outside = {"gpulab.measure", "torch.cuda", "CUDA GPU", "a program on the virtual GPU"}
    parts = {path.parent.name for path in (ROOT / "gpulab/virtual").glob("*/__init__.py")}
    heads = [
        part.partition("<")[0]
        for part in PICTURE.read_text("utf-8").split('font-weight="700" font-size="16">')[1:]
    ]
    named = {name.strip() for head in heads for name in head.split(",")}
    assert len(named) > 15
    assert named - outside - parts - set(rooms()) == set()
