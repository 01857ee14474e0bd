"""Requirements on arguments: each accepts valid values, and names what is wrong with others."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from gpulab.core.errors import InvalidOptionError, NotCallableError, UnknownNameError, shown
from gpulab.core.requirements import (
    COUNT,
    COUNT_OR_ZERO,
    DIGITS,
    DURATION,
    FLAG,
    NAME,
    NOT_NEGATIVE,
    NUMBER,
    PATH,
    POSITIVE,
    SECONDS,
    SHARE,
    WHOLE,
    NameOf,
    Requirement,
    check_fields,
    each,
    instance_of,
    items_of,
    mapping_to,
    numbers_of,
)
from gpulab.device.work import check_callable, refuse_endless


@pytest.mark.parametrize(
    ("requirement", "right", "wrong"),
    [
        (WHOLE, [-1, 0, np.int64(3)], [True, 1.0, "1", None]),
        (COUNT, [1, np.int32(2), 10**30], [0, -1, True, 1.0, 10**400]),
        (COUNT_OR_ZERO, [0, 1], [-1, False]),
        (DIGITS, [1, 17], [0, 18, 3.0]),
        (NUMBER, [-1.5, 0, np.float32(1)], [math.nan, math.inf, True, 1j, "1", 10**400]),
        (POSITIVE, [1e-9, 3], [0, -1.0, math.inf]),
        (NOT_NEGATIVE, [0.0, 3], [-1e-9, math.nan]),
        (SHARE, [0.5], [0, 1, math.nan, True]),
        (SECONDS, [1e-9, math.inf], [0.0, math.nan, True, 10**400]),
        (DURATION, [1e-9, 3], [0.0, math.inf, math.nan]),
        (FLAG, [True, False], [0, 1, None, "yes"]),
        (NAME, ["x"], ["", " ", None]),
        (PATH, ["x"], ["", None, b"x", 3]),
        (COUNT.or_none, [None, 1], [0]),
        (NameOf("cache state", ("hot", "cold")), ["hot"], ["warm", None, [], {}]),
        (each(COUNT, "counts"), [[1], (), (1, 2)], ["1", [0], 3, {1: 2}]),
        (mapping_to(POSITIVE, "peaks"), [{}, {"a": 1.0}], [{"a": 0}, {1: 1.0}, [1.0]]),
        (instance_of(dict, "a dict"), [{}], [[]]),
    ],
)
def test_what_is_taken(requirement: Requirement, right: list[Any], wrong: list[Any]) -> None:
    """Each requirement accepts the valid values at its boundaries and refuses the others."""
    for value in right:
        requirement.check(x=value)
    for value in wrong:
        with pytest.raises((InvalidOptionError, UnknownNameError)):
            requirement.check(x=value)


def test_messages_name_argument_value_and_what_it_may_be() -> None:
    """The message names the first wrong argument, its value and what it must be."""
    with pytest.raises(InvalidOptionError) as refused:
        COUNT.or_none.check(n_samples=3, n_warmup=0)
    assert str(refused.value) == "n_warmup=0; it must be a whole number, at least 1, or None"


def test_values_are_shown_briefly() -> None:
    """A huge value is shortened, and an object whose repr fails is described by its type."""

    class Hidden:
        def __repr__(self) -> str:
            raise ZeroDivisionError

    assert len(shown("x" * 10_000)) < 100
    assert shown(10**5000) == "a int" or len(shown(10**5000)) < 100
    assert "Hidden" in shown(Hidden())
    assert shown([1, 2]) == "[1, 2]"


def test_items_are_read_once_and_checked() -> None:
    """An iterator comes back as a tuple; a wrong item is named by its place."""
    assert items_of("sizes", iter([1, 2]), COUNT) == (1, 2)
    with pytest.raises(InvalidOptionError) as item:
        items_of("sizes", [1, 0], COUNT)
    assert str(item.value) == "sizes[1]=0; it must be a whole number, at least 1"
    with pytest.raises(InvalidOptionError) as text:
        items_of("sizes", "12", NAME)
    assert str(text.value) == ("sizes='12'; it must be a list, each item a text that is not empty")
    with pytest.raises(UnknownNameError, match="unknown cache state 'warm'"):
        items_of("caches", ["warm"], NameOf("cache state", ("hot", "cold")))


def test_numbers_become_an_array() -> None:
    """A list of numbers becomes an array; anything else is refused with the argument's name."""
    assert numbers_of("samples", [1, 2.5]).tolist() == [1.0, 2.5]
    for wrong in ("12", [1, "a"], [math.nan], 3, [[1.0]], None):
        with pytest.raises(InvalidOptionError, match=r"^samples=.*; it must be a list of numbers"):
            numbers_of("samples", wrong)


@dataclass(frozen=True, slots=True)
class Record:
    """A record with a field of each kind that is checked."""

    n: int = 1
    label: str = ""
    time_s: float | None = None
    parts: tuple[float, ...] = ()
    inner: "Record | None" = None
    counts: tuple[int, int] = (1, 2)

    def __post_init__(self) -> None:
        check_fields(self)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n": True}, "n=True; it must be a whole number"),
        ({"label": 3}, "label=3; it must be a text"),
        ({"time_s": math.nan}, "time_s=nan; it must be a finite number, or None"),
        ({"parts": [1.0]}, "parts=[1.0]; it must be a tuple, each item a finite number"),
        ({"parts": (math.inf,)}, "parts=(inf,); it must be a tuple, each item a finite number"),
    ],
)
def test_fields_are_checked_by_their_annotations(change: dict[str, Any], message: str) -> None:
    """A float field takes an integer, and None is valid where the annotation says so."""
    record = Record(time_s=1, parts=(1, 2.5))
    with pytest.raises(InvalidOptionError) as refused:
        replace(record, **change)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("work", "message"),
    [
        ("a @ b", "work is the text 'a @ b'; pass a function"),
        (3, "work is of type int and cannot be called; pass a function"),
        (
            lambda: (yield),
            (
                "work is a coroutine or a generator function, and calling it runs nothing; pass a "
                "function"
            ),
        ),
    ],
)
def test_what_is_no_work_is_refused(work: object, message: str) -> None:
    """Anything that cannot be called as work is refused, with what to pass instead."""
    with pytest.raises(NotCallableError) as refused:
        check_callable("work", work, "pass a function")
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("n_calls", "call_s", "message"),
    [
        (
            10**9,
            None,
            (
                "n_samples=1000000000 calls the work 1000000000 times, which even at 5 µs each "
                "takes 1.4 hours"
            ),
        ),
        (
            10**6,
            1.5,
            (
                "n_samples=1000000 calls the work 1000000 times, which at 1.50 s each, as now, "
                "takes 416.7 hours"
            ),
        ),
        (10**400, None, "longer than anybody waits"),
    ],
)
def test_what_would_take_too_long_says_how_long(
    n_calls: int, call_s: float | None, message: str
) -> None:
    """Work for up to an hour is accepted; more is refused before it begins, with the time."""
    with pytest.raises(InvalidOptionError) as refused:
        refuse_endless(n_calls, call_s, n_samples=n_calls, inner_loops=1)
    assert message in str(refused.value)
    refuse_endless(3600, 1.0, n_samples=3600)
    with pytest.raises(InvalidOptionError):
        refuse_endless(3601, 1.0, n_samples=3601)
