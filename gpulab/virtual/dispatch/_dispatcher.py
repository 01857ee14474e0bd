"""Receive every operator of PyTorch: launch it on the virtual GPU, or run it on the host.

One file, because the handlers of single operators and the common path call one another.
"""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import torch
from torch.nn.parameter import is_lazy

from gpulab.core.errors import NotModelledError
from gpulab.core.torch_private import (
    DispatchMode,
    Overload,
    arguments_of,
    check_errors,
    conj_view,
    efficient_zero_tensor,
    index_put_impl,
    neg_view,
    pack_padded_sequence,
    pad_packed_sequence,
    read_scalar,
    to_copy,
    unsafe_index_put,
)
from gpulab.core.tracebacks import end_at_the_call
from gpulab.virtual._generators import generator_in, require_host, without_generator
from gpulab.virtual.dispatch._copies import (
    copy_across,
    copy_in,
    copy_out,
    copy_to_show,
    is_pinned,
    pin,
    read_back,
    read_item,
    to_device,
    to_host,
)
from gpulab.virtual.dispatch._data_dependent_shapes import (
    find_selected,
    host_result,
    run_data_dependent,
)
from gpulab.virtual.dispatch._dispatched_call import DispatchedCall
from gpulab.virtual.dispatch._execute import (
    execute_and_read,
    execute_plan,
    mark_written,
    reads_of,
)
from gpulab.virtual.dispatch._host_operators import on_host
from gpulab.virtual.dispatch._in_place_reshape import as_strided
from gpulab.virtual.dispatch._meta_execution import META
from gpulab.virtual.dispatch._nondeterministic import OperatorHandler, deterministic_handlers
from gpulab.virtual.dispatch._placement import check_host_numbers, check_host_tensors, named_gpu
from gpulab.virtual.dispatch._plain_shapes import without_symbols
from gpulab.virtual.dispatch._plans import CallKey, plan_for
from gpulab.virtual.dispatch._untyped_storage import set_to
from gpulab.virtual.operators import MASKS, Operator, When, operator_of
from gpulab.virtual.simulator import SimulatedGpu, active
from gpulab.virtual.tensors import (
    Storage,
    VirtualTensor,
    layout_of,
    reference,
    set_dispatch,
    wrap,
)

aten = torch.ops.aten

_CPU = torch.device("cpu")


class VirtualMode(DispatchMode):  # type: ignore[no-untyped-call] # torch's is untyped
    """A dispatch mode that sends every operator of the thread to :func:`dispatch`."""

    # Or PyTorch would refuse an operator that takes functions, with a hint about this class.
    supports_higher_order_operators = True

    def __torch_dispatch__(
        self,
        func: Any,
        types: object,  # torch's signature
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        try:
            return dispatch(func, args, kwargs or {})
        except Exception as error:
            # As on a CUDA GPU, where PyTorch's checks have no frames of Python: the traceback
            # ends at the line of the call. This method gets no entry by raising it again.
            end_at_the_call(error)
            raise


def dispatch(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run one operator on the virtual machine, and return its result."""
    # By id: hashing an OpOverload runs Python code of PyTorch, once for each operator call.
    handler = _HANDLERS.get(id(func))
    if handler is not None:
        return handler(func, args, kwargs)
    if not isinstance(func, Overload):
        raise NotModelledError(
            f"the virtual GPU has no model of {func}, an operator that takes functions; write it "
            "with usual operators, or run it on a CUDA GPU"
        )
    return _run_planned(func, args, kwargs)


Observer = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]


@contextmanager
def observing(observer: Observer) -> Iterator[None]:
    """Send each operator inside the block to ``observer``, which must call :func:`dispatch`."""
    # The method of the class is replaced, so that an operator is no slower without an observer.

    def observed(
        _mode: VirtualMode,
        func: Any,
        _types: object,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        return observer(func, args, kwargs or {})

    mode: Any = VirtualMode
    own = mode.__torch_dispatch__
    try:
        mode.__torch_dispatch__ = observed
        yield
    finally:
        mode.__torch_dispatch__ = own


def _run_planned(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Plan and run an operator that has no handler of its own, or whose handler calls this."""
    operator = operator_of(func)
    if operator.is_composite:
        # A composite operator arrives here only in inference mode; otherwise autograd has already
        # decomposed it.
        with VirtualMode():  # type: ignore[no-untyped-call] # torch's is untyped
            return func.decompose(*args, **kwargs)
    call = (args, kwargs)
    generator = generator_in(func, args, kwargs) if operator.is_random else None
    if generator is not None:
        call = without_generator(func, args, kwargs)
    tensors: list[VirtualTensor] = []
    key = CallKey(tensors)
    options = key.of_mapping(call[1]) if kwargs else ()
    # Part of the key, because it is the type of results such as torch.ones(2).
    default = torch.get_default_dtype()
    parts: tuple[Hashable, ...] = (operator, key.of(call[0]), options, default)
    device = kwargs.get("device") if kwargs else None
    # Autograd sees meta tensors, so it asks for results on meta where it would ask for cuda.
    if not tensors and (device is None or device.type not in {"cuda", "meta"}):
        require_host(generator)
        return on_host(func, args, kwargs)
    if tensors and device is not None and device.type == "cpu":
        return _for_host(operator, args, kwargs)
    gpu = key.gpu(device, func, args, kwargs)
    if key.host_tensors and tensors:
        check_host_tensors(operator, args, kwargs)
    if key.has_host_numbers and tensors:
        check_host_numbers(operator, args, kwargs)
    dispatched = DispatchedCall(operator, *call, tensors, key.unplanned, gpu, generator)
    reads = reads_of(dispatched) if operator.host_reads else ()
    # Before the plan, which is made from shapes alone.
    if reads and reads[0].when is When.FOR_SIZE:
        for check in operator.model.checks:
            check(*args, **kwargs)
        return run_data_dependent(dispatched, by_library=reads[0].by_library)
    if operator.depends_on_state:
        parts = (*parts, *key.of_state(operator))
    # The key does not contain the value of a float, but without tensors it may decide the
    # shape, as in arange(2.5).
    hashable: Hashable = parts if tensors else (*parts, repr(args))
    plan = plan_for(operator, *call, tensors, hashable)
    return execute_and_read(plan, dispatched, reads) if reads else execute_plan(plan, dispatched)


def _for_host(operator: Operator, args: Any, kwargs: Any) -> Any:
    """Run an operator on device tensors whose result must be on the host."""
    func = operator.func
    if operator.model.takes_shape_alone or operator.model.allocates:
        # E.g. torch.zeros_like(x, device="cpu") needs only the shape of x, and waits for nothing.
        key = args[0].layout_key
        shape = torch.empty_strided(key.sizes, key.strides, dtype=key.dtype, device=META)
        return on_host(func, (shape, *args[1:]), kwargs)
    on_device = _run_planned(func, args, {**kwargs, "device": None})
    return to_host(on_device)


def _copy(func: Any, args: Any, kwargs: Any) -> Any:
    target, source = args[0], args[1]
    if target is source:
        return target  # as PyTorch does, before it looks at the layout
    if is_lazy(target) and is_lazy(source):
        return target  # neither has elements
    non_blocking = bool(args[2] if len(args) > 2 else kwargs.get("non_blocking", False))  # noqa: PLR2004 # its third argument
    if not isinstance(source, VirtualTensor):
        if not isinstance(target, VirtualTensor):
            return _run_planned(func, args, kwargs)
        if non_blocking and source.dtype != target.dtype:
            on_gpu = _as_it_is(source.expand(target.shape).contiguous(), target.storage_block.gpu)
            return _run_planned(func, (target, on_gpu), {})
        # A conversion makes a new host tensor, which is pageable.
        pinned = is_pinned(source) and source.dtype == target.dtype
        mark_written(active(), target)
        expanded = _converted(source, target.dtype).expand(target.shape)
        copy_in(target, expanded, pinned=pinned, non_blocking=non_blocking)
    elif not isinstance(target, VirtualTensor):
        copy_out(target, source, non_blocking=non_blocking)
    elif target.storage_block.gpu is not source.storage_block.gpu:
        # As in PyTorch: between two GPUs the source converts the type, then bytes are copied.
        alike = source.to(target.dtype).expand(target.shape)
        copy_across(target, cast("VirtualTensor", alike))
    elif not _is_same_memory(target, source):
        return _run_planned(func, args, kwargs)
    return target


def _is_same_memory(first: VirtualTensor, second: VirtualTensor) -> bool:
    """Return whether both tensors are the same memory in the same order, perhaps reshaped.

    PyTorch's C++ layer does not see that two views of a virtual tensor share memory, and may copy
    a result onto itself. That copy must not be launched.
    """
    return (
        first.storage_block is second.storage_block
        and first.offset == second.offset
        and first.numel() == second.numel()
        and first.is_contiguous()
        and second.is_contiguous()
        and first.dtype == second.dtype
    )


def _to_copy(func: Any, args: Any, kwargs: Any) -> Any:
    source = args[0]
    device = kwargs.get("device")
    dtype = kwargs.get("dtype") or source.dtype
    non_blocking = bool(kwargs.get("non_blocking", False))
    memory_format = kwargs.get("memory_format")
    if not isinstance(source, VirtualTensor):
        # To C++ a virtual tensor is a meta tensor, so autograd and losses ask for meta where they
        # would ask for cuda. What a program itself moves to meta does not come here.
        if device is not None and device.type in {"cuda", "meta"}:
            gpu = named_gpu(device)
            if non_blocking and dtype != source.dtype:
                on_gpu = _as_it_is(source, gpu, memory_format)
                return _run_planned(func, (on_gpu,), {"dtype": dtype})
            same = _converted(source, dtype)
            return _as_it_is(same, gpu, memory_format, non_blocking=non_blocking)
        return _run_planned(func, args, kwargs)
    options = {"dtype": dtype, "memory_format": memory_format}
    if device is None or device.type == "meta":
        return _run_planned(func, (source,), options)
    if device.type == "cuda":
        return _to_gpu(func, source, named_gpu(device), options)
    if memory_format not in {None, torch.preserve_format}:
        options["dtype"] = source.dtype
        source = _run_planned(func, (source,), options)
    return to_host(source, dtype, non_blocking=non_blocking)


def _as_it_is(
    source: torch.Tensor,
    gpu: SimulatedGpu,
    memory_format: torch.memory_format | None = None,
    *,
    non_blocking: bool = True,
) -> VirtualTensor:
    """Return a copy of a host tensor on a GPU with the same type.

    As in PyTorch, the GPU converts the type afterwards if the copy does not block. So a program
    that changes pinned memory before the copy has run copies the new values here, too.
    """
    with without_symbols():
        like = aten.empty_like(source, device=META, memory_format=memory_format)
    return to_device(source, gpu, layout_of(like), non_blocking=non_blocking)


def _converted(source: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return a host tensor converted to ``dtype`` by the host, with its values of this moment."""
    if source.dtype == dtype:
        return source
    return cast("torch.Tensor", on_host(to_copy, (source,), {"dtype": dtype}))


def _to_gpu(func: Any, source: VirtualTensor, gpu: SimulatedGpu, options: dict[str, Any]) -> Any:
    """Return a copy of a virtual tensor on ``gpu``, which may be the tensor's own GPU."""
    if source.storage_block.gpu is gpu:
        return _run_planned(func, (source,), options)
    if options["dtype"] != source.dtype:
        source = _run_planned(func, (source,), options)
    # The copy of an expanded tensor is dense: empty_like gives each element its own memory.
    key = source.layout_key
    like = torch.empty_strided(key.sizes, key.strides, dtype=key.dtype, device=META)
    with without_symbols():
        key = layout_of(torch.empty_like(like, memory_format=options["memory_format"]))
    storage = Storage(active(), gpu, key.span_bytes, source.storage_block.values.missing)
    target = wrap(key, storage)
    copy_across(target, source)
    return target


def _item(func: Any, args: Any, kwargs: Any) -> Any:
    if isinstance(args[0], VirtualTensor):
        return read_item(args[0])
    return _run_planned(func, args, kwargs)


def _index(func: Any, args: Any, kwargs: Any) -> Any:
    return _run_planned(func, (args[0], _indices_on_gpu(*args), *args[2:]), kwargs)


def _indices_on_gpu(target: VirtualTensor, indices: Any) -> Any:
    """Return the indices with copies of those that are on the host, as PyTorch makes them."""
    if all(item is None or isinstance(item, VirtualTensor) for item in indices):
        return indices
    gpu = target.storage_block.gpu
    moved: list[Any] = []
    for item in indices:
        if item is None or isinstance(item, VirtualTensor):
            moved.append(item)
        elif item.dtype not in MASKS:
            moved.append(_as_it_is(item, gpu, non_blocking=False))
        elif item.shape != target.shape[len(moved) : len(moved) + item.dim()]:
            return indices  # the plan raises PyTorch's error
        else:
            # The host finds the elements that a mask selects, and the copy does not block.
            selected = on_host(aten.nonzero.default, (item,), {})
            moved += [_as_it_is(pin(column.clone()), gpu) for column in selected.unbind(1)]
    return moved


def _where(func: Any, args: Any, kwargs: Any) -> Any:
    gpu = next(item.storage_block.gpu for item in args if isinstance(item, VirtualTensor))
    # PyTorch copies a tensor without dimensions to the device, and waits for the copy.
    moved = [
        item
        if isinstance(item, VirtualTensor) or item.dim()
        else _as_it_is(item, gpu, non_blocking=False)
        for item in args
    ]
    return _run_planned(func, tuple(moved), kwargs)


def _index_put(func: Any, args: Any, kwargs: Any) -> Any:
    """Write by an index; for a mask PyTorch finds the selected elements first, and waits."""
    target, indices, value, *rest = args
    accumulates = rest[0] if rest else kwargs.get("accumulate", False)
    masks = [item for item in indices if item is not None and item.dtype in MASKS]
    if not isinstance(value, VirtualTensor) and value.numel() == 1:
        mask = None if accumulates else _only_mask(target, indices)
        if mask is not None:
            is_in_place = arguments_of(func)[0].alias_info is not None
            fill = aten.masked_fill_.Scalar if is_in_place else aten.masked_fill.Scalar
            return _run_planned(fill, (target, mask, value.item()), {})
        # PyTorch copies the number to the device, and waits for the copy.
        value = _as_it_is(value, target.storage_block.gpu, non_blocking=False)
    for mask in masks:
        if isinstance(mask, VirtualTensor):
            find_selected(mask)
    return _run_planned(func, (target, _indices_on_gpu(target, indices), value, *rest), kwargs)


def _only_mask(target: VirtualTensor, indices: Any) -> torch.Tensor | None:
    """Return the mask of an index that is only this mask, in a shape for ``masked_fill``."""
    indexed = [(dim, item) for dim, item in enumerate(indices) if item is not None]
    if len(indexed) != 1 or not isinstance(indexed[0][1], VirtualTensor):
        return None
    dim, mask = indexed[0]
    if mask.dtype not in MASKS or mask.shape != target.shape[dim : dim + mask.dim()]:
        return None
    for _ in range(target.dim() - dim - mask.dim()):
        mask = mask.unsqueeze(-1)
    return cast("torch.Tensor", mask)


def _equal(func: Any, args: Any, kwargs: Any) -> Any:
    first, second = args
    # PyTorch compares only what may differ.
    if isinstance(second, VirtualTensor) and first.device == second.device:
        if first.shape != second.shape:
            return False
        is_same = first.storage_block is second.storage_block and first.offset == second.offset
        if first.numel() == 0 or (is_same and first.layout_key is second.layout_key):
            return True
    return _run_planned(func, args, kwargs)


def _with_lengths(n_leading: int) -> OperatorHandler:
    """Return the handler of packing or padding, whose second result stays on the host."""
    return lambda func, args, kwargs: (
        _run_planned(func, args, kwargs)[0],
        host_result(func, args, n_leading),
    )


def _resolve_lazy(func: Any, args: Any, kwargs: Any) -> Any:
    """Conjugate or negate a tensor at once."""
    # PyTorch would defer this: it returns a view with a mark, and computes when it is read.
    physical = aten.conj_physical if func is conj_view else aten.neg
    return _run_planned(physical.default, args, kwargs)


def _all_close(_func: Any, args: Any, kwargs: Any) -> Any:
    # PyTorch switches the mode off while a mode handles an operator, so it is entered again.
    with VirtualMode():  # type: ignore[no-untyped-call] # torch's is untyped
        return bool(aten.isclose(*args, **kwargs).all().item())


def _check_errors(func: Any, args: Any, kwargs: Any) -> None:
    """Wait for a factorization and raise the error that it found, as PyTorch does."""
    info = args[0]
    _run_planned(aten.any.default, (info,), {})
    read_back(info.storage_block.gpu)
    # PyTorch's own function looks at the flags, and raises its own error.
    if info.has_values:
        try:
            func(reference(info).view(), *args[1:], **kwargs)
        except RuntimeError as error:
            raise error.with_traceback(None) from None


def _zero_tangent(func: Any, args: Any, kwargs: Any) -> Any:
    """Return the zeros that autograd takes for the tangent of an argument without one."""
    # For a Python number it asks for zeros on meta, as it takes the number's partner to be there,
    # and its operators then accept only a tensor of the host in the number's place.
    if not args[0]:
        return _run_planned(func, args, {**kwargs, "device": _CPU})
    return _run_planned(func, args, kwargs)


def _on_virtual(handler: OperatorHandler) -> OperatorHandler:
    """Return a handler that passes calls on host tensors to :func:`_run_planned`."""

    def handle(func: Any, args: Any, kwargs: Any) -> Any:
        chosen = handler if isinstance(args[0], VirtualTensor) else _run_planned
        return chosen(func, args, kwargs)

    return handle


def _lift(func: Any, args: Any, kwargs: Any) -> Any:
    # PyTorch calls lift_fresh on each new constant. A virtual tensor needs no lifting.
    return args[0] if isinstance(args[0], VirtualTensor) else func(*args, **kwargs)


_BY_OPERATOR: dict[Any, OperatorHandler] = {
    pack_padded_sequence: _on_virtual(_with_lengths(2)),
    pad_packed_sequence: _on_virtual(_with_lengths(1)),
    conj_view: _on_virtual(_resolve_lazy),
    neg_view: _on_virtual(_resolve_lazy),
    efficient_zero_tensor: _zero_tangent,
    aten.as_strided.default: _on_virtual(as_strided),
    check_errors: _on_virtual(_check_errors),
    aten.where.self: _on_virtual(_where),
    aten.index.Tensor: _on_virtual(_index),
    **dict.fromkeys(
        (aten.index_put_.default, aten.index_put.default, unsafe_index_put, index_put_impl),
        _on_virtual(_index_put),
    ),
    aten.equal.default: _on_virtual(_equal),
    **dict.fromkeys(
        (aten.set_.default, aten.set_.source_Tensor, aten.set_.source_Tensor_storage_offset),
        _on_virtual(lambda _func, args, kwargs: set_to(*args, **kwargs)),
    ),
    aten.allclose.default: _on_virtual(_all_close),
    aten.copy_.default: _copy,
    to_copy: _to_copy,
    read_scalar: _item,
    aten.lift_fresh.default: _lift,
}
_USUAL_HANDLERS = {id(func): handler for func, handler in _BY_OPERATOR.items()}
_HANDLERS = dict(_USUAL_HANDLERS)
set_dispatch(dispatch, copy_to_show)


def require_deterministic(*, is_required: bool) -> None:
    """Refuse nondeterministic operators and fill new memory from now on, or no longer."""
    # By other handlers, so that an operator costs nothing more without this mode.
    handlers = dict(_USUAL_HANDLERS)
    for func, wrapper in deterministic_handlers() if is_required else ():
        handlers[id(func)] = wrapper(handlers.get(id(func), _run_planned))
    _HANDLERS.clear()
    _HANDLERS.update(handlers)
