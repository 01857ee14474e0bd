"""Judge a repaired program: run it on hidden works whose right results are known."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache, cached_property
from math import isfinite, nan
from typing import TYPE_CHECKING, Any

from gpulab.core.foreign_text import shortened
from gpulab.exercises._exercise import is_open
from gpulab.exercises.answers._forms import read_number
from gpulab.exercises.answers._fresh_gpu import fresh_gpu
from gpulab.exercises.answers._judging import (
    LONGEST,
    UNANSWERED,
    Diagnosis,
    FunctionJudge,
    KnownErrors,
    raised,
    wrong_units,
)
from gpulab.tracing.trials import Rule, Trial, called, first_fitting, pair_in, tried

if TYPE_CHECKING:
    from gpulab.happens_before import Hazard
    from gpulab.happens_before.activity import ActivityRecord

MendedProgram = Callable[..., object]

_LUCK = Diagnosis(
    "pause",
    "The events were completed by luck: nothing waits for them, and a pause may be too short. Let "
    "the host wait: end.synchronize().",
)


# Results are all that was seen: another program may return the same by another mistake.
_LOOKS_LIKE = "Your results look like those of this mistake. "


# Hidden, because a program could be fitted to the one work that the notebook shows.
@dataclass(frozen=True, slots=True)
class HiddenWork:
    """Arguments for a repaired program that the learner has not seen, with a name for the learner.

    ``make`` returns the arguments; it is called on the virtual GPU, once for each program.
    ``around`` is a context for each run, for example one in which no pause helps.
    """

    name: str
    make: Callable[[], tuple[Any, ...]]
    around: Callable[[], AbstractContextManager[object]] = nullcontext


# No slots: cached_property stores its results in the instance's dictionary.
@dataclass(frozen=True)
class MendedTrial:
    """The results of a learner's program for the hidden works, compared with the right ones.

    The trials have what it returned and did for each work; tensors are on the host.
    """

    mended: "Mended"
    trials: tuple[Trial, ...]

    @cached_property
    def values(self) -> tuple[object, ...]:
        """The result for each work."""
        return tuple(
            _in_form(trial.value, wanted)
            for trial, wanted in zip(self.trials, self.expected, strict=True)
        )

    @cached_property
    def expected(self) -> tuple[object, ...]:
        """The right result for each work."""
        if self.mended.depends_on_course:
            return tuple(map(self.mended.right, self.trials))
        return _known_values(self.mended, self.mended.right)

    @property
    def ratios(self) -> tuple[float, ...]:
        """Each result over the right one; nan if it is no number."""
        pairs = zip(self.values, self.expected, strict=True)
        return tuple(
            value / wanted if isinstance(value, float) and isinstance(wanted, float) else nan
            for value, wanted in pairs
        )

    @cached_property
    def n_right(self) -> int:
        """Number of works for which the program is right."""
        return sum(map(self.mended.agree, self.values, self.expected))

    @property
    def is_right(self) -> bool:
        """Whether it returns the right result for every work."""
        return self.n_right == len(self.trials)

    @property
    def may_start_busy(self) -> bool:
        """Whether its stopwatch starts although nothing has waited for the GPU before."""
        return not (self.uses_events or all(map(_waits_first, self.trials)))

    @property
    def uses_events(self) -> bool:
        """Whether it asked for the time between two events, for every work."""
        return all(trial.asked["Event.elapsed_time"] for trial in self.trials)

    @property
    def races(self) -> "tuple[Hazard, ...]":
        """The data races that the program has on the first work."""
        return self.trials[0].hazards or ()

    def has_race(self, *kinds: str) -> bool:
        """Return whether one of the races is of one of these kinds."""
        return any(race.kind in kinds for race in self.races)

    @property
    def records(self) -> "tuple[tuple[ActivityRecord, ...], ...]":
        """The kernels and copies that it launched for each work."""
        return tuple(trial.records.records if trial.records else () for trial in self.trials)

    def part(self, number: int) -> tuple[object, ...]:
        """Return one part of each result, for programs that return tuples."""
        return tuple(
            value[number] if isinstance(value, tuple) and number < len(value) else None
            for value in self.values
        )

    def part_is_right(self, number: int) -> bool:
        """Return whether one part of the results is right for all works."""
        wanted = (value[number] for value in self.expected if isinstance(value, tuple))
        return all(map(self.mended.agree, self.part(number), wanted))

    def is_slower_in(self, number: int, factor: float) -> bool:
        """Return whether one part is a time that is ``factor`` times too long for all works."""
        wanted = (value[number] for value in self.expected if isinstance(value, tuple))
        pairs = zip(map(read_number, self.part(number)), wanted, strict=True)
        return all(got is not None and got > factor * each for got, each in pairs)

    def is_in_unit(self, factor: float) -> bool:
        """Return whether the times are right in a unit that is ``factor`` times smaller."""
        scaled = (_scaled(value, factor) for value in self.values)
        return all(map(self.mended.agree, scaled, self.expected))

    def is_like(self, program: MendedProgram) -> bool:
        """Return whether another program returns the same results for all works."""
        return all(map(self.mended.agree, self.values, _known_values(self.mended, program)))


Recognise = Callable[[MendedTrial], bool]


def like(program: MendedProgram) -> Recognise:
    """Return a function that recognises a mistake by a program that makes it.

    The mistake is recognised if the learner's program returns the same results.
    """
    return lambda trial: trial.is_like(program)


def reads(low: float, high: float) -> Recognise:
    """Return a function that recognises times between two multiples of the right ones."""
    return lambda trial: all(low <= ratio < high for ratio in trial.ratios)


# A hidden mistake, after the races that an exercise has its own words for.
ANY_RACE: Rule[MendedTrial, Diagnosis] = (
    lambda trial: bool(trial.races),
    lambda trial: Diagnosis("race", f"gpulab.hazards() finds a race in it: {trial.races[0]}"),
)


def copies_less(direction: str, *sizes_bytes: int) -> Recognise:
    """Return a function that recognises a program that copies less than it must.

    Parameters
    ----------
    direction
        ``"copy in"`` to the GPU, or ``"copy out"`` to the host.
    *sizes_bytes
        How many bytes it must copy for each work.
    """

    def recognise(trial: MendedTrial) -> bool:
        pairs = zip(trial.records, sizes_bytes, strict=True)
        return any(_copied_bytes(records, direction) < size for records, size in pairs)

    return recognise


def _copied_bytes(records: "Iterable[ActivityRecord]", direction: str) -> int:
    return sum(copy.size_bytes or 0 for copy in records if copy.name == direction)


@dataclass(frozen=True)
class Mended(FunctionJudge):
    """A judge for a repaired program, by its results for hidden works on the virtual H200.

    The program runs on a new virtual GPU for each work. It is right if it returns what the right
    program returns: numbers within the tolerance, tensors exactly.

    Attributes
    ----------
    signature
        The program's name and arguments, for example ``"mended(n)"``.
    returns
        What it must return; this completes the sentence "and return ...".
    why
        The message for a right answer.
    works
        The hidden works.
    right
        A right program.
    mistakes
        Functions that recognise a mistake by wrong results, each with its diagnosis, in the order
        in which they are tried.
    show
        Returns a result as text, for a wrong result that no mistake explains.
    tolerance, floor
        How far a number may be off: a share in both directions, and an amount by which it may be
        too large.
    first_use
        Whether the first calls take extra time for context, libraries and kernels.
    errors
        Exceptions that are expected, with the diagnosis of each; see :func:`raised`.
    depends_on_course
        Whether the right result depends on what the learner's program did. ``right`` then takes
        its trial instead of the arguments.
    hidden_mistakes
        Functions that recognise a mistake which right results may hide, such as a data race or a
        copy that is missing. They are tried before the results are looked at.
    """

    signature: str
    returns: str
    why: str
    works: tuple[HiddenWork, ...]
    right: MendedProgram
    mistakes: tuple[Rule[MendedTrial, Diagnosis], ...]
    show: Callable[[Any], str]
    tolerance: float = 0.05
    floor: float = 0.0
    first_use: bool = False
    errors: KnownErrors = ()
    depends_on_course: bool = False
    hidden_mistakes: tuple[Rule[MendedTrial, Diagnosis], ...] = ()

    @property
    def how(self) -> str:
        """How to write the answer."""
        return f"Answer with the function: def {self.signature}, and return {self.returns}."

    def judge_function(self, function: Callable[..., object]) -> Diagnosis | str:
        """Run the program on the hidden works, and recognise a mistake by the results."""
        trials = []
        for work in self.works:
            trial = self._run_once(function, work)
            if trial.error is not None:
                return raised(trial.error, self.errors)
            trials.append(trial)
        mended = MendedTrial(self, tuple(trials))
        if all(map(is_open, mended.values)):
            return UNANSWERED
        pairs = zip(self.works, mended.values, strict=True)
        without = next((work.name for work, value in pairs if is_open(value)), None)
        if without is not None:
            message = f"For {without} your function returned nothing; end it with return."
            return Diagnosis("nothing-returned", message)
        hidden = first_fitting(self.hidden_mistakes, mended)
        is_lucky = any(trial.reads_events_by_luck for trial in trials)
        if hidden is not None or mended.is_right:
            return hidden or (_LUCK if is_lucky else self.why)
        # Units after the mistakes, so that an exercise can have its own words for milliseconds.
        known = first_fitting(self.mistakes, mended)
        if known is not None:
            return Diagnosis(known.code, f"{_LOOKS_LIKE}{known.message}")
        units = wrong_units(MendedTrial.is_in_unit)
        unexplained = _LUCK if is_lucky else self._unexplained(mended)
        return first_fitting(units, mended) or unexplained

    def right_values(self, program: MendedProgram) -> tuple[object, ...]:
        """Return the results of one of our own programs for all works."""
        trials = [self._run_once(program, work) for work in self.works]
        errors = [trial.error for trial in trials if trial.error is not None]
        if errors:
            raise errors[0]
        return tuple(trial.value for trial in trials)

    def _run_once(self, program: MendedProgram, work: HiddenWork) -> Trial:
        """Run a program on a new virtual GPU."""
        with fresh_gpu(first_use=self.first_use), work.around():
            # One work is enough for races: the detector goes by order and not by time.
            return tried(program, make=work.make, races=work is self.works[0])

    def agree(self, value: object, expected: object) -> bool:
        """Return whether a result agrees with the expected one."""
        import torch

        if isinstance(expected, tuple | list):
            parts = _as_tuple(value)
            return (
                isinstance(parts, tuple)
                and len(parts) == len(expected)
                and all(map(self.agree, parts, expected))
            )
        if isinstance(expected, torch.Tensor):
            # Exactly, because the numbers in a tensor show which data a program has read.
            tensor = called(lambda: torch.as_tensor(value, dtype=expected.dtype)).value
            return isinstance(tensor, torch.Tensor) and torch.equal(tensor, expected)
        number, wanted = read_number(value), read_number(expected)
        # read_number accepts "3 ms", but a program must return a number.
        if number is None or wanted is None or isinstance(value, str) or not isfinite(number):
            return False
        # The floor is allowed upwards only: events add to a time and take nothing from it.
        off, allowed = number - wanted, self.tolerance * abs(wanted)
        return -allowed <= off <= allowed + self.floor

    def _unexplained(self, trial: MendedTrial) -> Diagnosis:
        triples = zip(self.works, trial.values, trial.expected, strict=True)
        name, value, wanted = next(
            (work.name, value, wanted)
            for work, value, wanted in triples
            if not self.agree(value, wanted)
        )
        message = (
            f"For {name} your function returned {self._shown(value)}. The virtual GPU knows the "
            f"truth: {self.show(wanted)}. It is right for {trial.n_right} of "
            f"{len(self.works)} works."
        )
        return Diagnosis("unexplained", message)

    def _shown(self, value: object) -> str:
        shown = called(self.show, value)
        if shown.error is not None:  # a result of another type may not fit `show`
            return f"something of type {type(value).__name__}"
        return shortened(str(shown.value), LONGEST)


@cache
def _known_values(mended: Mended, program: MendedProgram) -> tuple[object, ...]:
    """Return the results of one of our programs; they never change, so it runs only once."""
    return mended.right_values(program)


def _in_form(value: object, wanted: object) -> object:
    """Return a value as a tuple if a tuple is wanted, and a dict of two parts as a pair."""
    if not isinstance(wanted, tuple):
        return value
    pair = pair_in(value) if len(wanted) == 2 else None  # noqa: PLR2004  # a pair
    return _as_tuple(value) if pair is None else pair


def _as_tuple(value: object) -> object:
    """Return a list, a NumPy array or a tensor of several parts as a tuple."""
    if isinstance(value, list) or getattr(value, "ndim", 0) > 0:
        return tuple(value) if isinstance(value, Iterable) else value
    return value


def _waits_first(trial: Trial) -> bool:
    """Return whether the host waited or asked before it launched the last work."""
    if trial.records is None or trial.asked["Event.query"] or trial.asked["Stream.query"]:
        return True
    launches_ns = [call.start_ns for call in trial.records.calls if call.kind == "launch"]
    waits_ns = [call.end_ns for call in trial.waits or ()]
    return bool(launches_ns and waits_ns) and min(waits_ns) <= max(launches_ns)


def _scaled(value: object, factor: float) -> object:
    """Return a result with its time divided by a factor; in a tuple the first part is the time."""
    number = None if isinstance(value, tuple) else read_number(value)
    if number is not None:
        return number / factor
    if isinstance(value, tuple) and value:
        return (_scaled(value[0], factor), *value[1:])
    return value
