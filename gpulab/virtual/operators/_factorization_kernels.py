"""Name the kernels of factorizations: many small steps of cuSOLVER, cuBLAS and MAGMA."""

from collections.abc import Callable, Sequence
from math import ceil, prod

from gpulab.virtual.operators._operator_call import Names, OperatorCall, Rules

Count = Callable[[OperatorCall], float]

_WIDE = 2  # dimensions of a matrix
# Up to these orders cuBLAS factorizes a batch in one kernel, and cuSOLVER finds singular values.
_BATCHED_LU, _BATCHED_INVERSE, _BATCHED_SVD = 128, 16, 32
# Kernels up to an order, which a system adds to its LU factorization.
_LU_OF_LARGE, _SOLVE_OF_BATCH = ((32, 0), (64, 4), (128, 10)), ((16, 9), (64, 18))
# Kernels up to an order: of the whole call, of each matrix, or of each column.
_QR, _QR_OF_EACH, _QR_PER_COLUMN = ((16, 16), (128, 39)), ((16, 9), (32, 12), (64, 10)), 62 / 36
_EIGENVALUES = ((8, 16), (16, 23), (32, 28))
# Kernels for each column: up to an order, and for larger ones.
_EIGENVALUES_OF_A_COLUMN = (((64, 107 / 64), (128, 2.33)), 1043 / 400)
_SVD_OF_A_COLUMN = (((64, 109 / 64), (128, 2.35)), 1045 / 400)


def _steps(name: str, count: Count) -> Callable[[OperatorCall], Names]:
    """Return a rule for ``count`` kernels: a copy of the matrix, then the library's steps."""
    return lambda call: ("copy", *(name,) * (round(count(call)) - 1))


def _fixed(single: int, batch: int) -> Count:
    return lambda call: batch if _is_batch(call) else single


def _per_column(ratio: float, more: int = 0) -> Count:
    return lambda call: ratio * _order(call) + more


def _is_batch(call: OperatorCall) -> bool:
    return len(call.reads[0].sizes) > _WIDE and _n_matrices(call) > 1


def _n_matrices(call: OperatorCall) -> int:
    return prod(call.reads[0].sizes[:-2])


def _order(call: OperatorCall) -> int:
    """Return the order of the matrices that are factorized."""
    return int(call.reads[0].sizes[-1])


def _at(n: int, steps: Sequence[tuple[int, float]], otherwise: float) -> float:
    return next((value for most, value in steps if n <= most), otherwise)


def _lu(call: OperatorCall) -> float:
    if not _is_batch(call):
        return 7
    return 3 if _order(call) <= _BATCHED_LU else 24 * ceil(_order(call) / 24)


def _solve(call: OperatorCall) -> float:
    n = _order(call)
    if not _is_batch(call):
        return 13 + _at(n, _LU_OF_LARGE, 15) - 3 * _is_vector(call)
    return _at(n, _SOLVE_OF_BATCH, 3 * n // 2)


def _is_vector(call: OperatorCall) -> bool:
    return len(call.reads[-1].sizes) < _WIDE


def _inverse(call: OperatorCall) -> float:
    if not _is_batch(call):
        return 14 + _at(_order(call), _LU_OF_LARGE, 15)
    return 10 if _order(call) <= _BATCHED_INVERSE else 19


def _cholesky(call: OperatorCall) -> float:
    return _at(_order(call), ((16, 6),), 9) if _is_batch(call) else 4


def _qr(call: OperatorCall) -> float:
    n = _order(call)
    if _is_batch(call):
        return 6 + _at(n, _QR_OF_EACH, 17) * _n_matrices(call)
    if call.args[1:2] == ("r",):  # without Q
        return 28
    more = int(_QR_PER_COLUMN * min(max(0, n - 64), 36)) if n <= _QR[-1][0] else 0
    return _at(n, _QR, 89) + more


def _svd(call: OperatorCall) -> float:
    n = min(call.reads[0].sizes[-2:], default=1)
    if n <= _BATCHED_SVD:
        return 6
    driver = str(call.kwargs.get("driver"))
    # Norms, ranks and the like ask for no vectors. The virtual GPU's tensors make PyTorch ask for
    # them, but not for full matrices, as most programs do that need vectors.
    has_vectors = call.args[1:2] == (True,)
    usual = _at(n, *_SVD_OF_A_COLUMN)
    per_column = {"gesvd": 351 / 64, "gesvda": 167 / 64}.get(driver, usual)
    return max(6, round(per_column * n) - 3 * (not has_vectors))


def _eigh(call: OperatorCall) -> float:
    n = _order(call)
    has_vectors = call.args[2:3] != (False,) and call.kwargs.get("compute_v") is not False
    if n <= _EIGENVALUES[-1][0]:
        return _at(n, _EIGENVALUES, 0) + 2 * _is_batch(call) - 4 * (not has_vectors)
    if not _is_batch(call):
        return round(_at(n, *_EIGENVALUES_OF_A_COLUMN) * n) - (not has_vectors)
    return 2 * n * _n_matrices(call)


RULES: Rules = {
    "linalg_cholesky_ex": _steps("Cholesky step", _cholesky),
    "cholesky": _steps("Cholesky step", lambda call: _cholesky(call) + 1),
    "linalg_inv_ex": _steps("LU step", _inverse),
    "_linalg_solve_ex": _steps("LU step", _solve),
    "linalg_lu_factor_ex": _steps("LU step", _lu),
    "linalg_lu": lambda call: (*_steps("LU step", _lu)(call), *("unpack",) * 8),
    "linalg_lu_solve": _steps("LU step", lambda call: 9 - _is_vector(call)),
    "_linalg_det": _steps("LU step", _fixed(15, 11)),
    "_linalg_slogdet": _steps("LU step", _fixed(19, 15)),
    "linalg_qr": _steps("QR step", _qr),
    "geqrf": _steps("QR step", _fixed(27, 27)),
    "_linalg_svd": _steps("SVD step", _svd),
    "_linalg_eigh linalg_matrix_sqrth": _steps("eigenvalue step", _eigh),
    "linalg_eig": _steps("eigenvalue step", _per_column(753 / 64)),
    "_linalg_eigvals": _steps("eigenvalue step", _per_column(713 / 64)),
    "linalg_pinv": lambda call: (*_steps("SVD step", _svd)(call), *("product",) * 10),
    "linalg_householder_product": _steps("Householder step", _fixed(12, 12)),
    "ormqr": _steps("Householder step", _per_column(2, 4)),
    "linalg_ldl_factor_ex": _steps("LDL step", _per_column(2, 3)),
    "linalg_lstsq": _steps(
        "least squares step", lambda call: 8 if _is_batch(call) else 161 / 64 * _order(call)
    ),
    "linalg_solve_triangular": _steps(
        "solve", lambda call: _at(_order(call), ((32, 4), (64, 2), (128, 5)), 10)
    ),
    "lu_unpack": ("unpack",) * 7,
    "linalg_matrix_exp": lambda call: ("product",) * (45 if _is_batch(call) else 18),
    "triangular_solve": ("copy", "copy", "solve"),
    "cholesky_solve": ("copy", "copy", *("solve",) * 4),
    "cholesky_inverse": ("copy", "fill", *("solve",) * 5),
}
