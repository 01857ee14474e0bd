"""Call every public function with wrong arguments, one at a time, and classify the outcomes.

Each call replaces one argument by one of a list of values; the others are valid. Whether a value
is wrong follows from the annotation, and for numbers and texts also from the parameter's name.
"""

import collections.abc
import contextlib
import copy
import inspect
import math
import re
import sys
import types
import typing
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from gpulab.core import interrupts
from gpulab.core.errors import GpulabError, shown
from tests.support.public_callables import callees
from tests.support.right_values import Spy, right_value, value_of

# The least value of a number, where it is not 1 (for a count) or above 0 (for a quantity).
_ANY = -math.inf
LEAST: dict[str, float] = {
    **dict.fromkeys(("n_warmup", "n_missing", "n_expected", "flagged", "n_before"), 0),
    **dict.fromkeys(("max_value_elements", "max_value_bytes", "device", "indent"), 0),
    **dict.fromkeys(("flops", "size_bytes", "intensity", "tolerance", "min_separation"), 0),
    **dict.fromkeys(
        ("median_s", "low_s", "high_s", "floor_error_s", "n_samples of Point", "launch_s"), 0
    ),
    **dict.fromkeys(("utilization", "clock_mhz", "max_sm_mhz", "power_w", "power_limit_w"), 0),
    **dict.fromkeys(("sm_mhz of Reading", "memory_mhz of Reading"), 0),
    **dict.fromkeys(("clock_before_mhz", "clock_after_mhz", "peak_bytes"), 0),
    **dict.fromkeys(("power_before_w", "power_after_w"), 0),
    **dict.fromkeys(("temperature_c", "temperature_before_c", "temperature_after_c"), _ANY),
    **dict.fromkeys(("samples", "samples_s", "amounts", "at_s", "seed"), _ANY),
    **dict.fromkeys(("floor_s of Measurement", "floor_s of Roof"), _ANY),
    "floor_s": 0,
}
SHARES = frozenset({"precision", "confidence", "tolerance of flag", "tolerance of summarize"})
# Numbers for which nan or inf means something: "not measured", "no limit".
NOT_FINITE = frozenset({"time_s", "per_s", "ratio"})
NO_LIMIT = frozenset({"max_time_s"})
# Numbers that set an amount of work, memory or text: a huge one must be refused.
HUGE = 1e20
ASKS_FOR_WORK = frozenset(
    {"n_samples", "n_warmup", "inner_loops", "count", "n_bins", "indent", "digits"}
)
# Parameters that take any text: titles, questions, texts that a record only shows, file names.
FREE_TEXT = re.compile(
    r"label|labels|title|name|question|unit|detail|alt|message|advice|code|stopped_by|missing"
    r"|\w+_version|taken_at|floor_method|regime|error|size_label|size_is|choices|reasons"
    r"|throttle_reasons|findings|text|body|out|path|device_name|what|before|after"
)
# Records may come from other versions, with methods, types and workloads that are unknown here.
# Only functions that measure look the names up.
FREE_IN_RECORDS = frozenset(
    {
        *("method of Measurement", "cache of Conditions"),
        *("workload of Task", "dtype of Task", "method of Task"),
        *("workload of Crossover", "dtype of Crossover"),
        *("source of crossover", "a of compare", "b of compare"),
    }
)
MAY_BE_EMPTY = frozenset({"method of Measurement", "cache of Conditions", "source of Ceilings"})
NEVER_EMPTY_TEXTS = frozenset(
    {
        *("alt", "out", "path"),
        *("name of Workload", "size_is of Workload", "name of Recording", "name of load"),
    }
)
NEVER_EMPTY_LISTS = frozenset(
    {
        *("samples", "samples_s", "inputs", "record"),
        *("readings of Trace", "sizes of crossover"),
    }
)
# Lists of names that may be a text, in which each letter is a name.
LETTERS = frozenset({"names of timeline", "names of host_and_gpu"})
# Words for parameters in messages that do not repeat the parameter's name.
SAID_AS = {
    "dtype": "type",
    "dtypes": "type",
    "kind": "flush",
    "exercise_id": "exercise",
    "claim_id": "claim",
}
# Wrong values that are accepted on purpose, and why.
DELIBERATE = {
    **dict.fromkeys(
        (f"workloads.Workload.{name}(device)" for name in ("check", "make", "setup")),
        "a number names a GPU there, as it does in PyTorch",
    ),
    "exercises.predict(confidence)": "learners are told in the note; nothing is raised or lost",
    "exercises.compare(actual)": "learners are told in the review; nothing is raised",
    "exercises.Prediction.compare(actual)": "learners are told in the review; nothing is raised",
}
# Arguments that a call needs in addition to those without a default.
ALSO: dict[str, dict[str, object]] = {"sweeps.Point": {"n_samples": 3}}

REFUSED, VAGUE, LATE = "refused clearly", "refused without name or value", "refused too late"
INSIDE, NONSENSE, MEANING = "raised from inside", "accepted nonsense", "accepted with meaning"
OUTCOMES = (REFUSED, VAGUE, LATE, INSIDE, NONSENSE, MEANING)


class Strange:
    """An object that is no valid argument anywhere."""

    def __repr__(self) -> str:
        return "<a strange object>"


class Raising:
    """An object that is not callable, and each of whose methods raises."""

    def _raise(self, *_: object) -> Any:  # noqa: ANN401  # it never returns
        raise ZeroDivisionError("a method of the user's object")

    __repr__ = __str__ = __eq__ = __bool__ = __len__ = __iter__ = __contains__ = _raise
    __float__ = __int__ = __index__ = __lt__ = __le__ = __gt__ = __ge__ = __fspath__ = _raise
    __getitem__ = __enter__ = __hash__ = _raise


@cache
def _of_libraries() -> tuple[object, ...]:
    """Return arrays, tables and tensors, which compare with a name item by item."""
    import numpy as np
    import pandas as pd
    import torch

    names = np.array(["add", "matmul"])
    return names, pd.DataFrame({"a": names}), torch.tensor(1.0)


@cache
def _closed() -> Executor:
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    return executor


def values() -> list[object]:
    """Return the values that each parameter gets in turn."""
    numbers = [3, 0, -1, 2.5, math.nan, math.inf, -math.inf, 10**400, 1j]
    containers = [[], [Strange()], (), {}, {"a": Strange()}]
    objects = [Strange(), Raising(), _closed(), *_of_libraries()]
    return [None, True, *numbers, "nosuch", "", b"bytes", *objects, *containers]


@dataclass(frozen=True)
class Call:
    """One public callable with one argument to be replaced."""

    callee: str
    parameter: str
    hint: Any
    value: object = field(compare=False)

    def __str__(self) -> str:
        text = shown(self.value)
        return f"{self.callee}({self.parameter}={text})"

    @property
    def place(self) -> str:
        """The parameter and the last part of the callable's name, as in the tables above."""
        return f"{self.parameter} of {self.callee.rpartition('.')[2]}"

    @property
    def is_of_record(self) -> bool:
        """Whether the callable is a class, whose objects only store their arguments."""
        return self.callee.rpartition(".")[2][0].isupper()


def calls(callee: str = "") -> Iterator[Call]:
    """Yield every call of one callable, or of all."""
    for name in [callee] if callee else callees():
        for parameter in callees()[name].signature.parameters.values():
            if parameter.kind not in {parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL}:
                for value in values():
                    yield Call(name, parameter.name, parameter.annotation, value)


def is_wrong(call: Call) -> bool:
    """Return whether the value is wrong for its parameter."""
    if f"{call.callee}({call.parameter})" in DELIBERATE:
        return False
    return not _allows(call, call.hint, call.value)


def _allows(call: Call, hint: Any, value: object) -> bool:  # noqa: ANN401, C901, PLR0911  # a table of kinds
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any or hint is object or isinstance(hint, typing.TypeVar):
        return True
    if isinstance(value, Raising):
        return False
    if origin in {typing.Union, types.UnionType}:
        return any(_allows(call, part, value) for part in parts)
    if hint in {int, float}:
        return _allows_number(call, hint, value)
    if hint is str:
        return isinstance(value, str) and _allows_text(call, value)
    if origin is collections.abc.Callable:
        return callable(value)
    kind = origin or hint
    if not isinstance(kind, type):
        return False
    if issubclass(kind, Path) or "PathLike" in kind.__name__:
        return isinstance(value, Path) or (isinstance(value, str) and value != "")
    if issubclass(kind, collections.abc.Mapping):
        of_parts = parts or (Any, Any)
        return isinstance(value, kind) and all(
            _allows(call, of_parts[1], each) for each in value.values()
        )
    if parts and issubclass(kind, collections.abc.Iterable) and "ndarray" not in kind.__name__:
        return _allows_items(call, hint, value)
    if getattr(kind, "_is_protocol", False):
        return hasattr(value, "points")
    return isinstance(value, kind)


def _allows_items(call: Call, hint: Any, value: Any) -> bool:  # noqa: ANN401  # an annotation
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if isinstance(value, str) and call.place in LETTERS:
        return True
    if isinstance(value, str | bytes | collections.abc.Mapping) or value is _of_libraries()[-1]:
        return False
    if not call.is_of_record and any(value is each for each in _of_libraries()):
        value = list(value)  # an array of names is a list of names
    # Records take only tuples; functions take lists, too.
    wanted = origin if call.is_of_record or origin not in {list, tuple} else list | tuple
    if not isinstance(value, wanted):
        return False
    if origin is tuple and parts[-1] is not Ellipsis and len(value) != len(parts):
        return False
    if len(value) == 0:
        return not {call.parameter, call.place} & NEVER_EMPTY_LISTS
    return all(_allows(call, parts[0], item) for item in value)


def _allows_number(call: Call, hint: type, value: object) -> bool:  # noqa: PLR0911  # a table
    if isinstance(value, bool) or not isinstance(value, int if hint is int else int | float):
        return False
    if sys.float_info.max < value < math.inf:  # a whole number that is too large for a float
        return False
    if {call.parameter, call.place} & SHARES:
        return 0 < value < 1
    if not math.isfinite(value):
        free = call.parameter in NOT_FINITE
        return free or (call.parameter in NO_LIMIT and value == math.inf)
    if value > HUGE and call.parameter in ASKS_FOR_WORK and not call.is_of_record:
        return False
    if call.parameter in NOT_FINITE:
        return True
    least = LEAST.get(call.place, LEAST.get(call.parameter))
    return value > 0 if least is None else value >= least


def _allows_text(call: Call, value: str) -> bool:
    if not value:
        if {call.parameter, call.place} & NEVER_EMPTY_TEXTS:
            return False
        return call.place in MAY_BE_EMPTY or FREE_TEXT.fullmatch(call.parameter) is not None
    if FREE_TEXT.fullmatch(call.parameter) or call.place in FREE_IN_RECORDS:
        return True
    return value != "nosuch"


def outcome(call: Call) -> tuple[str, str]:
    """Make the call, and return its outcome with the message."""
    callee = callees()[call.callee]
    arguments: dict[str, Any] = {
        name: right_value(call.callee, name, parameter.annotation)
        for name, parameter in callee.signature.parameters.items()
        if parameter.default is parameter.empty
        and parameter.kind not in {parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL}
    }
    arguments |= ALSO.get(call.callee, {})
    spies = [value for value in arguments.values() if isinstance(value, Spy)]
    arguments[call.parameter] = copy.copy(call.value)
    function = callee.function
    if callee.owner is not None and not inspect.ismethod(function):
        function = types.MethodType(function, value_of(callee.owner))
    try:
        _use(function(**arguments))
    except Exception as error:  # noqa: BLE001  # any error is an outcome
        return _of_error(call, error, sum(spy.n_calls for spy in spies))
    return (NONSENSE if is_wrong(call) else MEANING), ""


def _use(result: object) -> None:
    """Enter a context, or take the first item of a generator: their code runs only then."""
    if isinstance(result, (contextlib._GeneratorContextManager, interrupts._Context)):
        with result:
            pass
    elif isinstance(result, collections.abc.Generator):
        next(result, None)
        result.close()


def _of_error(call: Call, error: Exception, n_calls: int) -> tuple[str, str]:
    text = f"{type(error).__name__}: {error}"
    if not isinstance(error, GpulabError):
        return INSIDE, text
    if not is_wrong(call):  # the value could mean something, only not here
        return REFUSED, text
    if n_calls:
        return LATE, text
    name = SAID_AS.get(call.parameter, call.parameter.removesuffix("s"))
    named = name in text.lower() and _shows(text, call.value)
    return (REFUSED if named else VAGUE), text


def _shows(text: str, value: object) -> bool:
    """Return whether a message contains the value or its type."""
    parts = [shown(value)[:12], f"of type {type(value).__name__}"]
    if any(value is each for each in _of_libraries()):
        parts += ["'add'", "'a'"]  # their first items
    if isinstance(value, list | tuple | dict) and value:
        parts.append("<a strange object>")
    if isinstance(value, list | tuple | dict | str) and not value:
        parts.append("empty")
    return any(part in text for part in parts)
