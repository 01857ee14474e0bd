"""Ask for a guess before a measurement, and compare it with the outcome in a later cell."""

from typing import TYPE_CHECKING

from gpulab.core.requirements import POSITIVE, TEXT, NameOf, items_of
from gpulab.exercises import _saved_guesses
from gpulab.exercises._distance import RULES
from gpulab.exercises._exercise import is_open
from gpulab.exercises._guess_question import GuessQuestion, is_name, question_of
from gpulab.exercises._predictions import TIMES, GuessReview, Prediction, bad_unit

if TYPE_CHECKING:
    from gpulab.device.measurement import Measurement


# The default rule for these units. All other units are judged by the factor.
_COUNTS_BY_UNIT = {"%": "points", "launches": "count", "calls": "count"}
_RULE = NameOf("rule of what counts", tuple(RULES))


def predict(  # noqa: PLR0913  # what is asked, what is said, and what counts
    question: str,
    guess: object = ...,
    unit: str = "µs",
    *,
    choices: tuple[str, ...] | None = None,
    counts: str | None = None,
    base: float = 1.0,
    name: str = "",
    confidence: str | None = None,
) -> Prediction:
    """Record a guess, so that you can compare it with the outcome.

    In Jupyter a prediction with a name is also saved in the file ``gpulab-progress.jsonl`` of the
    lessons' folder, which :func:`progress` reads. The last guess before the outcome counts.

    Parameters
    ----------
    question
        Name of a question of the lessons, such as ``"01.naive"``, or the text of your own
        question. A question of the lessons has its own unit, choices and rule.
    guess
        A number in ``unit``, a text such as ``"2 ms"``, ``"1/3"``, ``"1,000"`` or ``"8x"``, or one
        of ``choices``. ``...`` and None mean that you give none here: a guess that was saved under
        this name stays.
    unit
        s, ms, µs (us), ns; or the name of a count: launches, calls, steps, trials, answers, times,
        TFLOP/s, GB/s, %.
    choices
        Possible answers, if the guess is not a number.
    counts
        The rule that judges the guess. ``"factor"``: outcome over guess (within 1.5 times is
        close). ``"direction"``: first whether it is more or less than ``base``, then by how much.
        ``"points"``: difference in percentage points. ``"count"``: difference from the exact
        number. ``"percent"``: difference in percent (within 10 % is close). By default the unit
        decides: points for %, count for launches and calls, factor for all others.
    base
        For ``counts="direction"``: the value that is neither more nor less, in ``unit``.
    name
        For your own question: lesson and name, for example ``"01.mine"``. Without a name the
        guess is not saved.
    confidence
        How sure you are (optional): ``"guess"`` (right once in three, between two choices once in
        two), ``"likely"`` (twice in three) or ``"sure"`` (19 times in 20).

    Returns
    -------
    Prediction
        The prediction. If the guess cannot be read, no error is raised: ``guess`` is None and
        ``problem`` says why.

    Raises
    ------
    UnknownNameError
        If ``question`` looks like a name and no lesson asks it.

    Examples
    --------
    >>> from gpulab import exercises
    >>> guess = exercises.predict("How long does the matmul take?", 300, unit="µs")
    >>> print(guess)
    How long does the matmul take? You say 300 µs. Now see what comes out.
    """
    TEXT.check(question=question, unit=unit, name=name)
    POSITIVE.check(base=base)
    if counts is not None:
        _RULE.check(counts=counts)
    options = () if choices is None else items_of("choices", choices, TEXT)
    if is_name(question):
        return _asked(question_of(question), guess, confidence, is_lessons=True)
    own = GuessQuestion(name, question, unit, options, counts, base)
    return _asked(own, guess, confidence, is_lessons=False)


def compare(name: str, actual: "Measurement | float | str") -> GuessReview:
    """Compare the guess for a question of the lessons with the outcome.

    The last guess before the outcome was shown for the first time counts.

    Parameters
    ----------
    name
        Name of the question, such as ``"01.naive"``.
    actual
        The outcome. For a time pass a ``Measurement`` or seconds, for a count the number in its
        unit, for choices the right one.

    Returns
    -------
    GuessReview
        The comparison, which shows itself as the last line of a cell. Without a guess it only says
        what the outcome is.

    Raises
    ------
    UnknownNameError
        If no lesson asks a question of this name.

    Examples
    --------
    >>> from gpulab import exercises
    >>> guess = exercises.predict("01.naive", 0.3)
    >>> print(exercises.compare("01.naive", 330e-6))
    Close. You said 0.3 ms, it was 330 µs: a factor of 1.1. Well guessed.
    """
    TEXT.check(name=name)
    return _asked(question_of(name), ..., None, is_lessons=True).compare(actual)


def _asked(
    question: GuessQuestion, guess: object, confidence: object, *, is_lessons: bool
) -> Prediction:
    unit, choices = question.unit, question.choices
    rule = question.counts or _COUNTS_BY_UNIT.get(unit, "factor")
    # The base is given in `unit`, and compared with guesses in seconds.
    asked = Prediction(
        question.question,
        None,
        unit,
        choices,
        "" if choices else bad_unit(unit),
        rule,
        question.base * TIMES.get(unit, 1.0),
        question.name,
        is_lessons=is_lessons,
    )
    if is_open(guess) and question.name:
        # The cell runs again, or another cell compares: what was said before counts.
        saved = _saved_guesses.latest(question.name, unit, choices)
        asked.guess, asked.confidence, asked.note = saved
    if not (is_open(guess) and is_open(confidence)):
        asked.give(guess, confidence)
    return asked
