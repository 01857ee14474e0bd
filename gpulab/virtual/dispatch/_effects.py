"""Find what a call does to memory: its results, what it reads and writes, and what it reshapes."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import torch

from gpulab.core.torch_private import arguments_of, overload_name, results_of, unsafe_view
from gpulab.virtual.dispatch._meta_execution import MetaExecution, not_dense
from gpulab.virtual.operators import Operator
from gpulab.virtual.tensors import TensorLayout, VirtualTensor, layout_of

# In training mode a batch norm updates running mean and variance, although its schema in torch
# 2.13 does not mark these arguments as written.
_RUNNING_STATISTICS, _TRAINING = (3, 4), 5


class Effect(Enum):
    """What an operator does: launch a kernel, return a view, or only allocate memory."""

    KERNEL = "kernel"
    VIEW = "view"
    ALLOCATION = "allocation"


@dataclass(frozen=True, slots=True)
class NewResult:
    """A result in new memory."""

    layout: TensorLayout


@dataclass(frozen=True, slots=True)
class ViewResult:
    """A view of the first argument, shifted by ``offset`` elements."""

    layout: TensorLayout
    offset: int


@dataclass(frozen=True, slots=True)
class ArgumentResult:
    """A result that is one of the arguments: tensor number ``index`` among them."""

    index: int


@dataclass(frozen=True, slots=True)
class PlainResult:
    """A result that is not a tensor."""

    value: object


@dataclass(frozen=True, slots=True)
class Reshaped:
    """An argument whose layout the operator changes, as ``t_()`` and ``out=`` do.

    Its index among the argument tensors, its layout after the call, and the number of elements by
    which its start moves in its storage.
    """

    index: int
    layout: TensorLayout
    offset: int


Result = NewResult | ViewResult | ArgumentResult | PlainResult


@dataclass(frozen=True, slots=True, eq=False)
class CallEffects:
    """What a call does to memory.

    Arguments that are read and written, and new results, are given by their indices among the
    tensors or the results. ``container`` is the type of several results, or None for one.
    """

    effect: Effect
    results: tuple[Result, ...]
    new_results: tuple[int, ...]
    container: type | None
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    reshaped: tuple[Reshaped, ...]


def effects_of(
    operator: Operator,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    tensors: list[VirtualTensor],
    execution: MetaExecution,
) -> CallEffects:
    """Return what a call does to memory, from the schema and from its execution on meta tensors.

    Raises
    ------
    RuntimeError
        If it writes to an expanded tensor, which few operators may; with PyTorch's message.
    """
    stand_ins, out = execution.stand_ins, execution.out
    is_several = isinstance(out, (list, tuple))
    # In reverse, so that a tensor that is given twice has the index of its first position.
    index_of = {id(stand_ins[id(tensor)]): i for i, tensor in reversed(list(enumerate(tensors)))}
    is_view = _returns_view(operator.func)
    outs = list(out) if is_several else [out]
    results = tuple(_result(operator, item, index_of, is_view=is_view) for item in outs)
    # From the schema, because the stand-ins do not show which arguments were written.
    writes = _changed(operator, args, kwargs, tensors)
    effect = _effect(operator, results, writes)
    if effect is Effect.KERNEL and not operator.model.may_write_twice:
        for i in writes:
            _refuse_expanded(tensors[i].layout_key)
    return CallEffects(
        effect,
        results,
        tuple(i for i, item in enumerate(results) if isinstance(item, NewResult)),
        type(out) if is_several else None,
        _read(operator, tensors, writes),
        writes,
        _reshaped(tensors, writes, stand_ins),
    )


def _reshaped(
    tensors: list[VirtualTensor], writes: tuple[int, ...], stand_ins: dict[int, torch.Tensor]
) -> tuple[Reshaped, ...]:
    reshaped = []
    for index in writes:
        stand_in = stand_ins[id(tensors[index])]
        after = layout_of(stand_in)
        # Layouts are compared by identity, since equal ones are the same object.
        if after is not tensors[index].layout_key:
            reshaped.append(Reshaped(index, after, int(stand_in.storage_offset())))
    return tuple(reshaped)


def _result(
    operator: Operator,
    item: Any,
    index_of: dict[int, int],
    *,
    is_view: bool,
) -> Result:
    if not isinstance(item, torch.Tensor):
        return PlainResult(item)
    # In-place operators return their argument itself, and the program must get its own tensor.
    if id(item) in index_of:
        return ArgumentResult(index_of[id(item)])
    # A sparse result has no memory layout that the model could use.
    if item.layout is not torch.strided:
        raise not_dense(operator, item.layout)
    if is_view:
        return ViewResult(layout_of(item), int(item.storage_offset()))
    return NewResult(layout_of(item))


def _returns_view(func: Any) -> bool:
    # The schema of _unsafe_view has no alias, but its result shares memory with its argument.
    if func is unsafe_view:
        return True
    aliases = [result.alias_info for result in results_of(func)]
    return any(alias is not None and not alias.is_write for alias in aliases)


def _changed(
    operator: Operator,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    tensors: list[VirtualTensor],
) -> tuple[int, ...]:
    changed: set[int] = set()
    unnamed = _changed_unnamed(operator, args)
    for position, argument in enumerate(arguments_of(operator.func)):
        is_named = argument.alias_info is not None and argument.alias_info.is_write
        if not is_named and position not in unnamed:
            continue
        value = kwargs.get(argument.name, args[position] if position < len(args) else None)
        items = value if isinstance(value, (list, tuple)) else [value]
        changed.update(id(item) for item in items)
    return tuple(i for i, tensor in enumerate(tensors) if id(tensor) in changed)


def _changed_unnamed(operator: Operator, args: Sequence[Any]) -> tuple[int, ...]:
    """Return the positions of arguments that an operator changes but its schema does not mark."""
    if not operator.model.updates_statistics:
        return ()
    is_training = args[_TRAINING] if len(args) > _TRAINING else True
    return _RUNNING_STATISTICS if is_training else ()


def _read(
    operator: Operator, tensors: list[VirtualTensor], writes: tuple[int, ...]
) -> tuple[int, ...]:
    # These replace all elements of what they write, so the kernel does not read it.
    skipped = set(writes) if operator.model.overwrites else set()
    if overload_name(operator.func) in {"out", "Tensor_out"}:
        # The result may be an input, too, as in ``torch.mul(a, b, out=a)``.
        n_uses = Counter(map(id, tensors))
        skipped = {i for i in writes if n_uses[id(tensors[i])] == 1}
    if operator.model.takes_shape_alone:
        skipped.add(0)
    return tuple(i for i in range(len(tensors)) if i not in skipped)


def _effect(operator: Operator, results: Sequence[object], writes: tuple[int, ...]) -> Effect:
    if operator.model.allocates and not writes:
        return Effect.ALLOCATION
    # An operator that only changes a tensor's shape, such as t_(), launches no kernel.
    if torch.Tag.inplace_view in operator.func.tags:
        return Effect.VIEW
    if not writes and all(isinstance(item, (ViewResult, ArgumentResult)) for item in results):
        return Effect.VIEW
    return Effect.KERNEL


def _refuse_expanded(layout: TensorLayout) -> None:
    """Refuse to write to an expanded tensor, whose elements share an address.

    PyTorch does not look for other views with such elements, as of ``Tensor.unfold``.

    Raises
    ------
    RuntimeError
        With PyTorch's message.
    """
    if any(n > 1 and not step for n, step in zip(layout.sizes, layout.strides, strict=True)):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a "
            "single memory location. Please clone() the tensor before performing the operation."
        )
