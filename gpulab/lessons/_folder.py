"""The learner's folder of lessons: refreshed where untouched, never overwritten, and served."""

import hashlib
import json
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from gpulab.errors import LessonFolderError, NotebookError

MANIFEST = ".gpulab.json"
FIRST_LESSON = "00_start_here.ipynb"


@dataclass(frozen=True, slots=True)
class Copies:
    """What :func:`copy_lessons` did, as file names.

    Attributes
    ----------
    written
        New in the folder, or refreshed because the learner had not touched them.
    kept
        Changed by the learner, and left as they are.
    beside
        New versions of kept files, put next to them as ``NAME.new.ipynb``.
    """

    written: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()


def notebooks_folder() -> Path:
    """Return where the built lessons are: inside the installed package, or in the clone.

    Raises
    ------
    NotebookError
        If there are none, as in an incomplete installation.
    """
    package = Path(str(files("gpulab")))
    for folder in (package / "notebooks", package.parent / "notebooks"):
        if any(folder.glob("*.ipynb")):
            return folder
    raise NotebookError(
        f"{package / 'notebooks'} has no lessons; install gpulab again, "
        "or run this in a clone: gpulab build-notebooks"
    )


def copy_lessons(folder: Path) -> Copies:
    """Fill ``folder`` with the lessons, and overwrite nothing that was changed in it.

    A file that is still as it was copied is refreshed. Of a file that the learner changed, a newer
    version is put beside it, once.

    Raises
    ------
    LessonFolderError
        If ``folder`` is a file, or cannot be written to.
    """
    if folder.exists() and not folder.is_dir():
        raise LessonFolderError(
            f"{folder} is a file; name a folder for the lessons: gpulab lab FOLDER"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return _fill(folder)
    except OSError as error:
        raise LessonFolderError(
            f"cannot write to {folder} ({error.strerror}); "
            "name a folder that you own: gpulab lab FOLDER"
        ) from error


def _fill(folder: Path) -> Copies:
    copied = _read_manifest(folder)
    done: dict[str, list[str]] = {"written": [], "kept": [], "beside": []}
    for lesson in sorted(notebooks_folder().glob("*.ipynb")):
        content = lesson.read_bytes()
        if _place(folder / lesson.name, content, copied, done["written"]):
            continue
        done["kept"].append(lesson.name)
        # once it was offered, a version is not put beside the learner's again
        if copied.get(lesson.name) != _digest(content):
            beside = lesson.with_suffix(".new.ipynb").name
            if _place(folder / beside, content, copied, done["beside"]):
                copied[lesson.name] = _digest(content)
    _replace(folder / MANIFEST, json.dumps(copied, indent=1, sort_keys=True).encode())
    return Copies(**{name: tuple(names) for name, names in done.items()})


def _place(path: Path, content: bytes, copied: dict[str, str], written: list[str]) -> bool:
    """Write ``content`` unless the learner changed ``path``; return whether it stands there."""
    present = _digest(path.read_bytes()) if path.exists() else None
    # neither as it was copied nor as it would be written: the learner's own work
    if present not in {None, copied.get(path.name), _digest(content)}:
        return False
    if present != _digest(content):
        _replace(path, content)
        written.append(path.name)
    copied[path.name] = _digest(content)
    return True


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _read_manifest(folder: Path) -> dict[str, str]:
    """Return what was copied before; without a readable record every file counts as changed."""
    try:
        copied = json.loads((folder / MANIFEST).read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return copied if isinstance(copied, dict) else {}


def _replace(path: Path, content: bytes) -> None:
    # written whole or not at all: a learner may press Ctrl-C at any time
    part = path.with_name(f"{path.name}.part")
    part.write_bytes(content)
    part.replace(path)
