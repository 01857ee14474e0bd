"""Write a course folder that nbgrader can use: notebooks, configuration, keys and secret."""

import os
import secrets
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path

from gpulab.core.disk import not_saved, write_whole
from gpulab.core.errors import CourseFolderError, NotebookError
from gpulab.course._folder import (
    DESCRIPTION,
    GRADER,
    SECRET,
    describe,
    read_keys,
    require_nbgrader,
    token_of,
)
from gpulab.course._labs import LABS, lab_named
from gpulab.course._notebook import source_notebook, to_bytes
from gpulab.course._question import Lab
from gpulab.course._sandbox import SECRET_VARIABLE

# SystemExit and not ImportError: nbgrader would go on without its configuration, and execute the
# learners' code in its usual way.
_CONFIG = '''"""nbgrader's configuration: gpulab judges the answers, outside the notebooks."""

from pathlib import Path

try:
    from gpulab import course
except ImportError as error:
    raise SystemExit(f"gpulab is missing, so nothing can be graded: {error}") from error

course.configure(get_config(), Path(__file__).resolve().parent)  # noqa: F821  # traitlets gives it
'''


def export(folder: Path, labs: Iterable[str] = ()) -> tuple[str, ...]:
    """Write a course into an empty folder, and return the names of its labs.

    Parameters
    ----------
    folder
        A new or empty folder.
    labs
        Names of labs; by default all labs.

    Raises
    ------
    UnknownNameError
        If no lab has one of the names.
    CourseFolderError
        If the folder is a file or is not empty.
    NotebookError
        If the keys are missing: only a clone of the repository has them.
    GradingError
        If nbgrader is missing or too old.
    NotSavedError
        If a file cannot be written.

    Examples
    --------
    >>> from pathlib import Path
    >>> from gpulab import course
    >>> try:
    ...     course.export(Path("my-course"), ["timming"])
    ... except ValueError as error:
    ...     print(str(error).partition("?")[0])
    unknown lab 'timming'; did you mean 'timing'
    """
    chosen = tuple(lab_named(name) for name in dict.fromkeys(labs or LABS))
    require_nbgrader()
    keys = _keys_folder()
    _require_empty(folder)
    secret = os.environ.get(SECRET_VARIABLE, "").strip() or secrets.token_hex(32)
    try:
        _write(folder, chosen, keys, secret)
    except OSError as error:
        raise not_saved(folder, error) from error
    return tuple(lab.name for lab in chosen)


def _keys_folder() -> Path:
    folder = Path(str(files("gpulab"))).parent / "course"
    if not all((folder / f"{name}.py").is_file() for name in LABS):
        raise NotebookError(
            "the keys of the labs are not in the installed package; work in a clone of gpulab: "
            "pip install -e '.[course]'"
        )
    return folder


def _require_empty(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise CourseFolderError(f"{folder} is a file; name a folder for the course")
    if folder.is_dir() and any(folder.iterdir()):
        raise CourseFolderError(
            f"{folder} is not empty; name a new folder: a course is never written over another"
        )


def _write(folder: Path, labs: tuple[Lab, ...], keys: Path, secret: str) -> None:
    grader, token = folder / GRADER, token_of(secret)
    # Closed to others before the secret is in it.
    grader.mkdir(parents=True, mode=0o700)
    write_whole(grader / SECRET, f"{secret}\n".encode())
    (grader / SECRET).chmod(0o600)
    for lab in labs:
        key_file = keys / f"{lab.name}.py"
        write_whole(grader / key_file.name, key_file.read_bytes())
        notebook = source_notebook(lab, token, read_keys(key_file))
        source = folder / "source" / lab.name
        source.mkdir(parents=True)
        write_whole(source / f"{lab.name}.ipynb", to_bytes(notebook))
    write_whole(folder / DESCRIPTION, describe(token, tuple(lab.name for lab in labs)))
    write_whole(folder / "nbgrader_config.py", _CONFIG.encode())
