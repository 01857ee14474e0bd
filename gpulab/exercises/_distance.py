"""Judge how far a guess is from the outcome, by one of five rules such as factor or points."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from gpulab.core.units import format_number
from gpulab.exercises import _html

_CLOSE = _html.Tone("#009E73", "✓", "Close.")
_NEAR = _html.Tone("#0072B2", "~", "Near.")
_OFF = _html.Tone("#D55E00", "✗", "Off.")
_FAR_OFF = _html.Tone("#D55E00", "✗", "Far off.")
_DIRECTION = _html.Tone("#D55E00", "✗", "Wrong direction.")

_SAME = 1.05  # up to this factor the message says "the same within 5 %"
# Up to the first number a guess is close, up to the second near, up to the third off. Each rule
# has limits of its own: for an unknown time a factor of 2 is near, but half instead of nearly all
# is another answer.
_FACTORS = (1.5, 3.0, 10.0)
_POINTS = (5.0, 15.0, 30.0)
_PERCENT = (10.0, 30.0, 200.0)
_NO_EFFECT = 0.02  # a value within 2 % of the base is neither more nor less


@dataclass(frozen=True, slots=True)
class Distance:
    """The distance of a guess from the outcome, with a verdict.

    ``words`` end the sentence that begins with "You said X, it was Y". ``size`` is in the unit of
    the rule (times, percentage points, a count or percent), and None if there is no number, for
    example if the direction is wrong.
    """

    tone: _html.Tone
    words: str
    size: float | None = None

    @property
    def is_right(self) -> bool:
        """Whether the guess counts as right: it was close or near."""
        return self.tone in {_CLOSE, _NEAR}


def distance(counts: str, guess: float, value: float, base: float) -> Distance:
    """Return the distance between a guess and the outcome, in one unit, by a rule of ``RULES``.

    For ``"direction"``, ``base`` is the value that is neither more nor less.
    """
    # Before the rule, because zero for zero is exact and has no ratio.
    if value == guess:
        return Distance(_CLOSE, ": exactly.", _EXACT[counts])
    return RULES[counts](guess, value, base)


def _factor(guess: float, value: float, _base: float) -> Distance:
    if guess <= 0 or value <= 0:
        return Distance(_FAR_OFF, ". What did you leave out?")
    factor = _fold(value / guess)
    if factor <= _SAME:
        return Distance(_CLOSE, ": the same within 5 %.", factor)
    relation = f": a factor of {format_number(factor)}."
    tone = _tone(factor, _FACTORS)
    advice = {
        _CLOSE: "Well guessed.",
        _NEAR: "Within a factor of 3: about the right size.",
        _OFF: "What makes the difference?",
        _FAR_OFF: "It works in another way than you thought.",
    }
    return Distance(tone, f"{relation} {advice[tone]}", factor)


def _direction(guess: float, value: float, base: float) -> Distance:
    guessed_side, side = (_side(number, base) for number in (guess, value))
    if guessed_side != side:
        return Distance(_DIRECTION, f": {_SIDES[side]} {base:g}, {_NOT[guessed_side]}.")
    if side == 0:
        return Distance(_CLOSE, f": both are {_SIDES[0]} {base:g}.", 1.0)
    right = f". The direction is right: {_SIDES[side]} {base:g}."
    if guess <= 0 or value <= 0:
        return Distance(_NEAR, right)
    # The difference from the base is compared, not the value: 1.1 and 1.4 times are close as
    # factors, but the second is four times as large an effect. Half of the base is as large an
    # effect as twice the base.
    effects = [_fold(number / base) - 1 for number in (guess, value)]
    factor = _fold(effects[1] / effects[0])
    return Distance(_tone(factor, _FACTORS), right, factor)


def _points(guess: float, value: float, _base: float) -> Distance:
    gap = abs(value - guess)
    noun = "percentage point" if f"{gap:.3g}" == "1" else "percentage points"
    more = "more" if value > guess else "less"
    return Distance(_tone(gap, _POINTS), f": {format_number(gap)} {noun} {more}.", gap)


def _count(guess: float, value: float, _base: float) -> Distance:
    gap = abs(value - guess)
    more = "more" if value > guess else "fewer"
    if gap <= 1:  # one off is near for any count: in percent, 3 for 2 would be off
        words = f": one {more}." if gap == 1 else f": {format_number(gap)} {more}."
        return Distance(_NEAR, words, gap)
    # An outcome of zero has no percentage, so it counts as one.
    share = 100 * gap / max(abs(value), 1.0)
    # Never close: `distance` has already handled the exact count.
    tone = _NEAR if share <= _PERCENT[0] else _tone(share, _PERCENT)
    return Distance(tone, f": {format_number(gap)} {more}.", gap)


def _percent(guess: float, value: float, _base: float) -> Distance:
    if guess <= 0 or value <= 0:
        return Distance(_FAR_OFF, ". What did you leave out?")
    # The verdict takes the larger over the smaller, so that half and twice are equally far off;
    # the message gives the percentage of the guess, as people say it.
    share = 100 * (_fold(value / guess) - 1)
    more = "more" if value > guess else "less"
    of_guess = 100 * abs(value / guess - 1)
    return Distance(_tone(share, _PERCENT), f": {format_number(of_guess)} % {more}.", share)


RULES: dict[str, Callable[[float, float, float], Distance]] = {
    "factor": _factor,
    "direction": _direction,
    "points": _points,
    "count": _count,
    "percent": _percent,
}
# The size of the distance of an exact guess: a factor of 1, a difference of 0.
_EXACT = {"factor": 1.0, "direction": 1.0, "points": 0.0, "count": 0.0, "percent": 0.0}
_NOT = {1: "not more", -1: "not less", 0: "not the same"}
_SIDES = {1: "more than", -1: "less than", 0: "about"}


def _side(number: float, base: float) -> int:
    if abs(number - base) <= _NO_EFFECT * abs(base):
        return 0
    return 1 if number > base else -1


def _fold(ratio: float) -> float:
    return max(ratio, 1 / ratio) if ratio else math.inf  # a quotient may be too small for a float


def _tone(size: float, limits: tuple[float, float, float]) -> _html.Tone:
    close, near, off = limits
    if size <= close:
        return _CLOSE
    if size <= near:
        return _NEAR
    return _OFF if size <= off else _FAR_OFF
