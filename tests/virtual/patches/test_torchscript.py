"""TorchScript and forward derivatives, which PyTorch compiles with it, work on the GPU."""

import subprocess
from collections.abc import Callable

import pytest
import torch
from torch import nn

import gpulab

# PyTorch's own use of TorchScript gives this warning, too.
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")

FIRST_DERIVATIVE = """
import torch, gpulab
with gpulab.virtual_gpu("H200"):
    x = torch.ones(2, device="cuda")
    print(torch.func.jvp(torch.exp, (x * 0,), (torch.ones_like(x),))[1].tolist())
print(torch.func.jvp(torch.sin, (torch.zeros(2),), (torch.ones(2),))[1].tolist())
"""


def makes_numbers(x: torch.Tensor) -> torch.Tensor:
    """Add a tensor that is made of a Python number."""
    return torch.relu(x) + torch.tensor(1.0)


def makes_tensors(x: torch.Tensor) -> torch.Tensor:
    """Add tensors that are made on the device of ``x``."""
    return torch.zeros(2, 2, device=x.device) + torch.arange(2, device=x.device) + x


def turned(x: torch.Tensor) -> torch.Tensor:
    """Compute the matmul of a softmax and a sine."""
    return x.softmax(0) @ x.sin()


def attends(x: torch.Tensor) -> torch.Tensor:
    """Compute self-attention."""
    return nn.functional.scaled_dot_product_attention(x, x, x)


@pytest.mark.slow
def test_the_first_forward_derivative_of_a_process_may_be_on_the_virtual_gpu(
    warm_python: list[str],
) -> None:
    """The first ``jvp`` of a process works on the virtual GPU, and later ones on the host."""
    # The first one makes PyTorch compile its decompositions, which it does once in a process.
    ran = subprocess.run(
        [*warm_python, "-c", FIRST_DERIVATIVE],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout == "[1.0, 1.0]\n[1.0, 1.0]\n", ran.stderr


@pytest.mark.parametrize("function", [makes_numbers, makes_tensors, attends])
def test_functions_are_compiled_as_on_a_gpu(
    function: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    """A scripted function runs on the virtual GPU inside the context, and on the host after it."""
    x = torch.rand(2, 2)
    with gpulab.virtual_gpu("H200"):
        inside = torch.jit.script(function)(x.cuda())
        assert inside.is_cuda
        torch.testing.assert_close(inside.cpu(), function(x))
    torch.testing.assert_close(torch.jit.script(function)(x), function(x))


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
    """``torch.func.jvp`` on the GPU gives the CPU's values, also with numbers of the host."""
    x, along = torch.rand(4, 4), torch.rand(4, 4)
    expected = torch.func.jvp(function, (x,), (along,))
    with gpulab.virtual_gpu("H200"):
        computed = torch.func.jvp(function, (x.cuda(),), (along.cuda(),))
        for mine, theirs in zip(computed, expected, strict=True):
            torch.testing.assert_close(mine.cpu(), theirs)


@pytest.mark.slow
def test_dual_tensors_carry_their_tangents() -> None:
    """A dual tensor on the GPU has the CPU's tangent."""
    x, along = torch.rand(4, 4), torch.rand(4, 4)
    expected = torch.func.jvp(turned, (x,), (along,))[1]
    with gpulab.virtual_gpu("H200"), torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x.cuda(), along.cuda())
        tangent = torch.autograd.forward_ad.unpack_dual(turned(dual)).tangent
        assert tangent is not None
        torch.testing.assert_close(tangent.cpu(), expected)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, _scalar: x * 2,
        lambda x, _scalar: 1 / (x + 1),
        lambda x, _scalar: x.mul_(3),
        lambda x, scalar: scalar * 2 + x * scalar,
    ],
)
def test_numbers_take_part_in_forward_derivatives(
    function: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
) -> None:
    """A number, and a tensor of one element, without a tangent of its own, as on the CPU."""
    tangents = []
    for device in ("cpu", "cuda"):
        x, along = torch.tensor([1.0, 2.0]), torch.tensor([1.0, -1.0])
        with gpulab.virtual_gpu("H200"), torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(x.to(device), along.to(device))
            result = function(dual, torch.tensor(1.5, device=device))
            tangent = torch.autograd.forward_ad.unpack_dual(result).tangent
            assert tangent is not None
            assert tangent.device.type == device
            tangents.append(tangent.tolist())
    assert tangents[0] == tangents[1]
