"""The predictions of a class: join the progress files of many learners, without their names."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpulab.core import palette
from gpulab.core.errors import InvalidOptionError, UnknownNameError
from gpulab.core.foreign_text import visible
from gpulab.core.markup import Html, clean, table
from gpulab.core.requirements import FLAG, PATH, TEXT
from gpulab.core.units import counted, format_number, format_time
from gpulab.exercises import _html
from gpulab.exercises._entries import Guess
from gpulab.exercises._history import KeptPrediction, lesson_of, predictions_of
from gpulab.exercises._journal import Contents, files_in, read
from gpulab.exercises._lesson_index import cell_of, lessons

_MOST_VALUES = 8  # up to so many different numbers get a bar each; more are put into ranges
_LARGEST = 1e12  # larger guesses count in its range, which is short enough to show
_BAR = 30  # characters of the longest bar
_TIMES = ("s", "ms", "µs", "us", "ns")
_TITLE = "What the class predicted"


@dataclass(frozen=True, slots=True)
class ClassQuestion:
    """The guesses of a class in one prediction.

    ``heading`` has the lesson and the question. ``counts`` has each answer, or range of answers,
    and how many learners gave it; those who drew a curve are only in ``n_drawn``. ``outcome`` is
    a sentence, and empty if nobody has measured.
    """

    name: str
    heading: str
    counts: tuple[tuple[str, int], ...]
    n_drawn: int
    outcome: str


@dataclass(frozen=True, slots=True)
class ClassReview:
    """The predictions of a class in the order of the lessons, without names.

    ``left_out`` has the files that could not be used, with the reasons. Do not show them to the
    class: their paths may contain learners' names. ``is_revealed`` shows the outcomes.
    """

    n_learners: int
    questions: tuple[ClassQuestion, ...]
    left_out: tuple[str, ...]
    is_revealed: bool

    def __str__(self) -> str:
        lines = [f"{_TITLE}: {self.summary}"]
        for question in self.questions:
            lines += ["", question.heading]
            most = max((n for _, n in question.counts), default=1)
            width = max((len(answer) for answer, _ in question.counts), default=0)
            for answer, n in question.counts:
                # Rounded up, so that one learner among many still has a bar.
                lines.append(f"  {answer:<{width}}  {'█' * math.ceil(_BAR * n / most)} {n}")
            lines += self._notes(question)
        return visible("\n".join(lines))

    __repr__ = __str__

    @property
    def summary(self) -> str:
        """The number of learners and of questions, as text."""
        learners, questions = self.n_learners, len(self.questions)
        return f"{counted(learners, 'learner')}, {counted(questions, 'question')}"

    def page(self) -> str:
        """Return an HTML page in large type, to show to the class."""
        parts = [
            f"<section><h2>{clean(question.heading)}</h2>{_bars(question)}"
            + "".join(f"<p>{clean(note)}</p>" for note in self._notes(question))
            + "</section>"
            for question in self.questions
        ]
        body = f"<p>{clean(self.summary)}</p>{''.join(parts)}"
        return _html.page(_TITLE, _STYLE, body)

    def _notes(self, question: ClassQuestion) -> list[str]:
        drawn = f"{question.n_drawn} drew their answer." if question.n_drawn else ""
        return [note for note in (drawn, question.outcome if self.is_revealed else "") if note]


_STYLE = (
    ":root{color-scheme:light dark}body{font:1.4rem/1.4 system-ui,sans-serif;margin:2rem}"
    "main{max-width:70rem;margin:auto}section{margin:3rem 0}table{width:100%}"
    "th{text-align:right;font-weight:400;width:25%;padding-right:.6rem}"
    f".bar{{background:light-dark({palette.SERIES[0].light},{palette.SERIES[0].dark});display:inline-block;height:1em}}"
)


def _bars(question: ClassQuestion) -> str:
    most = max((n for _, n in question.counts), default=1)
    # At most 80 %: the number stands to the right of the bar, in the same line.
    bar = '<span class="bar" aria-hidden="true" style="width:{:.1f}%"></span> {}'
    rows = [(answer, Html(bar.format(80 * n / most, n))) for answer, n in question.counts]
    return table(rows, has_row_headings=True) if rows else ""  # all drew their answer


def class_progress(
    folder: Path, *, question: str | None = None, is_revealed: bool = False
) -> ClassReview:
    """Return the predictions of a class, from the progress files of many learners.

    Only guesses from before the outcome was shown are counted. Copies of one file are counted
    once. The result contains no names.

    Parameters
    ----------
    folder
        Folder that contains the learners' folders, at any depth.
    question
        Name of a prediction, for example ``"01.naive"``; by default all that somebody answered.
    is_revealed
        Whether to show the outcomes too.

    Raises
    ------
    InvalidOptionError
        If the folder does not exist, or contains no progress file.
    UnknownNameError
        If nobody made a prediction of this name.

    Examples
    --------
    >>> from pathlib import Path
    >>> from gpulab import exercises
    >>> try:
    ...     exercises.class_progress(Path("handed-in"), question="01.naive")
    ... except InvalidOptionError as error:
    ...     print(error)
    handed-in is not a folder; name the one with the learners' folders
    """
    PATH.check(folder=folder)
    FLAG.check(is_revealed=is_revealed)
    if question is not None:
        TEXT.check(question=question)
    folder = Path(folder)
    if not folder.is_dir():
        raise InvalidOptionError(
            f"{folder} is not a folder; name the one with the learners' folders"
        )
    contents_of = {path: read(path) for path in files_in(folder)}
    if not contents_of:
        raise InvalidOptionError(
            f"{folder} has no file gpulab-progress.jsonl, nor has a folder in it; "
            "collect the folders of the learners there"
        )
    classes = _by_name(contents_of.values())
    if question is not None and question not in classes:
        raise UnknownNameError("prediction of this class", question, classes)
    left_out = tuple(
        f"{path} {contents.problem}" for path, contents in contents_of.items() if contents.problem
    )
    chosen = sorted(classes, key=_in_course) if question is None else [question]
    return ClassReview(
        len({contents.learner for contents in contents_of.values() if not contents.problem}),
        tuple(_question(name, classes[name]) for name in chosen),
        left_out,
        is_revealed,
    )


def _by_name(files: Iterable[Contents]) -> dict[str, list[KeptPrediction]]:
    """Return the guesses of all learners, by prediction; of several copies the longest counts."""
    # Files are only ever appended to, so the longest copy of a file contains all the others.
    longest: dict[str, Contents] = {}
    for contents in files:
        before = longest.get(contents.learner)
        if not contents.problem and (
            before is None or len(contents.entries) > len(before.entries)
        ):
            longest[contents.learner] = contents
    predictions: dict[str, list[KeptPrediction]] = {}
    for contents in longest.values():
        for name, prediction in predictions_of(contents.entries).items():
            if prediction.guess is not None:
                predictions.setdefault(name, []).append(prediction)
    return predictions


def _in_course(name: str) -> tuple[str, int]:
    """Return a sort key that puts predictions in the order of the lessons and their cells."""
    lesson = lesson_of(name)
    names = list(lessons()[lesson].predictions) if lesson in lessons() else []
    return lesson, names.index(name) if name in names else len(names)


def _question(name: str, predictions: Sequence[KeptPrediction]) -> ClassQuestion:
    guesses = [prediction.guess for prediction in predictions if prediction.guess is not None]
    asked = next((guess.question for guess in guesses if guess.question), name)
    cell = cell_of(name)
    reveals = [
        prediction.reveal
        for prediction in predictions
        if prediction.is_scored and prediction.reveal is not None
    ]
    outcome = ""
    if reveals:
        # The GPUs of a class may differ.
        [(most_frequent, _)] = Counter(reveal.outcome for reveal in reveals).most_common(1)
        n_right = sum(reveal.is_right is True for reveal in reveals)
        outcome = f"It was {most_frequent}. {n_right} of {len(reveals)} were right."
    return ClassQuestion(
        name,
        f"{cell.lesson if cell else name}: {asked}",
        _counted(guesses),
        sum(bool(guess.strokes) for guess in guesses),
        outcome,
    )


def _counted(guesses: Sequence[Guess]) -> tuple[tuple[str, int], ...]:
    """Return how often each answer was given; many different numbers are put into ranges."""
    choices = Counter(guess.choice for guess in guesses if guess.choice)
    numbers = sorted(guess.number for guess in guesses if guess.number is not None)
    unit = next((guess.unit for guess in guesses if guess.number is not None), "")
    write = _range if len(set(numbers)) > _MOST_VALUES else _written
    return (*choices.most_common(), *Counter(write(each, unit) for each in numbers).items())


def _range(number: float, unit: str) -> str:
    """Return the range of a number: tens of percentage points, else from 1, 3, 10, 30 ... on."""
    if unit == "%":
        low = 10.0 * (number // 10)
        return f"{format_number(low)} to {format_number(low + 10)} %"
    if number <= 0:
        return _written(0.0, unit) if number == 0 else "less than 0"
    power = 10.0 ** math.floor(math.log10(min(number, _LARGEST)))
    # About equally wide on a logarithmic scale, and round numbers to read aloud.
    low, high = (power, 3 * power) if number < 3 * power else (3 * power, 10 * power)
    if unit in _TIMES:
        return f"{format_time(low, 1)} to {format_time(high, 1)}"
    return f"{format_number(low)} to {format_number(high)} {unit}"


def _written(number: float, unit: str) -> str:
    return format_time(number) if unit in _TIMES else f"{format_number(number)} {unit}"
