"""Calibration of predictions: how often they were right, by confidence and by topic.

If you say "likely" ten times, you should be right about seven times.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import isnan, nan
from typing import TYPE_CHECKING, NamedTuple

from gpulab.core.foreign_text import one_line
from gpulab.core.markup import clean
from gpulab.core.units import counted, format_number
from gpulab.exercises._guess_question import ideas
from gpulab.exercises._lesson_index import LessonCell, cell_of, lessons
from gpulab.exercises.journal import CONFIDENCE, KeptPrediction, lesson_of, way_home

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from gpulab.figures import Figure


_UNSAID = 0.5  # in sorting, a prediction without a confidence is between "guess" and "likely"
# How serious a wrong prediction is, by the word of its verdict.
_SERIOUS = {"Far off.": 3, "Wrong direction.": 3, "Different.": 3, "Off.": 2}
_N_REVISIT = 3  # at most so many predictions to look at again: more would not be read
_ROW_IN, _MARGIN_IN = 0.36, 1.3
_SAID, _WAS = "as often as your words promise", "how often you were right"


class _Row(NamedTuple):
    row: str
    n: int
    n_right: int
    percent_right: float
    percent_said: float


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
    """A review of predictions: numbers, a figure, and the ones to look at again.

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
        for name, n, n_right, _, percent in _rows(self.scored):
            promised = "" if isnan(percent) else f", and your words promise {percent:.0f} %"
            yield f"  {name:<40}{n_right} of {n} right{promised}"
        if self.revisit:
            yield _TITLE
        for number, revisit in enumerate(self.revisit, start=1):
            yield f"  {number}. {revisit}"

    def html(self) -> str:
        """Return the review as HTML: the figure, and links to the cells of the lessons."""
        if not self.summary:
            return ""
        picture = draw_calibration(self.scored)._repr_html_() if self.scored else ""
        return f"<p><strong>{clean(self.summary)}</strong></p>{picture}{self._links()}"

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
    told = (
        prediction.reveal.message or prediction.reveal.outcome
        if prediction.reveal
        else "not measured yet"
    )
    late = ", ".join(_said(guess.number, guess.choice, guess.unit) for guess in prediction.late)
    return prediction.name, latest.confidence if latest else "", told, late


def _said(number: float | None, choice: str, unit: str) -> str:
    return choice or ("a drawing" if number is None else f"{format_number(number)} ({unit})")


def calibration_of(scored: Iterable[KeptPrediction]) -> "pd.DataFrame":
    """Return how often predictions were right, by confidence and by topic.

    The topics are lessons if the predictions are from several lessons, otherwise the sections of
    the lesson. Columns are ``row``, ``n``, ``n_right``, ``percent_right``, and ``percent_said``:
    how often they should be right by their confidence, nan without a confidence.
    """
    import pandas as pd

    return pd.DataFrame(_rows(scored), columns=list(_Row._fields))


def _rows(scored: Iterable[KeptPrediction]) -> list[_Row]:
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
    return [_group(name, members) for name, members in groups.items() if members]


def _group(name: str, members: list[KeptPrediction]) -> _Row:
    n_right = sum(map(_is_right, members))
    # Only those with a confidence count here: the others promise nothing.
    promises = [
        promise
        for prediction in members
        if prediction.guess and (promise := prediction.guess.promise) is not None
    ]
    percent_said = 100 * sum(promises) / len(promises) if promises else nan
    return _Row(name, len(members), n_right, 100 * n_right / len(members), percent_said)


def calibration(record: "pd.DataFrame", ax: "Axes") -> "Axes":
    """Plot a :func:`calibration_of`: how often predictions were right, and should be."""
    from gpulab.core.palette import SERIES
    from gpulab.figures import finish, need

    need(record, _Row._fields)
    rows = range(len(record))
    ax.hlines(rows, record["percent_right"], record["percent_said"], color="#595959", zorder=1)
    ax.plot(record["percent_right"], rows, "o", color=SERIES[0].light, label=_WAS)
    # Without a value the series would still have an entry in the legend.
    if record["percent_said"].notna().any():
        ax.plot(record["percent_said"], rows, "D", mfc="white", color=SERIES[2].light, label=_SAID)
    columns = (record["row"], record["n_right"], record["n"])
    names = [
        f"{one_line(str(name))} ({n_right} of {n})"
        for name, n_right, n in zip(*columns, strict=True)
    ]
    ax.set_yticks(list(rows), names)
    ax.set_ylim(len(record) + 0.9, -0.6)  # leaves room for the legend below the rows
    # Room for the markers at 0 and 100 %, which the edge would cut in half.
    ax.set_xlim(-4, 104)
    ax.grid(visible=True, axis="x", alpha=0.3)
    return finish(ax, "Dot plot", "share of predictions (%)", "")


def draw_calibration(scored: Iterable[KeptPrediction]) -> "Figure":
    """Return the figure of the calibration; its text alternative contains every number."""
    from gpulab.views import (
        plots,  # imported here: it imports torch, and showing a question should not
    )

    scored = tuple(scored)
    frame = calibration_of(scored)
    texts = (f"{row.row}: {row.n_right} of {row.n} right." for row in _rows(scored))
    return plots.draw(
        calibration,
        frame,
        title="How often your predictions were right",
        alt=" ".join(texts),
        source="your predictions",
        ax_size=(7.6, _MARGIN_IN + _ROW_IN * len(frame)),
    )


def _revisit(scored: Iterable[KeptPrediction]) -> list[Revisit]:
    """Return the wrong predictions to look at again: first those that the learner was sure of."""
    wrong = [prediction for prediction in scored if not _is_right(prediction)]
    wrong.sort(
        key=lambda prediction: (
            -CONFIDENCE.get(_confidence(prediction), _UNSAID),
            -_weight(prediction),
        )
    )
    return [
        Revisit(
            prediction.name,
            ideas().get(prediction.name, ""),
            prediction.reveal.message,
            cell_of(prediction.name),
        )
        for prediction in wrong[:_N_REVISIT]
        if prediction.reveal is not None
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


def _weight(prediction: KeptPrediction) -> int:
    return _SERIOUS.get(prediction.reveal.word, 0) if prediction.reveal is not None else 0


def _confidence(prediction: KeptPrediction) -> str:
    return prediction.guess.confidence if prediction.guess is not None else ""
