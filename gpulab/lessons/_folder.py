"""The learner's folder of lessons: filled, refreshed where untouched, never overwritten."""

import hashlib
import json
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from gpulab.disk import write_whole
from gpulab.errors import DamagedDataError, LessonFolderError, NotebookError
from gpulab.serialization import parse_json

MANIFEST = ".gpulab.json"
FIRST_LESSON = "00_start_here.ipynb"


@dataclass(frozen=True, slots=True)
class CopiedLessons:
    """What :func:`copy_lessons` did, as names of files relative to the folder.

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


def shipped(folder: Path) -> list[Path]:
    """Return the notebooks and pages of a folder and of its subfolders, relative to it, in order.

    An editor's hidden copies (``.ipynb_checkpoints``) are not among them.
    """
    found = (
        path.relative_to(folder) for path in folder.rglob("*") if path.suffix in {".ipynb", ".md"}
    )
    return sorted(path for path in found if not any(part.startswith(".") for part in path.parts))


def copy_lessons(folder: Path) -> CopiedLessons:
    """Fill ``folder`` with the lessons, and overwrite nothing that was changed in it.

    A file that is still as it was copied is refreshed. If the learner changed a file, a newer
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


def _fill(folder: Path) -> CopiedLessons:
    digests = _read_manifest(folder)
    done: dict[str, list[str]] = {"written": [], "kept": [], "beside": []}
    source = notebooks_folder()
    for lesson in shipped(source):
        content, name = (source / lesson).read_bytes(), lesson.as_posix()
        (folder / lesson).parent.mkdir(exist_ok=True)
        if _write_unless_changed(folder, name, content, digests, done["written"]):
            continue
        done["kept"].append(name)
        # once it was offered, a version is not put beside the learner's again
        if digests.get(name) != _digest(content):
            beside = lesson.with_suffix(f".new{lesson.suffix}").as_posix()
            if _write_unless_changed(folder, beside, content, digests, done["beside"]):
                digests[name] = _digest(content)
    write_whole(folder / MANIFEST, json.dumps(digests, indent=1, sort_keys=True).encode())
    return CopiedLessons(**{name: tuple(names) for name, names in done.items()})


def _write_unless_changed(
    folder: Path, name: str, content: bytes, digests: dict[str, str], written: list[str]
) -> bool:
    """Write ``content`` unless the learner changed the file; return whether the file has it."""
    path = folder / name
    present = _digest(path.read_bytes()) if path.exists() else None
    # neither as it was copied nor as it would be written: the learner's own work
    if present not in {None, digests.get(name), _digest(content)}:
        return False
    if present != _digest(content):
        write_whole(path, content)
        written.append(name)
    digests[name] = _digest(content)
    return True


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _read_manifest(folder: Path) -> dict[str, str]:
    """Return the digests of what was copied; without them every file counts as changed."""
    try:
        digests = parse_json((folder / MANIFEST).read_bytes())
    except (FileNotFoundError, DamagedDataError):
        return {}
    known = digests.items() if isinstance(digests, dict) else ()
    return {name: digest for name, digest in known if isinstance(digest, str)}
