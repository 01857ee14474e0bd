"""The catalogue itself: every workload with its sizes and types.

Each operation has one size ``n`` and a few types. Its docstring derives its FLOPs and the least
number of bytes that it must move; ``workload(name).derivation`` returns that text.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import cleandoc
from types import MappingProxyType
from typing import Any

import torch

from gpulab.core.errors import InvalidOptionError, shown
from gpulab.core.requirements import (
    COUNT,
    FUNCTION,
    NAME,
    NameOf,
    check_fields,
    instance_of,
    items_of,
)
from gpulab.workloads import _compute_bound as compute
from gpulab.workloads import _memory_bound as memory
from gpulab.workloads._problem import Problem, Tensor

__all__ = ["WORKLOADS", "Workload", "names", "workload"]

_MOST_BYTES = 2**56  # GPUs have virtual addresses of 49 to 57 bits


_FLOATS = ("float32", "float16", "bfloat16", "float64")
_SINGLE_AND_HALF = ("float32", "float16", "bfloat16")
_SINGLE_AND_DOUBLE = ("float32", "float64")


_GENERATOR = instance_of(torch.Generator, "a torch.Generator").or_none


@dataclass(frozen=True, slots=True)
class Workload:
    """A named operation that can be built at any size.

    Attributes
    ----------
    name
        Its usual name, e.g. ``"layer_norm"``.
    problem
        Returns the operation at one size.
    size_is
        The unit of the size, e.g. ``"rows of 4,096"``.
    sizes
        Sizes for a sweep, smallest first; calls take from microseconds to milliseconds.
    dtypes
        Names of the PyTorch types that it is offered for.

    Examples
    --------
    >>> import torch, gpulab
    >>> add = gpulab.workloads.workload("add")
    >>> add.size_is, add.flops(64)
    ('elements', 64)
    >>> add.make(64, "float32", device="cpu")().shape
    torch.Size([64])
    """

    name: str
    problem: Callable[[int], Problem]
    size_is: str
    sizes: tuple[int, ...]
    dtypes: tuple[str, ...] = _SINGLE_AND_HALF

    def __post_init__(self) -> None:
        check_fields(self)
        NAME.check(name=self.name, size_is=self.size_is)
        FUNCTION.check(problem=self.problem)
        items_of("sizes", self.sizes, COUNT)

    @property
    def derivation(self) -> str:
        """Text on what the operation does, and how its FLOPs and bytes are counted."""
        # `python -OO` removes docstrings.
        return cleandoc(self.problem.__doc__ or "")

    def flops(self, size: int) -> int:
        """Return the floating-point operations of one call.

        They are counted as in textbooks, not as a GPU executes them: padding, recomputation and
        the steps inside special functions are left out.
        """
        return self._problem(size).n_flops

    def bytes(self, size: int, dtype: str) -> int:
        """Return the least bytes that one call must move: each input and output once.

        A kernel moves more if its working set does not fit on the chip. It moves less from device
        memory if a cache already contains some of the data.
        """
        return self._problem(size).n_bytes(self._dtype(dtype).itemsize)

    def setup(
        self,
        size: int,
        dtype: str,
        device: str | torch.device = "cuda",
        *,
        generator: torch.Generator | None = None,
    ) -> tuple[Tensor, ...]:
        """Return random inputs on a device; without ``generator``, from PyTorch's default one."""
        kind, torch_device = self._dtype(dtype), _torch_device(device)
        _GENERATOR.check(generator=generator)
        return tuple(
            spec.draw(kind, torch_device, generator) for spec in self._problem(size).inputs
        )

    def make(
        self, size: int, dtype: str, device: str | torch.device = "cuda"
    ) -> Callable[[], Any]:
        """Return a function without arguments that runs the operation, on new random inputs.

        Parameters
        ----------
        size
            In the unit ``size_is``; at least 1.
        dtype
            One of ``dtypes``.
        device
            Where it runs; ``"cpu"`` gives the same work for the CPU side of a crossover.

        Raises
        ------
        InvalidOptionError
            If the size is below 1.
        UnknownNameError
            If the operation is not offered for the type.
        """
        return self._problem(size).work(self.setup(size, dtype, device))

    def _problem(self, size: int) -> Problem:
        COUNT.check(size=size)
        problem = self.problem(size)
        if problem.n_bytes(1) > _MOST_BYTES:
            raise InvalidOptionError(
                f"size={size:,}; {self.name} of that size has more bytes than a GPU can address; "
                "give a smaller size"
            )
        return problem

    def _dtype(self, dtype: str) -> torch.dtype:
        NameOf(f"type of {self.name}", self.dtypes).check(dtype=dtype)
        kind: torch.dtype = getattr(torch, dtype)
        return kind


def _torch_device(device: str | torch.device) -> torch.device:
    try:
        return torch.device(device)
    except (RuntimeError, TypeError, ValueError) as error:
        raise InvalidOptionError(
            f"device={shown(device)}; it must be a device of torch, such as 'cuda' or 'cpu'"
        ) from error


def _powers(first: int, last: int, step: int = 2) -> tuple[int, ...]:
    """Return powers of two, from ``2**first`` to ``2**last``."""
    return tuple(2**exponent for exponent in range(first, last + 1, step))


_ELEMENTS, _SIDE = "elements", "side of the matrices"
_ROWS, _SHORT_ROWS, _IMAGES = "rows of 4,096", "rows of 1,024", "images of 56 x 56"

WORKLOADS: Mapping[str, Workload] = MappingProxyType(
    {
        listed.name: listed
        for listed in (
            Workload("matmul", compute.matmul, _SIDE, _powers(6, 13, 1), _FLOATS),
            Workload("matmul_odd", compute.matmul_odd, _SIDE, _powers(6, 13, 1), _FLOATS),
            Workload("bmm", compute.bmm, "side of the 64 matrices", _powers(5, 10, 1), _FLOATS),
            Workload("linear", compute.linear, _ROWS, (1, 16, 128, 1024, 8192)),
            Workload("add", memory.add, _ELEMENTS, _powers(10, 28), _FLOATS),
            Workload("exp", memory.exp, _ELEMENTS, _powers(10, 28), _FLOATS),
            Workload("copy", memory.copy, _ELEMENTS, _powers(10, 28), _FLOATS),
            Workload(
                "transposed_copy",
                memory.transposed_copy,
                "side of the matrix",
                _powers(6, 14, 1),
                _FLOATS,
            ),
            Workload("sum", memory.total, _ELEMENTS, _powers(10, 28), _FLOATS),
            Workload("mean", memory.mean, _ELEMENTS, _powers(10, 28), _FLOATS),
            Workload("argmax", memory.argmax, _ELEMENTS, _powers(10, 28), _FLOATS),
            Workload("softmax", memory.softmax, _ROWS, _powers(4, 16), _FLOATS),
            Workload("layer_norm", memory.layer_norm, _ROWS, _powers(4, 16), _FLOATS),
            Workload("rms_norm", memory.rms_norm, _ROWS, _powers(4, 16), _FLOATS),
            Workload("gelu", memory.gelu, _ELEMENTS, _powers(10, 28), _FLOATS),
            Workload("dropout", memory.dropout, _ELEMENTS, _powers(10, 28), _FLOATS),
            Workload("embedding", memory.embedding, "rows looked up", _powers(6, 18), _FLOATS),
            Workload("gather", memory.gather, _SHORT_ROWS, _powers(4, 16), _FLOATS),
            Workload("scatter_add", memory.scatter_add, _SHORT_ROWS, _powers(4, 16), _FLOATS),
            Workload("cumsum", memory.cumsum, _ROWS, _powers(4, 16), _FLOATS),
            Workload("sort", memory.sort, _ROWS, _powers(2, 12), _FLOATS),
            Workload("topk", memory.topk, _ROWS, _powers(4, 14), _FLOATS),
            # PyTorch's FFT on the CPU refuses both half types.
            Workload("fft", memory.fft, _SHORT_ROWS, _powers(4, 16), _SINGLE_AND_DOUBLE),
            Workload("conv1x1", compute.conv1x1, _IMAGES, _powers(0, 8)),
            Workload("conv3x3", compute.conv3x3, _IMAGES, _powers(0, 8)),
            Workload("conv_depthwise", compute.conv_depthwise, _IMAGES, _powers(0, 8)),
            Workload("attention", compute.attention, "tokens", _powers(7, 13, 1)),
            Workload("cross_entropy", memory.cross_entropy, "rows of 32,000", _powers(4, 14)),
            # In a half type, a step of a thousandth is lost beside a parameter near 1.
            Workload("adam", memory.adam, "parameters", _powers(10, 26), _SINGLE_AND_DOUBLE),
        )
    }
)


def names() -> tuple[str, ...]:
    """Return the names of the catalogue, in its order: matmuls first.

    Examples
    --------
    >>> import gpulab
    >>> gpulab.workloads.names()[:3]
    ('matmul', 'matmul_odd', 'bmm')
    """
    return tuple(WORKLOADS)


def workload(name: str) -> Workload:
    """Return the workload of this name.

    Raises
    ------
    UnknownNameError
        If there is none; the message suggests the nearest.

    Examples
    --------
    >>> workload("softmax").flops(16)
    262144
    >>> workload("add").bytes(1024, "float16")
    6144
    """
    NameOf("workload", WORKLOADS).check(workload=name)
    return WORKLOADS[name]
