"""Name the kernels of factorizations: many small steps of cuSOLVER, cuBLAS and MAGMA."""

from collections.abc import Callable, Sequence
from math import ceil, prod
from typing import Any

from gpulab.virtual.operators._operator_call import Names, OperatorCall, Rules

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
    n = _order(call)
    if not _is_batch(call):
        return _factors("LU step", 13 + _at(n, _LU_OF_LARGE, 15) - 3 * _is_vector(call))
    return _factors("LU step", _at(n, _SOLVE_OF_BATCH, 3 * n // 2))


def _is_vector(call: OperatorCall) -> bool:
    return len(call.reads[-1].sizes) < _WIDE


def _lu_solve(call: OperatorCall) -> Names:
    return _factors("LU step", 9 - _is_vector(call))


def _inverse(call: OperatorCall) -> Names:
    if not _is_batch(call):
        return _factors("LU step", 14 + _at(_order(call), _LU_OF_LARGE, 15))
    return _factors("LU step", 10 if _order(call) <= _BATCHED_INVERSE else 19)


# Up to these orders cuBLAS factorizes a batch in one kernel.
_BATCHED_LU, _BATCHED_INVERSE = 128, 16


# Kernels up to an order, which a system adds to its LU factorization.
_LU_OF_LARGE, _SOLVE_OF_BATCH = ((32, 0), (64, 4), (128, 10)), ((16, 9), (64, 18))


def _cholesky(n_more: int) -> Callable[[OperatorCall], Names | None]:
    def names(call: OperatorCall) -> Names:
        n = _at(_order(call), ((16, 6),), 9) if _is_batch(call) else 4
        return _factors("Cholesky step", n + n_more)

    return names


def _triangular(call: OperatorCall) -> Names:
    return _factors("solve", _at(_order(call), ((32, 4), (64, 2), (128, 5)), 10))


def _qr(call: OperatorCall) -> Names:
    n, n_matrices = _order(call), prod(call.reads[0].sizes[:-2])
    has_q = call.args[1:2] != ("r",)
    if not _is_batch(call):
        more = int(_QR_PER_COLUMN * min(max(0, n - 64), 36)) if n <= _QR[-1][0] else 0
        n_steps = _at(n, _QR, 89) + more
        return _factors("QR step", n_steps if has_q else 28)
    each = _at(n, _QR_OF_EACH, 17)
    return _factors("QR step", 6 + each * n_matrices)


def _svd(call: OperatorCall) -> Names:
    n = min(call.reads[0].sizes[-2:], default=1)
    if n <= _BATCHED_SVD:
        return _factors("SVD step", 6)
    driver = str(call.kwargs.get("driver"))
    # Norms, ranks and the like ask for no vectors. The virtual GPU's tensors make PyTorch ask for
    # them, but not for full matrices, as most programs do that need vectors.
    has_vectors = call.args[1:2] == (True,)
    usual = _at(n, *_SVD_OF_A_COLUMN)
    per_column = {"gesvd": 351 / 64, "gesvda": 167 / 64}.get(driver, usual)
    return _factors("SVD step", max(6, round(per_column * n) - 3 * (not has_vectors)))


def _eigh(call: OperatorCall) -> Names:
    n, n_matrices = _order(call), prod(call.reads[0].sizes[:-2])
    has_vectors = call.args[2:3] != (False,) and call.kwargs.get("compute_v") is not False
    if n <= _EIGENVALUES[-1][0]:
        less = 0 if has_vectors else 4
        return _factors("eigenvalue step", _at(n, _EIGENVALUES, 0) + 2 * _is_batch(call) - less)
    if not _is_batch(call):
        per_column = _at(n, *_EIGENVALUES_OF_A_COLUMN)
        return _factors("eigenvalue step", round(per_column * n) - (not has_vectors))
    return _factors("eigenvalue step", 2 * n * n_matrices)


# Kernels up to an order: of the whole call, of each matrix, or of each column.
_QR, _QR_OF_EACH = ((16, 16), (128, 39)), ((16, 9), (32, 12), (64, 10))


_QR_PER_COLUMN = 62 / 36


_EIGENVALUES = ((8, 16), (16, 23), (32, 28))


# Kernels for each column: up to an order, and for larger ones.
_EIGENVALUES_OF_A_COLUMN = (((64, 107 / 64), (128, 2.33)), 1043 / 400)


_SVD_OF_A_COLUMN = (((64, 109 / 64), (128, 2.35)), 1045 / 400)


_BATCHED_SVD = 32


def _at(n: int, steps: Sequence[tuple[int, float]], otherwise: float) -> Any:
    return next((value for most, value in steps if n <= most), otherwise)


def _eig(call: OperatorCall) -> Names:
    return _factors("eigenvalue step", round(753 / 64 * _order(call)))


RULES: Rules = {
    "linalg_cholesky_ex": _cholesky(0),
    "cholesky": _cholesky(1),
    "linalg_inv_ex": _inverse,
    "_linalg_solve_ex": _solve,
    "linalg_lu_factor_ex": _lu,
    "linalg_lu": lambda call: (*_lu(call), *("unpack",) * 8),
    "_linalg_det": _factorization("LU step", 15, 11),
    "_linalg_slogdet": _factorization("LU step", 19, 15),
    "linalg_qr": _qr,
    "_linalg_svd": _svd,
    "_linalg_eigh": _eigh,
    "linalg_matrix_sqrth": _eigh,
    "linalg_eig": _eig,
    "linalg_pinv": lambda call: (*_svd(call), *("product",) * 10),
    "geqrf": _factors("QR step", 27),
    "linalg_householder_product": _factors("Householder step", 12),
    "ormqr": lambda call: _factors("Householder step", 2 * _order(call) + 4),
    "linalg_ldl_factor_ex": lambda call: _factors("LDL step", 2 * _order(call) + 3),
    "linalg_lstsq": lambda call: _factors(
        "least squares step", 8 if _is_batch(call) else round(161 / 64 * _order(call))
    ),
    "linalg_solve_triangular": _triangular,
    "linalg_lu_solve": _lu_solve,
    "lu_unpack": ("unpack",) * 7,
    "linalg_matrix_exp": lambda call: ("product",) * (45 if _is_batch(call) else 18),
    "_linalg_eigvals": lambda call: _factors("eigenvalue step", round(713 / 64 * _order(call))),
    "triangular_solve": ("copy", "copy", "solve"),
    "cholesky_solve": ("copy", "copy", *("solve",) * 4),
    "cholesky_inverse": ("copy", "fill", *("solve",) * 5),
}
