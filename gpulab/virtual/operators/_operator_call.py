"""The records of one operator call: its arguments, and what every lowering to kernels gets."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gpulab.core.torch_private import arguments_of
from gpulab.virtual.simulator.costs import Coordinate, KernelWork
from gpulab.virtual.tensors import TensorLayout

# What the driver's records call its own copies and fills on the device.
COPY, RESET = "Memcpy DtoD (Device -> Device)", "Memset (Device)"
# A kernel after a convolution, which was measured without a bias.
ADD_BIAS = "add bias"


@dataclass(frozen=True, slots=True)
class CallArguments:
    """The arguments of a call, by name or position."""

    func: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def __call__(self, wanted: str | int) -> Any:
        """Return an argument, or its default; None if the operator has no such argument."""
        for position, argument in enumerate(arguments_of(self.func)):
            if wanted in {position, argument.name}:
                default = argument.default_value
                value = self.args[position] if position < len(self.args) else default
                return self.kwargs.get(argument.name, value)
        return None


def always(_arguments: CallArguments) -> bool:
    """Return True: what is said of an operator holds for every call."""
    return True


@dataclass(frozen=True, slots=True)
class OperatorCall:
    """One call of an operator.

    Attributes
    ----------
    name
        The operator's name, without overload and trailing underscore.
    args, kwargs
        Its arguments, with stand-ins for the tensors.
    reads, writes
        Layouts of the tensors that it reads, and of those that it writes.
    arithmetic
        Type in which it computes: ``"float16"``, ``"tf32"``, ...
    flops
        Floating-point operations, 0 if PyTorch has no formula for the operator.
    is_in_place
        Whether the result replaces the first argument.
    dim
        Its argument ``dim`` or ``dims``: a number, several, or None.
    """

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    reads: list[TensorLayout]
    writes: list[TensorLayout]
    arithmetic: str
    flops: int
    is_in_place: bool
    dim: Any = None

    def dims(self, source: TensorLayout | None = None) -> list[int]:
        """Return along which dimensions it works; empty if it takes the tensor as one line.

        ``source`` is by default the first tensor that it reads.
        """
        n_dims = max(1, len((source or self.reads[0]).sizes))
        items = self.dim if isinstance(self.dim, (list, tuple)) else [self.dim]
        return [item % n_dims for item in items if item is not None]

    @property
    def side(self) -> str:
        """Whether it works along the last dimension, another one, or several."""
        dims = self.dims()
        if len(dims) > 1:
            return "several"
        is_last = not dims or dims[0] == len(self.reads[0].sizes) - 1
        return "last" if is_last else "other"

    @property
    def length(self) -> int:
        """Size of the dimension that it works along, at least 1."""
        sizes = self.reads[0].sizes or (1,)
        return max(1, sizes[(self.dims() or [-1])[0]])

    @property
    def is_half(self) -> bool:
        """Whether it computes in half precision."""
        return self.arithmetic.endswith("float16")

    @property
    def largest_read(self) -> TensorLayout:
        """The largest tensor that it reads."""
        return largest(self.reads or self.writes)

    @property
    def largest_written(self) -> TensorLayout:
        """The largest tensor that it writes."""
        return largest(self.writes)

    @property
    def n_in(self) -> int:
        """Elements of the largest tensor that it reads, or of the result if it reads none."""
        return max((item.n_elements for item in self.reads), default=self.n_out)

    @property
    def n_out(self) -> int:
        """Elements of the largest tensor that it writes."""
        return max((item.n_elements for item in self.writes), default=1)

    def work(self, family: str, **fields: Any) -> KernelWork:
        """Return the work of the call's last kernel; ``fields`` are those of ``KernelWork``.

        By default it processes the elements of the result.
        """
        fields.setdefault("n_elements", self.n_out)
        return KernelWork(family, self.arithmetic, **fields)

    def step(self, family: str, *, host_ns: int | None = None, **fields: Any) -> KernelWork:
        """Return the work of another kernel of the call.

        By default it reads and writes no tensor of the program; the last kernel makes the call's
        accesses.
        """
        fields = {"n_elements": self.n_out, "reads": False, "writes": False, **fields}
        return KernelWork(family, self.arithmetic, host_ns=host_ns, **fields)


# A function that returns the work of the kernels of a call.
Lowering = Callable[[OperatorCall], KernelWork]
# The coordinates of a call on its surface of measured efficiencies: one for each input of the
# kernels' choices, as far as they are known, a number or a word.
Coordinates = tuple[Coordinate, ...]
# For each operator the names of its kernels, or a function that returns them: None if the kernels
# of its lowering are right. Operators with the same kernels are separated by spaces.
Names = tuple[str, ...]
Rules = dict[str, Names | Callable[[OperatorCall], Names | None]]


def largest(items: Sequence[TensorLayout]) -> TensorLayout:
    """Return the tensor with the most elements."""
    return max(items, key=lambda item: item.n_elements)


def is_repeated(item: TensorLayout) -> bool:
    """Return whether elements share memory, as after ``expand``; most kernels need a copy."""
    return item.span_bytes < item.n_elements * item.dtype.itemsize


def copied(call: OperatorCall, *, at: int = 0) -> Names:
    """Return the copy of an expanded gradient, if it needs one before the kernel."""
    return ("copy",) if len(call.reads) > at and is_repeated(call.reads[at]) else ()


def n_indexed(call: OperatorCall) -> int:
    """Return how many elements of its first tensor a call writes by an index."""
    table, *others = call.reads
    if call.name == "index_fill" and table.sizes:
        n_indices = max(item.n_elements for item in others)
        along = int(table.sizes[call.args[1]])
        return n_indices * (table.n_elements // max(1, along))
    return max((item.n_elements for item in others), default=table.n_elements)
