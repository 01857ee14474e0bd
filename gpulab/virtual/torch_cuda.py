"""What stands behind ``torch.cuda`` while the virtual GPU is entered, and how it is put there."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from gpulab.virtual import copies
from gpulab.virtual.costs import sleep_ns
from gpulab.virtual.machine import Machine
from gpulab.virtual.private import C, parse_to
from gpulab.virtual.refused import refusals
from gpulab.virtual.streams import CUDA_DEVICE_TYPE, EventBase, StreamBase, stand_in
from gpulab.virtual.task import Fixed, Kind, Task
from gpulab.virtual.tensor import CUDA, VirtualTensor

Undo = Callable[[], None]
_MISSING = object()


@dataclass(frozen=True, slots=True)
class Properties:
    """The device's properties, by the names that ``torch.cuda.get_device_properties`` uses."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    L2_cache_size: int
    clock_rate: int
    warp_size: int = 32
    max_threads_per_multi_processor: int = 2048
    is_integrated: int = 0
    is_multi_gpu_board: int = 0


def install(machine: Machine) -> list[Undo]:
    """Put ``machine`` behind ``torch.cuda``; return what undoes it, in order of installation."""
    undo: list[Undo] = []
    for owner, names in _replacements(machine):
        undo += [_replace(owner, name, value) for name, value in names.items()]
    for owner, name, base in (
        (torch.cuda, "Stream", StreamBase),
        (torch.cuda, "Event", EventBase),
    ):
        undo += _replace_class(owner, name, base)
    return undo


def _replacements(machine: Machine) -> list[tuple[Any, dict[str, Any]]]:
    return [
        (C, {**_c_layer(machine), **_c_memory(machine), **_accelerator(machine)}),
        (torch.cuda, _cuda_functions(machine)),
        (torch.cuda.memory, {"is_initialized": lambda: True}),
        (torch.accelerator, {"is_available": lambda: True, "device_count": lambda: 1}),
        (torch.backends.cuda, {"is_built": lambda: True}),
        (torch.Tensor, _tensor_methods(machine)),
        (torch, _torch_functions()),
        *refusals(),
    ]


def _replace(owner: Any, name: str, value: Any) -> Undo:
    before = vars(owner).get(name, _MISSING)
    setattr(owner, name, value)
    if before is _MISSING:
        return lambda: delattr(owner, name)
    return lambda: setattr(owner, name, before)


def _replace_class(owner: Any, name: str, base: type) -> list[Undo]:
    """Give a class of torch the virtual base; where C forbids that, replace it by name."""
    original = getattr(owner, name)
    bases = original.__bases__
    try:
        original.__bases__ = (base,)
    except TypeError:
        made = stand_in(original, base)
        return [_replace(owner, name, made), _replace(torch.cuda.streams, name, made)]

    def restore() -> None:
        original.__bases__ = bases

    return [restore]


def _c_layer(machine: Machine) -> dict[str, Any]:
    def set_stream(stream_id: int, **_handles: int) -> None:
        machine.stream = stream_id

    def current_stream(_index: int) -> tuple[int, int, int]:
        machine.host.spend(machine.host.costs.current_stream_ns)
        return machine.stream, 0, CUDA_DEVICE_TYPE

    def sleep(cycles: int) -> None:
        demand = Fixed(sleep_ns(cycles, machine.spec))
        task = Task(Kind.KERNEL, machine.stream, name="sleep", demand=demand)
        machine.host.launch(task, machine.host.costs.sleep_launch_ns)

    return {
        "_cuda_getDevice": lambda: 0,
        "_cuda_setDevice": lambda _index: None,
        "_cuda_exchangeDevice": lambda _index: 0,
        "_cuda_maybeExchangeDevice": lambda _index: 0,
        "_cuda_synchronize": machine.host.wait_for_device,
        "_cuda_getCurrentStream": current_stream,
        "_cuda_getDefaultStream": lambda _index: (0, 0, CUDA_DEVICE_TYPE),
        "_cuda_setStream": set_stream,
        "_cuda_sleep": sleep,
        "_cuda_isInBadFork": lambda: False,
        "_cuda_isCurrentStreamCapturing": lambda: False,
        "_cuda_get_sync_debug_mode": lambda: 0,
    }


def _c_memory(machine: Machine) -> dict[str, Any]:
    memory = machine.memory

    def statistics(_index: int = 0) -> dict[str, Any]:
        allocated = {"current": memory.allocated_bytes, "peak": memory.peak_bytes}
        reserved = {"current": memory.reserved_bytes, "peak": memory.reserved_bytes}
        return {"allocated_bytes": {"all": allocated}, "reserved_bytes": {"all": reserved}}

    def reset_peak(_index: int = 0) -> None:
        memory.peak_bytes = memory.allocated_bytes

    return {
        "_cuda_emptyCache": memory.empty_cache,
        "_cuda_memoryStats": statistics,
        "_cuda_resetPeakMemoryStats": reset_peak,
    }


def _accelerator(machine: Machine) -> dict[str, Any]:
    return {
        "_accelerator_getAccelerator": lambda: torch.device("cuda"),
        "_accelerator_getDeviceIndex": lambda: 0,
        "_accelerator_setDeviceIndex": lambda _index: None,
        "_accelerator_exchangeDevice": lambda _index: 0,
        "_accelerator_maybeExchangeDevice": lambda _index: 0,
        "_accelerator_getStream": lambda _index: torch.cuda.current_stream(),
        "_accelerator_setStream": torch.cuda.set_stream,
        "_accelerator_synchronizeDevice": lambda _index: machine.host.wait_for_device(),
    }


def _cuda_functions(machine: Machine) -> dict[str, Any]:
    spec = machine.spec
    major, minor = spec.compute_capability
    properties = Properties(
        name=spec.driver_name,
        major=major,
        minor=minor,
        total_memory=spec.memory_bytes,
        multi_processor_count=spec.n_sms,
        L2_cache_size=spec.l2_bytes,
        clock_rate=spec.boost_clock_mhz * 1000,
    )

    def memory_info(_device: object = None) -> tuple[int, int]:
        return spec.memory_bytes - machine.memory.reserved_bytes, spec.memory_bytes

    return {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "_lazy_init": lambda: None,
        "device_count": lambda: 1,
        "_exchange_device": lambda _index: 0,
        "_maybe_exchange_device": lambda _index: 0,
        "get_device_properties": lambda _device=None: properties,
        "get_device_capability": lambda _device=None: (major, minor),
        "is_bf16_supported": lambda *_args: major >= 8,  # noqa: PLR2004 # since Ampere
        "manual_seed": machine.set_seed,
        "manual_seed_all": machine.set_seed,
        "mem_get_info": memory_info,
    }


def _tensor_methods(machine: Machine) -> dict[str, Any]:
    original_to, original_numpy = torch.Tensor.to, torch.Tensor.numpy

    def to(self: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        device, dtype, non_blocking = _parse_to(args, kwargs)
        if isinstance(self, VirtualTensor):
            if device is not None and device.type == "cuda":
                return original_to(self, dtype or self.dtype, copy=bool(kwargs.get("copy")))
            return original_to(self, *args, **kwargs)
        if device is not None and device.type == "cuda":
            return original_to(self, CUDA, dtype or self.dtype, non_blocking=non_blocking)
        return original_to(self, *args, **kwargs)

    def cuda(
        self: torch.Tensor,
        device: object = None,  # noqa: ARG001 # there is one device
        non_blocking: bool = False,  # noqa: FBT001, FBT002 # torch's signature
        **_options: object,
    ) -> torch.Tensor:
        return to(self, CUDA, non_blocking=non_blocking)

    def pin_memory(self: torch.Tensor, device: object = None) -> torch.Tensor:  # noqa: ARG001 # as torch
        if isinstance(self, VirtualTensor):
            raise RuntimeError(  # noqa: TRY004 # as PyTorch
                "cannot pin 'torch.cuda.FloatTensor' only dense CPU tensors can be pinned"
            )
        return self if copies.is_pinned(self) else copies.pin(self.clone(), machine.host)

    def numpy(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        machine.host.catch_up()  # what the device has written by now is seen in the array
        return original_numpy(self, *args, **kwargs)

    return {
        "to": to,
        "cuda": cuda,
        "pin_memory": pin_memory,
        "is_pinned": lambda self, device=None: copies.is_pinned(self),  # noqa: ARG005 # as torch
        "numpy": numpy,
    }


def _parse_to(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[torch.device | None, torch.dtype | None, bool]:
    """Read the arguments of ``Tensor.to``; a bare ``"cuda"`` means the one device."""
    if args and isinstance(args[0], torch.Tensor):
        return args[0].device, args[0].dtype, bool(kwargs.get("non_blocking", False))
    options = {name: value for name, value in kwargs.items() if name != "copy"}
    device, dtype, non_blocking, _ = parse_to(*args, **options)
    return device, dtype, bool(non_blocking)


def _torch_functions() -> dict[str, Any]:
    def on_device(original: Any) -> Any:
        def make(data: Any, *args: Any, device: Any = None, **options: Any) -> torch.Tensor:
            target = torch.device(device) if device is not None else None
            if target is None or target.type != "cuda":
                return original(data, *args, device=device, **options)  # type: ignore[no-any-return] # torch's own function
            requires_grad = options.pop("requires_grad", False)
            made: torch.Tensor = original(data, *args, **options).to(CUDA)
            return made.requires_grad_() if requires_grad else made

        make.__name__ = original.__name__
        return make

    return {"tensor": on_device(torch.tensor), "as_tensor": on_device(torch.as_tensor)}
