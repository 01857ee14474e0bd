"""Describe one call of an operator: what a lowering to kernels is given."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gpulab.virtual.simulator.costs import KernelWork
from gpulab.virtual.tensors import TensorLayout


@dataclass(frozen=True, slots=True)
class OperatorCall:
    """One call of an operator.

    Attributes
    ----------
    name
        The operator's bare name.
    args, kwargs
        Its arguments, with stand-ins of the tensors.
    reads, writes
        Layouts of the tensors that it reads, and of those that it writes.
    arithmetic
        Type in which it computes: ``"float16"``, ``"tf32"``, ...
    flops
        Floating-point operations, 0 where nobody counts them.
    is_in_place
        Whether the result replaces the first argument.
    """

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    reads: list[TensorLayout]
    writes: list[TensorLayout]
    arithmetic: str
    flops: int
    is_in_place: bool

    @property
    def n_in(self) -> int:
        """Elements of the largest tensor that is read, or of the result if none is."""
        return max((item.n_elements for item in self.reads), default=self.n_out)

    @property
    def n_out(self) -> int:
        """Elements of the largest tensor that is written."""
        return max((item.n_elements for item in self.writes), default=1)

    def work(self, family: str, **given: Any) -> KernelWork:
        """Return work of this call's type, over the elements of the result unless given."""
        given.setdefault("n_elements", self.n_out)
        return KernelWork(family, self.arithmetic, **given)

    def step(self, family: str, *, host_ns: int | None = None, **given: Any) -> KernelWork:
        """Return a further kernel of this call, which accesses no tensor of the program."""
        given = {"n_elements": self.n_out, "reads": False, "writes": False, **given}
        return KernelWork(family, self.arithmetic, host_ns=host_ns, **given)


# Returns the work of the kernels that CUDA runs for a call.
Lowering = Callable[[OperatorCall], KernelWork]
