"""Linear algebra on the host as CUDA's libraries do it, where LAPACK has other algorithms."""

from typing import Any

import torch

from gpulab.core.torch_private import check_errors, linalg_eigh, linalg_svd

aten = torch.ops.aten

_SVD_DRIVERS = {None, "gesvd", "gesvdj", "gesvda"}
_SVD_PAGE = "https://pytorch.org/docs/stable/generated/torch.linalg.svd.html"


def singular_values(
    matrix: torch.Tensor, *options: bool, driver: str | None = None, **more: bool
) -> Any:
    """Decompose a matrix; all of cuSOLVER's drivers give the same up to rounding.

    Raises
    ------
    RuntimeError
        If cuSOLVER has no such driver; the text is PyTorch's.

    Examples
    --------
    >>> singular_values(torch.eye(2), driver="gesvd")[1]
    tensor([1., 1.])
    """
    if driver not in _SVD_DRIVERS:
        raise RuntimeError(
            f"torch.linalg.svd: unknown svd driver {driver} in svd_cusolver computation. "
            f"Check doc at {_SVD_PAGE}"
        )
    return linalg_svd(matrix, *options, **more)


def eigenvalues(matrix: torch.Tensor, *options: Any, **more: Any) -> Any:
    """Decompose a symmetric matrix; numbers that are not finite raise PyTorch's error.

    MKL's LAPACK may end the process for them.

    Raises
    ------
    torch.linalg.LinAlgError
        If a number is not finite.

    Examples
    --------
    >>> eigenvalues(torch.eye(2))[0]
    tensor([1., 1.])
    """
    size = matrix.shape[-1]
    if not matrix.is_meta and size > 1:
        is_finite = matrix.isfinite().flatten(-2).all(-1)
        # As many eigenvalues were not found: the code that LAPACK gives for a small matrix of nan.
        info = torch.where(is_finite, 0, size - 1).int()
        is_matrix = matrix.dim() == 2  # noqa: PLR2004 # and not a batch of them
        check_errors(info, "linalg.eigh", is_matrix=is_matrix)
    return linalg_eigh(matrix, *options, **more)


def least_squares(
    matrix: torch.Tensor,
    right: torch.Tensor,
    rcond: float | None = None,
    *,
    driver: str | None = None,
) -> tuple[torch.Tensor, ...]:
    """Solve a least squares problem by a QR decomposition, as PyTorch does on CUDA.

    LAPACK refuses numbers that are not finite; here they give nan.

    Raises
    ------
    RuntimeError
        If another driver is asked for; the text is PyTorch's.

    Examples
    --------
    >>> least_squares(torch.eye(2) * 4, torch.ones(2, 1))[0]
    tensor([[0.2500],
            [0.2500]])
    """
    if driver not in {None, "gels"}:
        raise RuntimeError(
            "torch.linalg.lstsq: `driver` other than `gels` is not supported on CUDA"
        )
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


DRIVERS = {
    linalg_svd: singular_values,
    linalg_eigh: eigenvalues,
    aten.linalg_lstsq.default: least_squares,
}
