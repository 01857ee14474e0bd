"""Name the kernels of factorizations: many small steps of cuSOLVER, cuBLAS and MAGMA."""

from collections.abc import Callable, Sequence
from math import ceil, prod
from typing import Any

from gpulab.virtual.operators._kernel_rules import Names, Rules
from gpulab.virtual.operators._operator_call import OperatorCall

_WIDE = 2  # dimensions of a matrix


def _is_batch(call: OperatorCall) -> bool:
    return len(call.reads[0].sizes) > _WIDE and prod(call.reads[0].sizes[:-2]) > 1


def _factors(name: str, n: int, *, copies: Names = ("copy",)) -> Names:
    """Return ``n`` kernels of a factorization: copies of the matrix, then the library's steps."""
    return (*copies, *(name,) * (n - len(copies)))


def _factorization(name: str, single: int, batch: int) -> Callable[[OperatorCall], Names | None]:
    def names(call: OperatorCall) -> Names:
        return _factors(name, batch if _is_batch(call) else single)

    return names


def _order(call: OperatorCall) -> int:
    """Return the order of the matrices that are factorized."""
    return int(call.reads[0].sizes[-1])


def _lu(call: OperatorCall) -> Names:
    if not _is_batch(call):
        return _factors("LU step", 7)
    return _factors("LU step", 3 if _order(call) <= _BATCHED_LU else 24 * ceil(_order(call) / 24))


def _solve(call: OperatorCall) -> Names:
    if not _is_batch(call):
        return _factors("LU step", 17)
    return _factors("LU step", 9 if _order(call) <= _BATCHED_SOLVE else 3 * _order(call) // 2)


def _inverse(call: OperatorCall) -> Names:
    if not _is_batch(call):
        return _factors("LU step", 18)
    return _factors("LU step", 10 if _order(call) <= _BATCHED_INVERSE else 19)


# Up to these orders cuBLAS factorizes a batch in one kernel.
_BATCHED_LU, _BATCHED_SOLVE, _BATCHED_INVERSE = 128, 64, 16


def _qr(call: OperatorCall) -> Names:
    n, n_matrices = _order(call), prod(call.reads[0].sizes[:-2])
    has_q = call.args[1:2] != ("r",)
    if not _is_batch(call):
        return _factors("QR step", _at(n, _QR, 39 if has_q else 28))
    each = _at(n, _QR_OF_EACH, 17)
    return _factors("QR step", 6 + each * n_matrices)


def _svd(call: OperatorCall) -> Names:
    n = min(call.reads[0].sizes[-2:], default=1)
    if _is_batch(call) and n <= _BATCHED_SVD:
        return _factors("SVD step", 6)
    driver = str(call.kwargs.get("driver"))
    has_vectors = call.args[2:3] != (False,) and call.kwargs.get("compute_uv") is not False
    usual = (109 if has_vectors else 106) / 64
    per_column = {"gesvd": 351 / 64, "gesvda": 167 / 64}.get(driver, usual)
    return _factors("SVD step", max(6, round(per_column * n)))


def _eigh(call: OperatorCall) -> Names:
    n, n_matrices = _order(call), prod(call.reads[0].sizes[:-2])
    if n <= _EIGENVALUES[-1][0]:
        return _factors("eigenvalue step", _at(n, _EIGENVALUES, 0))
    if not _is_batch(call):
        return _factors("eigenvalue step", round(_at(n, _EIGENVALUES_OF_A_COLUMN, 2.3) * n))
    return _factors("eigenvalue step", 2 * n * n_matrices)


# Kernels up to an order: of the whole call, of each matrix, or of each column.
_QR, _QR_OF_EACH = ((16, 16),), ((16, 9), (32, 12), (64, 10))


_EIGENVALUES, _EIGENVALUES_OF_A_COLUMN = ((8, 18), (16, 25), (32, 30)), ((128, 107 / 64),)


_BATCHED_SVD = 32


def _at(n: int, steps: Sequence[tuple[int, float]], otherwise: float) -> Any:
    return next((value for most, value in steps if n <= most), otherwise)


def _eig(call: OperatorCall) -> Names:
    return _factors("eigenvalue step", round(753 / 64 * _order(call)))


RULES: Rules = {
    "linalg_cholesky_ex": _factorization("Cholesky step", 4, 6),
    "cholesky": _factorization("Cholesky step", 4, 6),
    "linalg_inv_ex": _inverse,
    "_linalg_solve_ex": _solve,
    "linalg_lu_factor_ex": _lu,
    "linalg_lu": lambda call: (*_lu(call), *("unpack",) * 8),
    "_linalg_det": _factorization("LU step", 15, 11),
    "_linalg_slogdet": _factorization("LU step", 19, 15),
    "linalg_qr": _qr,
    "_linalg_svd": _svd,
    "_linalg_eigh": _eigh,
    "linalg_eig": _eig,
    "linalg_eigvals": lambda call: _factors("eigenvalue step", round(713 / 64 * _order(call))),
    "linalg_pinv": lambda call: (*_svd(call), *("product",) * 10),
    "geqrf": _factors("QR step", 27),
    "linalg_householder_product": _factors("Householder step", 12),
    "ormqr": lambda call: _factors("Householder step", 2 * _order(call) + 4),
    "linalg_ldl_factor_ex": lambda call: _factors("LDL step", 2 * _order(call) + 3),
    "linalg_lstsq": lambda call: _factors(
        "least squares step", 8 if _is_batch(call) else round(161 / 64 * _order(call))
    ),
    "linalg_solve_triangular": ("copy", "solve"),
    "triangular_solve": ("copy", "copy", "solve"),
    "cholesky_solve": ("copy", "copy", *("solve",) * 4),
    "cholesky_inverse": ("copy", "fill", *("solve",) * 5),
}
