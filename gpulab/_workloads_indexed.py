"""Work that goes where indices point: look-ups, gathers and scattered additions."""

from torch.nn import functional

from gpulab._workloads_problem import Problem, Tensor, normal, whole

_VOCABULARY = 32_000
_COLUMNS = 1024


def embedding(n: int) -> Problem:
    """Look-up of n random rows in a table of 32,000 rows of 1,024.

    FLOPs: none.
    Bytes: n indices and as many rows are read, and n rows are written; of more than 32,000 rows
    each needs to be read only once.
    """
    return Problem(
        inputs=(whole(_VOCABULARY, n), normal(_VOCABULARY, _COLUMNS)),
        call=functional.embedding,
        n_elements=(min(n, _VOCABULARY) + n) * _COLUMNS,
        n_indices=n,
    )


def gather(n: int) -> Problem:
    """For each of n rows of 1,024, as many elements of it at random places.

    FLOPs: none.
    Bytes: rows and indices are read and as many elements are written. About 63 % of the elements
    are asked for, but memory moves in sectors of 32 bytes, so the rows count whole.
    """
    return Problem(
        inputs=(normal(n, _COLUMNS), whole(_COLUMNS, n, _COLUMNS)),
        call=_gather,
        n_elements=2 * n * _COLUMNS,
        n_indices=n * _COLUMNS,
    )


def _gather(x: Tensor, index: Tensor) -> Tensor:
    return x.gather(1, index)


def scatter_add(n: int) -> Problem:
    """Adding each element of n rows of 1,024 to a random place of the same row of a target.

    FLOPs: one addition for each element.
    Bytes: elements, indices and target are read and the target is written: 3 n 1024 elements and
    n 1024 indices; the target counts whole, for the reason given for ``gather``.
    """
    return Problem(
        inputs=(normal(n, _COLUMNS), whole(_COLUMNS, n, _COLUMNS), normal(n, _COLUMNS)),
        call=_scatter_add,
        n_flops=n * _COLUMNS,
        n_elements=3 * n * _COLUMNS,
        n_indices=n * _COLUMNS,
        n_terms=16,
    )


def _scatter_add(target: Tensor, index: Tensor, source: Tensor) -> Tensor:
    return target.scatter_add_(1, index, source)
