"""Find the line of the user's own program that makes a call, and name it as an editor does."""

import contextlib
import os
import re
import sys
import threading
from functools import cache
from importlib.util import find_spec

from gpulab.core.shell import ipython

Site = tuple[str, int]

NOWHERE: Site = ("", 0)

# IPython and ipykernel compile the cells of a notebook under these names.
_CELL = re.compile(r"<ipython-input-\d+-\w+>|.*[\\/]ipykernel_\d+[\\/]\d+\.py")


def user_site() -> Site:
    """Return file and line of the innermost frame that is neither PyTorch's nor this package's.

    It is ``NOWHERE`` on a thread without any line of the user's, such as autograd's own thread.
    """
    # Not traceback.extract_stack(): it walks the whole stack and looks up source lines, and this
    # runs at every launch.
    frame = sys._getframe(1)  # noqa: SLF001 # inspect.currentframe takes longer
    inner = is_inner
    while inner(frame.f_code.co_filename):
        if frame.f_back is None:
            return NOWHERE
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def site_text(site: Site) -> str:
    """Return the text for a call site, as an editor or a notebook shows it."""
    name, line = site
    if not name:
        return "an unknown line"
    cell = _cell_number(name)
    if cell is not None:
        return f"cell {cell} line {line}"
    if _CELL.fullmatch(name):
        return f"cell line {line}"
    return f"{os.path.basename(name)}:{line}"  # noqa: PTH119 # not every name is that of a file


def _cell_number(name: str) -> str | None:
    """Return the name of a cell in IPython's own tracebacks, e.g. ``In[3]``, or None."""
    shell = ipython()
    label = None if shell is None else shell.compile.format_code_name(name)
    return None if label is None else str(label[1])


@cache  # a process has few files, and each launch asks for a handful of them
def is_inner(name: str) -> bool:
    """Return whether a file is PyTorch's, this package's or Python's own."""
    # Frozen modules are Python's own, such as the import system and ``runpy``.
    return name.startswith(("<frozen ", *_inner_folders()))


@cache
def _inner_folders() -> tuple[str, ...]:
    """Return the folders of PyTorch and of this package, without importing either."""
    # These two modules are the standard library's part of a stack: ``threading`` has the outermost
    # frames of each thread, ``contextlib`` those between a ``with`` block and its user.
    folders = [threading.__file__, contextlib.__file__]
    for package in ("torch", __name__.partition(".")[0]):
        spec = find_spec(package)
        locations = (spec.submodule_search_locations or ()) if spec is not None else ()
        folders += [os.path.join(folder, "") for folder in locations]  # noqa: PTH118 # ends in a slash
    return tuple(folders)
