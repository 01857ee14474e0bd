"""A learner's answers are saved in one file, and a disk that fails loses none of them."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpulab import exercises
from gpulab.core import disk
from gpulab.core.errors import InvalidOptionError
from gpulab.exercises import _api, _journal, _saved_guesses, predict
from gpulab.exercises._entries import Answer, Guess, JournalEntry, Reset, Reveal, Stroke
from gpulab.exercises._history import KeptPrediction, predictions_of
from gpulab.exercises._journal import FILE_NAME, LearnerJournal, read
from tests.support.journals import forget_all

FIRST = Guess("01.naive", "2026-11-22T10:00:00+00:00", 2e-6, unit="µs", confidence="likely")
DRAWN = Guess("04.first", "2026-11-22T10:01:00+00:00", strokes=(Stroke("GPU", (1.0,), (2e-3,)),))
ALL: tuple[JournalEntry, ...] = (
    FIRST,
    Reveal(
        "01.naive", "2026-11-22T10:00:09+00:00", "7 µs", "You said 2 µs", "factor", "Off.", 3.5
    ),
    DRAWN,
    Answer("01.hidden-sync", "2026-11-22T10:02:00+00:00", ok=False, diagnosis_code="launch"),
    Reset("2026-11-22T10:03:00+00:00", "09"),
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return an empty folder that the process uses as the folder of its notebook."""
    forget_all()
    own = LearnerJournal(tmp_path)
    for room in (_saved_guesses, _api, exercises._progress):  # type: ignore[attr-defined]  # private
        monkeypatch.setattr(room, "journal", lambda: own)
    yield tmp_path
    forget_all()


def kept(folder: Path) -> dict[str, KeptPrediction]:
    """Return the predictions that a new kernel reads from a folder."""
    return predictions_of(LearnerJournal(folder).entries)


def fill(folder: Path, *records: JournalEntry) -> Path:
    """Write some records, or all kinds of them, and return their file."""
    own = LearnerJournal(folder)
    for record in records or ALL:
        own.add(record)
    return folder / FILE_NAME


def test_everything_comes_back_after_a_restart_and_a_move(folder: Path) -> None:
    """All kinds of records are read unchanged by a new journal, even in another folder."""
    fill(folder)
    assert LearnerJournal(folder).entries == ALL
    moved = folder / "elsewhere"
    moved.mkdir()
    (folder / FILE_NAME).rename(moved / FILE_NAME)
    assert LearnerJournal(moved).entries == ALL
    assert str(folder) not in (moved / FILE_NAME).read_text()


def test_the_last_guess_before_the_outcome_counts(folder: Path) -> None:
    """The last guess before the outcome is scored; later ones are saved and marked as late."""
    for guess in (3, 3, 5):
        predict("How long?", guess, name="01.naive")
    assert "kept" not in str(predict("How long?", 5, name="01.naive", confidence="sure"))
    said = predict("How long?", 5, name="01.naive", confidence="sure")
    assert said.compare(45e-6).is_right is False
    late = predict("How long?", 50, name="01.naive", confidence="sure")
    assert str(late) == (
        "How long? You say 50 µs (sure). The outcome was shown before, so this change is kept, "
        "and your first guess counts."
    )
    again = late.compare(51e-6)
    assert again.is_right is False
    assert str(again).startswith("Far off. You first said 5 µs, it was 51.0 µs: ")
    found = kept(folder)["01.naive"]
    assert found.guess is not None
    assert found.reveal is not None
    assert (found.guess.number, found.guess.confidence) == (pytest.approx(5e-6), "sure")
    assert (found.reveal.counts, found.reveal.word) == ("factor", "Off.")
    assert found.reveal.size == pytest.approx(9)
    assert [(guess.number, guess.is_late) for guess in found.late] == [
        (pytest.approx(50e-6), True)
    ]
    # A repeated guess writes no new line.
    lines = (folder / FILE_NAME).read_text().splitlines()
    assert [json.loads(line)["schema"] for line in lines[1:]] == ["guess"] * 3 + [
        "reveal",
        "guess",
    ]


def test_a_guess_after_the_outcome_does_not_count(folder: Path) -> None:
    """A first guess after the outcome is saved but not scored; running alone writes no file."""
    predict("How long?", ..., name="01.naive").compare(50e-6)
    assert list(folder.iterdir()) == []
    assert str(predict("How long?", 50, name="01.naive")).endswith("kept and does not count.")
    found = kept(folder)["01.naive"]
    assert (found.guess, found.is_scored, len(found.late)) == (None, False, 1)


def test_reset_lets_a_lesson_count_as_new_and_loses_nothing(folder: Path) -> None:
    """A reset hides the predictions of one lesson or of all; no line of the file is removed."""
    file = fill(folder, FIRST, DRAWN)
    exercises.reset("01", folder=folder)
    assert list(kept(folder)) == ["04.first"]
    exercises.reset(folder=folder)
    assert kept(folder) == {}
    assert len(file.read_text().splitlines()) == 5


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"\x00\xff\n", "is damaged"),
        (b'{"schema": "gpulab.progre', "is damaged"),
        (b'{"schema": "gpulab.progress/2", "learner": "x"}\n', "by another version of gpulab"),
    ],
)
def test_unusable_files_stay_unchanged(
    content: bytes, problem: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An unusable file stays unchanged, one message says so, and the records stay in memory."""
    (folder / FILE_NAME).write_bytes(content)
    own = LearnerJournal(folder)
    own.add(FIRST)
    own.add(DRAWN)
    said = capsys.readouterr().err
    assert problem in said
    assert "rename the file, and your next answer begins a new one" in said
    assert said.count("\n") == 1
    assert (folder / FILE_NAME).read_bytes() == content
    assert own.entries == (FIRST, DRAWN)
    (folder / FILE_NAME).rename(folder / "old.jsonl")
    own.add(ALL[3])
    assert LearnerJournal(folder).entries == (FIRST, DRAWN, ALL[3])


def test_unreadable_lines_stay_in_the_file_and_are_counted(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """After a line cut by a crash, the next one starts a new line; all others are read."""
    file = fill(folder, FIRST)
    with file.open("ab") as stream:
        stream.write(b'{"schema": "unheard of"}\n{"schema": "gu')
    own = LearnerJournal(folder)
    own.add(DRAWN)
    assert own.entries == own.entries == (FIRST, DRAWN)
    assert capsys.readouterr().err == (
        "gpulab-progress.jsonl: 2 lines cannot be read and stay as they are; the others count.\n"
    )
    assert b'{"schema": "gu\n' in file.read_bytes()


@pytest.mark.parametrize("is_begun", [True, False])
def test_a_disk_that_refuses_stops_no_notebook(
    is_begun: bool,  # noqa: FBT001  # a case of the test
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A full disk is reported once, and unsaved records are written as soon as there is room."""
    if is_begun:
        fill(folder, FIRST)
    before = read(folder / FILE_NAME)

    def full(_handle: int, _content: object) -> int:
        raise OSError(28, "No space left on device")

    own = LearnerJournal(folder)
    with monkeypatch.context() as patch:
        patch.setattr(disk.os, "write", full)
        own.add(DRAWN)
        own.add(ALL[3])
    said = capsys.readouterr().err
    assert said.count("No space left on device; make room") == 1
    assert "last as long as this kernel" in said
    assert own.entries[-2:] == (DRAWN, ALL[3])
    if is_begun:
        assert read(folder / FILE_NAME) == before
    own.add(ALL[4])
    assert LearnerJournal(folder).entries[-3:] == (DRAWN, ALL[3], ALL[4])


def test_an_empty_file_is_used(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty file, of a crash or of another notebook, is used as if it were new."""
    (folder / FILE_NAME).touch()
    fill(folder, FIRST)
    assert LearnerJournal(folder).entries == (FIRST,)
    assert read(folder / FILE_NAME).learner
    assert capsys.readouterr().err == ""


def test_two_notebooks_write_to_one_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two journals that write at the same time write every line exactly once."""
    monkeypatch.setattr(_journal, "_N_TRIES", 100_000)
    names = [f"01.n{number}" for number in range(5)]

    def write(part: str) -> None:
        own = LearnerJournal(folder)
        for name in names:
            own.add(Guess(name + part, FIRST.at, 1.0))

    threads = [threading.Thread(target=write, args=(part,)) for part in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(kept(folder)) == sorted(name + part for name in names for part in "ab")
    assert len(list(folder.iterdir())) == 1


def test_a_locked_file_is_reported_and_written_later(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A record that met a locked file is written together with the next record."""
    monkeypatch.setattr(_journal, "_TRY_EVERY_S", 0)
    monkeypatch.setattr(_journal, "_N_TRIES", 2)
    file, own = fill(folder, FIRST), LearnerJournal(folder)
    with disk.growing(file):
        own.add(DRAWN)
    assert "is being written by process" in capsys.readouterr().err
    own.add(ALL[3])
    assert LearnerJournal(folder).entries == (FIRST, DRAWN, ALL[3])


def test_a_file_from_another_computer_can_be_adopted(folder: Path) -> None:
    """Adopting adds the records of another computer's file; an unreadable file is refused."""
    other = folder / "other.jsonl"
    file = fill(folder)
    file.rename(other)
    assert exercises.adopt(other, folder) == len(ALL)
    assert exercises.adopt(other, folder) == 0
    assert LearnerJournal(folder).entries == ALL
    with pytest.raises(InvalidOptionError, match=r"none\.jsonl cannot be read"):
        exercises.adopt(folder / "none.jsonl", folder)


def test_cases_share_the_file_of_the_lessons(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A case in a subfolder writes to the lessons' folder, and its links lead there."""
    (folder / "cases").mkdir()
    monkeypatch.chdir(folder / "cases")
    monkeypatch.setattr(_journal, "jupyter_kernel", lambda: True)
    assert _journal.way_home.__wrapped__() == ""
    (folder / "00_start_here.ipynb").touch()
    assert _journal.way_home.__wrapped__() == "../"
    _journal.way_home.cache_clear()
    path = _journal.journal.__wrapped__().path
    _journal.way_home.cache_clear()
    assert path is not None
    assert path.resolve() == folder / FILE_NAME
    monkeypatch.chdir(folder)
    assert _journal.way_home.__wrapped__() == ""
