"""Make a film, for the last line of a cell."""

from gpulab.core.requirements import NameOf
from gpulab.device import outside
from gpulab.views.animations._page import Animation, page_of
from gpulab.views.animations._programs import FILMS


def show(name: str) -> Animation:
    """Return a film of a program on a virtual GPU; a notebook shows it as the last line of a cell.

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
    with outside():  # the notebook may have a virtual GPU of its own in use
        film = FILMS[name]()
    return Animation(page_of(film), film.words)
