"""Install all patches: the virtual GPU answers for ``torch.cuda`` until they are undone."""

import sys
from collections.abc import Iterable
from typing import Any

import torch

from gpulab.core.interrupts import Undo
from gpulab.core.torch_private import C
from gpulab.core.tracebacks import ends_at_the_call
from gpulab.virtual._after_exit import borrow
from gpulab.virtual._replaced import Replaced
from gpulab.virtual._streams import (
    CUDA_DEVICE_TYPE,
    EventBase,
    StreamBase,
    class_with_base,
    external_stream_class,
    make_current,
    require_device,
)
from gpulab.virtual.patches import (
    _accelerator_streams,
    _attention,
    _autocast,
    _autograd_cost,
    _cuda_graphs,
    _data_parallel,
    _device_numbers,
    _factories,
    _fused_layers,
    _generators,
    _late_imports,
    _lazy_modules,
    _legacy_types,
    _memory,
    _nvtx,
    _other_branches,
    _product_gradients,
    _pynvml,
    _python_cost,
    _recurrent_layers,
    _serialization,
    _switches,
    _tensor_methods,
    _threads,
    _torch_compile,
    _torch_profiler,
    _torchscript,
    _unsupported,
)
from gpulab.virtual.patches._cuda_graphs import GraphBase
from gpulab.virtual.patches._optimizer_steps import OptimizerSteps
from gpulab.virtual.simulator import (
    Kind,
    Machine,
    SimulatedGpu,
    SpinCycles,
    StreamTask,
    active,
    device_properties,
    is_owner,
)

# The version on the machine of the recorded H200, as that of cuDNN below.
_CUDA_VERSION = "13.0"
# The types in torch.backends.cudnn.CUDNN_TENSOR_DTYPES of torch 2.13.
_CUDNN_TYPES = {torch.float16, torch.float32, torch.float64}
_CUDNN: dict[str, Any] = {
    "is_acceptable": lambda tensor: (
        torch.backends.cudnn.enabled and tensor.is_cuda and tensor.dtype in _CUDNN_TYPES
    ),
    "is_available": lambda: True,
    "version": lambda: 91_900,
}
# If two of them replace the same name, the later one wins.
_FEATURES = (
    *(
        _attention,
        _autocast,
        _autograd_cost,
        _cuda_graphs,
        _data_parallel,
        _device_numbers,
        _factories,
        _fused_layers,
        _generators,
        _lazy_modules,
        _accelerator_streams,
        _other_branches,
        _product_gradients,
        _python_cost,
        _recurrent_layers,
        _tensor_methods,
        _legacy_types,
        _memory,
    ),
    *(_pynvml, _nvtx),
    *(_serialization, _switches, _threads, _torch_compile, _unsupported),
)


def install(machine: Machine, replaced: Replaced, undo: Undo) -> None:
    """Let ``machine`` answer for ``torch.cuda``, until ``undo`` is closed.

    ``replaced`` stores and restores the original names; ``undo`` gets all other actions that
    remove the patches.
    """
    for owner, names in _by_owner(_replacements(machine)):
        _torchscript.register(owner, names, undo)
        replaced.put(owner, names)
    for name, base, module in (
        ("Stream", StreamBase, torch.cuda.streams),
        ("Event", EventBase, torch.cuda.streams),
        ("CUDAGraph", GraphBase, torch.cuda.graphs),
        ("Graph", GraphBase, getattr(torch.accelerator, "graphs", None)),  # since torch 2.13
    ):
        if module is not None:
            _replace_class(module, name, base, replaced, undo)
    for feature in (_autocast, _switches):
        feature.install(machine, undo)
    steps = OptimizerSteps(replaced, undo)
    _python_cost.install(machine, steps)
    _torch_compile.keep_unloaded(steps, undo)
    _late_imports.install(machine, replaced, undo)
    # Last, so that undo ends a profiler session and a capture of the program before anything else
    # is restored.
    _torch_profiler.install(machine, replaced, undo)
    undo.callback(_cuda_graphs.abandon_capture, machine)


def _replacements(machine: Machine) -> list[tuple[Any, dict[str, Any]]]:
    functions = {**_devices(machine), **_streams(machine), **_accelerator(machine), **_tuning()}
    return [
        (C, {name: ends_at_the_call(function) for name, function in functions.items()}),
        (torch.cuda, _cuda_functions(machine)),
        (
            torch.accelerator,
            {"is_available": lambda: True, "device_count": lambda: len(machine.gpus)},
        ),
        (torch.backends.cuda, {"is_built": lambda: True}),
        (torch.backends.cudnn, _CUDNN),
        # PyTorch's method would call cuDNN in C++. It only moves the weights into one block of
        # memory, which makes no difference here.
        (torch.nn.RNNBase, {"flatten_parameters": lambda _self: None}),
        # Programs look at torch.version.cuda to see whether PyTorch was built with CUDA.
        (torch.version, {"cuda": torch.version.cuda or _CUDA_VERSION}),
        *(pair for feature in _FEATURES for pair in feature.replacements(machine)),
    ]


def _by_owner(
    replacements: Iterable[tuple[Any, dict[str, Any]]],
) -> Iterable[tuple[Any, dict[str, Any]]]:
    """Return the replacements grouped by the object that has the names."""
    # Replacing all names of one object at once takes half the time.
    grouped: dict[int, tuple[Any, dict[str, Any]]] = {}
    for owner, names in replacements:
        if id(owner) in grouped:
            grouped[id(owner)][1].update(names)
        else:
            grouped[id(owner)] = owner, {**names}
    return grouped.values()


def _replace_class(module: Any, name: str, base: type, replaced: Replaced, undo: Undo) -> None:
    """Give a class of torch the virtual base class, or replace the class by name."""
    # A new base is better: the class stays the same object for programs that have imported it.
    original = getattr(module, name)
    # Before the change, so that an error in between is undone, too.
    undo.callback(_restore_bases, original, original.__bases__)
    borrow(original)
    try:
        # This works on CPU builds of PyTorch, where the base is an empty Python class.
        original.__bases__ = (base,)
    except TypeError:
        # On CUDA builds the base is a C class with another memory layout, which Python refuses to
        # exchange.
        classes = {name: class_with_base(original, base)}
        if name == "Stream":
            classes["ExternalStream"] = external_stream_class(classes[name])
        for owner in (sys.modules[module.__package__], module):
            replaced.put(owner, classes)


def _restore_bases(class_: type, bases: tuple[type, ...]) -> None:
    # On CUDA builds Python may refuse even to set the bases that are there already.
    if class_.__bases__ != bases:
        class_.__bases__ = bases


def _devices(machine: Machine) -> dict[str, Any]:
    def set_device(index: int) -> None:
        # PyTorch passes a negative index to keep the current device.
        if index >= 0:
            require_device(index, machine)
            # As on CUDA, the current device of another thread is not that of this one.
            if is_owner():
                machine.current = index

    def exchange_device(index: int) -> int:
        before = machine.current
        set_device(index)
        return before

    def set_sync_debug_mode(mode: int) -> None:
        machine.sync_debug_mode = mode

    return {
        "_cuda_getDevice": lambda: machine.current,
        "_cuda_getDeviceCount": lambda: len(machine.gpus),
        "_cuda_setDevice": set_device,
        "_cuda_exchangeDevice": exchange_device,
        "_cuda_maybeExchangeDevice": exchange_device,
        # In the model all GPUs of a machine are connected with one another.
        "_cuda_canDeviceAccessPeer": lambda first, second: first != second,
        "_cuda_getArchFlags": lambda: "sm_{}{}".format(*machine.spec.compute_capability),
        # In a forked process, _threads replaces what tells PyTorch about a bad fork.
        "_cuda_isInBadFork": lambda: False,
        "_cuda_ipc_collect": lambda: None,
        "_cuda_get_sync_debug_mode": lambda: machine.sync_debug_mode,
        "_cuda_set_sync_debug_mode": set_sync_debug_mode,
    }


def _streams(machine: Machine) -> dict[str, Any]:
    def set_stream(stream_id: int, device_index: int, **_type: int) -> None:
        require_device(device_index, machine)
        machine.host.charge("set stream")
        machine.current = device_index
        make_current(machine.gpu, machine.gpu.device.streams[stream_id])

    def current_stream(index: int) -> tuple[int, int, int]:
        machine.host.spend(machine.host.costs.current_stream_ns)
        gpu = _gpu(machine, index)
        return gpu.stream.number, gpu.index, CUDA_DEVICE_TYPE

    def raw_stream(index: int) -> int:
        return _gpu(machine, index).stream.number

    def default_stream(index: int) -> tuple[int, int, int]:
        return 0, _gpu(machine, index).index, CUDA_DEVICE_TYPE

    def external_stream(handle: int, index: int) -> tuple[int, int, int]:
        stream: Any = torch.cuda.ExternalStream(handle, _gpu(machine, index).index)  # type: ignore[no-untyped-call] # torch's is untyped
        return stream.stream_id, stream.device_index, CUDA_DEVICE_TYPE

    def sleep(cycles: int) -> None:
        task = StreamTask(Kind.KERNEL, machine.gpu.stream, name="sleep", demand=SpinCycles(cycles))
        machine.launch(task, machine.host.costs.sleep_launch_ns)

    return {
        "_cuda_getCurrentStream": current_stream,
        "_cuda_getCurrentRawStream": raw_stream,
        "_cuda_getDefaultStream": default_stream,
        "_cuda_getStreamFromExternal": external_stream,
        "_cuda_setStream": set_stream,
        "_cuda_sleep": sleep,
        "_cuda_synchronize": lambda: machine.wait_for_gpu(machine.gpu),
    }


def _tuning() -> dict[str, Any]:
    """Return PyTorch's defaults of ``torch.cuda.tunable``, whose ``enable()`` is refused."""
    return {
        "_cuda_tunableop_is_enabled": lambda: False,
        "_cuda_tunableop_tuning_is_enabled": lambda: True,
        "_cuda_record_untuned_is_enabled": lambda: False,
    }


def _gpu(machine: Machine, index: int) -> SimulatedGpu:
    """Return the GPU with this index; a negative index means the current GPU."""
    if index < 0:
        return machine.gpu
    require_device(index, machine)
    return machine.gpus[index]


def _accelerator(machine: Machine) -> dict[str, Any]:
    devices = _devices(machine)
    return {
        "_accelerator_getAccelerator": lambda: torch.device("cuda"),
        "_accelerator_getDeviceIndex": devices["_cuda_getDevice"],
        "_accelerator_setDeviceIndex": devices["_cuda_setDevice"],
        "_accelerator_exchangeDevice": devices["_cuda_exchangeDevice"],
        "_accelerator_maybeExchangeDevice": devices["_cuda_exchangeDevice"],
        "_accelerator_synchronizeDevice": lambda index: machine.wait_for_gpu(_gpu(machine, index)),
    }


def _cuda_functions(machine: Machine) -> dict[str, Any]:
    major, minor = machine.spec.compute_capability
    shown = [device_properties(machine.spec, index) for index in range(len(machine.gpus))]
    devices = _devices(machine)
    return {
        "_initialized": True,
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        # Raises an error on other threads and in forked processes.
        "_lazy_init": active,
        "device_count": lambda: len(machine.gpus),
        "_exchange_device": devices["_cuda_exchangeDevice"],
        "_maybe_exchange_device": devices["_cuda_exchangeDevice"],
        "_get_device_properties": lambda index: shown[index],
        "get_arch_list": lambda: [f"sm_{major}{minor}"],
        "is_bf16_supported": lambda **_emulated: major >= 8,  # noqa: PLR2004 # since Ampere
        "is_tf32_supported": lambda: major >= 8,  # noqa: PLR2004 # since Ampere
    }
