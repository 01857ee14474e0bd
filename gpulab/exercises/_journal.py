"""Read and write a learner's progress file; lines are added, and never changed or removed."""

import json
import secrets
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from gpulab.core.disk import GrowingFile, growing
from gpulab.core.errors import DamagedDataError, FileInUseError, GpulabError
from gpulab.core.foreign_text import visible
from gpulab.core.serialization import parse_json, read_bytes
from gpulab.core.shell import jupyter_kernel
from gpulab.core.units import counted
from gpulab.exercises._entries import Guess, JournalEntry, from_line, to_line
from gpulab.lessons import FIRST_LESSON

SCHEMA = "gpulab.progress/1"
FILE_NAME = "gpulab-progress.jsonl"
_NAMES = "gpulab-progress*.jsonl"
# Two notebooks of a folder may write at the same moment; each needs a few milliseconds.
_N_TRIES, _TRY_EVERY_S = 100, 0.02
_IN_MEMORY = "Until then your predictions and answers last as long as this kernel"
_RENAME = "rename the file, and your next answer begins a new one"


@dataclass(frozen=True, slots=True)
class Contents:
    """The content of a progress file: the entries of all lines that can be read, in their order.

    Copies of one file are recognised by the learner's random id. ``problem`` says why the file
    cannot be used, such as "is damaged"; it is empty if it can.
    """

    learner: str = ""
    entries: tuple[JournalEntry, ...] = ()
    n_damaged: int = 0
    problem: str = ""


def read(path: Path) -> Contents:
    """Return the content of a progress file; of any other file, a problem and no entries."""
    try:
        content = read_bytes(path)
    except (OSError, DamagedDataError) as error:
        return Contents(problem=f"cannot be read ({getattr(error, 'strerror', '') or error})")
    if not content:  # another notebook has created the file and is about to write its first line
        return Contents()
    # The rest after the last line break is being written now, or was cut off by a crash.
    first, *lines = content[: content.rfind(b"\n") + 1].split(b"\n")
    header = _header(first)
    if isinstance(header, str):
        return Contents(problem=header)
    entries = [from_line(line) for line in lines if line.strip()]
    readable = tuple(entry for entry in entries if entry is not None)
    return Contents(str(header.get("learner")), readable, len(entries) - len(readable))


def _header(line: bytes) -> dict[str, object] | str:
    """Return the header of a file, or the reason why the file cannot be used."""
    try:
        header = parse_json(line)
    except DamagedDataError:
        return "is damaged"
    schema = header.get("schema") if isinstance(header, dict) else None
    if not isinstance(header, dict) or not isinstance(schema, str):
        return "is damaged"
    if schema != SCHEMA:
        known = schema.startswith(SCHEMA.partition("/")[0] + "/")
        return "was written by another version of gpulab" if known else "is damaged"
    return header


def files_in(folder: Path) -> Iterator[Path]:
    """Yield the progress files in a folder and its subfolders, sorted by path."""
    yield from sorted(path for path in folder.rglob(_NAMES) if path.is_file())


class LearnerJournal:
    """The entries of one learner, in the file of a folder and in memory; None: in memory only.

    An entry that cannot be written stays in memory and is written with the next one. The learner
    is warned once. Problems of a disk or of another program raise no error: the notebook goes on.
    A file that is damaged or of a newer gpulab is left as it is.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._waiting: list[JournalEntry] = []
        self._printed: set[str] = set()

    @property
    def path(self) -> Path | None:
        """The file of this learner, which may not exist yet; None if all stays in memory."""
        return None if self._folder is None else self._folder / FILE_NAME

    @property
    def entries(self) -> tuple[JournalEntry, ...]:
        """All entries. The file is read each time, because other notebooks write to it too."""
        if self.path is None or not self.path.exists():
            return tuple(self._waiting)
        contents = read(self.path)
        if contents.n_damaged:
            lines = counted(contents.n_damaged, "line")
            verb = "stays as it is" if contents.n_damaged == 1 else "stay as they are"
            self._say(f"{FILE_NAME}: {lines} cannot be read and {verb}; the others count.")
        return (*contents.entries, *self._waiting)

    def add(self, entry: JournalEntry) -> None:
        """Add an entry, and write it to the file if possible.

        The first guess, answer or hint creates the file. If you only run a notebook, it creates
        none.
        """
        self._waiting.append(entry)  # until it is in the file; a full disk may be emptied later
        if self.path is None:
            return
        contents = read(self.path) if self.path.exists() else Contents()
        if contents.problem:
            self._say(
                f"{FILE_NAME} {contents.problem}, so it stays as it is; {_RENAME}. {_IN_MEMORY}."
            )
            return
        if not contents.learner and not any(_begins(waiting) for waiting in self._waiting):
            return
        try:
            self._write(self.path)
        except GpulabError as error:
            self._say(f"{error}. {_IN_MEMORY}.")

    def forget(self) -> None:
        """Drop the entries that were not written to the file."""
        self._waiting.clear()

    def _write(self, path: Path) -> None:
        for n_left in reversed(range(_N_TRIES)):
            try:
                with growing(path) as file:
                    self._append(file)
            except FileInUseError:
                if not n_left:
                    raise
                time.sleep(_TRY_EVERY_S)
            else:
                self._waiting.clear()
                return

    def _append(self, file: GrowingFile) -> None:
        # Read under the lock: another notebook may have written the header since the last look.
        before = file.read()
        text = "".join(map(to_line, self._waiting))
        if not before:
            header = {"schema": SCHEMA, "learner": secrets.token_hex(8)}
            text = json.dumps(header) + "\n" + text
        elif not before.endswith(b"\n"):  # a crash left half a line, which is kept as it is
            text = "\n" + text
        file.append(text)
        file.sync()  # a power failure after this line loses no entry

    def _say(self, text: str) -> None:
        """Print a sentence in the output of the cell, unless it was printed before."""
        if text not in self._printed:
            self._printed.add(text)
            sys.stderr.write(visible(text) + "\n")


def _begins(entry: JournalEntry) -> bool:
    return isinstance(entry, Guess) or hasattr(entry, "exercise_id")


@cache
def journal() -> LearnerJournal:
    """Return the journal of this process: in Jupyter with a file, elsewhere in memory only."""
    return LearnerJournal(None if jupyter_kernel() is None else Path.cwd() / way_home())


@cache  # the folder in which the kernel started counts, even if the program changes it later
def way_home() -> str:
    """Return the relative path from a notebook to the folder of the lessons, "" or "../".

    The cases are in a subfolder and use the same file as the lessons.
    """
    folder = Path.cwd()
    is_inside = not (folder / FIRST_LESSON).exists() and (folder.parent / FIRST_LESSON).exists()
    return "../" if is_inside and jupyter_kernel() is not None else ""
