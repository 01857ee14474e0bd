"""Build the JavaScript of a widget from its own files and the shared ones."""

import json
import re
from functools import cache
from pathlib import Path

from gpulab.core.palette import named, style_sheet

_IMPORT = re.compile(r'^import ([^;]+?) from "([^"]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const) (\w+))", re.MULTILINE)


@cache
def script(path: Path) -> str:
    """Return the module of a widget as text.

    anywidget sends a widget's script to the browser as one module, which cannot import files
    beside it. So the files that it imports are put before it, and before them the style sheet as
    the constant ``LOOK``, and its colours as ``COLOURS``. Put ``LOOK`` into the widget's own
    element, where it applies from the first frame; a style sheet that anywidget adds comes later.
    """
    constants = (("LOOK", style_sheet()), ("COLOURS", named()))
    parts = [f"const {name} = {json.dumps(value)};" for name, value in constants]
    return "\n".join([*parts, *_bundled(path.resolve())])


def _bundled(entry: Path) -> list[str]:
    """Return the files that a module imports, each after those that it imports, and the module.

    Each file becomes a function that is called once and returns what the file exports. A file of
    styles becomes a text.
    """
    names: dict[Path, str] = {}

    def linked(path: Path) -> str:
        return _IMPORT.sub(
            lambda statement: _link(statement, names[_target(path, statement)]), _text(path)
        )

    parts = []
    for path in _in_order(entry, []):
        names[path] = f"module_{len(names)}"
        if path.suffix == ".css":
            parts.append(f"const {names[path]} = {json.dumps(_text(path))};")
        elif path != entry:
            exported = ", ".join(_EXPORT.findall(_text(path)))
            body = f"{_EXPORT.sub('', linked(path))}return {{ {exported} }};"
            parts.append(f"const {names[path]} = (() => {{\n{body}\n}})();")
    return [*parts, linked(entry)]


def _in_order(path: Path, known: list[Path]) -> list[Path]:
    """Return the files that a file needs, in an order in which each finds what it imports."""
    for statement in _IMPORT.finditer(_text(path)):
        if _target(path, statement) not in known:
            _in_order(_target(path, statement), known)
    known.append(path)
    return known


def _target(path: Path, statement: re.Match[str]) -> Path:
    return (path.parent / statement[2]).resolve()


def _link(statement: re.Match[str], name: str) -> str:
    """Return the line that takes the place of an import."""
    return f"const {statement[1].removeprefix('* as ')} = {name};\n"


@cache
def _text(path: Path) -> str:
    return path.read_text("utf-8")
