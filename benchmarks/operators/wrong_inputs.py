"""Try calls that CUDA refuses, and see whether the error comes at the line of the call.

The calls are the error inputs of PyTorch's own database, for operators and for modules, each
operator with inputs of each type, and the lines of ``wrong_calls``.
"""

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

import gpulab
from benchmarks.operators.database import full_name, operators
from benchmarks.operators.wrong_calls import WRITTEN, names_on, wrong_calls

if TYPE_CHECKING:
    from torch.testing._internal.common_modules import ModuleInfo, ModuleInput
    from torch.testing._internal.opinfo.core import OpInfo, SampleInput

KINDS = ("database", "modules", "written", "types")
TYPES = (
    *("float32", "float64", "float16", "bfloat16", "complex64"),
    *("int64", "int32", "int16", "uint8", "bool"),
)
_N_SAMPLES = 3
_MESSAGE_LENGTH = 160

Work = Callable[[], object]


@dataclass(frozen=True, slots=True)
class WrongCall:
    """A call, and the error that PyTorch's database expects of it.

    Attributes
    ----------
    key
        What it is, such as ``"database|gather|6"``.
    work
        Makes the call.
    error_type, pattern
        The class and the text of the expected error; None and empty if nothing is expected.
    """

    key: str
    work: Work
    error_type: Any = None
    pattern: str = ""


@dataclass(frozen=True, slots=True)
class Tried:
    """What a call did.

    Attributes
    ----------
    key
        The key of the call.
    outcome
        ``"raises"`` at its line, ``"late"`` at the next wait, ``"accepted"``, ``"unmade"`` if the
        inputs could not be made, or ``"died"`` if the process ended.
    error, message
        Class and text of the error.
    is_expected
        Whether class and text are those of the database; True if it expects nothing.
    """

    key: str
    outcome: str
    error: str = ""
    message: str = ""
    is_expected: bool = True


def calls(kind: str, names: Sequence[str] = ()) -> Iterator[WrongCall]:
    """Yield the calls of one kind, each with new inputs on the device ``"cuda"``.

    Parameters
    ----------
    kind
        One of ``KINDS``.
    names
        Operators, or lines of ``wrong_calls``; without any, all are tried.
    """
    if kind == "written":
        for line in wrong_calls():
            if names and line not in names:
                continue
            yield WrongCall(f"{WRITTEN}{line}", _line(line))
    elif kind == "modules":
        for module in _modules():
            yield from _of_module(module)
    else:
        of_operator = _of_operator if kind == "database" else _of_types
        for info in operators(names):
            yield from of_operator(info)


def _line(line: str) -> Work:
    code = compile(line, line, "eval")
    names = names_on("cuda")
    return lambda: eval(code, names)  # noqa: S307 # our own lines


def _modules() -> list["ModuleInfo"]:
    from torch.testing._internal.common_modules import module_db

    return [info for info in module_db if info.module_error_inputs_func is not None]


def _of_operator(info: "OpInfo") -> Iterator[WrongCall]:
    if info.error_inputs_func is None:
        return
    key = f"database|{full_name(info)}"
    for number, error_input in enumerate(_made(info.error_inputs("cuda"), key)):
        if isinstance(error_input, WrongCall):
            yield error_input
            continue
        work = _of_sample(info, error_input.sample_input)
        yield WrongCall(f"{key}|{number}", work, error_input.error_type, error_input.error_regex)


def _of_types(info: "OpInfo") -> Iterator[WrongCall]:
    for name in TYPES:
        key = f"types|{full_name(info)}|{name}"
        n_made = 0
        for sample in _made(info.sample_inputs("cuda", getattr(torch, name)), key):
            if isinstance(sample, WrongCall):
                yield sample
            elif not isinstance(sample.input, torch.Tensor) or sample.input.numel():
                yield WrongCall(f"{key}|{n_made}", _of_sample(info, sample))
                n_made += 1
            if n_made == _N_SAMPLES:
                break


def _of_module(info: "ModuleInfo") -> Iterator[WrongCall]:
    name = info.module_cls.__name__
    error_inputs = info.module_error_inputs_func(
        info, device="cuda", dtype=torch.float32, requires_grad=False, training=True
    )
    for number, each in enumerate(error_inputs):
        work = partial(_run_module, info, each.module_error_input)
        yield WrongCall(f"modules|{name}|{number}", work, each.error_type, each.error_regex)


def _run_module(info: "ModuleInfo", module_input: "ModuleInput") -> object:
    making, calling = module_input.constructor_input, module_input.forward_input
    layer = info.module_cls(*making.args, **making.kwargs).to("cuda")
    return layer(*calling.args, **calling.kwargs)


def _of_sample(info: "OpInfo", sample: "SampleInput") -> Work:
    def work() -> object:
        out = info(sample.input, *sample.args, **sample.kwargs)
        if out is NotImplemented:  # Python then raises the error of the operator
            raise TypeError("unsupported operand types")
        return out

    return work


def _made(samples: Iterable[Any], key: str) -> Iterator[Any]:
    """Yield samples, or a call that fails in their place if they cannot be made."""
    listed = iter(samples)
    while True:
        try:
            sample = next(listed)
        except StopIteration:
            return
        except Exception as error:  # noqa: BLE001 # an unsupported type fails in any way
            message = f"{type(error).__name__}: {error}"

            def work(message: str = message) -> object:
                raise _UnmadeError(message)

            yield WrongCall(f"{key}|unmade", work)
            return
        yield sample


class _UnmadeError(Exception):
    """The inputs of a call cannot be made."""


def try_call(call: WrongCall) -> Tried:
    """Make a call, wait for the device, and return where the error came."""
    try:
        call.work()
    except _UnmadeError as error:
        return Tried(call.key, "unmade", "", str(error)[:_MESSAGE_LENGTH])
    except Exception as error:  # noqa: BLE001 # any error is an outcome
        with suppress(Exception):  # an operator before the one that raised may fail later
            torch.cuda.synchronize()
        return _tried(call, "raises", error)
    try:
        torch.cuda.synchronize()
    except Exception as error:  # noqa: BLE001 # as above
        return _tried(call, "late", error)
    return Tried(call.key, "accepted", is_expected=call.error_type is None)


def _tried(call: WrongCall, outcome: str, error: Exception) -> Tried:
    message = str(error)
    expected = call.error_type is None or (
        isinstance(error, call.error_type) and re.search(call.pattern, message) is not None
    )
    first = " ".join(message.split())[:_MESSAGE_LENGTH]
    return Tried(call.key, outcome, type(error).__name__, first, expected)


def try_all(
    kinds: Sequence[str],
    names: Sequence[str] = (),
    *,
    skip: int = 0,
    on_outcome: Callable[[Tried], None] = lambda _tried: None,
    on_begin: Callable[[str], None] = lambda _key: None,
) -> list[Tried]:
    """Try the calls of some kinds on the GPU in use."""
    warnings.simplefilter("ignore")
    outcomes = []
    listed = (call for kind in kinds for call in calls(kind, names))
    torch.manual_seed(0)
    for number, call in enumerate(listed):
        if number < skip:
            continue
        on_begin(call.key)
        outcome = try_call(call)
        outcomes.append(outcome)
        on_outcome(outcome)
    return outcomes


def virtual(*, with_values: bool) -> AbstractContextManager[object]:
    """Return the context of a virtual GPU for the calls."""
    options: dict[str, Any] = {} if with_values else {"max_value_elements": 0}
    return gpulab.virtual_gpu("H200", first_use=False, **options)
