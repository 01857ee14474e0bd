"""The arguments of an operator pass through a few modules, and through none of them twice."""

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import pytest
import torch

import gpulab

ROOT = Path(gpulab.__file__).parent / "virtual"
PARTS = {ROOT / "dispatch", ROOT / "operators"}
PAGE = Path(__file__).parents[3] / "docs" / "architecture.md"
# Records of a call: a module that gets one gets the arguments. Their own methods are no module.
RECORDS = {"CallArguments", "CallKey", "DispatchedCall", "MetaExecution", "OperatorCall"}
MOST = 12

Call = Callable[[], object]


@pytest.fixture
def matrix() -> Iterator[torch.Tensor]:
    """Return a matrix on a virtual GPU that has no plans yet for its shape."""
    with gpulab.virtual_gpu("H200", first_use=False):
        # No other test uses this size.
        yield torch.ones(61, 61, device="cuda")


def has_arguments(value: object) -> bool:
    """Return whether a value is, or contains, a tensor or the record of a call."""
    if isinstance(value, (list, tuple)):
        return any(has_arguments(item) for item in value)
    if isinstance(value, dict):
        return any(has_arguments(item) for item in value.values())
    return isinstance(value, torch.Tensor) or type(value).__name__ in RECORDS


def gets_arguments(frame: FrameType) -> bool:
    """Return whether a call passes arguments of the operator to a function."""
    code = frame.f_code
    lists = sum(
        bool(code.co_flags & flag) for flag in (inspect.CO_VARARGS, inspect.CO_VARKEYWORDS)
    )
    n_passed = code.co_argcount + code.co_kwonlyargcount + lists
    values = [frame.f_locals.get(name) for name in code.co_varnames[:n_passed]]
    is_method = code.co_varnames[:1] == ("self",)
    is_of_record = is_method and type(values[0]).__name__ in RECORDS - {"CallKey"}
    return any(map(has_arguments, values[is_of_record:]))


def modules_of(call: Call) -> list[str]:
    """Return which modules get the arguments during a call, in order; each time they do."""
    modules: list[str] = []

    def note(frame: FrameType, event: str, _argument: object) -> None:
        path = Path(frame.f_code.co_filename)
        if event != "call" or path.parent not in PARTS:
            return
        sys.setprofile(None)
        name = path.relative_to(ROOT).with_suffix("").as_posix()
        if gets_arguments(frame) and modules[-1:] != [name]:
            modules.append(name)
        sys.setprofile(note)

    sys.setprofile(note)
    try:
        call()
        torch.cuda.synchronize()
    finally:
        sys.setprofile(None)
    return modules


def documented() -> list[str]:
    """Return the modules in the table of the documentation."""
    rows = re.findall(r"^\| \d+ \| `([a-z_/]+)` \|", PAGE.read_text("utf-8"), re.MULTILINE)
    assert len(rows) > 1
    return rows


def test_a_matmul_takes_the_documented_way(matrix: torch.Tensor) -> None:
    """The modules are those of the table in the documentation, in its order."""
    steps = documented()
    assert modules_of(lambda: torch.mm(matrix, matrix)) == steps
    assert len(steps) <= MOST
    # A later call finds the plan.
    assert modules_of(lambda: torch.mm(matrix, matrix)) == [*steps[:2], *steps[-2:]]


@pytest.mark.parametrize(
    "work",
    [
        lambda x: x.add_(1),
        lambda x: x.topk(3),
        lambda x: torch.softmax(x, 1),
        torch.nn.functional.gelu,
    ],
)
def test_no_module_gets_the_arguments_twice(
    matrix: torch.Tensor, work: Callable[[torch.Tensor], object]
) -> None:
    """Usual calls of other families take a way as short, and come back to no module."""
    modules = modules_of(lambda: work(matrix))
    assert len(modules) == len(set(modules)) <= MOST
    assert modules[0] == documented()[0]
