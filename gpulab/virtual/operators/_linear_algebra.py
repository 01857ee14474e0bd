"""Linear algebra: its kernels, and its values as CUDA's libraries compute them.

LAPACK, which the host has, has other algorithms for some of it.
"""

from dataclasses import replace
from math import ceil, prod
from typing import Any

import torch

from gpulab.core.torch_private import check_errors, linalg_eigh, linalg_svd
from gpulab.virtual.operators._argument_checks import check_lstsq
from gpulab.virtual.operators._host_reads import (
    INFO,
    INFO_IF_ASKED,
    HostRead,
    When,
    check_finite,
    has_columns,
    has_elements,
)
from gpulab.virtual.operators._model import Autocast, DryRun, Models, OperatorModel
from gpulab.virtual.operators._operator_call import RESET, OperatorCall
from gpulab.virtual.simulator.costs import KernelWork

aten = torch.ops.aten

_SVD_DRIVERS = {None, "gesvd", "gesvdj", "gesvda"}
_SVD_PAGE = "https://pytorch.org/docs/stable/generated/torch.linalg.svd.html"


def _singular_values(
    matrix: torch.Tensor, *options: bool, driver: str | None = None, **more: bool
) -> Any:
    """Decompose a matrix; all of cuSOLVER's drivers give the same up to rounding.

    Raises
    ------
    RuntimeError
        If cuSOLVER has no such driver; the text is PyTorch's.
    """
    if driver not in _SVD_DRIVERS:
        raise RuntimeError(
            f"torch.linalg.svd: unknown svd driver {driver} in svd_cusolver computation. "
            f"Check doc at {_SVD_PAGE}"
        )
    return linalg_svd(matrix, *options, **more)


def _eigenvalues(matrix: torch.Tensor, *options: Any, **more: Any) -> Any:
    """Decompose a symmetric matrix; numbers that are not finite raise PyTorch's error.

    MKL's LAPACK may end the process for them.

    Raises
    ------
    torch.linalg.LinAlgError
        If a number is not finite.
    """
    size = matrix.shape[-1]
    if not matrix.is_meta and size > 1:
        is_finite = matrix.isfinite().flatten(-2).all(-1)
        # As many eigenvalues were not found: the code that LAPACK gives for a small matrix of nan.
        info = torch.where(is_finite, 0, size - 1).int()
        is_matrix = matrix.dim() == 2  # noqa: PLR2004 # and not a batch of them
        check_errors(info, "linalg.eigh", is_matrix=is_matrix)
    return linalg_eigh(matrix, *options, **more)


def _least_squares(
    matrix: torch.Tensor,
    right: torch.Tensor,
    rcond: float | None = None,
    *,
    driver: str | None = None,  # noqa: ARG001 # checked before
) -> tuple[torch.Tensor, ...]:
    """Solve a least squares problem by a QR decomposition, as PyTorch does on CUDA.

    LAPACK refuses numbers that are not finite; here they give nan.
    """
    if matrix.is_meta:
        aten.linalg_lstsq.default(matrix, right, rcond)  # checks the shapes and types
    is_vector = right.dim() == matrix.dim() - 1
    columns = right.unsqueeze(-1) if is_vector else right
    n_rows, n_columns = matrix.shape[-2:]
    if n_rows >= n_columns:
        q, r = torch.linalg.qr(matrix)
        solution = torch.linalg.solve_triangular(r, q.mH @ columns, upper=True)
    else:
        q, r = torch.linalg.qr(matrix.mH)
        solution = q @ torch.linalg.solve_triangular(r.mH, columns, upper=False)
    residuals = matrix.real.new_empty(0)
    if n_rows > n_columns:
        residuals = (matrix @ solution - columns).abs().square().sum(-2)
    empty = matrix.real.new_empty(0)
    return solution.squeeze(-1) if is_vector else solution, residuals, empty.long(), empty


def _ldl_solution(
    factors: torch.Tensor, pivots: torch.Tensor, right: torch.Tensor, **options: bool
) -> Any:
    """Solve a system with the factors of a symmetric matrix.

    LAPACK takes rows of other memory for a wrong pivot, which can end the process; PyTorch looks
    at the pivots from 2.13 on, and only at their size.

    Raises
    ------
    RuntimeError
        If ``ldl_factor`` returns no such pivots; the text is PyTorch's.
    """
    if not pivots.is_meta and pivots.numel():
        n_rows = factors.shape[-2]
        if not all(_are_pivots(row, n_rows) for row in pivots.reshape(-1, n_rows).tolist()):
            raise RuntimeError(
                "Pivots given to ldl_solve must all satisfy |pivot| <= LD.size(-2). "
                "Did you properly pass the result of ldl_factor?"
            )
    return aten.linalg_ldl_solve.default(factors, pivots, right, **options)


def _are_pivots(pivots: list[int], n_rows: int) -> bool:
    """Return whether all pivots name a row; two equal negative ones stand for a block of 2 x 2."""
    rest = iter(pivots)
    return all(
        1 <= abs(pivot) <= n_rows and (pivot > 0 or next(rest, None) == pivot) for pivot in rest
    )


def _factorization(call: OperatorCall) -> KernelWork:
    """Return the work of a factorization: a step for each column, for 32 matrices at a time."""
    n = call.writes[0].sizes[-1] if call.writes and call.writes[0].sizes else 1
    n_matrices = ceil(prod(call.writes[0].sizes[:-2]) / 32) if call.writes else 1
    before = (
        call.step("strided", reads=True, name="copy"),
        *[call.step("memset", name=RESET) for _ in range(3)],
        call.step("strided", writes=True, host_ns=3_000, name="triangle"),
    )
    return call.work("factorization", n_steps=n * n_matrices, before=before)


_FACTORIZED = OperatorModel(lowering=_factorization, has_halves=False, host_reads=(INFO_IF_ASKED,))
_WITHOUT_HALVES = OperatorModel(has_halves=False)  # as an H100 showed
# These check the values of pivots.
_SOLVED = OperatorModel(may_find_wrong_values=True, dry_run=DryRun.OF_TYPES)
MODELS: Models = {
    "linalg_cholesky_ex linalg_inv_ex _linalg_solve_ex linalg_lu_factor_ex": _FACTORIZED,
    "cholesky": replace(_FACTORIZED, host_reads=(INFO,)),
    # The second one arrives only with ``out=``, and is not checked by the CPU's kernel.
    "linalg_eig linalg_eigvals": replace(
        _FACTORIZED,
        host_reads=(HostRead(When.BEFORE, check=check_finite), INFO),
    ),
    "_linalg_eigh": replace(_FACTORIZED, host_reads=(INFO,), compute=_eigenvalues),
    "_linalg_svd": replace(_FACTORIZED, host_reads=(INFO,), compute=_singular_values),
    "linalg_qr _linalg_det _linalg_slogdet": replace(_FACTORIZED, host_reads=()),
    "linalg_lstsq": OperatorModel(
        checks=(check_lstsq,), has_halves=False, compute=_least_squares, host_reads=(INFO,)
    ),
    "linalg_ldl_factor_ex": OperatorModel(
        has_halves=False,
        # cuSOLVER reads the pivots.
        host_reads=(HostRead(When.AFTER, has_elements, by_library=True), INFO_IF_ASKED),
    ),
    "linalg_pinv": OperatorModel(host_reads=(INFO,)),  # of the factorization that it contains
    # The norms decide how many products there are.
    "linalg_matrix_exp": OperatorModel(host_reads=(HostRead(When.BEFORE, has_columns),)),
    "linalg_solve_triangular": OperatorModel(surface="factorization", has_halves=False),
    "cholesky_inverse geqrf linalg_householder_product linalg_lu orgqr ormqr triangular_solve": (
        _WITHOUT_HALVES
    ),
    "linalg_lu_solve lu_unpack": _SOLVED,
    "linalg_ldl_solve": replace(_SOLVED, compute=_ldl_solution),
    "lu_solve": replace(_SOLVED, may_find_wrong_values=False),
    # by the eigenvalues
    "linalg_matrix_sqrth": replace(_FACTORIZED, host_reads=(INFO,), autocast=Autocast.FLOAT32),
    "linalg_vecdot linalg_multi_dot chain_matmul": OperatorModel(autocast=Autocast.LOWER),
}
