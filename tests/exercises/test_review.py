"""The review of predictions, for a learner and for a class: numbers and links, no names."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gpulab import exercises
from gpulab.cli import main
from gpulab.core.errors import InvalidOptionError, UnknownNameError
from gpulab.exercises import _calibration, _lesson_index
from gpulab.exercises._entries import Guess, Reveal, Stroke
from gpulab.exercises._guess_question import ideas
from gpulab.exercises._history import KeptPrediction, predictions_of
from gpulab.exercises._journal import FILE_NAME, LearnerJournal
from gpulab.exercises._progress import Progress, page
from tests.support.journals import forget_all
from tests.support.lesson_text import words_to_mend
from tests.support.lessons import ROOT

AT = "2026-11-22T10:00:00+00:00"


@pytest.fixture(autouse=True)
def _nothing_kept() -> Iterator[None]:
    """Start and end each test with nothing saved in this process."""
    forget_all()
    yield
    forget_all()


def said(name: str, word: str, confidence: str = "", number: float = 1.0) -> KeptPrediction:
    """Return a prediction whose outcome was revealed."""
    is_right = word in {"Close.", "Right."}
    message = f"You said {number:g}, it was 7."
    reveal = Reveal(name, AT, "7", message, "factor", word, 7.0, is_right)
    return KeptPrediction(name, Guess(name, AT, number, confidence=confidence), reveal)


MINE = (
    said("01.naive", "Far off.", "likely"),
    said("01.loop", "Close.", "sure"),
    said("01.grows", "Off.", "sure"),
    said("01.item", "Off."),
    said("01.cost", "Off.", "guess"),
)


def test_every_prediction_of_the_lessons_has_its_own_name() -> None:
    """A name begins with its lesson's number, and no two predictions share one."""
    names = []
    for source in sorted((ROOT / "notebooks" / "source").rglob("*.py")):
        code = source.read_text("utf-8")
        found = re.findall(r'\bexercises\.predict\(\s*"([\w.-]+)"', code)
        compared = re.findall(r'\bexercises\.compare\(\s*"([\w.-]+)"', code)
        assert sorted(found) == sorted(compared), source
        found += re.findall(r'\bname="((?:case-)?\d[\w.-]+)"', code)
        case = "case-" if source.parent.name == "cases" else ""
        unit = case + source.stem.partition("_")[0]
        assert {name.partition(".")[0] for name in found} <= {unit}
        names += found
    assert len(names) == len(set(names)) > 60
    assert set(ideas()) == set(names)  # each has a sentence about what to review
    for idea in ideas().values():
        assert re.fullmatch(r".{20,110}\.", idea)
        assert not words_to_mend(idea)


def test_a_guess_between_two_choices_promises_once_in_two() -> None:
    """Yes or no is right half of the time by luck alone; other guesses promise as before."""
    promises = {
        (confidence, n): Guess("01.loop", AT, confidence=confidence, n_choices=n).promise
        for confidence in ("guess", "sure", "")
        for n in (0, 2, 4)
    }
    assert promises["guess", 2] == 0.5
    assert promises["guess", 0] == promises["guess", 4] == 1 / 3
    assert promises["sure", 2] == 0.95
    assert promises["", 2] is None
    two = [
        KeptPrediction(
            "01.loop",
            Guess("01.loop", AT, choice="yes", confidence="guess", n_choices=2),
            Reveal("01.loop", AT, "no", "", "choice", "Different.", None, is_right=False),
        )
    ]
    assert [row.promised for row in _calibration.rows_of(two)] == [50, 50]


def test_a_prediction_is_found_in_the_built_lesson() -> None:
    """The link leads to the cell that asks; an unknown prediction has no link."""
    cell = _lesson_index.cell_of("01.item")
    assert cell is not None
    file, _, cell_id = cell.link.partition("#cell-id=")
    notebook = json.loads((ROOT / "notebooks" / file).read_text())
    (asks,) = (each for each in notebook["cells"] if each["id"] == cell_id)
    assert 'exercises.predict("01.item")' in "".join(asks["source"])
    assert str(cell).startswith("01 Naive timing, One more call")
    assert _lesson_index.cell_of("01.nothing") is None


def test_the_most_certain_mistakes_come_first() -> None:
    """At most three mistakes are listed with links, by confidence and then by error."""
    found = _calibration.review(MINE)
    assert found.summary == "1 of 5 predictions right"
    assert [one.name for one in found.revisit] == ["01.grows", "01.naive", "01.item"]
    text = str(Progress((), MINE))
    assert (
        "  said as: sure                           1 of 2 right, and your words promise 95 %"
        in text
    )
    assert text.index("01 Naive timing, ") < text.index("You said 1, it was 7.")
    shown = Progress((), MINE)._repr_html_()
    assert 'href="01_naive_timing.ipynb#cell-id=' in shown
    assert re.search(r"said as: sure.*?1 of 2.*?95 %", shown, re.DOTALL)


def test_calibration_has_rows_for_confidence_and_topic() -> None:
    """Topics are sections for one lesson and lessons for several."""
    rows = _calibration.rows_of(MINE)
    assert [row.kind for row in rows[:3]] == [
        *("said as: sure", "said as: likely", "said as: guess")
    ]
    assert (rows[0].n, rows[0].n_right) == (2, 1)
    course = _calibration.rows_of((*MINE, said("08b.where", "Right.")))
    assert [row.kind for row in course[3:]] == ["01 Naive timing", "08b Streams: memory"]
    assert course[-1].promised is None


def test_a_page_shows_all_predictions_and_marks_late_changes() -> None:
    """The page is complete HTML, marks late changes, and escapes what a learner typed."""
    late = KeptPrediction(
        "01.loop",
        reveal=MINE[1].reveal,
        late=[Guess("01.loop", AT, choice="<b>"), Guess("01.loop", AT, 2.0, unit="times")],
    )
    text = page(Progress((), (MINE[0], late)))
    assert text.startswith('<!DOCTYPE html><html lang="en">')
    assert "&lt;b&gt;, 2 (times)" in text
    assert "1 given or changed after the outcome" in text
    assert "<b>" not in text


def fill_class(folder: Path) -> None:
    """Let 12 learners and a copy answer in folders of their own; one file is damaged."""
    for number in range(12):
        own = folder / f"student-{number}"
        own.mkdir(parents=True)
        journal = LearnerJournal(own)
        journal.add(Guess("01.naive", AT, 1e-6 * 2**number, unit="µs", question="How long?"))
        journal.add(Guess("01.loop", AT, choice="yes" if number < 5 else "no"))
        journal.add(Guess("04.first", AT, strokes=(Stroke("GPU", (1.0,), (1.0,)),)))
        journal.add(Reveal("01.loop", AT, "no", "You said it.", is_right=number >= 5))
        journal.add(Guess("01.loop", AT, choice="no", is_late=True))
    # A shorter copy, handed in earlier, counts as the same learner.
    lines = (folder / "student-0" / FILE_NAME).read_text().splitlines(keepends=True)
    (folder / "z-copy").mkdir()
    (folder / "z-copy" / FILE_NAME).write_text("".join(lines[:2]))
    (folder / "bad").mkdir()
    (folder / "bad" / FILE_NAME).write_text("x\n")


def test_a_class_is_joined_without_names(tmp_path: Path) -> None:
    """Guesses before the outcome are counted, copies once, and no learner is named."""
    fill_class(tmp_path)
    found = exercises.class_progress(tmp_path)
    assert found.n_learners == 12
    assert [one.name for one in found.questions] == ["01.naive", "01.loop", "04.first"]
    naive, done, drawn = found.questions
    assert done.counts == (("no", 7), ("yes", 5))
    assert sum(n for _, n in naive.counts) == 12
    assert naive.counts[:2] == (("1 µs to 3 µs", 2), ("3 µs to 10 µs", 2))
    assert (drawn.counts, drawn.n_drawn) == ((), 12)
    assert f"  no   {'█' * 30} 7\n  yes  {'█' * 22} 5\n" in str(found)
    assert ">1 µs to 3 µs</th>" in found.page()
    assert found.left_out == (f"{tmp_path}/bad/gpulab-progress.jsonl is damaged",)
    for shown in (str(found), found.page()):
        assert "student" not in shown
        assert "It was no." not in shown
    told = exercises.class_progress(tmp_path, question="01.loop", is_revealed=True)
    assert "It was no. 7 of 12 were right." in str(told)
    assert "It was no. 7 of 12 were right." in told.page()


def test_a_question_that_all_drew_has_no_empty_table(tmp_path: Path) -> None:
    """The page says how many drew, and a reader of the screen meets no table without rows."""
    stroke = Stroke("GPU", (1.0,), (1.0,))
    LearnerJournal(tmp_path).add(Guess("04.first", AT, strokes=(stroke,)))
    page = exercises.class_progress(tmp_path).page()
    assert "1 drew" in page
    assert "<table" not in page


@pytest.mark.parametrize("unit", ["%", "µs", "times"])
@pytest.mark.parametrize("strange", [1e300, -1e300, -3.0, 0.0, 5e-324])
def test_a_senseless_guess_is_counted_with_the_others(
    tmp_path: Path, unit: str, strange: float
) -> None:
    """A guess of any number is in one of the ranges, whose text fits into a line."""
    for number, guess in enumerate([*range(1, 10), strange]):
        own = tmp_path / f"student-{number}"
        own.mkdir()
        LearnerJournal(own).add(Guess("01.naive", AT, float(guess), unit=unit, question="?"))
    (question,) = exercises.class_progress(tmp_path).questions
    assert sum(n for _, n in question.counts) == 10
    assert all(len(text) < 60 for text, _ in question.counts), question.counts


def test_an_unusable_class_folder_is_refused(tmp_path: Path) -> None:
    """A folder without files, a missing folder and an unknown question get a message."""
    with pytest.raises(InvalidOptionError, match="has no file gpulab-progress"):
        exercises.class_progress(tmp_path)
    with pytest.raises(InvalidOptionError, match="is not a folder; name the one"):
        exercises.class_progress(tmp_path / "none")
    fill_class(tmp_path)
    with pytest.raises(UnknownNameError, match=r"did you mean '01\.naive'\?"):
        exercises.class_progress(tmp_path, question="01.naiv")


def run(*arguments: object) -> Result:
    """Run ``gpulab progress``."""
    return CliRunner().invoke(main, ["progress", *map(str, arguments)])


def test_the_command_shows_writes_and_resets(tmp_path: Path) -> None:
    """The command prints text, writes a page, resets, adopts and joins; typos get a suggestion."""
    fill_class(tmp_path)
    own = tmp_path / "student-5"
    assert "1 of 1 prediction right" in run(own).output
    assert "01.hidden-sync" in run(own).output
    assert "02.who-blocks" not in run(own).output  # its lesson was not begun
    html = tmp_path / "mine.html"
    assert run(own, "--html", html).output == f"written: {html}\n"
    assert "You said it." in html.read_text()
    assert "did you mean '08b'?" in run(own, "--reset", "8b").output
    assert run(own, "--reset", "01").exit_code == 0
    assert list(predictions_of(LearnerJournal(own).entries)) == ["04.first"]
    other = tmp_path / "student-6" / "gpulab-progress.jsonl"
    assert "5 records added" in run(own, "--adopt", other).output  # the reset ones, too
    assert "0 records added" in run(own, "--adopt", other).output
    nothing = run(tmp_path)
    assert nothing.exit_code == 1
    assert "has no predictions or answers of yours; name the folder" in nothing.output
    joined = run(tmp_path, "--class", "--question", "01.loop", "--reveal")
    assert "7 of 12 were right" in joined.stdout
    assert joined.stderr == f"left out: {tmp_path}/bad/gpulab-progress.jsonl is damaged\n"
