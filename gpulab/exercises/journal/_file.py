"""Read and write a learner's progress file; lines are added, and never changed or removed."""

import getpass
import hashlib
import itertools
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
from gpulab.core.units import counted
from gpulab.exercises.journal._records import Guess, Record, from_line, to_line
from gpulab.figures.widgets import jupyter_kernel
from gpulab.lessons import FIRST_LESSON

SCHEMA = "gpulab.progress/1"
FILE_NAME = "gpulab-progress.jsonl"
_NAMES = "gpulab-progress*.jsonl"
# Two notebooks of a folder may write at the same moment; each needs a few milliseconds.
_N_TRIES, _TRY_EVERY_S = 100, 0.02


@dataclass(frozen=True, slots=True)
class Contents:
    """The content of a progress file.

    Attributes
    ----------
    learner
        Random id of the learner, by which copies of one file are recognised.
    records
        The records of all lines that can be read, in their order.
    n_damaged
        Number of lines that cannot be read.
    problem
        The reason why the file cannot be used, such as "is damaged"; empty if it can.
    is_own
        Whether the current user account wrote the file.

    Examples
    --------
    >>> from gpulab.exercises.journal import Contents
    >>> Contents(problem="is damaged").records
    ()
    """

    learner: str = ""
    records: tuple[Record, ...] = ()
    n_damaged: int = 0
    problem: str = ""
    is_own: bool = True


def read(path: Path) -> Contents:
    """Return the content of a progress file; of any other file, a problem and no records.

    Examples
    --------
    >>> from pathlib import Path
    >>> from gpulab.exercises.journal import read
    >>> read(Path("no such file")).problem.startswith("cannot be read")
    True
    """
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
    records = [from_line(line) for line in lines if line.strip()]
    kept = tuple(record for record in records if record is not None)
    learner = str(header.get("learner"))
    is_own = header.get("account") == _account(learner)
    return Contents(learner, kept, len(records) - len(kept), is_own=is_own)


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
    """Yield the progress files in a folder and its subfolders, sorted by path.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from gpulab.exercises.journal import files_in
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     list(files_in(Path(folder)))
    []
    """
    yield from sorted(path for path in folder.rglob(_NAMES) if path.is_file())


@cache  # the account does not change, and asking for it may ask a server
def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container may run an account that has no name
        return ""


def _account(learner: str) -> str:
    """Return a hash of the current user account: a class shares its files without names."""
    # With the learner's id in it, one account has another hash in each file: hashes of two files
    # do not show that one person wrote both.
    return hashlib.sha256(f"{learner}:{_user()}".encode()).hexdigest()[:16]


class LearnerJournal:
    """The records of one learner, in the file and in memory.

    A record that cannot be written stays in memory and is written with the next one. The learner
    is warned once. Problems of a disk or of another program raise no error: the notebook goes on.

    Parameters
    ----------
    folder
        Folder of the file; with None all records stay in memory.

    Examples
    --------
    >>> from gpulab.exercises.journal import Answer, LearnerJournal
    >>> own = LearnerJournal(None)
    >>> own.add(Answer("01.hidden-sync", "2026-11-22T12:00:00+00:00", ok=True))
    >>> len(own.records)
    1
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._waiting: list[Record] = []
        self._said: set[str] = set()

    @property
    def path(self) -> Path | None:
        """The file of this learner, which may not exist yet; None if all stays in memory."""
        return None if self._folder is None else self._own(self._folder)[0]

    @property
    def records(self) -> tuple[Record, ...]:
        """All records. The file is read each time, because other notebooks write to it too."""
        if self._folder is None:
            return tuple(self._waiting)
        path, contents = self._own(self._folder)
        if contents.n_damaged:
            lines = counted(contents.n_damaged, "line")
            verb = "stays as it is" if contents.n_damaged == 1 else "stay as they are"
            self._say(f"{path.name}: {lines} cannot be read and {verb}; the others count.")
        return (*contents.records, *self._waiting)

    def add(self, record: Record) -> None:
        """Add a record, and write it to the file if possible.

        The first guess, answer or hint creates the file. If you only run a notebook, it creates
        none.
        """
        self._waiting.append(record)  # until it is in the file; a full disk may be emptied later
        if self._folder is None:
            return
        path, contents = self._own(self._folder)
        is_first = not contents.learner
        if is_first and not any(_begins(one) for one in self._waiting):
            return
        try:
            self._write(path)
        except GpulabError as error:
            self._say(
                f"{error}. Until then your predictions and answers last as long as this kernel."
            )

    def forget(self) -> None:
        """Drop the records that were not written to the file."""
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
            learner = secrets.token_hex(8)
            header = {"schema": SCHEMA, "learner": learner, "account": _account(learner)}
            text = json.dumps(header) + "\n" + text
        elif not before.endswith(b"\n"):  # a crash left half a line, which is kept as it is
            text = "\n" + text
        file.append(text)
        file.sync()  # a power failure after this line loses no record

    def _own(self, folder: Path) -> tuple[Path, Contents]:
        """Return the file of this learner: the first that can be used, or the first free name.

        Files that are damaged, of a newer gpulab or of another learner are not touched.
        """
        others: list[str] = []
        for path in self._names(folder):
            if not path.exists():
                if others:
                    self._say(f"{' '.join(others)} Yours is {path.name}.")
                return path, Contents()
            contents = read(path)
            if not contents.problem and contents.is_own:
                return path, contents
            others.append(_why_other(path, contents))
        raise AssertionError  # the names never end

    @staticmethod
    def _names(folder: Path) -> Iterator[Path]:
        yield folder / FILE_NAME
        # Without an end: the last name of a range would be taken even if another learner has it.
        for number in itertools.count(2):
            yield folder / f"{Path(FILE_NAME).stem}-{number}.jsonl"

    def _say(self, text: str) -> None:
        """Print a sentence in the output of the cell, unless it was printed before."""
        if text not in self._said:
            self._said.add(text)
            sys.stderr.write(visible(text) + "\n")


def _begins(record: Record) -> bool:
    return isinstance(record, Guess) or hasattr(record, "exercise_id")


def _why_other(path: Path, contents: Contents) -> str:
    if contents.problem:
        return f"{path.name} {contents.problem}; it stays as it is."
    return (
        f"{path.name} was written by another learner, and stays as it is. "
        f"(If it is yours, from another computer: gpulab progress --adopt {path.name})"
    )


@cache
def journal() -> LearnerJournal:
    """Return the journal of this process: in Jupyter with a file, elsewhere in memory only.

    Examples
    --------
    >>> journal() is journal()
    True
    """
    return LearnerJournal(None if jupyter_kernel() is None else Path.cwd() / way_home())


@cache  # the folder in which the kernel started counts, even if the program changes it later
def way_home() -> str:
    """Return the relative path from a notebook to the folder of the lessons, "" or "../".

    The cases are in a subfolder and use the same file as the lessons.

    Examples
    --------
    >>> way_home()  # outside Jupyter
    ''
    """
    folder = Path.cwd()
    is_inside = not (folder / FIRST_LESSON).exists() and (folder.parent / FIRST_LESSON).exists()
    return "../" if is_inside and jupyter_kernel() is not None else ""
