"""Probes of tensors turned into text, lists, Python numbers and NumPy arrays."""

from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from tests.probes.table import Gives, Probe, Raises, normal, same


def _ones(*sizes: int) -> torch.Tensor:
    return torch.ones(sizes, device="cuda")


def _text(make: Callable[[], object]) -> Callable[[], str]:
    return lambda: str(make())


TEXTS: dict[str, tuple[Callable[[], object], str]] = {
    "vector": (lambda: _ones(2), "tensor([1., 1.], device='cuda:0')"),
    "number": (lambda: torch.tensor(2.5, device="cuda"), "tensor(2.5000, device='cuda:0')"),
    "integers": (lambda: torch.arange(3, device="cuda"), "tensor([0, 1, 2], device='cuda:0')"),
    "other type": (
        lambda: torch.ones(2, device="cuda", dtype=torch.int32),
        "tensor([1, 1], device='cuda:0', dtype=torch.int32)",
    ),
    "half": (lambda: _ones(2).half(), "tensor([1., 1.], device='cuda:0', dtype=torch.float16)"),
    "gradient": (
        lambda: _ones(1).requires_grad_(),
        "tensor([1.], device='cuda:0', requires_grad=True)",
    ),
    "computed": (
        lambda: _ones(1).requires_grad_() * 2,
        "tensor([2.], device='cuda:0', grad_fn=<MulBackward0>)",
    ),
    "empty": (lambda: torch.ones(0, 3, device="cuda"), "tensor([], device='cuda:0', size=(0, 3))"),
    "parameter": (
        lambda: nn.Parameter(_ones(1)),
        "Parameter containing:\ntensor([1.], device='cuda:0', requires_grad=True)",
    ),
    "matrix": (
        lambda: torch.eye(2, device="cuda"),
        "tensor([[1., 0.],\n        [0., 1.]], device='cuda:0')",
    ),
    "device": (lambda: _ones(1).device, "cuda:0"),
    "formatted number": (lambda: f"{torch.tensor(2.5, device='cuda')}", "2.5"),
    "formatted with digits": (lambda: f"{torch.tensor(2.5, device='cuda'):.2f}", "2.50"),
    "formatted vector": (lambda: f"{_ones(1)}", "tensor([1.], device='cuda:0')"),
}

NO_ARRAY = (
    r"can't convert cuda:0 device type tensor to numpy\. "
    r"Use Tensor\.cpu\(\) to copy the tensor to host memory first\."
)

FAMILIES: dict[str, list[Probe]] = {
    "text": [Gives(name, _text(make), expected) for name, (make, expected) in TEXTS.items()],
    "values": [
        *same(
            {
                "tolist, item": lambda d: (
                    normal(d, 2, 2).tolist(),
                    normal(d, 1).item(),
                    (normal(d, 1) > 0).item(),
                    torch.arange(4, device=d).view(2, 2).tolist(),
                ),
                "to the host and back": lambda d: normal(d, 3).cpu().numpy().sum().item(),
                "numpy by force": lambda d: normal(d, 3).numpy(force=True).tolist(),
                "iteration and unpacking": lambda d: [x.item() for x in normal(d, 3)],
                "min and max of Python": lambda d: max(normal(d, 3)).item(),
                "sum of Python": lambda d: sum(normal(d, 3)),
                "as a condition": lambda d: "yes" if normal(d, 1) > -9 else "no",
                "clone, detach, contiguous": lambda d: normal(d, 3).clone().detach().contiguous(),
            }
        ),
        Raises(
            "numpy",
            lambda: _ones(2).numpy(),
            TypeError,
            NO_ARRAY,
        ),
        Raises(
            "np.asarray",
            lambda: np.asarray(_ones(2)),
            TypeError,
            NO_ARRAY,
        ),
        Raises(
            "item of several",
            lambda: _ones(2).item(),
            RuntimeError,
            r"a Tensor with 2 elements cannot be converted to Scalar",
        ),
        Raises(
            "several as a condition",
            lambda: bool(_ones(2)),
            RuntimeError,
            r"Boolean value of Tensor with more than one value is ambiguous",
        ),
        Raises(
            "an index that is too large",
            lambda: _ones(2)[5],
            IndexError,
            r"index 5 is out of bounds for dimension 0 with size 2",
        ),
    ],
}
