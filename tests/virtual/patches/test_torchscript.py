"""TorchScript on the virtual GPU, and what PyTorch compiles by itself: forward derivatives."""

import subprocess
import sys
from collections.abc import Callable

import pytest
import torch
from torch import nn

import gpulab

# PyTorch itself compiles with it, and warns that it is old.
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")

FIRST_DERIVATIVE = """
import torch, gpulab
with gpulab.virtual_gpu("H200"):
    x = torch.ones(2, device="cuda")
    print(torch.func.jvp(torch.exp, (x * 0,), (torch.ones_like(x),))[1].tolist())
print(torch.func.jvp(torch.sin, (torch.zeros(2),), (torch.ones(2),))[1].tolist())
"""


def makes_numbers(x: torch.Tensor) -> torch.Tensor:
    """Make a tensor of a number."""
    return torch.relu(x) + torch.tensor(1.0)


def makes_tensors(x: torch.Tensor) -> torch.Tensor:
    """Make tensors on the device of another."""
    return torch.zeros(2, 2, device=x.device) + torch.arange(2, device=x.device) + x


def turned(x: torch.Tensor) -> torch.Tensor:
    """Compute something of a softmax and a matmul."""
    return x.softmax(0) @ x.sin()


def attends(x: torch.Tensor) -> torch.Tensor:
    """Attend to itself."""
    return nn.functional.scaled_dot_product_attention(x, x, x)


@pytest.mark.slow
def test_the_first_forward_derivative_of_a_process_may_be_on_the_virtual_gpu() -> None:
    """PyTorch compiles its decompositions then, and knows its own functions by identity."""
    # A fresh process: this one may have compiled them already.
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FIRST_DERIVATIVE],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout == "[1.0, 1.0]\n[1.0, 1.0]\n", ran.stderr


@pytest.mark.parametrize("function", [makes_numbers, makes_tensors, attends])
def test_functions_are_compiled_as_on_a_gpu(
    function: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    """What stands in for an operator is that operator, and after the context nothing is left."""
    x = torch.rand(2, 2)
    with gpulab.virtual_gpu("H200"):
        inside = torch.jit.script(function)(x.cuda())
        assert inside.is_cuda
        torch.testing.assert_close(inside.cpu(), function(x))
    torch.testing.assert_close(torch.jit.script(function)(x), function(x))


def test_the_table_of_operators_is_given_back() -> None:
    """It would name functions that are gone."""
    table = torch.jit._builtins._get_builtin_table()
    before = dict(table)
    with gpulab.virtual_gpu("H200"):
        assert len(table) > len(before)
    assert table == before


@pytest.mark.slow
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * 2 * x,
        lambda x: nn.functional.mse_loss(x, x * 2),
        lambda x: nn.functional.layer_norm(x @ x, (4,)),
        lambda x: x.softmax(0).std(),
        lambda x: (x + 1).mul_(x).cpu() * 3,
    ],
)
def test_forward_derivatives_are_those_of_the_cpu(
    function: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    """Also where a number on the host takes part, which autograd sends to the GPU."""
    x, along = torch.rand(4, 4), torch.rand(4, 4)
    expected = torch.func.jvp(function, (x,), (along,))
    with gpulab.virtual_gpu("H200"):
        computed = torch.func.jvp(function, (x.cuda(),), (along.cuda(),))
        for mine, theirs in zip(computed, expected, strict=True):
            torch.testing.assert_close(mine.cpu(), theirs)


@pytest.mark.slow
def test_dual_tensors_carry_their_tangents() -> None:
    """As on the CPU."""
    x, along = torch.rand(4, 4), torch.rand(4, 4)
    expected = torch.func.jvp(turned, (x,), (along,))[1]
    with gpulab.virtual_gpu("H200"), torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x.cuda(), along.cuda())
        tangent = torch.autograd.forward_ad.unpack_dual(turned(dual)).tangent
        assert tangent is not None
        torch.testing.assert_close(tangent.cpu(), expected)
