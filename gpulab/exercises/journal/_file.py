"""The learner's file, one for each learner and folder: added to, and never overwritten."""

import getpass
import hashlib
import json
import secrets
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from gpulab.disk import GrowingFile, growing
from gpulab.errors import DamagedDataError, FileInUseError, GpulabError
from gpulab.exercises.journal._records import Guess, Record, from_line, to_line
from gpulab.foreign_text import visible
from gpulab.lessons import FIRST_LESSON
from gpulab.serialization import parse_json, read_bytes
from gpulab.units import counted
from gpulab.widgets import jupyter_kernel

SCHEMA = "gpulab.progress/1"
FILE_NAME = "gpulab-progress.jsonl"
_NAMES = "gpulab-progress*.jsonl"
_MOST_FILES = 100  # of other learners, damaged ones, or newer ones, in one folder
# Two notebooks of a folder may write at the same moment; each needs a few milliseconds.
_N_TRIES, _TRY_EVERY_S = 100, 0.02


@dataclass(frozen=True, slots=True)
class Contents:
    """What a file of progress contains.

    Attributes
    ----------
    learner
        A random name, which joins the copies of one file.
    records
        All lines that can be read, in their order.
    n_damaged
        Lines that nobody can read.
    problem
        Why the file cannot be used, as a clause; empty if it can.
    is_own
        Whether the account that runs now has written it.
    """

    learner: str = ""
    records: tuple[Record, ...] = ()
    n_damaged: int = 0
    problem: str = ""
    is_own: bool = True


def read(path: Path) -> Contents:
    """Return what a file contains; a file that is no such file has a problem and no records."""
    try:
        content = read_bytes(path)
    except (OSError, DamagedDataError) as error:
        return Contents(problem=f"cannot be read ({getattr(error, 'strerror', '') or error})")
    if not content:  # another notebook is just about to begin it
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
    """Return the header of a file, or why it cannot be used."""
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
    """Yield the files of progress in a folder and in those below it, in a steady order."""
    yield from sorted(path for path in folder.rglob(_NAMES) if path.is_file())


@cache  # the account does not change, and asking for it may ask a server
def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container may run an account that has no name
        return ""


def _account(learner: str) -> str:
    """Return the account that runs now, in a form that gives no name away."""
    return hashlib.sha256(f"{learner}:{_user()}".encode()).hexdigest()[:16]


class LearnerJournal:
    """The records of one learner: those of the file, and those that are not written yet.

    What cannot be written stays in memory, is said once, and is tried again with the next record.
    Nothing here raises for what a disk or another program did: a notebook runs on without it.

    Parameters
    ----------
    folder
        Where the file is or will be; None keeps everything in memory.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._waiting: list[Record] = []
        self._said: set[str] = set()

    @property
    def path(self) -> Path | None:
        """The file of this learner, which may not exist yet; None where there can be none."""
        return None if self._folder is None else self._own()[0]

    @property
    def records(self) -> tuple[Record, ...]:
        """All records, read anew: other notebooks of the folder write to the same file."""
        if self._folder is None:
            return tuple(self._waiting)
        path, contents = self._own()
        if contents.n_damaged:
            lines = counted(contents.n_damaged, "line")
            verb = "stays as it is" if contents.n_damaged == 1 else "stay as they are"
            self._say(f"{path.name}: {lines} cannot be read and {verb}; the others count.")
        return (*contents.records, *self._waiting)

    def add(self, record: Record) -> None:
        """Keep a record, in the file if that can be.

        A file is begun with the first guess, answer or hint: a notebook that somebody only runs
        leaves none behind.
        """
        self._waiting.append(record)
        if self._folder is None:
            return
        path, contents = self._own()
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
        """Drop what is in memory alone."""
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
        before = file.read()
        text = "".join(map(to_line, self._waiting))
        if not before:
            learner = secrets.token_hex(8)
            header = {"schema": SCHEMA, "learner": learner, "account": _account(learner)}
            text = json.dumps(header) + "\n" + text
        elif not before.endswith(b"\n"):  # a crash left half a line, which is kept as it is
            text = "\n" + text
        file.append(text)
        file.sync()

    def _own(self) -> tuple[Path, Contents]:
        """Return the file of this learner: the first that can be used, or the first free name.

        Files that are damaged, newer, or another learner's are left where they are.
        """
        assert self._folder is not None  # noqa: S101  # for mypy: the callers have asked
        others: list[str] = []
        for path in self._names(self._folder):
            if not path.exists():
                if others:
                    self._say(f"{' '.join(others)} Yours is {path.name}.")
                return path, Contents()
            contents = read(path)
            if not contents.problem and contents.is_own:
                return path, contents
            others.append(_why_other(path, contents))
        return path, Contents()

    @staticmethod
    def _names(folder: Path) -> Iterator[Path]:
        yield folder / FILE_NAME
        for number in range(2, _MOST_FILES):
            yield folder / f"{Path(FILE_NAME).stem}-{number}.jsonl"

    def _say(self, text: str) -> None:
        """Say something once, in the output of the cell."""
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
    """Return the journal of this process: of its folder in Jupyter, else in memory alone."""
    return LearnerJournal(None if jupyter_kernel() is None else Path.cwd() / way_home())


@cache  # where the kernel was started counts, not where the program goes
def way_home() -> str:
    """Return the way from a notebook to the folder of the lessons; empty if it is there.

    The cases are in a folder inside, and share the file with the lessons.
    """
    folder = Path.cwd()
    is_inside = not (folder / FIRST_LESSON).exists() and (folder.parent / FIRST_LESSON).exists()
    return "../" if is_inside and jupyter_kernel() is not None else ""
