"""Show the films that come with the package; ``make animations`` makes them again."""

from pathlib import Path

from gpulab.core import disk
from gpulab.core.requirements import PATH, NameOf
from gpulab.views.animations._film import Film
from gpulab.views.animations._page import Animation, page_of
from gpulab.views.animations._programs import FILMS

_FOLDER = Path(__file__).parents[2] / "data" / "animations"


def show(name: str) -> Animation:
    """Return a film that comes with the package; a notebook shows it as the last line of a cell.

    Parameters
    ----------
    name
        ``"queue"``, ``"dirty_lines"`` or ``"double_buffer"``.

    Raises
    ------
    UnknownNameError
        If there is no film of this name.

    Examples
    --------
    >>> from gpulab import animations
    >>> str(animations.show("queue")).partition(" (")[0]
    'Five matmuls and the queue'
    """
    NameOf("animation", FILMS).check(name=name)
    film = Film.from_json((_FOLDER / f"{name}.json").read_text("utf-8"))
    return Animation(page_of(film), film.words)


def make(folder: Path = _FOLDER) -> tuple[Path, ...]:
    """Run each film's program on the virtual GPU, write the films, and return their paths.

    By default the folder, which must exist, is that of the shipped films.
    """
    PATH.check(folder=folder)
    paths = []
    for name, film in FILMS.items():
        path = Path(folder) / f"{name}.json"
        disk.write_whole(path, film().to_json().encode())
        paths.append(path)
    return tuple(paths)
