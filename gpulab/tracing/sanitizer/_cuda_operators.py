"""Find out which tensors a call of a PyTorch operator reads, writes and makes, and if it waits."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from gpulab.core.torch_private import Overload, schema_of

# These allocate memory or change a tensor's sizes and storage. They launch no kernel.
_WITHOUT_KERNEL = {
    *("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty"),
    *("new_empty_strided", "resize_", "resize_as_", "set_"),
}
_COPIES = {"copy_", "_to_copy"}
# These take shape and type from their first argument, and read none of its elements.
_SHAPED_LIKE = {
    *("ones_like", "zeros_like", "full_like", "rand_like", "randn_like", "randint_like"),
    *("new_ones", "new_zeros", "new_full"),
}


@dataclass(frozen=True, slots=True)
class ObservedCall:
    """One call of an operator, whose name has no namespace and overload.

    ``made`` are results in new memory. The host ``waits`` if the result or its shape depends on
    values.
    """

    name: str
    read: tuple[torch.Tensor, ...]
    written: tuple[torch.Tensor, ...]
    made: tuple[torch.Tensor, ...]
    is_copy: bool
    non_blocking: bool
    waits: bool

    @property
    def has_kernel(self) -> bool:
        """Whether the call launches a kernel: views and empty tensors need none."""
        launches = self.written or self.made or self.waits
        return bool(launches) and self.name not in _WITHOUT_KERNEL


def read_call(
    func: Any,  # noqa: ANN401 # operators have no public type
    args: Sequence[object],
    kwargs: Mapping[str, object],
    out: object,
) -> ObservedCall:
    """Return what a call did, from its schema, its arguments and its result.

    An operator of operators, such as flex_attention's, has no schema. It counts as one operation
    that reads its arguments and makes its results.
    """
    form = _form_of(func) if isinstance(func, Overload) else _higher_order(func, args)
    arguments = {**dict(zip(form.arguments, args, strict=False)), **kwargs}
    written = [t for name in form.writes for t in tensors_in(arguments.get(name))]
    shape_only = form.arguments[:1] if form.name in _SHAPED_LIKE else ()
    others = [
        value for name, value in arguments.items() if name not in {*form.writes, *shape_only}
    ]
    read = list(tensors_in(others))
    # A result in memory of an argument is a view of it, or the argument itself.
    old = {_memory(tensor) for tensor in (*read, *written)}
    return ObservedCall(
        name=form.name,
        read=tuple(read),
        written=tuple(written),
        made=tuple(tensor for tensor in tensors_in(out) if _memory(tensor) not in old),
        is_copy=form.name in _COPIES,
        non_blocking=bool(arguments.get("non_blocking", False)),
        # The shape of ``x[index]`` depends on values only if an index is a mask.
        waits=form.waits and (form.name != "index" or _has_mask(arguments.get("indices"))),
    )


def tensors_in(value: object) -> Iterator[torch.Tensor]:
    """Yield the strided tensors of an argument or a result, those in lists included."""
    if isinstance(value, torch.Tensor):
        # Sparse tensors have several storages, and meta tensors none.
        if value.layout is torch.strided and not value.is_meta:
            yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item)


@dataclass(frozen=True, slots=True)
class _Form:
    """The parts of an operator's schema that all of its calls share."""

    name: str
    arguments: tuple[str, ...]
    writes: tuple[str, ...]
    waits: bool


def _higher_order(func: object, args: Sequence[object]) -> _Form:
    arguments = tuple(f"argument {n}" for n, _ in enumerate(args))
    return _Form(str(func), arguments, (), waits=False)


@cache
def _form_of(func: Any) -> _Form:  # noqa: ANN401 # as above
    schema = schema_of(func)
    arguments = schema.arguments
    writes = [a.name for a in arguments if a.alias_info is not None and a.alias_info.is_write]
    # PyTorch's tags for operators whose result, or whose shape, the host must read from the GPU.
    waits = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape} & set(func.tags)
    name = schema.name.rpartition("::")[2]
    return _Form(name, tuple(a.name for a in arguments), tuple(writes), bool(waits))


def _has_mask(indices: object) -> bool:
    return any(index.dtype in {torch.bool, torch.uint8} for index in tensors_in(indices))


def _memory(tensor: torch.Tensor) -> tuple[torch.device, int]:
    return tensor.device, tensor.untyped_storage().data_ptr()
