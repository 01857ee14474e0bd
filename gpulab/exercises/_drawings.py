"""Predictions as curves: draw a curve before you measure it, then see the measured one over it."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from gpulab import device
from gpulab.core import shell
from gpulab.core.errors import InvalidOptionError, shown
from gpulab.core.foreign_text import visible
from gpulab.core.requirements import NAME, NUMBER, TEXT, Requirement, instance_of, mapping_to
from gpulab.core.units import format_number, format_time, time_unit
from gpulab.exercises import _html, _saved_guesses
from gpulab.exercises._distance import distance
from gpulab.exercises._drawing_form import DrawingForm
from gpulab.exercises._entries import Guess, Stroke, now
from gpulab.exercises._exercise import is_open
from gpulab.exercises.answers import read_number

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from gpulab.figures import Figure

Points = tuple[Sequence[float], Sequence[float]]
Curves = Mapping[str, Points]

_NO_DRAWING = _html.Tone("#0072B2", "?", "No drawing.")
_NUMBERS = Requirement(
    "a list of numbers, texts with a unit of time, or None",
    lambda value: (
        isinstance(value, Sequence)
        and not isinstance(value, str | bytes)
        and all(each is None or isinstance(each, str) or NUMBER.accepts(each) for each in value)
    ),
)
_LEAST_POWER = 10_000  # smaller sizes are written out, as in programs
_MOST_TICKS = 9  # labels that fit under the x axis
_UNREAD = "What you typed could not be read."
_TYPED = "Draw it on the axes, or type it in place of the three dots"


@dataclass(frozen=True, slots=True)
class Term:
    """A quantity that is read off a curve, in the words of the lesson.

    It is None on the drawn or the true curve if that curve does not have it. The unit "s" is shown
    as a suitable one; any other is the text after the number.
    """

    what: str
    said: float | None
    was: float | None
    unit: str = ""

    def write(self, value: float) -> str:
        """Return a value with its unit as text."""
        text = format_time(value) if self.unit == "s" else f"{format_number(value)} {self.unit}"
        return text.strip()


@dataclass(frozen=True, slots=True)
class SketchAxes:
    """The axes to draw on, and the quantities by which a drawing is judged.

    A curve has a point at each ``x``, in rising order; ``x_name`` is a short name for one, such as
    "call", and ``is_log`` says whether the x axis is logarithmic too. The y axis goes from ``low``
    to ``high`` and is logarithmic; its label has no unit. ``unit`` is "s" for times. Drawn and
    true curves are compared by ``quantities``, the most important first: what each is, the
    function that reads it off the curves, and its unit.
    """

    x: tuple[float, ...]
    x_label: str
    x_name: str
    low: float
    high: float
    y_label: str
    quantities: tuple[tuple[str, Callable[[Curves], float | None], str], ...]
    unit: str = "s"
    curves: tuple[str, ...] = ("you",)
    is_log: bool = False

    def terms(self, drawn: Curves, was: Curves) -> list[Term]:
        """Return each quantity as it was drawn and as it was."""
        return [Term(what, read(drawn), read(was), unit) for what, read, unit in self.quantities]

    def view(self) -> dict[str, Any]:
        """Return the axes in the form that the page expects."""
        return {
            "x": list(self.x),
            "x_texts": [_x_text(value, self.x) for value in self.x],
            "x_ticks": _ticks(self.x, self.x),
            "x_label": self.x_label,
            "x_name": self.x_name,
            "is_log": self.is_log,
            "low": self.low,
            "high": self.high,
            "y_label": self.y_label,
            "unit": self.unit,
        }


@dataclass(frozen=True, slots=True, repr=False)
class DrawingReview(_html.ComparedGuess):
    """A drawing compared with the outcome, in the words of the lesson and as a figure of both.

    The most important quantity says whether the drawing is right.
    """

    figure: "Figure"

    def _repr_html_(self) -> str:
        # This form packs the picture, which a notebook keeps with the output.
        picture = self.figure._repr_mimebundle_()["text/html"]
        return _html.box(self.tone, _html.paragraphs(self.message)) + picture


class DrawnPrediction:
    """A prediction that the learner draws as a curve; :func:`draw` returns one.

    In a notebook with a browser it shows axes to draw on. Anywhere else it is a line of text, and
    the notebook goes on.

    Examples
    --------
    >>> from gpulab import exercises
    >>> from gpulab.exercises import lesson_09 as lab
    >>> drawing = exercises.draw("How long does it take?", name="09.near", axes=lab.MATMUL_TIMES)
    >>> drawing.is_empty
    True
    """

    def __init__(self, question: str, axes: SketchAxes, name: str) -> None:
        self.question, self.axes, self.name = question, axes, name
        self.note = ""
        self.values: dict[str, list[float | None]] = {
            curve: [None] * len(axes.x) for curve in axes.curves
        }

    @property
    def curves(self) -> Curves:
        """The drawn points: for each curve its x values and its y values."""
        curves = {}
        for name, values in self.values.items():
            there = [(x, y) for x, y in zip(self.axes.x, values, strict=True) if y is not None]
            curves[name] = ([x for x, _ in there], [y for _, y in there])
        return curves

    @property
    def is_empty(self) -> bool:
        """Whether nothing is drawn yet."""
        return all(value is None for values in self.values.values() for value in values)

    def give(self, curves: Mapping[str, Sequence[float | None]]) -> None:
        """Set the drawing from numbers, one for each x value; None leaves a point out.

        Numbers outside the axes are moved to their edge, as a mouse pointer would stop there.
        Curves with an unknown name or a wrong number of values are ignored.

        Parameters
        ----------
        curves
            The values of each curve, by its name.
        """
        mapping_to(_NUMBERS, "a dict of the names of curves to numbers").check(curves=curves)
        for name, values in curves.items():
            if name in self.values and len(values) == len(self.axes.x):
                self.values[name] = [self._inside(value) for value in values]

    def compare(
        self, truth: "Curves | Sequence[float]", *, source: object = None
    ) -> DrawingReview:
        """Compare the drawing with the measured curve.

        Parameters
        ----------
        truth
            For each curve its x values and its y values. For a single curve the y values are
            enough.
        source
            Where these numbers come from: text, or one or more records with ``source`` and
            ``device_name``. None: the current GPU.

        Returns
        -------
        DrawingReview
            A figure with both curves and a text, which shows itself as the last line of a cell.
            Without a drawing it shows the measured curve alone.
        """
        try:
            was = self._truth(truth)
        except Exception as error:  # an object of the user's own may raise anything
            raise InvalidOptionError(
                f"truth={shown(truth)}; it must be a list of numbers, or a dict of the names of "
                "curves to their places on both axes"
            ) from error
        origin = device.current() if source is None else source
        if self.is_empty:
            advice = f"The notebook goes on without one. {_TYPED} next time, before you measure."
            review = DrawingReview(_NO_DRAWING, advice, self._figure(was, origin))
        else:
            self.keep()
            review = self._counted()._review(was, origin)  # noqa: SLF001  # of the same class
        _saved_guesses.reveal(self.name, "a curve", review, counts="drawing")
        return review

    def _truth(self, truth: "Curves | Sequence[float]") -> Curves:
        if isinstance(truth, str | bytes):
            raise TypeError("a text has no places")
        if isinstance(truth, Mapping):
            return {
                str(name): ([float(x) for x in xs], [float(y) for y in ys])
                for name, (xs, ys) in truth.items()
            }
        return {self.axes.curves[0]: (self.axes.x[: len(truth)], [float(y) for y in truth])}

    def _counted(self) -> Self:
        """Return the drawing that counts: if this one was changed after the outcome, the first."""
        guess = _saved_guesses.saved_as(self.name).guess
        if not self.note or guess is None:
            return self
        first = type(self)(self.question, self.axes, self.name)
        first.note = self.note
        _restore(first, guess.strokes)
        return first

    def _review(self, was: Curves, origin: object) -> DrawingReview:
        judged = [_judged(term) for term in self.axes.terms(self.curves, was)]
        sentences = [judgement.sentence for judgement in judged]
        message = " ".join(filter(None, (*sentences, self.note)))
        return DrawingReview(
            judged[0].tone, message, self._figure(was, origin), is_right=judged[0].is_right
        )

    def keep(self) -> None:
        """Save the drawing in the learner's journal, unless nothing is drawn."""
        if self.is_empty:
            return
        strokes = tuple(
            Stroke(name, tuple(map(float, xs)), tuple(map(float, ys)))
            for name, (xs, ys) in self.curves.items()
            if xs
        )
        guess = Guess(self.name, now(), strokes=strokes, question=self.question)
        self.note = _saved_guesses.keep(guess)

    def _inside(self, value: object) -> float | None:
        number = read_number(value)
        # The y axis is logarithmic, so zero has no place on it.
        if number is None or not math.isfinite(number) or number <= 0:
            return None
        return min(self.axes.high, max(self.axes.low, number))

    def _figure(self, was: Curves, origin: object) -> "Figure":
        from gpulab.figures import provenance, source_of
        from gpulab.views import plots

        sources = [] if self.is_empty else ["your drawing"]
        sources.append(provenance(origin, origin if isinstance(origin, str) else None))
        return plots.draw(
            _sketch,
            _frame(self.curves, was),
            title=self._finding(was),
            alt=self._alt(was),
            source="; ".join(sources),
            axes=self.axes,
            came_from=source_of(origin),
        )

    def _finding(self, was: Curves) -> str:
        """Return what came out in the first quantity that the lesson compares, for a title."""
        term = next(term for term in self.axes.terms(was, was) if term.was is not None)
        return f"{term.what}: {term.write(term.was)}"  # type: ignore[arg-type]  # not None

    def _alt(self, was: Curves) -> str:
        write = Term("", None, None, self.axes.unit).write

        def ends(xs: Sequence[float], ys: Sequence[float]) -> str:
            first = f"{write(ys[0])} at {self.axes.x_name} {_x_text(xs[0], self.axes.x)}"
            return (
                first
                if len(xs) == 1
                else f"{first}, {write(ys[-1])} at {_x_text(xs[-1], self.axes.x)}"
            )

        texts = [
            f"{kind} {name}: {ends(xs, ys)}."
            for kind, curves in (("Drawn", self.curves), ("Came out", was))
            for name, (xs, ys) in curves.items()
            if len(xs)
        ]
        return "\n".join(texts)

    def __str__(self) -> str:
        if self.is_empty:
            asked = [self.question, *filter(None, [self.note]), f"{_TYPED}: {self._form}."]
            return visible(" ".join(asked))
        drawn = self._alt({}).replace("\n", " ")
        return visible(f"{self.question} {drawn} Now see what comes out.")

    __repr__ = __str__

    @property
    def _form(self) -> str:
        unit = "seconds" if self.axes.unit == "s" else self.axes.unit
        values = f"[...] with {len(self.axes.x)} values in {unit}"
        if len(self.axes.curves) == 1:
            return values
        return ", ".join(f'"{curve}": {values}' for curve in self.axes.curves).join("{}")

    def _ipython_display_(self) -> None:
        from IPython.display import display

        form = DrawingForm(self)
        # Not _repr_mimebundle_, because the words need an output of their own to be updated in.
        if shell.is_watched():
            form.display()
        else:
            display(form.words(), raw=True)  # type: ignore[no-untyped-call]  # IPython's gap


def draw(question: str, guess: object = ..., *, name: str, axes: SketchAxes) -> DrawnPrediction:
    """Show empty axes on which you draw a curve before you measure it.

    Parameters
    ----------
    question
        Text of the question.
    guess
        ``...`` to draw with mouse or keys; or the curve as numbers, one for each x value. Times
        are in seconds. For several curves pass a dict of their names to such lists.
    name
        Lesson and name under which the drawing is saved, for example ``"09.near"``.
    axes
        The axes of a lesson, for example ``gpulab.exercises.lesson_09.MATMUL_TIMES``.

    Returns
    -------
    DrawnPrediction
        The axes, which show themselves as the last line of a cell. They contain what you drew in
        an earlier session.

    Raises
    ------
    InvalidOptionError
        If ``question`` or ``name`` is not a text, or ``axes`` is not a `SketchAxes`.

    Examples
    --------
    In a notebook this shows the axes; in a terminal it says how to type the curve.

    >>> from gpulab import exercises
    >>> from gpulab.exercises import lesson_09 as lab
    >>> drawing = exercises.draw("How long?", name="09.near", axes=lab.MATMUL_TIMES)
    >>> str(drawing).partition(":")[0]
    'How long? Draw it on the axes, or type it in place of the three dots'
    """
    TEXT.check(question=question)
    NAME.check(name=name)
    instance_of(SketchAxes, "axes of a lesson").check(axes=axes)
    made = DrawnPrediction(question, axes, name)
    saved = _saved_guesses.saved_as(name).latest
    if not is_open(guess):
        _give(made, guess)
    elif saved is not None:
        _restore(made, saved.strokes)
    return made


def _give(drawing: DrawnPrediction, guess: object) -> None:
    """Set the drawing from a typed curve; if it cannot be read, the axes stay empty."""
    axes = drawing.axes
    typed: Any = guess if isinstance(guess, Mapping) else {axes.curves[0]: guess}
    n_values = len(axes.x)
    try:
        curves = {str(name): list(values) for name, values in typed.items()}
        drawing.give(curves)
        is_read = all(
            name in axes.curves and len(values) == n_values for name, values in curves.items()
        )
    except (TypeError, InvalidOptionError):
        is_read = False
    if not is_read or (typed and drawing.is_empty):
        drawing.note = _UNREAD


def _restore(drawing: DrawnPrediction, strokes: Sequence[Stroke]) -> None:
    # The axes of a lesson may have changed since: give() moves values to their edge, and points at
    # other x values are left out.
    for stroke in strokes:
        known = dict(zip(stroke.x, stroke.y, strict=True))
        drawing.give({stroke.name: [known.get(x) for x in drawing.axes.x]})


class _Judged(NamedTuple):
    sentence: str
    tone: _html.Tone
    is_right: bool


def _judged(term: Term) -> _Judged:
    """Return the verdict on one quantity of the drawing."""
    if term.said is None or term.was is None:
        is_same = term.said is term.was
        drawn = "not in your drawing" if term.said is None else f"you drew {term.write(term.said)}"
        was = "not in what came out" if term.was is None else f"it was {term.write(term.was)}"
        sentence = f"{term.what}: {drawn}, {was}."
        return _Judged(sentence, _html.RIGHT if is_same else _html.DIFFERENT, is_same)
    was = term.write(term.was)
    judged = distance("factor", term.said, term.was, 1.0)
    sentence = f"{term.what}: you drew {term.write(term.said)}, it was {was}{judged.words}"
    return _Judged(sentence, judged.tone, judged.is_right)


def _frame(drawn: Curves, was: Curves) -> "pd.DataFrame":
    import pandas as pd

    rows = [
        (name, kind, float(x), float(y))
        for kind, curves in (("drawn", drawn), ("came out", was))
        for name, (xs, ys) in curves.items()
        for x, y in zip(xs, ys, strict=True)
    ]
    return pd.DataFrame(rows, columns=["curve", "kind", "x", "y"])


def _sketch(record: "pd.DataFrame", ax: "Axes", *, axes: SketchAxes, came_from: str) -> "Axes":
    """Plot drawn curves broad and pale, and the true ones with markers over them."""
    from gpulab.figures import finish, looks, marks

    names = [str(name) for name in dict.fromkeys([*axes.curves, *record["curve"]])]
    known = dict(zip(names, looks(names), strict=False))
    # The drawn curves first: the true ones must not be hidden by them.
    for kind in ("drawn", "came out"):
        rows = record[record["kind"] == kind]
        for name, part in rows.groupby("curve", sort=False):
            look = known[str(name)]
            signs = marks(look, came_from) | {"linewidth": 1.5, "markersize": 5}
            if kind == "drawn":
                signs = {"color": look.colour, "linewidth": 5, "alpha": 0.4}
                # A single point has no line, and would not be seen.
                signs |= {"marker": look.marker if len(part) == 1 else "", "markersize": 10}
            ax.plot(
                part["x"], part["y"], label=kind if len(names) == 1 else f"{name}, {kind}", **signs
            )
    if axes.is_log:
        ax.set_xscale("log")
    ax.set_yscale("log")
    first, last = (round(math.log10(end)) for end in (axes.low, axes.high))
    middle = math.sqrt(axes.low * axes.high)
    exponent, unit = time_unit(middle) if axes.unit == "s" else (0, axes.unit)
    powers = range(first, last + 1)
    for axis, ticks in (
        (ax.xaxis, _ticks(_with_what_came_out(axes, record), axes.x)),
        (ax.yaxis, [(10.0**i, f"{10.0 ** (i - exponent):,.9g}") for i in powers]),
    ):
        axis.set_ticks([position for position, _ in ticks], [text for _, text in ticks])
        # A logarithmic axis labels minor ticks too if it has few decades, and overprints these.
        axis.set_ticks([], minor=True)
    ax.set_ylim(axes.low, axes.high)
    ax.grid(visible=True)
    return finish(ax, "Line chart", axes.x_label, f"{axes.y_label} ({unit})")


def _with_what_came_out(axes: SketchAxes, record: "pd.DataFrame") -> list[float]:
    """Return the x values of the axes and, beyond them, those of the true curves."""
    beyond = {float(x) for x in record["x"] if not axes.x[0] <= x <= axes.x[-1]}
    return sorted({*axes.x, *beyond})


def _ticks(places: Sequence[float], x: Sequence[float]) -> list[tuple[float, str]]:
    """Return those values of the x axis that are labelled, with their labels."""
    step = math.ceil(len(places) / _MOST_TICKS)
    return [(place, _x_text(place, x)) for place in places[::step]]


def _x_text(value: float, x: Sequence[float]) -> str:
    """Return a value of the x axis as text: all values as 2^n if they are large powers of two."""
    power = _power(value)
    if power is not None and max(x) >= _LEAST_POWER and None not in map(_power, x):
        return f"2^{power}"
    return f"{value:,.6g}"


def _power(value: float) -> int | None:
    """Return n if the value is 2 to the power of n."""
    power = math.log2(value) if value > 0 else 0.5
    return int(power) if power == int(power) else None
