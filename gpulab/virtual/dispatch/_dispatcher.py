"""Receive every operator of PyTorch: launch it on the virtual GPU, or run it on the host."""

import math
from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, cast

import torch
from torch.nn.parameter import UninitializedBuffer, UninitializedParameter
from torch.utils._python_dispatch import TorchDispatchMode

from gpulab.tensor_accesses import check_host_operation
from gpulab.torch_private import (
    check_errors,
    conj_view,
    efficient_zero_tensor,
    neg_view,
    pack_padded_sequence,
    pad_packed_sequence,
    read_scalar,
    results_of,
    to_copy,
)
from gpulab.virtual._generators import generator_in, require_host, without_generator
from gpulab.virtual.dispatch._argument_checks import check_call
from gpulab.virtual.dispatch._copies import (
    copy_across,
    copy_in,
    copy_out,
    is_pinned,
    pin,
    read_item,
    to_device,
    to_host,
)
from gpulab.virtual.dispatch._data_dependent_shapes import (
    host_result,
    run_data_dependent,
    selects_by_mask,
)
from gpulab.virtual.dispatch._deferred_values import conjugating_lazily
from gpulab.virtual.dispatch._execute import execute_plan, mark_written
from gpulab.virtual.dispatch._in_place_reshape import as_strided
from gpulab.virtual.dispatch._meta_execution import META
from gpulab.virtual.dispatch._operators import DispatchedCall, Operator, operator_of
from gpulab.virtual.dispatch._placement import check_host_tensors, gpu_of
from gpulab.virtual.dispatch._plain_shapes import without_symbols
from gpulab.virtual.dispatch._plans import ALLOCATING, has_complex, plan_for
from gpulab.virtual.dispatch._rehearsal import overlaps
from gpulab.virtual.dispatch._untyped_storage import set_to
from gpulab.virtual.kernels import tf32_allowed
from gpulab.virtual.simulator import SimulatedGpu, active
from gpulab.virtual.tensors import (
    Storage,
    VirtualTensor,
    layout_of,
    set_dispatch,
    wrap,
)

aten = torch.ops.aten

_CPU = torch.device("cpu")

OperatorHandler = Callable[[Any, Any, Any], Any]


class VirtualMode(TorchDispatchMode):  # type: ignore[no-untyped-call] # torch's is untyped
    """A dispatch mode that sends every operator of the thread to :func:`dispatch`.

    Examples
    --------
    >>> import gpulab, torch
    >>> from torch.utils._python_dispatch import _get_current_dispatch_mode
    >>> with gpulab.virtual_gpu("H200"):
    ...     isinstance(_get_current_dispatch_mode(), VirtualMode)
    True
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # With True, torch 2.13 imports torch._dynamo (1.3 s) and wraps every operation.
        return False

    def __torch_dispatch__(
        self,
        func: Any,
        types: object,  # torch's signature
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        return dispatch(func, args, kwargs or {})


def dispatch(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run one operator on the virtual machine, and return its result.

    Examples
    --------
    >>> import gpulab, torch
    >>> with gpulab.virtual_gpu("H200"):
    ...     x = torch.ones(2, device="cuda")
    ...     dispatch(torch.ops.aten.add.Tensor, (x, x), {}).tolist()
    [2.0, 2.0]
    """
    # By id: hashing an OpOverload runs Python code of PyTorch, once for each operator call.
    handler = _HANDLERS.get(id(func))
    if handler is not None:
        return handler(func, args, kwargs)
    return _run_planned(func, args, kwargs)


Observer = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]


@contextmanager
def observing(observer: Observer) -> Iterator[None]:
    """Send each operator inside the block to ``observer``, which must call :func:`dispatch`.

    Examples
    --------
    >>> import gpulab, torch
    >>> seen = []
    >>> def note(func, args, kwargs):
    ...     seen.append(str(func))
    ...     return dispatch(func, args, kwargs)
    >>> with gpulab.virtual_gpu("H200"), observing(note):
    ...     x = torch.ones(2, device="cuda").exp()
    >>> seen[-1]
    'aten.exp.default'
    """
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
    key = _CallKey(tensors)
    options = key.of_mapping(call[1]) if kwargs else ()
    # Part of the key, because it is the type of results such as torch.ones(2).
    default = torch.get_default_dtype()
    parts: tuple[Hashable, ...] = (operator, key.of(call[0]), options, default)
    device = kwargs.get("device") if kwargs else None
    # Autograd sees meta tensors, so it asks for results on meta where it would ask for cuda.
    if not tensors and (device is None or device.type not in {"cuda", "meta"}):
        require_host(generator)
        return _on_host(func, args, kwargs)
    if tensors and device is not None and device.type == "cpu":
        # E.g. torch.zeros_like(x, device="cpu"), which must return a host tensor.
        on_device = _run_planned(func, args, {**kwargs, "device": None})
        return to_host(on_device)
    gpu = gpu_of(tensors, device, func, args, kwargs)
    if key.host_tensors and tensors:
        check_host_tensors(func, operator.name, args, kwargs)
        if operator.is_index:
            # PyTorch copies each of them to the device, and waits for none of these copies.
            active().host.charge("index from the host", len(key.host_tensors))
    # Before the plan, which is made from shapes alone.
    if operator.has_data_dependent_shape or (operator.is_index and selects_by_mask(args[1])):
        check_call(func, args, kwargs)
        return run_data_dependent(func, args, kwargs, tensors, gpu)
    parts = (*parts, *_more_of_key(operator, key))
    # The key does not contain the value of a float, but without tensors it may decide the
    # shape, as in arange(2.5).
    hashable: Hashable = parts if tensors else (*parts, repr(args))
    plan = plan_for(func, *call, tensors, hashable)
    return execute_plan(plan, DispatchedCall(operator, args, kwargs, tensors, gpu))


def _more_of_key(operator: Operator, key: "_CallKey") -> Iterator[Hashable]:
    """Yield what else decides the plan of a call, beside the operator and its arguments."""
    # A program may switch TF32 between two calls, and a plan contains the kernel's arithmetic.
    if operator.is_matmul:
        yield tf32_allowed()
    # The lengths of sequences decide the shapes, so their values are part of the key.
    if operator.takes_lengths:
        yield from (str(item.tolist()) for item in key.host_tensors)
    # A call that writes to memory which it also reads has a plan, or an error, of its own.
    if operator.changes_arguments and len(key.tensors) > 1:
        yield from overlaps(key.tensors, is_out=bool(operator.out_names))


# The numbers at which operators begin to refuse a float: 0, 1, and the largest ones of types. 0
# and 1 themselves are apart from the numbers on both sides.
_NOTED = (
    *(-torch.finfo(torch.float32).max, -torch.finfo(torch.float16).max, 0.0, math.ulp(0.0)),
    *(1.0, math.nextafter(1.0, 2.0), torch.finfo(torch.float16).max),
    *(torch.finfo(torch.float32).max, math.inf),
)


class _CallKey:
    """Builds the key of a call, and collects the tensors among its arguments."""

    __slots__ = ("_last", "host_tensors", "tensors")

    def __init__(self, tensors: list[VirtualTensor]) -> None:
        self._last = -math.inf
        self.tensors = tensors
        self.host_tensors: list[torch.Tensor] = []

    def of(self, value: Any) -> Hashable:
        kind = type(value)
        if kind is VirtualTensor:
            self.tensors.append(value)
            key: Hashable = value.layout_key
            return key
        if kind is float:
            # Not the value: an optimizer's step size changes, and each would need a plan. But
            # some operators refuse a negative number, a probability above 1, or two numbers in
            # the wrong order.
            is_ascending, self._last = value >= self._last, value
            return (
                bisect_right(_NOTED, value) if is_ascending else -1 - bisect_right(_NOTED, value)
            )
        if kind is list or kind is tuple:
            # From a list, which is faster than from a generator.
            return tuple([self.of(item) for item in value])
        if isinstance(value, torch.Tensor):
            return self._of_host_tensor(value)
        # With the type, because 1 and True are equal and would share a plan.
        return (kind, value)

    def _of_host_tensor(self, value: torch.Tensor) -> Hashable:
        if isinstance(value, (UninitializedBuffer, UninitializedParameter)):
            return str(type(value))
        # CUDA's operators, too, take a host tensor without dimensions for a number.
        if value.dim() or value.is_meta:
            self.host_tensors.append(value)
        # A nested tensor has no shape, so the name of its class stands for it.
        return (value.dtype, str(type(value)) if value.is_nested else tuple(value.shape))

    def of_mapping(self, kwargs: dict[str, Any]) -> Hashable:
        return tuple((name, self.of(value)) for name, value in kwargs.items())


def _on_host(func: Any, args: Any, kwargs: Any) -> Any:
    """Run an operator on host tensors, at a modelled cost of the host; the device goes on."""
    machine = active()
    # PyTorch would ask a driver for pinned memory, and there may be none: only a mark is set.
    pinned = kwargs.pop("pin_memory", False) if "pin_memory" in kwargs else False
    out: list[Any] = []
    size_bytes = sum(_size_bytes(arg) for arg in args if isinstance(arg, torch.Tensor))
    has_accesses = func not in ALLOCATING and not all(_is_view_result(r) for r in results_of(func))
    machine.host.charge("operator of the host")
    # A view or an allocation touches no bytes, so only the fixed cost of an operator counts.
    with conjugating_lazily() if has_complex(args) else nullcontext():
        machine.host.run(
            lambda: out.append(func(*args, **kwargs)), size_bytes=size_bytes if has_accesses else 0
        )
    if has_accesses and machine.hazards is not None:
        check_host_operation(machine.hazards, func, args, kwargs)
    if pinned:
        pin(out[0])
    return out[0]


def _size_bytes(tensor: torch.Tensor) -> int:
    """Return the size of a host tensor in bytes; 0 for a sparse or nested one."""
    is_dense = tensor.layout is torch.strided and not tensor.is_nested
    return tensor.nbytes if is_dense else 0


def _is_view_result(result: Any) -> bool:
    return result.alias_info is not None and not result.alias_info.is_write


def _copy(func: Any, args: Any, kwargs: Any) -> Any:
    target, source = args[0], args[1]
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
            gpu = gpu_of([], device, func, args, kwargs)
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
        return _to_gpu(func, source, gpu_of([], device, func, args, kwargs), options)
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
    return cast("torch.Tensor", _on_host(to_copy, (source,), {"dtype": dtype}))


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


def _multinomial(func: Any, args: Any, kwargs: Any) -> Any:
    # As in PyTorch: one draw of a row, or draws without replacement, check the weights first, and
    # the host waits for the two answers.
    machine, n_drawn = active(), args[1]
    if n_drawn == 1 or not (args[2] if len(args) > 2 else kwargs.get("replacement", False)):  # noqa: PLR2004 # its third argument
        machine.note_hidden_wait()  # for torch.cuda.set_sync_debug_mode()
        for _ in range(2):
            machine.wait_for_stream(args[0].storage_block.gpu.stream)
    return _run_planned(func, args, kwargs)


def _pack_or_pad(func: Any, args: Any, kwargs: Any) -> Any:
    return _run_planned(func, args, kwargs)[0], host_result(func, args)


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
    # PyTorch's own function reads the flags on the host, and raises its own error.
    if info.has_values:
        func(to_host(info), *args[1:], **kwargs)
    else:
        active().wait_for_stream(info.storage_block.gpu.stream)


def _zero_tangent(func: Any, args: Any, kwargs: Any) -> Any:
    """Return the zeros that autograd takes for the tangent of an argument without one."""
    # For a Python number it asks for zeros on meta, as it takes the number's partner to be there,
    # and its operators then accept only a tensor of the host in the number's place.
    if not args[0]:
        return _run_planned(func, args, {**kwargs, "device": _CPU})
    return _run_planned(func, args, kwargs)


def _set(_func: Any, args: Any, kwargs: Any) -> Any:
    return set_to(*args, **kwargs)


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
    pack_padded_sequence: _on_virtual(_pack_or_pad),
    pad_packed_sequence: _on_virtual(_pack_or_pad),
    conj_view: _on_virtual(_resolve_lazy),
    neg_view: _on_virtual(_resolve_lazy),
    efficient_zero_tensor: _zero_tangent,
    aten.as_strided.default: _on_virtual(as_strided),
    check_errors: _on_virtual(_check_errors),
    aten.multinomial.default: _on_virtual(_multinomial),
    aten.set_.default: _on_virtual(_set),
    aten.set_.source_Tensor: _on_virtual(_set),
    aten.set_.source_Tensor_storage_offset: _on_virtual(_set),
    aten.allclose.default: _on_virtual(_all_close),
    aten.copy_.default: _copy,
    to_copy: _to_copy,
    read_scalar: _item,
    aten.lift_fresh.default: _lift,
}
_HANDLERS = {id(func): handler for func, handler in _BY_OPERATOR.items()}
set_dispatch(dispatch)
