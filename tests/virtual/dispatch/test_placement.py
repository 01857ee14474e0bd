"""Which operators take a host tensor without dimensions beside tensors of the device.

An H100 with torch 2.11 accepted and refused the same calls.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional

import gpulab

Call = Callable[[torch.Tensor, torch.Tensor], Any]
# Calls on 4 x 4 numbers of the device, or on whole ones, and a number of the host.
ACCEPTED: dict[str, Call] = {
    "add": lambda x, z: z + x,
    "in place": lambda x, z: x.mul_(z),
    "where": lambda x, z: torch.where(x > 0, z, z),
    "power": lambda x, z: z**x,
    "copysign": torch.copysign,
    "bitwise": lambda x, z: x.int() & z.int(),
    "floor division": lambda x, z: x // z,
    "weight of lerp": lambda x, z: torch.lerp(x, x, z),
    "second factor": lambda x, z: torch.addcmul(x, x, z),
    "value of a mask": lambda x, z: x.masked_fill(x > 0, z),
    "value at an index": lambda x, z: x.index_fill(0, x[0].long(), z),
    "fill": lambda x, z: x.fill_(z),
    "assignment": lambda x, z: x.__setitem__(0, z),
    "index": lambda x, z: x[z.long()],
    "assignment at an index": lambda x, z: x.index_put_((z.long(),), x[0].clone()),
    "list": lambda x, z: torch._foreach_mul([x, x], z),
    "distance": torch.dist,
}
REFUSED: dict[str, tuple[str, Call]] = {
    "clamp": ("got min is on cpu", lambda x, z: x.clamp(min=z)),
    "of the host": ("got min is on cuda:0, different from", lambda x, z: z.clamp(min=x)),
    "greatest divisor": ("got other is on cpu", lambda x, z: torch.gcd(x.long(), z.long())),
    "next number": ("got other is on cpu", torch.nextafter),
    "addcdiv": ("", lambda x, z: torch.addcdiv(x, x, z)),
    "end of lerp": ("", lambda x, z: torch.lerp(x, z, 0.5)),
    "mask": ("", lambda x, z: x.masked_fill(z > 0, 1.0)),
    "index of a fill": ("", lambda x, z: x.index_fill(0, z.long(), 1.0)),
    "cat": ("got tensors is on cpu", lambda x, z: torch.cat([x[0], z])),
    "stack": ("got tensors is on cpu", lambda x, z: torch.stack([x[0, 0], z])),
    "gather": ("got index is on cpu", lambda x, z: x[0, 0].gather(0, z.long())),
    "scatter": ("got src is on cpu", lambda x, z: x[0, 0].scatter(0, x[0, 0].long(), z)),
    "index_select": ("got index is on cpu", lambda x, z: x.index_select(0, z.long())),
    "take": ("got index is on cpu", lambda x, z: x.take(z.long())),
    "matmul": ("got mat1 is on cuda:0", lambda x, z: torch.addmm(z, x, x)),
    "bias": ("got mat1 is on cuda:0", lambda x, z: functional.linear(x, x, z)),
    "loss": ("got target is on cpu", lambda x, z: functional.cross_entropy(x[0], z.long())),
    "embedding": ("", lambda x, z: functional.embedding(z.long(), x)),
    "equal": ("got other is on cpu", lambda x, z: torch.equal(x[0, 0], z)),
    "out": ("found at least two devices", lambda x, z: torch.add(x[0, 0], 1, out=z)),
    "searchsorted": ("got self is on cpu", lambda x, z: torch.searchsorted(x[0], z)),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_host_numbers_that_cuda_takes(name: str) -> None:
    """CUDA's kernel gets the number as an argument of its launch."""
    with gpulab.virtual_gpu("H200", first_use=False):
        ACCEPTED[name](torch.ones(4, 4, device="cuda"), torch.tensor(1.0))
        torch.cuda.synchronize()


@pytest.mark.parametrize("name", REFUSED)
def test_host_numbers_that_cuda_refuses(name: str) -> None:
    """The error comes at the line of the call, in PyTorch's words."""
    words, call = REFUSED[name]
    with gpulab.virtual_gpu("H200", first_use=False):
        x = torch.ones(4, 4, device="cuda")
        with pytest.raises(RuntimeError, match=f"the same device, but .*{words}"):
            call(x, torch.tensor(1.0))
