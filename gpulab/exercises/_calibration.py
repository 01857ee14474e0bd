"""Calibration of predictions: how often they were right, by confidence and by topic.

If you say "likely" ten times, you should be right about seven times.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from gpulab.core.markup import clean, table
from gpulab.core.units import counted, format_number
from gpulab.exercises._entries import CONFIDENCE
from gpulab.exercises._guess_question import ideas
from gpulab.exercises._history import KeptPrediction, lesson_of
from gpulab.exercises._journal import way_home
from gpulab.exercises._lesson_index import LessonCell, cell_of, lessons

_MILD = "Off."  # the verdict on a guess that was less wrong than the others
_UNSAID = 0.5  # in sorting, a prediction without a confidence is between "guess" and "likely"
_N_REVISIT = 3  # at most so many predictions to look at again: more would not be read


class RightShare(NamedTuple):
    """How many predictions of a kind were right; ``promised`` is a percentage, or None."""

    kind: str
    n: int
    n_right: int
    promised: float | None

    @property
    def promise(self) -> str:
        """The percentage as text; empty without one."""
        return "" if self.promised is None else f"{self.promised:.0f} %"


class Revisit(NamedTuple):
    """A wrong prediction to look at again, with its idea, its outcome and its place."""

    name: str
    idea: str
    message: str
    place: LessonCell | None

    def __str__(self) -> str:
        return f"{self.place or self.name}: {self.idea} {self.message}"


@dataclass(frozen=True, slots=True)
class Review:
    """A review of predictions: numbers, and the ones to look at again.

    ``scored`` has a guess before the outcome; ``n_late`` were made or changed after it.
    ``revisit`` has at most three wrong predictions, the most serious first.
    """

    scored: tuple[KeptPrediction, ...]
    n_late: int
    revisit: tuple[Revisit, ...]

    @property
    def summary(self) -> str:
        """The number of predictions that were right, as text; empty if there are none."""
        if not self.scored and not self.n_late:
            return ""
        n_right = sum(map(_is_right, self.scored))
        late = f"; {self.n_late} given or changed after the outcome" if self.n_late else ""
        return f"{n_right} of {counted(len(self.scored), 'prediction')} right{late}"

    def lines(self) -> Iterator[str]:
        """Yield the review as text."""
        if self.summary:
            yield self.summary
        for row in rows_of(self.scored):
            promised = f", and your words promise {row.promise}" if row.promise else ""
            yield f"  {row.kind:<40}{row.n_right} of {row.n} right{promised}"
        if self.revisit:
            yield _TITLE
        for number, revisit in enumerate(self.revisit, start=1):
            yield f"  {number}. {revisit}"

    def html(self) -> str:
        """Return the review as HTML, with links to the cells of the lessons."""
        if not self.summary:
            return ""
        rows = rows_of(self.scored)
        cells = [(row.kind, f"{row.n_right} of {row.n}", row.promise) for row in rows]
        headings = ("predictions", "right", "your words promise")
        shares = table(cells, headings=headings, is_text=True) if cells else ""
        return f"<p><strong>{clean(self.summary)}</strong></p>{shares}{self._links()}"

    def _links(self) -> str:
        if not self.revisit:
            return ""
        items = "".join(
            f"<li>{_link(revisit)}: {clean(f'{revisit.idea} {revisit.message}')}</li>"
            for revisit in self.revisit
        )
        return f"<p>{_TITLE}</p><ol>{items}</ol>"


_TITLE = "Look at these again:"


def review(predictions: Iterable[KeptPrediction]) -> Review:
    """Return the review of some predictions."""
    all_predictions = tuple(predictions)
    scored = tuple(prediction for prediction in all_predictions if prediction.is_scored)
    return Review(
        scored,
        sum(bool(prediction.late) for prediction in all_predictions),
        tuple(_revisit(scored)),
    )


def row(prediction: KeptPrediction) -> tuple[str, str, str, str]:
    """Return a prediction as a row of a table: name, confidence, outcome, and later changes."""
    latest = prediction.guess or prediction.latest
    outcome = (
        prediction.reveal.message or prediction.reveal.outcome
        if prediction.reveal
        else "not measured yet"
    )
    late = ", ".join(
        _guess_text(guess.number, guess.choice, guess.unit) for guess in prediction.late
    )
    return prediction.name, latest.confidence if latest else "", outcome, late


def _guess_text(number: float | None, choice: str, unit: str) -> str:
    return choice or ("a drawing" if number is None else f"{format_number(number)} ({unit})")


def rows_of(scored: Iterable[KeptPrediction]) -> list[RightShare]:
    """Return how often predictions were right, by confidence and by topic.

    The topics are lessons if the predictions are from several lessons, otherwise the sections of
    the lesson.
    """
    predictions = list(scored)
    # Over several lessons, sections would give dozens of rows.
    is_course = len({lesson_of(prediction.name) for prediction in predictions}) > 1
    groups: dict[str, list[KeptPrediction]] = {}
    # The surest first: being wrong there says most about a learner's feeling.
    for step in reversed(CONFIDENCE):
        groups[f"said as: {step}"] = [
            prediction for prediction in predictions if _confidence(prediction) == step
        ]
    for prediction in predictions:
        groups.setdefault(_topic(prediction, is_course=is_course), []).append(prediction)
    return [_row(kind, members) for kind, members in groups.items() if members]


def _row(kind: str, members: list[KeptPrediction]) -> RightShare:
    # Only those with a confidence count here: the others promise nothing.
    promises = [
        promise
        for prediction in members
        if prediction.guess and (promise := prediction.guess.promise) is not None
    ]
    promised = 100 * sum(promises) / len(promises) if promises else None
    return RightShare(kind, len(members), sum(map(_is_right, members)), promised)


def _revisit(scored: Iterable[KeptPrediction]) -> list[Revisit]:
    """Return the wrong predictions to look at again: first those that the learner was sure of."""
    wrong = [
        (prediction, prediction.reveal)
        for prediction in scored
        if prediction.reveal is not None and not prediction.reveal.is_right
    ]
    wrong.sort(
        key=lambda pair: (-CONFIDENCE.get(_confidence(pair[0]), _UNSAID), pair[1].word == _MILD)
    )
    return [
        Revisit(
            prediction.name,
            ideas().get(prediction.name, ""),
            reveal.message,
            cell_of(prediction.name),
        )
        for prediction, reveal in wrong[:_N_REVISIT]
    ]


def _link(revisit: Revisit) -> str:
    if revisit.place is None:
        return clean(revisit.name)
    return f'<a href="{clean(way_home() + revisit.place.link)}">{clean(str(revisit.place))}</a>'


def _topic(prediction: KeptPrediction, *, is_course: bool) -> str:
    cell = cell_of(prediction.name)
    if is_course or cell is None:
        lesson = lesson_of(prediction.name)
        return lessons()[lesson].title if lesson in lessons() else lesson
    return cell.section or cell.lesson


def _is_right(prediction: KeptPrediction) -> bool:
    return prediction.reveal is not None and prediction.reveal.is_right is True


def _confidence(prediction: KeptPrediction) -> str:
    return prediction.guess.confidence if prediction.guess is not None else ""
