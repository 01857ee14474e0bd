"""Every operation of PyTorch passes here: virtual ones become tasks, host ones take host time."""

from collections.abc import Callable, Hashable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from gpulab.virtual import copies
from gpulab.virtual.cache import Access
from gpulab.virtual.kernels import is_composite, operator_name, parts_used
from gpulab.virtual.machine import Machine, active
from gpulab.virtual.plans import Effect, New, Plain, Plan, Same, View, plan_for
from gpulab.virtual.storage import Storage, layout_of
from gpulab.virtual.task import Kind, Priced, Task
from gpulab.virtual.tensor import CUDA, VirtualTensor, set_dispatch, wrap
from gpulab.virtual.values import affords, late, reference

aten = torch.ops.aten

# The shape of their result depends on values, so PyTorch itself waits for the device in them.
_VALUE_SHAPED = {"nonzero", "masked_select", "_unique2", "unique_consecutive", "bincount", "equal"}
# CPU scalars and index tensors are accepted beside device tensors.
_TAKES_HOST_INDEX = {"index", "index_put", "_index_put_impl"}


class VirtualMode(TorchDispatchMode):  # type: ignore[no-untyped-call] # torch's is untyped
    """Sends every operation of the thread through :func:`dispatch`."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # True would import torch._dynamo (1.3 s) and wrap every operation.
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
    """Carry out one operation on the virtual machine."""
    handler = _HANDLERS.get(func)
    if handler is not None:
        return handler(func, args, kwargs)
    return _plain(func, args, kwargs)


def _plain(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Carry out an operation that has no handler, or that its handler passes on."""
    if is_composite(func):
        # Only inference mode lets these through; elsewhere autograd has taken them apart.
        with VirtualMode():  # type: ignore[no-untyped-call] # torch's is untyped
            return func.decompose(*args, **kwargs)
    tensors: list[VirtualTensor] = []
    key = _Key(tensors)
    parts = (func, key.of(args), key.of_mapping(kwargs))
    device = kwargs.get("device")
    if not tensors and (device is None or device.type not in {"cuda", "meta"}):
        return _on_host(func, args, kwargs)
    if tensors and device is not None and device.type == "cpu":
        on_device = _plain(func, args, {**kwargs, "device": None})
        return copies.to_host(on_device)
    name = operator_name(func)
    if key.has_host_tensor and name not in _TAKES_HOST_INDEX:
        raise RuntimeError(
            "Expected all tensors to be on the same device, "
            "but found at least two devices, cuda:0 and cpu!"
        )
    if name in _VALUE_SHAPED or _selects_by_mask(func, args):
        return _value_shaped(func, args, kwargs, tensors)
    # Without tensors the numbers decide the shape, as in arange(2.5).
    hashable: Hashable = parts if tensors else (*parts, repr(args))
    plan = plan_for(func, args, kwargs, tensors, hashable)
    return _carry_out(plan, func, args, kwargs, tensors)


class _Key:
    """Builds the key of a call, and collects its tensors on the way."""

    def __init__(self, tensors: list[VirtualTensor]) -> None:
        self.tensors = tensors
        self.has_host_tensor = False

    def of(self, value: Any) -> Hashable:
        kind = type(value)
        if kind is VirtualTensor:
            self.tensors.append(value)
            key: Hashable = value.layout_key
            return key
        if kind is float:
            return float  # else an optimizer's changing step size would be a new plan each time
        if kind is list or kind is tuple:
            return tuple(self.of(item) for item in value)
        if isinstance(value, torch.Tensor):
            self.has_host_tensor = self.has_host_tensor or value.dim() > 0
            return (value.dtype, value.dim())
        return (kind, value)

    def of_mapping(self, kwargs: dict[str, Any]) -> Hashable:
        return tuple((name, self.of(value)) for name, value in kwargs.items())


def _carry_out(plan: Plan, func: Any, args: Any, kwargs: Any, tensors: list[VirtualTensor]) -> Any:
    machine = active()
    known = affords(plan, tensors)
    results = [_make(item, machine, tensors, known=known) for item in plan.results]
    if plan.effect is Effect.VIEW:
        machine.host.spend(machine.host.costs.view_ns)
    elif plan.effect is Effect.ALLOCATION:
        machine.host.spend(machine.host.costs.empty_ns)
    else:
        _launch(machine, plan, func, args, kwargs, tensors=tensors, results=results, known=known)
    return results[0] if plan.container is None else plan.container(results)


def _make(
    item: New | View | Same | Plain,
    machine: Machine,
    tensors: list[VirtualTensor],
    *,
    known: bool,
) -> Any:
    if isinstance(item, Plain):
        return item.value
    if isinstance(item, Same):
        return tensors[item.index]
    if isinstance(item, View):
        first = tensors[0]
        return wrap(item.layout, first.storage_block, first.offset + item.offset)
    small = copies.known_by_size(machine, item.layout)
    return wrap(item.layout, Storage(machine, item.layout.span_bytes, known=known and small))


def _launch(  # noqa: PLR0913 # what a call consists of; used in one place
    machine: Machine,
    plan: Plan,
    func: Any,
    args: Any,
    kwargs: Any,
    *,
    tensors: list[VirtualTensor],
    results: list[Any],
    known: bool,
) -> None:
    if plan.work is None:
        return
    changed = [tensors[i] for i in plan.writes]
    is_new = [isinstance(item, New) for item in plan.results]
    made = [item for item, new in zip(results, is_new, strict=True) if new]
    for tensor in changed:
        _mark_known(machine, tensor, known=known)
    computed = known and any(item.has_values for item in (*made, *changed))
    for part in parts_used(func, plan.work):
        machine.host.load(part)
    machine.host.load("kernel", (func, plan.work.arithmetic))
    accesses = [_access(tensors[i], is_write=False) for i in plan.reads]
    accesses += [_access(tensor, is_write=True) for tensor in (*changed, *made)]
    task = Task(
        Kind.KERNEL,
        machine.stream,
        name=operator_name(func),
        demand=Priced(plan.work, tuple(accesses)),
        payload=late(func, args, kwargs, results, is_new) if computed else None,
    )
    machine.host.launch(task, plan.work.launch_ns)


def _mark_known(machine: Machine, tensor: VirtualTensor, *, known: bool) -> None:
    """After a change a storage is known only if what was written is, and it is small enough."""
    key = tensor.layout_key
    values = tensor.storage_block.values
    whole = key.span_bytes >= values.size_bytes
    if not known:
        values.known = False
    elif whole:
        values.known = copies.known_by_size(machine, key)


def _access(tensor: VirtualTensor, *, is_write: bool) -> Access:
    return Access(tensor.storage_block.identity, tensor.layout_key.size_bytes, is_write)


def _on_host(func: Any, args: Any, kwargs: Any) -> Any:
    """Run an operation on host tensors, at the host's cost, while the device goes on."""
    machine = active()
    pinned = kwargs.pop("pin_memory", False) if "pin_memory" in kwargs else False
    out: list[Any] = []
    size_bytes = sum(arg.nbytes for arg in args if isinstance(arg, torch.Tensor))
    moves = size_bytes if not all(_is_view_result(r) for r in func._schema.returns) else 0
    machine.host.run(lambda: out.append(func(*args, **kwargs)), size_bytes=moves)
    if pinned:
        copies.pin(out[0], machine.host)
    return out[0]


def _is_view_result(result: Any) -> bool:
    return result.alias_info is not None and not result.alias_info.is_write


def _selects_by_mask(func: Any, args: tuple[Any, ...]) -> bool:
    if func is not aten.index.Tensor:
        return False
    masks = (torch.bool, torch.uint8)
    return any(isinstance(item, torch.Tensor) and item.dtype in masks for item in args[1])


def _value_shaped(func: Any, args: Any, kwargs: Any, tensors: list[VirtualTensor]) -> Any:
    """Wait for the inputs, compute on their values and take the result to the device."""
    machine = active()
    for tensor in tensors:
        copies.require_values(tensor)
    machine.host.wait_for_stream(machine.stream)
    out = func(*_elements(args), **_elements(kwargs))
    if isinstance(out, torch.Tensor):
        return _known_result(machine, out)
    if isinstance(out, tuple):
        return tuple(_known_result(machine, item) for item in out)
    return out


def _elements(value: Any) -> Any:
    if isinstance(value, VirtualTensor):
        return reference(value).view()
    if isinstance(value, (list, tuple)):
        return [_elements(item) for item in value]
    if isinstance(value, dict):
        return {name: _elements(item) for name, item in value.items()}
    return value


def _known_result(machine: Machine, value: torch.Tensor) -> VirtualTensor:
    key = layout_of(value)
    result = wrap(key, Storage(machine, key.span_bytes, known=True))
    result.elements().copy_(value)
    return result


def _copy(func: Any, args: Any, kwargs: Any) -> Any:
    target, source = args[0], args[1]
    non_blocking = bool(args[2] if len(args) > 2 else kwargs.get("non_blocking", False))  # noqa: PLR2004 # its third argument
    if isinstance(target, VirtualTensor) and not isinstance(source, VirtualTensor):
        expanded = source.expand(target.shape)
        pinned = copies.is_pinned(source)
        _mark_known(active(), target, known=True)
        copies.copy_in(target, expanded, pinned=pinned, non_blocking=non_blocking)
        return target
    if isinstance(source, VirtualTensor) and not isinstance(target, VirtualTensor):
        copies.copy_out(target, source, non_blocking=non_blocking)
        return target
    return _plain(func, args, kwargs)


def _to_copy(func: Any, args: Any, kwargs: Any) -> Any:
    source = args[0]
    device = kwargs.get("device")
    dtype = kwargs.get("dtype") or source.dtype
    non_blocking = bool(kwargs.get("non_blocking", False))
    if not isinstance(source, VirtualTensor):
        if device is not None and device.type == "cuda":
            return copies.to_device(source, dtype, non_blocking=non_blocking)
        return _plain(func, args, kwargs)
    if device is None or device.type in {"cuda", "meta"}:
        options = {"dtype": dtype, "memory_format": kwargs.get("memory_format")}
        return _plain(func, (source,), options)
    if dtype != source.dtype:
        source = _plain(func, (source,), {"dtype": dtype})
    return copies.to_host(source, non_blocking=non_blocking)


def _item(func: Any, args: Any, kwargs: Any) -> Any:
    if isinstance(args[0], VirtualTensor):
        return copies.read_item(args[0])
    return _plain(func, args, kwargs)


def _lift(func: Any, args: Any, kwargs: Any) -> Any:
    return args[0] if isinstance(args[0], VirtualTensor) else func(*args, **kwargs)


_HANDLERS: dict[Any, Callable[[Any, Any, Any], Any]] = {
    aten.copy_.default: _copy,
    aten._to_copy.default: _to_copy,
    aten._local_scalar_dense.default: _item,
    aten.lift_fresh.default: _lift,
}
set_dispatch(dispatch)
__all__ = ["CUDA", "VirtualMode", "dispatch"]
