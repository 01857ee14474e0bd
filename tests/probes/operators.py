"""Probes of operators: products, linear algebra, Fourier transforms, sorting, indexing, lists."""

import torch

from tests.probes.table import Probe, integers, normal, same


def _foreach(d: str) -> list[object]:
    xs, ys = [normal(d, 3), normal(d, 2, 2)], [normal(d, 3), normal(d, 2, 2)]
    results = [
        *torch._foreach_add(xs, ys, alpha=2),
        *torch._foreach_mul(xs, 3),
        *torch._foreach_sqrt(torch._foreach_abs(xs)),
        *torch._foreach_norm(xs),
        *torch._foreach_addcdiv(xs, ys, torch._foreach_add(ys, 9), value=0.5),
        *torch._foreach_lerp(xs, ys, 0.25),
        *torch._foreach_max(xs),
    ]
    torch._foreach_mul_(xs, 2)
    torch._foreach_addcmul_(xs, ys, ys)
    torch._foreach_copy_(ys, xs)
    torch._foreach_zero_(xs)
    return [*results, *xs, *ys]


FAMILIES: dict[str, list[Probe]] = {
    "products": [
        *same(
            {
                "matmul of all ranks": lambda d: (
                    normal(d, 3) @ normal(d, 3),
                    normal(d, 2, 3) @ normal(d, 3),
                    normal(d, 2, 3) @ normal(d, 3, 4),
                    normal(d, 5, 2, 3) @ normal(d, 3, 4),
                    normal(d, 5, 1, 2, 3) @ normal(d, 2, 3, 4),
                ),
                "matmul of halves": lambda d: (
                    normal(d, 8, 8, dtype=torch.float16) @ normal(d, 8, 8, dtype=torch.float16),
                    normal(d, 8, 8, dtype=torch.bfloat16) @ normal(d, 8, 8, dtype=torch.bfloat16),
                ),
            }
        )
    ],
    "sorting": [
        *same(
            {
                "stable sort": lambda d: torch.sort(integers(d, 3, 9), stable=True),
                "bincount, histc": lambda d: (
                    torch.bincount(integers(d, 5, 20)),
                    torch.bincount(integers(d, 3, 4), weights=normal(d, 4), minlength=6),
                    torch.histc(normal(d, 20), bins=4, min=-2, max=2),
                ),
            }
        )
    ],
    "indexing": [
        *same(
            {
                "index by tensors": lambda d: (
                    normal(d, 4, 5)[integers(d, 4, 3)],
                    normal(d, 4, 5)[integers(d, 4, 3), integers(d, 5, 3)],
                    normal(d, 4, 5)[:, integers(d, 5, 2)],
                    normal(d, 4, 5)[1, integers(d, 5, 2)],
                ),
                "index by a host tensor": lambda d: normal(d, 4, 5)[torch.tensor([1, 3])],
                "index by masks": lambda d: (
                    normal(d, 4, 5)[normal(d, 4) > 0],
                    normal(d, 4, 5)[normal(d, 4, 5) > 0],
                    normal(d, 4, 5)[torch.tensor([True, False, True, False])],
                    normal(d, 4, 5)[normal(d, 4) > 0, 1],
                ),
                "a device scalar as an index": lambda d: (
                    normal(d, 4)[torch.tensor(2, device=d)],
                    [1, 2, 3][torch.tensor(1, device=d)],
                ),
                "loops over rows": lambda d: [row.sum() for row in normal(d, 3, 2)],
                "membership and truth": lambda d: (
                    1 in torch.arange(3, device=d),
                    bool(torch.ones(1, device=d)),
                    len(torch.ones(5, 2, device=d)),
                    int(torch.tensor(3.7, device=d)),
                    float(torch.tensor(3, device=d)),
                ),
            }
        )
    ],
    "foreach": [*same({"lists of tensors": _foreach})],
}
