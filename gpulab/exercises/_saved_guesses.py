"""Save guesses and outcomes so that the last guess before the outcome counts."""

from dataclasses import replace

from gpulab.exercises import _html
from gpulab.exercises._entries import Guess, Reveal, now
from gpulab.exercises._history import KeptPrediction, lesson_of, predictions_of
from gpulab.exercises._journal import journal
from gpulab.exercises._lesson_index import MET

_TOO_LATE = "The outcome was shown before this guess, so it is kept and does not count."
_CHANGED = "The outcome was shown before, so this change is kept, and your first guess counts."
LATE = (_TOO_LATE, _CHANGED)


def saved_as(name: str) -> KeptPrediction:
    """Return what this learner has saved of a prediction; without a guess if it is nothing."""
    return predictions_of(journal().entries).get(name, KeptPrediction(name))


def keep(guess: Guess) -> str:
    """Save a guess and return a remark for the learner, which is empty in most cases.

    A guess without a name is not saved, nor one that is equal to the last. Nothing is ever removed
    from the file: a guess that comes after the outcome is saved too, and marked as late.
    """
    if not guess.name:
        return ""
    MET.add(lesson_of(guess.name))
    saved = saved_as(guess.name)
    is_late = saved.reveal is not None
    # Running the same cell again repeats the last guess, which needs no second line.
    if saved.latest is None or saved.latest.content != guess.content:
        journal().add(replace(guess, is_late=is_late))
    return _remark(saved, guess) if is_late else ""


def latest(name: str, unit: str, choices: tuple[str, ...]) -> tuple[float | str | None, str, str]:
    """Return the last guess under this name, its confidence, and the remark on it.

    The guess is None if there is none, or if it does not fit the question.
    """
    saved = saved_as(name)
    guess = saved.latest
    value = _fitting(guess, unit, choices)
    if guess is None or value is None:
        return None, "", ""
    return value, guess.confidence, _remark(saved, guess) if guess.is_late else ""


def before_a_change(name: str, unit: str, choices: tuple[str, ...]) -> float | str | None:
    """Return the guess that counts, if another one came after the outcome; otherwise None."""
    saved = saved_as(name)
    first, last = (_fitting(each, unit, choices) for each in (saved.guess, saved.latest))
    return None if first == last else first


def _fitting(guess: Guess | None, unit: str, choices: tuple[str, ...]) -> float | str | None:
    """Return the number or the choice of a guess, or None if it does not fit the question."""
    if guess is None or guess.unit != unit:
        return None
    value = guess.choice if choices else guess.number
    return None if choices and value not in choices else value


def _remark(saved: KeptPrediction, guess: Guess) -> str:
    """Return the remark on a guess that came after the outcome."""
    if saved.guess is None:
        return _TOO_LATE
    return "" if saved.guess.content == guess.content else _CHANGED


def reveal(
    name: str, outcome: str, review: _html.ComparedGuess, *, counts: str, size: float | None = None
) -> None:
    """Save an outcome when it is shown for the first time, with the verdict on the guess.

    Without a guess there is no verdict. The outcome is saved all the same: it was shown, so a
    guess after it is late.
    """
    if not name:
        return
    MET.add(lesson_of(name))
    if saved_as(name).reveal is None:
        message, word = ("", "") if review.is_right is None else (review.message, review.tone.word)
        journal().add(Reveal(name, now(), outcome, message, counts, word, size, review.is_right))
