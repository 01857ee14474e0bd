"""The replacement for PyTorch's symbolic shapes gives the same answers as the original."""

import importlib
import itertools
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch

import gpulab
from gpulab.virtual._stand_ins import StandIn
from gpulab.virtual.dispatch import _plain_shapes as plain

NAME = "torch.fx.experimental.symbolic_shapes"
Operation = Callable[[torch.Tensor], torch.Tensor]
SIZES = (0, 1, 7, -1)
ARGUMENTS: dict[str, list[tuple[Any, ...]]] = {
    "sym_and": list(itertools.product((True, False), repeat=3)),
    "sym_or": list(itertools.product((True, False), repeat=3)),
    "sym_eq": [
        *itertools.product(SIZES, repeat=2),
        ((2, 3), [2, 3]),
        (torch.Size((2, 3)), (2, 3)),
        ((2, 3), (2, 4)),
        ((2,), (2, 3)),
    ],
    "is_nested_int": [(size,) for size in SIZES],
    "has_guarding_hint": [(size,) for size in SIZES],
    "has_hint": [(size,) for size in SIZES],
    "size_hint": [(size,) for size in SIZES],
    "guarding_hint_or_throw": [(size,) for size in (*SIZES, True, False)],
}


@pytest.mark.filterwarnings("ignore:guard_size_oblivious will be removed:FutureWarning")
@pytest.mark.parametrize("name", sorted(plain._KNOWN[NAME]))
def test_numbers_get_pytorchs_answers(name: str) -> None:
    """Each replaced function returns what PyTorch's returns for sizes and for comparisons."""
    real = getattr(importlib.import_module(NAME), name, None)
    if real is None:
        pytest.skip(f"this version of torch has no {name}")
    for arguments in ARGUMENTS.get(name, [(True,), (False,)]):
        assert plain._KNOWN[NAME][name](*arguments) == real(*arguments)


def test_the_stand_ins_are_there_only_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand-in modules are in ``sys.modules`` only inside the block, also after an error."""
    for name in plain._KNOWN:
        monkeypatch.delitem(sys.modules, name, raising=False)

    def use() -> None:
        from torch.fx.experimental.symbolic_shapes import guard_or_false

        assert guard_or_false is plain._KNOWN[NAME]["guard_or_false"]
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), plain.without_symbols():
        use()
    assert not set(plain._KNOWN) & set(sys.modules)


def test_a_module_that_is_already_imported_is_used() -> None:
    """A real module that was imported before the block stays in ``sys.modules`` inside it."""
    real = importlib.import_module(NAME)
    with plain.without_symbols():
        assert sys.modules[NAME] is real


def test_an_unknown_name_comes_from_the_real_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """An unknown name loads the real module, which then replaces the stand-in."""
    real = importlib.import_module("colorsys")
    monkeypatch.delitem(sys.modules, "colorsys")
    stand_in = sys.modules["colorsys"] = StandIn("colorsys", {})
    assert stand_in.hls_to_rgb.__code__ == real.hls_to_rgb.__code__
    assert sys.modules["colorsys"] is not stand_in
    with pytest.raises(AttributeError):
        _ = stand_in.__wrapped__


@pytest.mark.parametrize(
    "operation",
    [
        lambda x: x * 2,
        lambda x: torch.copysign(x, torch.ones((), device=x.device)),
        lambda x: torch.div(x, torch.full((), 2.0, device=x.device), rounding_mode="floor"),
        lambda x: x[:, :0].mul(torch.ones(1, device=x.device)),
        lambda x: torch.cat([x, x]),
        lambda x: x.sum(0),
    ],
)
def test_results_have_the_strides_of_pytorch(operation: Operation) -> None:
    """An operation on a transposed tensor returns the shape and strides it has on the host."""
    on_host = operation(torch.ones(10, 5).t())
    with gpulab.virtual_gpu("H200"):
        on_device = operation(torch.ones(10, 5, device="cuda").t())
        assert (on_device.shape, on_device.stride()) == (on_host.shape, on_host.stride())
