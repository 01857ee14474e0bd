"""Hostile answers get a verdict or one clear sentence, and the next cell works."""

import errno
import itertools
import signal
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, NoReturn

import numpy as np
import pytest
import torch

import gpulab
from benchmarks.judges.changes import ANSWERS
from gpulab import exercises
from gpulab.exercises._api import StoppedCheck, exercise, exercise_ids
from tests.support.answers import as_given

Function = Callable[..., Any]
LONGEST = 1500  # characters of a verdict
IS_DATA = {each: exercise(each).judge.fields is not None for each in exercise_ids()}


def _right_functions() -> dict[str, Function]:
    """Return one right function for each exercise that asks for one."""
    modules = (import_module(f"tests.exercises.{name}") for name in ANSWERS)
    answers = (answer for module in modules for answer in module.ANSWERS if not answer.code)
    found: dict[str, Function] = {}
    for answer in answers:
        found.setdefault(answer.exercise_id, answer.function)
    return found


RIGHT = _right_functions()
# One exercise for each class of judge, which tries every function in its own way.
ONE_EACH = list({type(exercise(each).judge): each for each in RIGHT}.values())


class Angry:
    """An object of which nearly everything raises an error."""

    def _raise(self, *_: object) -> NoReturn:
        raise RuntimeError("no" * 10**5)

    __str__ = __repr__ = __float__ = __len__ = __iter__ = __eq__ = __bool__ = _raise
    __hash__ = object.__hash__


class OwnEnd(BaseException):
    """An exception that no ``except Exception`` catches, and whose text raises another one."""

    def __str__(self) -> str:
        raise ValueError


def _itself() -> list[object]:
    value: list[object] = []
    value.append(value)
    return value


VALUES: dict[str, Callable[[], object]] = {
    "a million characters": lambda: "x" * 10**6,
    "a key of a million characters": lambda: {"x" * 10**6: "x" * 10**6},
    "a million numbers": lambda: [0.5] * 10**6,
    "an array of a million": lambda: np.zeros(10**6),
    "an iterator without end": itertools.count,
    "a table of iterators": lambda: dict.fromkeys("abcdefgh", itertools.count()),
    "a list in itself": _itself,
    "an angry object": Angry,
    "a table of angry objects": lambda: {Angry(): Angry(), "a": Angry()},
    "a number beyond floats": lambda: 10**400,
    "a complex number": lambda: 1j,
    "no number": lambda: float("nan"),
    "a class": lambda: int,
    "bytes": lambda: b"\xff" * 99,
    "a view of one number": lambda: torch.zeros(1).expand(2**36),
    "a tensor on no device": lambda: torch.empty(2**50, device="meta"),
}
ENDS: dict[str, Callable[[], BaseException]] = {
    "the end of the process": SystemExit,
    "the end of a generator": GeneratorExit,
    "its own end": OwnEnd,
    "too many calls": lambda: RecursionError("x" * 10**6),
    "no memory": MemoryError,
    "a full disk": lambda: OSError(errno.ENOSPC, "No space left on device"),
}


@pytest.fixture(autouse=True)
def _next_cell_works() -> Iterator[None]:
    """Use a virtual H200, and expect it as it was, whatever an answer has done."""
    kept = torch.cuda.synchronize, torch.cuda.Event.elapsed_time, torch.cuda.Event.query
    with gpulab.virtual_gpu("H200", first_use=False):
        yield
        assert torch.cuda.current_stream() == torch.cuda.default_stream()
        assert torch.ones(4, device="cuda").sum().item() == 4
    assert kept == (
        torch.cuda.synchronize,
        torch.cuda.Event.elapsed_time,
        torch.cuda.Event.query,
    )


def check(exercise_id: str, function: object) -> exercises.Verdict:
    """Return the verdict on an answer, which must be short."""
    verdict = exercises.check(exercise_id, as_given(exercise_id, function))
    assert len(str(verdict)) < LONGEST
    return verdict


@pytest.mark.parametrize("exercise_id", ONE_EACH)
def test_a_stub_is_not_answered(exercise_id: str) -> None:
    """A function that does nothing, as in the notebook, gets the words on how to answer."""
    # A flush returns nothing, and a filter that returns nothing is told so.
    if exercise_id not in {"06.choose-a-flush", "05.which-to-discard"}:
        blank = None if exercise_ids().index(exercise_id) % 2 else ...
        said = check(exercise_id, lambda *_: blank)
        assert (said.ok, said.message) == (None, exercise(exercise_id).judge.how)


@pytest.mark.parametrize("exercise_id", exercise_ids())
def test_any_value_gets_a_verdict(exercise_id: str) -> None:
    """A value of any type and size is no right answer, and no error either."""
    is_data = IS_DATA[exercise_id]
    # Functions take the values in turns, so that each value is tried often.
    names = list(VALUES) if is_data else list(VALUES)[exercise_ids().index(exercise_id) % 5 :: 5]
    for name in names:
        value = VALUES[name]()
        given = value if is_data else lambda *_, value=value: value
        assert not check(exercise_id, given), name


@pytest.mark.parametrize("exercise_id", ONE_EACH)
def test_no_answer_ends_the_session(exercise_id: str) -> None:
    """What a function raises, of any class, is named in a verdict."""
    for name, make in ENDS.items():

        def ending(*_: object, make: Callable[[], BaseException] = make) -> NoReturn:
            raise make()

        verdict = check(exercise_id, ending)
        assert verdict.ok is False, name
        assert verdict.diagnosis_code != "unreadable", name
        assert type(make()).__name__ in verdict.message, name


@pytest.mark.parametrize("exercise_id", ONE_EACH)
def test_ctrl_c_ends_an_answer_that_never_ends(exercise_id: str) -> None:
    """A stopped check is one sentence."""

    def endless(*_: object) -> NoReturn:
        for n in itertools.count():
            if n == 3:
                signal.raise_signal(signal.SIGINT)

    with pytest.raises(StoppedCheck, match="You stopped the check"):
        check(exercise_id, endless)


# All rungs of the benchmark have one judge.
ONE_RUNG = [each for each in RIGHT if not each.endswith(".benchmark") or each == "06.benchmark"]


@pytest.mark.slow
@pytest.mark.parametrize("exercise_id", ONE_RUNG)
def test_an_answer_may_leave_a_mess(exercise_id: str) -> None:
    """A right answer may leave another stream current, empty its lists and clear its tensors."""

    def left(*given: Any) -> object:  # noqa: ANN401  # of any exercise
        value = RIGHT[exercise_id](*given)
        for each in given:
            if isinstance(each, torch.Tensor):
                each.zero_()
            elif isinstance(each, list | dict):
                each.clear()
        if torch.cuda.is_available():
            torch.cuda.set_stream(torch.cuda.Stream())
        return value

    verdict = check(exercise_id, left)
    # gpulab.measure, which times a flush, refuses work that changes the stream.
    assert verdict or "StreamLeftOpenError" in verdict.message
