"""How the virtual GPU models an operator: one record with all that PyTorch's schema does not say.

The records of a family are in the table ``MODELS`` of the module with its lowerings.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

import torch

from gpulab.virtual.operators._elementwise import elementwise
from gpulab.virtual.operators._host_reads import HostRead
from gpulab.virtual.operators._index_ranges import IndexRange
from gpulab.virtual.operators._operator_call import (
    CallArguments,
    Lowering,
    OperatorCall,
    always,
)


class Autocast(Enum):
    """To which type ``torch.autocast`` casts the arguments of an operator on CUDA."""

    LOWER = "the type of autocast"
    FLOAT16 = "float16, whatever the type of autocast"
    FLOAT32 = "float32"
    FLOAT32_RESULT = "no cast, but dtype=float32 is passed"
    NORM = "no cast, but another overload with dtype=float32 is called"
    WIDEST = "the widest type among them"
    REFUSED = "an error"


class DryRun(Enum):
    """Which errors count when the CPU's kernel runs with made-up values."""

    ALL = "all errors"
    OF_TYPES = "errors of types alone, because the operator checks values"
    NEVER = "none: with made-up values it reads outside of its tensors"


class Alert(NamedTuple):
    """When an operator has no deterministic kernel on CUDA, and its name in PyTorch's message.

    ``{}`` in it stands for the name of the operator.
    """

    caller: str
    condition: Callable[[CallArguments], bool] = always


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorModel:
    """What the virtual GPU knows of an operator, for all of its overloads.

    The defaults describe an operator that runs one kernel over the elements of its result.

    Attributes
    ----------
    lowering
        Returns the work of the kernels that a call launches.
    surface
        Its surface of measured efficiencies, or a function that returns it for a call; None if
        the family of its last kernel decides.
    tf32
        Which of PyTorch's switches decides whether it may use TF32: ``"matmul"`` or ``"conv"``.
    is_fused
        Whether it has a kernel on CUDA, though PyTorch composes it of others on the CPU.
    n_inside
        How many operators PyTorch calls inside it, which are not dispatched one by one.
    overwrites
        Whether it replaces all values of its first argument without reading them.
    takes_shape_alone
        Whether it takes only shape and type from its first argument.
    allocates
        Whether it only allocates memory.
    updates_statistics
        Whether it changes arguments 3 and 4 in training, which its schema does not say.
    keeps_channels_last
        Whether its result has the channels-last format of an input; on meta tensors it has not.
    may_write_twice
        Whether PyTorch lets it write to an expanded tensor: an element gets the same value each
        time.
    fills_with
        The number that it writes to all elements.
    compute
        A function that computes it on the CPU, where the CPU's operator has another algorithm.
    is_widened
        Whether the CPU computes half precision in float32: for speed, or because CUDA takes
        float32 beside it and the CPU does not.
    widens_bool
        Whether only CUDA has a kernel for booleans.
    mixes_types
        Whether CUDA's kernel takes half precision beside float32.
    has_halves
        Whether CUDA has a kernel for half precision, even where the CPU has none.
    takes_lengths
        Whether it takes the lengths of sequences as a host tensor, which decide on the shapes.
    takes_host_indices
        Whether it takes indices on the host together with tensors of the device.
    host_numbers
        Names of the arguments that may be a host tensor without dimensions, beside tensors of the
        device; None: all of them if PyTorch marks the operator as pointwise, otherwise none.
    host_reads
        What PyTorch reads back on the host inside it, so that the host waits.
    checks
        Functions that get its arguments and raise what CUDA raises and meta tensors do not.
    is_on_cpu_alone
        Whether CUDA has no such operator.
    is_wrong_on_meta
        Whether its results on meta tensors have other shapes than those on the CPU.
    dry_run
        Which errors of the CPU's kernel count when its call is planned.
    refusal
        For an operator without a model: what the program called, and what to use instead.
    index_ranges
        Returns the indices among its arguments and their ranges.
    may_find_wrong_values
        Whether it checks other values, so that it is computed before the next wait ends.
    nondeterministic
        Which calls are refused by ``torch.use_deterministic_algorithms(True)``.
    flag_at
        Position of an argument that has values even if the other arguments have none.
    autocast
        To which type autocast casts its arguments.
    is_recurrent
        Whether it stands for a recurrent layer as a whole. Its launches contain all the host's
        time, and its values are computed however long that takes.
    """

    lowering: Lowering = elementwise
    surface: str | Callable[[OperatorCall], str | None] | None = None
    tf32: str | None = None
    is_fused: bool = False
    n_inside: int = 0
    overwrites: bool = False
    takes_shape_alone: bool = False
    allocates: bool = False
    updates_statistics: bool = False
    keeps_channels_last: bool = False
    may_write_twice: bool = False
    fills_with: int | None = None
    compute: Callable[..., Any] | None = None
    is_widened: bool = False
    widens_bool: bool = False
    mixes_types: bool = False
    has_halves: bool = True
    takes_lengths: bool = False
    takes_host_indices: bool = False
    host_numbers: tuple[str, ...] | None = None
    host_reads: tuple[HostRead, ...] = ()
    checks: tuple[Callable[..., None], ...] = ()
    is_on_cpu_alone: bool = False
    is_wrong_on_meta: bool = False
    dry_run: DryRun = DryRun.ALL
    refusal: tuple[str, str] | None = None
    index_ranges: Callable[[list[Any]], list[IndexRange]] | None = None
    may_find_wrong_values: bool = False
    nondeterministic: Alert | None = None
    flag_at: int | None = None
    autocast: Autocast | None = None
    is_recurrent: bool = False

    @property
    def wider_types(self) -> dict[torch.dtype, torch.dtype]:
        """The types with which the CPU computes it where it has no kernel for others."""
        return _WIDER_BOOL if self.widens_bool else _WIDER


_WIDER = {
    torch.float16: torch.float32,
    torch.bfloat16: torch.float32,
    torch.complex32: torch.complex64,
}
_WIDER_BOOL = {**_WIDER, torch.bool: torch.uint8}

USE_DENSE = "use a dense tensor, or a sparse one on the CPU"
# The models of a family, by the names of the operators: without overload and trailing underscore,
# separated by spaces.
Models = dict[str, OperatorModel]
