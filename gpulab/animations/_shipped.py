"""The films that come with the package: read for a lesson, made anew by ``make animations``."""

import re
from html import unescape
from pathlib import Path

from gpulab import disk
from gpulab.animations._page import Animation, page_of
from gpulab.animations._programs import FILMS
from gpulab.requirements import PATH, NameOf

_FOLDER = Path(__file__).parents[1] / "data" / "animations"


def show(name: str) -> Animation:
    """Return a film that comes with the package; show it as the last line of a cell.

    Parameters
    ----------
    name
        ``"queue"``, ``"dirty_lines"`` or ``"double_buffer"``.

    Raises
    ------
    UnknownNameError
        If there is none of this name.
    """
    NameOf("animation", FILMS).check(name=name)
    page = (_FOLDER / f"{name}.html").read_text("utf-8")
    words = re.search('role="img" aria-label="([^"]*)"', page)
    return Animation(page, unescape(words[1]) if words else "")


def make(folder: Path = _FOLDER) -> tuple[Path, ...]:
    """Run each program on the virtual GPU, write its film into a folder, and return the files."""
    PATH.check(folder=folder)
    paths = []
    for name, film in FILMS.items():
        path = Path(folder) / f"{name}.html"
        disk.write_whole(path, page_of(film()).encode())
        paths.append(path)
    return tuple(paths)
