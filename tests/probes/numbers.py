"""Probes of types and arithmetic: promotion, rounding, reductions, comparisons, bits."""

import torch

from tests.probes.table import Probe, Raises, integers, normal, same

MIXED = (
    r"Expected all tensors to be on the same device, but "
    r"(found at least two devices, cuda:0 and cpu!|.*is on cpu, different from .* cuda:0.*)"
)


def _promote(d: str) -> list[object]:
    number, whole = normal(d, 3), torch.arange(3, device=d)
    half = number.half()
    pairs = [
        *(whole + 1, whole + 1.5, whole / 2, whole // 2, whole * number, half + number),
        *(half * 2.5, half + whole, whole > 1, ~(whole > 1), whole.bool() + 1),
        *(torch.tensor(1, device=d) + half, half + torch.tensor(2.0, dtype=torch.float64)),
        *(number + 1j, whole.byte() - whole.to(torch.int8), number.bfloat16() + half),
    ]
    return [*pairs, torch.result_type(whole, 1.5), torch.promote_types(half.dtype, whole.dtype)]


def _mix_host_scalars(d: str) -> list[torch.Tensor]:
    x = normal(d, 3)
    two = torch.tensor(2.0)
    return [x + two, two * x, torch.where(x > 0, x, two), x.clamp(max=two.item()), x.pow(two)]


def _float8(d: str) -> list[torch.Tensor]:
    x = normal(d, 4)
    return [x.to(t).float() for t in (torch.float8_e4m3fn, torch.float8_e5m2)]


FAMILIES: dict[str, list[Probe]] = {
    "types": [
        *same(
            {
                "promotion": _promote,
                "casts": lambda d: [
                    (normal(d, 4) * 3).to(t)
                    for t in (
                        *(torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.int16),
                        *(torch.int32, torch.int64, torch.bool, torch.complex64),
                    )
                ],
                "casts by method": lambda d: [
                    *(normal(d, 2).half(), normal(d, 2).double(), normal(d, 2).bfloat16()),
                    *(normal(d, 2).int(), normal(d, 2).long(), normal(d, 2).bool()),
                    *(normal(d, 2).short(), normal(d, 2).cfloat(), normal(d, 2).half().float()),
                ],
                "unsigned": lambda d: torch.arange(250, 256, device=d).to(torch.uint8) + 3,
                "float8": _float8,
                "bfloat16 arithmetic": lambda d: (
                    normal(d, 8, dtype=torch.bfloat16) * 2 + 1,
                    normal(d, 8, dtype=torch.bfloat16).exp(),
                    normal(d, 4, 8, dtype=torch.bfloat16).sum(1),
                ),
                "half arithmetic": lambda d: (
                    normal(d, 8, dtype=torch.float16) / 3,
                    normal(d, 4, 8, dtype=torch.float16).softmax(-1),
                    normal(d, 4, 8, dtype=torch.float16).mean(),
                ),
                "complex arithmetic": lambda d: (
                    normal(d, 3, dtype=torch.complex64) * 1j,
                    normal(d, 3, dtype=torch.complex64).abs(),
                    normal(d, 3, dtype=torch.complex64).conj() + 1,
                    torch.polar(normal(d, 3).abs(), normal(d, 3)),
                    torch.angle(normal(d, 3, dtype=torch.complex64)),
                    normal(d, 2, 2, dtype=torch.complex64) @ normal(d, 2, 2, dtype=torch.cfloat),
                ),
                "scalars of the host": _mix_host_scalars,
                "0-dim with more dimensions": lambda d: (
                    torch.tensor(2, device=d) * normal(d, 3),
                    normal(d, 3).half() + torch.tensor(1.0, device=d),
                ),
                "broadcasting": lambda d: (
                    normal(d, 3, 1) + normal(d, 4),
                    normal(d, 2, 1, 3) * normal(d, 5, 1),
                    torch.maximum(normal(d, 3, 1), normal(d, 1, 2)),
                ),
                "not contiguous, expanded": lambda d: (
                    normal(d, 4, 3).t() + normal(d, 3, 1).expand(3, 4),
                    normal(d, 6)[::2].exp(),
                    normal(d, 3, 1).expand(3, 4) @ normal(d, 3, 4).t(),
                ),
            }
        ),
        Raises(
            "adding host and device",
            lambda: torch.ones(2, device="cuda") + torch.ones(2),
            RuntimeError,
            MIXED,
        ),
        Raises(
            "multiplying host and device matrices",
            lambda: torch.ones(2, 2, device="cuda") @ torch.ones(2, 2),
            RuntimeError,
            MIXED,
        ),
        Raises(
            "a device index for a host tensor",
            lambda: torch.ones(3)[torch.tensor([0], device="cuda")],
            RuntimeError,
            r"indices should be either on cpu or on the same device as the indexed tensor \(cpu\)",
        ),
        Raises(
            "a Python function for each element",
            lambda: torch.ones(2, device="cuda").apply_(abs),
            TypeError,
            "apply_ is only implemented on CPU tensors",
        ),
        Raises(
            "shapes that do not fit",
            lambda: torch.ones(2, 3, device="cuda") @ torch.ones(2, 3, device="cuda"),
            RuntimeError,
            r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 2x3\)",
        ),
        Raises(
            "batches that do not fit",
            lambda: torch.ones(2, 2, 3, device="cuda").bmm(torch.ones(2, 2, 3, device="cuda")),
            RuntimeError,
            r"Expected size for first two dimensions of batch2 tensor to be: \[2, 3\] but got: .*",
        ),
        Raises(
            "a convolution of two types",
            lambda: torch.conv1d(
                torch.ones(1, 1, 4, device="cuda").half(), torch.ones(1, 1, 2, device="cuda")
            ),
            RuntimeError,
            r"Input type \(torch\.cuda\.HalfTensor\) and weight type \(torch\.cuda\.FloatTensor\) "
            r"should be the same",
        ),
        Raises(
            "types that do not fit",
            lambda: torch.ones(2, 2, device="cuda") @ torch.ones(2, 2, device="cuda").half(),
            RuntimeError,
            r"expected .*(dtype|type).*",
        ),
    ],
    "arithmetic": [
        *same(
            {
                "equal, allclose, isclose": lambda d: (
                    torch.equal(normal(d, 2), normal(d, 2)),
                    torch.equal(torch.ones(2, device=d), torch.ones(2, device=d)),
                    torch.allclose(torch.ones(2, device=d), torch.ones(2, device=d) + 1e-9),
                    torch.isclose(torch.ones(2, device=d), torch.ones(2, device=d)),
                ),
                "bits": lambda d: (
                    integers(d, 16, 4) & 6,
                    integers(d, 16, 4) | integers(d, 16, 4),
                    integers(d, 16, 4) ^ 5,
                    ~integers(d, 16, 4),
                    integers(d, 16, 4) << 2,
                    integers(d, 16, 4) >> 1,
                ),
                "where with numbers": lambda d: torch.where(normal(d, 4) > 0, 1.0, -1.0),
                "gcd, lcm": lambda d: (
                    torch.gcd(integers(d, 20, 4), integers(d, 20, 4) + 1),
                    torch.lcm(integers(d, 9, 4), integers(d, 9, 4) + 1),
                ),
                "operators reflected": lambda d: (
                    2 - normal(d, 3),
                    1 / (normal(d, 3) + 5),
                    2 ** normal(d, 3),
                ),
            }
        )
    ],
    "reductions": [
        *same(
            {
                "sum, mean, prod": lambda d: (
                    normal(d, 3, 4).sum(),
                    normal(d, 3, 4).sum(dim=(0, 1), keepdim=True),
                    normal(d, 3, 4).mean(1),
                    normal(d, 3, 4).prod(0),
                    integers(d, 5, 3).sum(),
                    (normal(d, 3) > 0).sum(),
                ),
                "a sum in another type": lambda d: normal(d, 9).half().sum(dtype=torch.float32),
            }
        )
    ],
}
