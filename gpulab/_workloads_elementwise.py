"""Work that treats every element alike: arithmetic, copies, dropout and an optimizer's step."""

from collections.abc import Callable
from functools import partial

import torch
from torch.nn import functional

from gpulab._workloads_problem import Problem, Tensor, normal

_DROPPED = 0.1
_N_SIGMA = 6  # one right dropout in a billion would fail
# Adam moves a parameter by about a thousandth, so rounding the parameter, which is about 1,
# counts a thousandfold in the step that is compared; terms enter a tolerance by their root.
_STEP_TERMS = 1000**2


def add(n: int) -> Problem:
    """Sum of two vectors of n elements.

    FLOPs: one for each element.
    Bytes: two are read and one is written for each: 3 n elements.
    """
    return Problem(inputs=(normal(n), normal(n)), call=torch.add, n_flops=n, n_elements=3 * n)


def exp(n: int) -> Problem:
    """Exponential of n elements.

    FLOPs: one for each element; an exponential counts as one, whatever the hardware makes of it.
    Bytes: n elements are read and n written.
    """
    return Problem(inputs=(normal(n),), call=torch.exp, n_flops=n, n_elements=2 * n, n_terms=4)


def gelu(n: int) -> Problem:
    """GELU of n elements, by the error function: x/2 (1 + erf(x / sqrt 2)).

    FLOPs: 5 for each element: three multiplications, an addition, and erf as one.
    Bytes: n elements are read and n written.
    """
    return Problem(inputs=(normal(n),), call=functional.gelu, n_flops=5 * n, n_elements=2 * n)


def dropout(n: int) -> Problem:
    """Dropout of a tenth of n elements.

    FLOPs: one multiplication for each element; drawing the random numbers is not counted.
    Bytes: n elements are read and n written. PyTorch writes a mask of n bytes beside them where a
    gradient is asked for, which is not so here.

    Which elements fall is random, so the check asks that the others are right and that nearly a
    tenth fell.
    """
    return Problem(
        inputs=(normal(n),),
        call=partial(functional.dropout, p=_DROPPED, training=True),
        n_flops=n,
        n_elements=2 * n,
        reference=_kept,
    )


def _kept(result: Tensor, x: Tensor) -> Tensor:
    """Return what dropout should have made of the elements that it kept."""
    dropped = result == 0
    n, n_dropped = dropped.numel(), int(dropped.sum())
    allowed = _N_SIGMA * (n * _DROPPED * (1 - _DROPPED)) ** 0.5
    if abs(n_dropped - n * _DROPPED) > allowed:
        return torch.full_like(x, torch.inf)
    return torch.where(dropped, 0.0, x / (1 - _DROPPED))


def copy(n: int) -> Problem:
    """Copy of n elements into memory that is there already: a copy by the driver, no kernel.

    FLOPs: none.
    Bytes: n elements are read and n written.
    """
    return Problem(inputs=(normal(n), normal(n)), call=_copy, n_elements=2 * n)


def _copy(source: Tensor, target: Tensor) -> Tensor:
    return target.copy_(source)


def transposed_copy(n: int) -> Problem:
    """Transpose of a square matrix of side n, written to new memory.

    FLOPs: none.
    Bytes: n**2 elements are read and n**2 written; reading or writing goes across the rows, which
    moves more where a kernel does not gather tiles first.
    """
    return Problem(inputs=(normal(n, n),), call=_transposed_copy, n_elements=2 * n**2)


def _transposed_copy(x: Tensor) -> Tensor:
    return x.t().contiguous()


def adam(n: int) -> Problem:
    """One step of Adam on n parameters, in its fused form.

    FLOPs: 13 for each parameter: 3 and 4 for the two moments, and 6 from the moments to the
    parameter (two divisions by the bias corrections, root, epsilon, quotient, subtraction).
    Bytes: parameter, gradient and both moments are read, and all but the gradient are written:
    7 n elements.
    """
    return Problem(
        inputs=(normal(n), normal(n)),
        call=_adam_step,
        prepared=True,
        compared=_moved,
        n_flops=13 * n,
        n_elements=7 * n,
        n_terms=_STEP_TERMS,
    )


def _adam_step(start: Tensor, gradient: Tensor) -> Callable[[], Tensor]:
    parameter = start.clone().requires_grad_()
    parameter.grad = gradient
    optimizer = torch.optim.Adam([parameter], fused=True)

    def work() -> Tensor:
        optimizer.step()
        return parameter

    return work


def _moved(parameter: Tensor, start: Tensor, _gradient: Tensor) -> Tensor:
    return parameter.detach() - start
