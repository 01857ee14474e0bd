"""Probes of operators: products, linear algebra, Fourier transforms, sorting, indexing, lists."""

import torch

from tests.probes.table import Probe, integers, normal, same


def _spd(d: str) -> torch.Tensor:
    a = torch.randn(4, 4, dtype=torch.float64)
    return (a @ a.T + 4 * torch.eye(4, dtype=torch.float64)).to(d)


def _svd_back(d: str) -> list[torch.Tensor]:
    a = normal(d, 4, 3, dtype=torch.float64)
    u, s, vh = torch.linalg.svd(a, full_matrices=False)
    return [
        s,
        u @ torch.diag(s) @ vh,
    ]  # the signs of u and vh may differ, so compare their product


def _qr_back(d: str) -> list[torch.Tensor]:
    q, r = torch.linalg.qr(normal(d, 4, 3, dtype=torch.float64))
    return [q @ r, r.diagonal().abs()]


def _eigh_back(d: str) -> list[torch.Tensor]:
    values, vectors = torch.linalg.eigh(_spd(d))
    return [values, vectors @ torch.diag(values) @ vectors.T]


def _lu_back(d: str) -> list[torch.Tensor]:
    p, lower, upper = torch.linalg.lu(_spd(d))
    return [p @ lower @ upper, torch.linalg.lu_solve(*torch.linalg.lu_factor(_spd(d)), _spd(d))]


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
                "mm, bmm, addmm, baddbmm, mv, dot, outer": lambda d: (
                    torch.mm(normal(d, 2, 3), normal(d, 3, 2)),
                    torch.bmm(normal(d, 2, 2, 3), normal(d, 2, 3, 2)),
                    torch.addmm(normal(d, 2, 2), normal(d, 2, 3), normal(d, 3, 2), beta=0.5),
                    torch.baddbmm(normal(d, 2, 2, 2), normal(d, 2, 2, 3), normal(d, 2, 3, 2)),
                    torch.mv(normal(d, 2, 3), normal(d, 3)),
                    torch.dot(normal(d, 3), normal(d, 3)),
                    torch.outer(normal(d, 3), normal(d, 2)),
                    torch.addmv(normal(d, 2), normal(d, 2, 3), normal(d, 3)),
                    torch.addr(normal(d, 2, 3), normal(d, 2), normal(d, 3)),
                ),
                "matmul of halves": lambda d: (
                    normal(d, 8, 8, dtype=torch.float16) @ normal(d, 8, 8, dtype=torch.float16),
                    normal(d, 8, 8, dtype=torch.bfloat16) @ normal(d, 8, 8, dtype=torch.bfloat16),
                ),
                "matmul of doubles": lambda d: normal(d, 4, 4, dtype=torch.float64).matmul(
                    normal(d, 4, 4, dtype=torch.float64)
                ),
                "einsum": lambda d: (
                    torch.einsum("ij,jk->ik", normal(d, 2, 3), normal(d, 3, 4)),
                    torch.einsum("bij,bjk->bik", normal(d, 2, 2, 3), normal(d, 2, 3, 2)),
                    torch.einsum("ii->i", normal(d, 3, 3)),
                    torch.einsum("i,j->ij", normal(d, 3), normal(d, 2)),
                    torch.einsum("bhqd,bhkd->bhqk", normal(d, 1, 2, 3, 4), normal(d, 1, 2, 5, 4)),
                    torch.einsum("...i->...", normal(d, 2, 3)),
                ),
                "kron, tensordot, inner, cross, chain": lambda d: (
                    torch.kron(normal(d, 2, 2), normal(d, 2, 3)),
                    torch.tensordot(normal(d, 2, 3, 4), normal(d, 3, 4, 2), dims=2),
                    torch.inner(normal(d, 2, 3), normal(d, 4, 3)),
                    torch.linalg.cross(normal(d, 2, 3), normal(d, 2, 3)),
                    torch.linalg.multi_dot([normal(d, 2, 3), normal(d, 3, 4), normal(d, 4, 2)]),
                ),
                "linear and bilinear": lambda d: (
                    torch.nn.functional.linear(normal(d, 2, 3), normal(d, 4, 3), normal(d, 4)),
                    torch.nn.functional.linear(normal(d, 2, 5, 3), normal(d, 4, 3)),
                    torch.nn.functional.bilinear(
                        normal(d, 2, 3), normal(d, 2, 4), normal(d, 5, 3, 4)
                    ),
                ),
                "distances": lambda d: (
                    torch.cdist(normal(d, 3, 4), normal(d, 5, 4)),
                    torch.cdist(normal(d, 3, 4), normal(d, 5, 4), p=1),
                    torch.pdist(normal(d, 4, 3)),
                    torch.nn.functional.cosine_similarity(normal(d, 3, 4), normal(d, 3, 4)),
                    torch.nn.functional.pairwise_distance(normal(d, 3, 4), normal(d, 3, 4)),
                ),
            }
        )
    ],
    "linalg": [
        *same(
            {
                "inv": lambda d: torch.linalg.inv(_spd(d)),
                "solve": lambda d: torch.linalg.solve(_spd(d), torch.ones(4, 2).double().to(d)),
                "solve_triangular": lambda d: torch.linalg.solve_triangular(
                    _spd(d).tril(), torch.ones(4, 1).double().to(d), upper=False
                ),
                "svd": _svd_back,
                "svdvals": lambda d: torch.linalg.svdvals(_spd(d)),
                "cholesky": lambda d: torch.linalg.cholesky(_spd(d)),
                "cholesky_solve": lambda d: torch.cholesky_solve(
                    torch.ones(4, 1).double().to(d), torch.linalg.cholesky(_spd(d))
                ),
                "qr": _qr_back,
                "lu": _lu_back,
                "det, slogdet": lambda d: (
                    torch.linalg.det(_spd(d)),
                    torch.linalg.slogdet(_spd(d)),
                ),
                "eigh": _eigh_back,
                "eigvalsh": lambda d: torch.linalg.eigvalsh(_spd(d)),
                "matrix norm, rank, condition": lambda d: (
                    torch.linalg.matrix_norm(_spd(d)),
                    torch.linalg.norm(_spd(d), ord=2),
                    torch.linalg.matrix_rank(_spd(d)),
                    torch.linalg.cond(_spd(d)),
                ),
                "pinv, lstsq": lambda d: (
                    torch.linalg.pinv(normal(d, 4, 3, dtype=torch.float64)),
                    torch.linalg.lstsq(
                        normal(d, 5, 3, dtype=torch.float64), normal(d, 5, 1, dtype=torch.float64)
                    ).solution,
                ),
                "matrix_power, matrix_exp": lambda d: (
                    torch.linalg.matrix_power(_spd(d), 3),
                    torch.linalg.matrix_exp(_spd(d) / 20),
                ),
                "batched": lambda d: torch.linalg.inv(
                    torch.eye(3).repeat(2, 1, 1).to(d) * 2 + 0.1
                ),
            }
        )
    ],
    "fft": [
        *same(
            {
                "fft and back": lambda d: (
                    torch.fft.fft(normal(d, 8)),
                    torch.fft.ifft(torch.fft.fft(normal(d, 8))),
                ),
                "rfft and irfft": lambda d: (
                    torch.fft.rfft(normal(d, 2, 8)),
                    torch.fft.irfft(torch.fft.rfft(normal(d, 8)), n=8),
                ),
                "fft2, fftn": lambda d: (
                    torch.fft.fft2(normal(d, 4, 4)),
                    torch.fft.fftn(normal(d, 2, 4, 4)),
                    torch.fft.rfft2(normal(d, 4, 4)),
                ),
                "shift and frequencies": lambda d: (
                    torch.fft.fftshift(normal(d, 5)),
                    torch.fft.fftfreq(6, device=d),
                    torch.fft.rfftfreq(6, device=d),
                ),
                "stft and istft": lambda d: torch.istft(
                    torch.stft(
                        normal(d, 64),
                        16,
                        window=torch.hann_window(16, device=d),
                        return_complex=True,
                    ),
                    16,
                    window=torch.hann_window(16, device=d),
                    length=64,
                ),
            }
        )
    ],
    "sorting": [
        *same(
            {
                "sort": lambda d: (normal(d, 3, 5).sort(), normal(d, 5).sort(descending=True)),
                "stable sort": lambda d: torch.sort(integers(d, 3, 9), stable=True),
                "argsort, msort": lambda d: (normal(d, 6).argsort(), torch.msort(normal(d, 4, 2))),
                "topk, kthvalue": lambda d: (
                    normal(d, 3, 6).topk(2),
                    normal(d, 6).topk(2, largest=False),
                    normal(d, 6).kthvalue(2),
                ),
                "unique": lambda d: (
                    torch.unique(integers(d, 4, 9)),
                    torch.unique(integers(d, 4, 9), return_inverse=True, return_counts=True),
                    torch.unique(integers(d, 2, 5, 2), dim=0),
                    torch.unique_consecutive(integers(d, 2, 9)),
                ),
                "searchsorted, bucketize": lambda d: (
                    torch.searchsorted(torch.arange(5.0, device=d), normal(d, 4)),
                    torch.bucketize(normal(d, 4), torch.tensor([-1.0, 0.0, 1.0], device=d)),
                ),
                "bincount, histc": lambda d: (
                    torch.bincount(integers(d, 5, 20)),
                    torch.bincount(integers(d, 3, 4), weights=normal(d, 4), minlength=6),
                    torch.histc(normal(d, 20), bins=4, min=-2, max=2),
                ),
                "isin": lambda d: torch.isin(integers(d, 5, 6), torch.tensor([1, 2], device=d)),
            }
        )
    ],
    "indexing": [
        *same(
            {
                "gather": lambda d: normal(d, 3, 4).gather(1, integers(d, 4, 3, 2)),
                "scatter": lambda d: (
                    torch.zeros(3, 4, device=d).scatter(0, integers(d, 3, 1, 4), normal(d, 1, 4)),
                    torch.zeros(3, 4, device=d).scatter_(1, integers(d, 4, 3, 1), 2.0),
                    torch.zeros(3, device=d).scatter_add_(
                        0, integers(d, 3, 6), torch.ones(6).to(d)
                    ),
                    torch.ones(3, device=d).scatter_reduce_(
                        0, integers(d, 3, 6), normal(d, 6), reduce="amax"
                    ),
                ),
                "index_select": lambda d: normal(d, 4, 3).index_select(0, integers(d, 4, 2)),
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
                "nonzero": lambda d: (
                    (normal(d, 3, 4) > 0).nonzero(),
                    (normal(d, 3, 4) > 0).nonzero(as_tuple=True),
                    torch.argwhere(normal(d, 5) > 0),
                ),
                "where with one argument": lambda d: torch.where(normal(d, 3, 4) > 0),
                "masked_select": lambda d: normal(d, 6).masked_select(normal(d, 6) > 0),
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
                "histogram by scatter": lambda d: torch.zeros(4, device=d).index_add(
                    0, integers(d, 4, 9), torch.ones(9, device=d)
                ),
            }
        )
    ],
    "foreach": [*same({"lists of tensors": _foreach})],
}
