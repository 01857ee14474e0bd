"""Hostile answers get a verdict or one clear sentence, and the next cell works."""

import errno
import itertools
import re
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
from gpulab.exercises.answers import Mended
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


class Breaking:
    """A right answer that fails in some of its calls: it raises an error or returns nothing."""

    def __init__(self, function: Function, fails: Callable[[int], bool], *, raises: bool) -> None:
        self._function, self._fails, self._raises = function, fails, raises
        self.n_calls = 0

    def __call__(self, *given: Any) -> object:  # noqa: ANN401  # of any exercise
        """Call the right answer, or fail."""
        self.n_calls += 1
        if not self._fails(self.n_calls):
            return self._function(*given)
        if self._raises:
            raise RuntimeError("this call fails")
        return None


_NEW_GPU = "It gets two works that nobody has seen, each on a new GPU; a third adds nothing new."
# How often a judge calls a right answer, where that is less than three times, and why that is
# enough: no judge can see what an answer does in a call that it does not make.
TWICE = {
    **{
        each: _NEW_GPU
        for each in RIGHT
        if isinstance(judge := exercise(each).judge, Mended) and len(judge.works) == 2
    },
    "05.which-to-discard": "It selects from numbers: ten samples with clocks, and four without.",
    "07.long-enough": "The question names two works, of one launch and of sixteen.",
    "07.graph-it": "It makes a graph of a function, and one of another beside it.",
    "08.double-buffer": "Forty steps for values and time, and eight again to find races.",
}
# Here the third call is the question of the next lesson, and the praise says what it did.
NEXT_LESSON = "01.benchmark"
UNCLEAR = re.compile(r"Traceback|\binf\b|\bnan\b|list index", re.IGNORECASE)


@pytest.mark.parametrize("raises", [True, False], ids=["raises", "returns-nothing"])
@pytest.mark.parametrize("exercise_id", RIGHT)
def test_an_answer_must_also_work_again(exercise_id: str, *, raises: bool) -> None:
    """An answer that fails from its second or third call on is wrong, and no stub."""
    for first in (2, 3):
        answer = Breaking(RIGHT[exercise_id], lambda n, first=first: n >= first, raises=raises)
        verdict = check(exercise_id, answer)
        assert not UNCLEAR.search(verdict.message)
        if first == 3 and exercise_id in TWICE:
            # Or else the reason in the table is out of date.
            assert (verdict.ok, answer.n_calls) == (True, 2)
        elif first == 3 and exercise_id == NEXT_LESSON:
            said = "this call fails" if raises else "not for the next work"
            assert said in verdict.message
        else:
            assert verdict.ok is False, verdict.message


# This lesson's judge tries all works of the lessons before it, too: 14 calls, and one more.
@pytest.mark.parametrize("call", range(2, 16))
def test_no_call_of_a_benchmark_may_raise(call: int) -> None:
    """An error in any one call is named, also where the judge tries a work a second time."""
    answer = Breaking(RIGHT["06.benchmark"], lambda n: n == call, raises=True)
    verdict = check("06.benchmark", answer)
    assert not UNCLEAR.search(verdict.message)
    assert "this call fails" in verdict.message
    # The last one is that of the next lesson.
    assert verdict.ok is (call == 15)


@pytest.mark.parametrize("raises", [True, False], ids=["raises", "returns-nothing"])
@pytest.mark.parametrize("first", [2, 3])
def test_a_graph_must_replay_again(first: int, *, raises: bool) -> None:
    """A replaying function that fails from its second or third replay on is wrong."""

    def graphed(*given: Any) -> Breaking:  # noqa: ANN401  # the function and its input
        replay = RIGHT["07.graph-it"](*given)
        return Breaking(replay, lambda n: n >= first, raises=raises)

    assert check("07.graph-it", graphed).ok is False


@pytest.mark.parametrize(
    ("spoil", "code", "said"),
    [
        (lambda _replay: 1, "no-function", "it must return a function"),
        (lambda _replay: None, "nothing-returned", "called again, for another function"),
        (lambda replay: lambda new: replay(new) + 1, "other-values", "The first graph is right"),
    ],
)
def test_a_second_graph_must_be_right_too(
    spoil: Callable[[Function], object], code: str, said: str
) -> None:
    """A graph of another function is judged like the first one, and the message says which."""
    n_calls = itertools.count(1)

    def graphed(*given: Any) -> object:  # noqa: ANN401  # the function and its input
        replay = RIGHT["07.graph-it"](*given)
        return replay if next(n_calls) == 1 else spoil(replay)

    verdict = check("07.graph-it", graphed)
    assert (verdict.ok, verdict.diagnosis_code) == (False, code)
    assert said in verdict.message


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
