"""Wrong and senseless answers to an exercise, derived from the right one."""

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from numbers import Real
from typing import Any

_LETTERS = "abcdefgh"


def attempts_at(right: object) -> Iterator[tuple[str, object]]:
    """Yield answers with their kinds: wrong ones, nonsense, and the right one."""
    yield from ((f"wrong: {name}", answer) for name, answer in _wrong(right))
    yield from ((f"nonsense: {name}", answer) for name, answer in _nonsense())
    yield "right", right


def _wrong(right: object) -> Iterator[tuple[str, object]]:
    if isinstance(right, Mapping):
        yield from _wrong_tables(right)
    elif isinstance(right, str) and len(right) == 1:
        yield from ((each, each) for each in _LETTERS[:4] if each != right.lower())
    elif isinstance(right, (str, set, frozenset, list, tuple)):
        yield from _wrong_letters(right)
    elif isinstance(right, Real):
        value = float(right)
        # A thousand times is the mistake of learners who return milliseconds.
        yield from ((f"x {by}", value * by) for by in (0.5, 2.0, 1000.0))
    elif callable(right):
        yield from _wrong_functions(right)


def _wrong_tables(right: Mapping[Any, Any]) -> Iterator[tuple[str, object]]:
    keys = [*right]
    for one, other in pairwise(keys):
        if right[one] != right[other]:
            yield f"{one} and {other} exchanged", {**right, one: right[other], other: right[one]}
    for key, value in right.items():
        others = {other: None for other in right.values() if other != value}
        for other in [*others][:2]:
            yield f"{key} is {other}", {**right, key: other}
        if isinstance(value, Real):
            yield f"{key} is doubled", {**right, key: 2 * float(value)}
    # A table that is not complete must be refused with a sentence, and not with a KeyError.
    yield "one row is missing", {key: right[key] for key in keys[:-1]}


def _wrong_letters(right: Any) -> Iterator[tuple[str, object]]:  # noqa: ANN401  # any collection
    letters = [*right]
    yield "one is missing", letters[1:]
    yield "all", [*_LETTERS]
    yield "none", []
    yield "one too many", [*letters, next(each for each in _LETTERS if each not in letters)]


def _wrong_functions(right: Callable[..., Any]) -> Iterator[tuple[str, object]]:
    def doubled(*args: Any, **options: Any) -> Any:  # noqa: ANN401  # whatever it returns
        return 2 * right(*args, **options)

    def nothing(*_args: Any, **_options: Any) -> None:  # noqa: ANN401
        return None

    def zero(*_args: Any, **_options: Any) -> float:  # noqa: ANN401
        return 0.0

    def raises(*_args: Any, **_options: Any) -> None:  # noqa: ANN401
        raise ZeroDivisionError("float division by zero")

    yield from {
        "returns nothing": nothing, "returns zero": zero, "raises": raises, "twice": doubled,
        "takes no argument": lambda: 1.0,
    }.items()  # fmt: skip


def _nonsense() -> Iterator[tuple[str, object]]:
    import torch

    yield from {
        "a word": "banana", "an empty text": "", "minus one": -1, "nan": float("nan"),
        "infinity": float("inf"), "an empty list": [], "an empty table": {}, "a type": dict,
        "a tensor": torch.ones(3, device="cuda"), "an exception": ValueError("x"),
        "a table of something else": {"x": "y", 1: 2}, "an object": object(),
    }.items()  # fmt: skip
