"""The form of answers that are a mended program: it runs on hidden works whose truth is known."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache, cached_property
from math import isfinite
from typing import Any

from gpulab.exercises._exercise import Verdict, is_open
from gpulab.exercises.answers._forms import (
    Diagnosis,
    no_function,
    raised,
    read_number,
    unanswered,
)
from gpulab.exercises.answers._fresh_gpu import fresh_h200

MendedProgram = Callable[..., object]

_UNITS = ((1e3, "milliseconds", "ms"), (1e6, "microseconds", "µs"))


@dataclass(frozen=True, slots=True)
class HiddenWork:
    """Arguments for a mended program that the learner has not seen.

    Attributes
    ----------
    name
        What it is, for the learner, such as ``"a matmul of 4,096 x 4,096"``.
    make
        Makes the arguments. It is called on the virtual GPU, once for each program that is run.
    """

    name: str
    make: Callable[[], tuple[Any, ...]]


@dataclass(frozen=True)
class MendedTrial:
    """What a learner's program returned for each hidden work, and what it should have returned.

    Attributes
    ----------
    mended
        The judge, with its works.
    answer
        The learner's program.
    values
        What it returned, work by work.
    """

    mended: "Mended"
    answer: MendedProgram
    values: tuple[object, ...]

    @cached_property
    def expected(self) -> tuple[object, ...]:
        """What a right program returns, work by work."""
        return _known_values(self.mended, self.mended.right)

    @cached_property
    def n_right(self) -> int:
        """Number of works for which the program is right."""
        return sum(map(self.mended.agree, self.values, self.expected))

    @cached_property
    def hazards(self) -> frozenset[str]:
        """The kinds of races that the program has on the first work."""
        from gpulab.sanitizer import hazards

        with fresh_h200():
            arguments = self.mended.works[0].make()
            with hazards() as found:
                self.answer(*arguments)
        return frozenset(each.kind for each in found.found)

    def part(self, number: int) -> tuple[object, ...]:
        """Return one part of each value, for programs that return several."""
        return tuple(
            value[number] if isinstance(value, tuple) and number < len(value) else None
            for value in self.values
        )

    def part_is_right(self, number: int) -> bool:
        """Tell whether one part of the values is right for all works."""
        wanted = (value[number] for value in self.expected if isinstance(value, tuple))
        return all(map(self.mended.agree, self.part(number), wanted))

    def is_slower_in(self, number: int, factor: float) -> bool:
        """Tell whether one part is a time, and far too long for all works."""
        wanted = (value[number] for value in self.expected if isinstance(value, tuple))
        pairs = zip(map(read_number, self.part(number)), wanted, strict=True)
        return all(got is not None and got > factor * each for got, each in pairs)

    def is_in_unit(self, factor: float) -> bool:
        """Tell whether the values are right but for a unit of time that is so much smaller."""
        scaled = (_scaled(value, factor) for value in self.values)
        return all(map(self.mended.agree, scaled, self.expected))

    def is_like(self, program: MendedProgram) -> bool:
        """Tell whether another program returns the same for all works."""
        return all(map(self.mended.agree, self.values, _known_values(self.mended, program)))


Recognise = Callable[[MendedTrial], bool]


def like(program: MendedProgram) -> Recognise:
    """Recognise a mistake by a program that makes it: both return the same."""
    return lambda trial: trial.is_like(program)


@dataclass(frozen=True)
class Mended:
    """Judges a mended program on the virtual H200, by what it returns for hidden works.

    Each program runs on a GPU of its own, which nothing has warmed. A program is right if it
    returns what the right program returns: numbers within the tolerance, tensors exactly.

    Attributes
    ----------
    signature
        How the program is written, such as ``"mended(n)"``.
    returns
        What it must return, as the end of "and return ...".
    why
        What to say when it is right.
    works
        What it is tried on.
    right
        The program that is asked for.
    mistakes
        What recognises a mistake, and its diagnosis, in the order in which they are tried.
    show
        Writes what was returned, for a wrong value that no mistake explains.
    tolerance, floor
        How far a number may be off: as a share, and by how much more it may be.
    first_use
        Whether the first calls pay for context, libraries and kernels.
    errors
        Part of an exception's message, and the diagnosis of a program that raises it.
    around
        A context for each run, such as one that ends a program which would go on for ever.
    """

    signature: str
    returns: str
    why: str
    works: tuple[HiddenWork, ...]
    right: MendedProgram
    mistakes: tuple[tuple[Recognise, Diagnosis], ...]
    show: Callable[[Any], str]
    tolerance: float = 0.1
    floor: float = 0.0
    first_use: bool = False
    errors: tuple[tuple[str, Diagnosis], ...] = ()
    around: Callable[[], AbstractContextManager[object]] = nullcontext

    @property
    def how(self) -> str:
        """How to write the answer."""
        return f"Answer with the function: def {self.signature}, and return {self.returns}."

    def __call__(self, answer: object, readings: object = None) -> Verdict:  # noqa: ARG002  # Judge
        """Run the program on the hidden works, and recognise its mistake."""
        if not callable(answer):
            return no_function(answer, self.how)
        try:
            values = self.run(answer)
        except Exception as error:  # noqa: BLE001  # a learner's function may raise anything
            return self._explain_error(error).verdict()
        if all(map(is_open, values)):
            return unanswered(f"Your function returns nothing yet. {self.how}")
        trial = MendedTrial(self, answer, values)
        if trial.n_right == len(self.works):
            return Verdict(ok=True, message=self.why)
        return self._explain(trial).verdict()

    def run(self, program: MendedProgram) -> tuple[object, ...]:
        """Run a program on each work, each on a GPU of its own."""
        return tuple(self._run_once(program, work) for work in self.works)

    def _run_once(self, program: MendedProgram, work: HiddenWork) -> object:
        import torch

        with fresh_h200(first_use=self.first_use), self.around():
            value = program(*work.make())
            torch.cuda.synchronize()
            return _on_host(value)

    def agree(self, value: object, expected: object) -> bool:
        """Compare what two programs returned."""
        import torch

        if isinstance(expected, tuple | list):
            return (
                isinstance(value, tuple | list)
                and len(value) == len(expected)
                and all(map(self.agree, value, expected))
            )
        if isinstance(expected, torch.Tensor):
            return isinstance(value, torch.Tensor) and torch.equal(value, expected)
        number, wanted = read_number(value), read_number(expected)
        if number is None or wanted is None or isinstance(value, str) or not isfinite(number):
            return False
        off, allowed = number - wanted, self.tolerance * abs(wanted)
        return -allowed <= off <= allowed + self.floor

    def _explain(self, trial: MendedTrial) -> Diagnosis:
        for recognise, diagnosis in self.mistakes:
            if recognise(trial):
                return diagnosis
        return self._wrong_unit(trial) or self._unexplained(trial)

    def _wrong_unit(self, trial: MendedTrial) -> Diagnosis | None:
        for factor, code, unit in _UNITS:
            if trial.is_in_unit(factor):
                message = f"The numbers are {factor:,.0f} times too large: these are {unit}. "
                return Diagnosis(code, f"{message}Return seconds.")
        return None

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
        try:
            return self.show(value)
        except Exception:  # noqa: BLE001  # of what cannot be shown, the type
            return f"something of type {type(value).__name__}"

    def _explain_error(self, error: Exception) -> Diagnosis:
        known = (diagnosis for text, diagnosis in self.errors if text in str(error))
        return next(known, raised(error))


@cache
def _known_values(mended: Mended, program: MendedProgram) -> tuple[object, ...]:
    """Run a program of ours once: on the virtual GPU it returns the same each time."""
    return mended.run(program)


def _scaled(value: object, factor: float) -> object:
    """Divide the times in what a program returned: a number, or the first of several."""
    number = None if isinstance(value, tuple) else read_number(value)
    if number is not None:
        return number / factor
    if isinstance(value, tuple) and value:
        return (_scaled(value[0], factor), *value[1:])
    return value


def _on_host(value: object) -> object:
    """Bring tensors to the host, so that values outlive their GPU."""
    import torch

    if isinstance(value, torch.Tensor):
        return value.detach().cpu()
    if isinstance(value, tuple | list):
        return type(value)(map(_on_host, value))
    return value
