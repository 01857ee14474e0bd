"""Copy the lessons to a learner's folder, and update them without losing the learner's work."""

import hashlib
import json
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from gpulab.core.disk import write_whole
from gpulab.core.errors import DamagedDataError, LessonFolderError, NotebookError
from gpulab.core.serialization import parse_json

MANIFEST = ".gpulab.json"
FIRST_LESSON = "00_start_here.ipynb"


@dataclass(frozen=True, slots=True)
class CopiedLessons:
    """What :func:`copy_lessons` did, as names of files relative to the folder.

    ``written`` are new, or were updated because the learner had not changed them. ``kept`` are
    those that the learner changed. ``beside`` are their new versions, saved as ``NAME.new.ipynb``.
    """

    written: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()


def notebooks_folder() -> Path:
    """Return the folder of the built lessons, in the installed package or in the clone.

    An incomplete installation has none and raises `NotebookError`.
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
    """Return the relative paths of notebooks and Markdown pages in a folder of lessons, sorted.

    Those of subfolders count; hidden copies of editors (``.ipynb_checkpoints``) do not.
    """
    paths = (
        path.relative_to(folder) for path in folder.rglob("*") if path.suffix in {".ipynb", ".md"}
    )
    return sorted(path for path in paths if not any(part.startswith(".") for part in path.parts))


def copy_lessons(folder: Path) -> CopiedLessons:
    """Copy the lessons to a folder, or update them there; the learner's changes are kept.

    The folder is created if it does not exist. A file that was not changed since it was copied is
    updated. If the learner changed a file, a newer version is saved beside it, once. Raises
    `LessonFolderError` if it is a file, if it cannot be written to, or if a name of ours in it is
    a link that leads out of it.
    """
    if folder.exists() and not folder.is_dir():
        raise LessonFolderError(
            f"{folder} is a file; name a folder for the lessons: gpulab lab FOLDER"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return _fill(folder)
    except LessonFolderError:
        raise
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
        _inside(folder, name).parent.mkdir(exist_ok=True)
        if _write_unless_changed(folder, name, content, digests, done["written"]):
            continue
        done["kept"].append(name)
        # The digest of the newest version that was offered is stored, so that it is offered once,
        # even if the learner deletes it.
        if digests.get(name) != _digest(content):
            beside = lesson.with_suffix(f".new{lesson.suffix}").as_posix()
            if _write_unless_changed(folder, beside, content, digests, done["beside"]):
                digests[name] = _digest(content)
    write_whole(_inside(folder, MANIFEST), json.dumps(digests, indent=1, sort_keys=True).encode())
    return CopiedLessons(**{name: tuple(names) for name, names in done.items()})


def _write_unless_changed(
    folder: Path, name: str, content: bytes, digests: dict[str, str], written: list[str]
) -> bool:
    """Write ``content`` unless the learner changed the file; return whether it is there now."""
    path = _inside(folder, name)
    present = _digest(path.read_bytes()) if path.exists() else None
    # The file is neither as it was copied nor as it would be written, so it is the learner's work.
    if present not in {None, digests.get(name), _digest(content)}:
        return False
    if present != _digest(content):
        write_whole(path, content)
        written.append(name)
    digests[name] = _digest(content)
    return True


def _inside(folder: Path, name: str) -> Path:
    """Return the path of a file in the folder; refuse a link out of it, a pipe and a folder.

    A folder from somebody else, such as a cloned repository, may contain such links.
    """
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        wrong = f"a link to {path.resolve()}, which is not in the folder of the lessons"
    elif path.exists() and not path.is_file():
        wrong = "not an ordinary file"
    else:
        return path
    raise LessonFolderError(
        f"{path} is {wrong}; remove it, or name another folder for the lessons"
    )


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _read_manifest(folder: Path) -> dict[str, str]:
    """Return the digests of the copied files; without them every file counts as changed."""
    try:
        digests = parse_json(_inside(folder, MANIFEST).read_bytes())
    except (FileNotFoundError, DamagedDataError):
        return {}
    items = digests.items() if isinstance(digests, dict) else ()
    return {name: digest for name, digest in items if isinstance(digest, str)}
