"""Write the map of all modules: each package, and the first sentence of each of its modules.

``python -m docs.extensions.modules`` prints it, and the book has it as a page. It is written at
each build, so that it cannot go stale.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]


def main() -> None:
    """Print the page."""
    print(page())  # noqa: T201 # the command's output


def page() -> str:
    """Return the page in Markdown."""
    head = "# Modules\n\nThe first sentence of each package, and then of each module in it."
    return "\n\n".join([head, *_sections()]) + "\n"


def _sections() -> Iterator[str]:
    """Yield a section for each package, and one for the modules beside them."""
    package = ROOT / "gpulab"
    for door in sorted(package.rglob("__init__.py")):
        name = ".".join(door.parent.relative_to(ROOT).parts)
        modules = sorted(path for path in door.parent.glob("*.py") if path != door)
        rows = [f"- `{path.stem}`: {sentence_of(path)}" for path in modules]
        yield "\n\n".join(filter(None, [f"## {name}", sentence_of(door), "\n".join(rows)]))


def sentence_of(path: Path) -> str:
    """Return the first line of a module's docstring, which is a whole sentence."""
    docstring = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    return docstring.partition("\n")[0]


if __name__ == "__main__":
    main()
