"""The private names of torch that gpulab needs, all in one place.

One file, because a new version of torch may rename any of them. Then this module fails at its
import, with the name in the message, and it is the only one to change.

Two kinds of private names are elsewhere. Three names that gpulab can do without are used where
their absence is caught: the index of a GPU in NVML, the end of a failed capture, and the function
that loads a kernel. ``TorchDispatchMode`` and the functions for nested arguments are in modules
with an underscore, but PyTorch documents them for packages such as this one.
"""

import inspect
from collections.abc import Callable, Iterator
from functools import cache
from types import FunctionType
from typing import Any

import torch
import torch._compile
import torch._decomp
import torch._library.simple_registry
import torch._prims_common
import torch.overrides
import torch.utils._device
import torch.utils._python_dispatch
import torch.utils.checkpoint
from torch.utils.flop_counter import flop_registry

# mypy knows none of these names, hence ``Any``.
C: Any = torch._C  # the C layer below torch.cuda
C_nn: Any = torch._C._nn  # and below torch.nn.functional
variable_functions: Any = torch._VF
tensor_utils: Any = torch._utils
disable_dispatch: Any = torch._C._DisableTorchDispatch
# PyTorch's dispatcher calls this before an operator; an error in it leaks the operator's tensors.
find_dispatch_rule: Any = torch._library.simple_registry.find_torch_dispatch_rule
disable_torch_function: Any = torch._C.DisableTorchFunctionSubclass
disabled_torch_function: Any = torch._C._disabled_torch_function_impl
# For the virtual tensor: torch.Tensor has no public way to make a tensor without memory.
make_wrapper_subclass: Any = torch.Tensor._make_wrapper_subclass
set_data: Any = torch._C.TensorBase.data.__set__  # type: ignore[attr-defined] # not in the stubs
get_data: Any = torch._C.TensorBase.data.__get__  # type: ignore[attr-defined] # not in the stubs
parse_to: Any = C_nn._parse_to
# See functions_never_compiled().
disable_compiler: Any = torch._compile._disable_dynamo
has_kernel: Any = torch._C._dispatch_has_kernel_for_dispatch_key
flop_formulas: Any = flop_registry
autocast_key: Any = torch._C.DispatchKey.AutocastPrivateUse1  # type: ignore[attr-defined] # not in the stubs
# A structured operator has one kernel for all devices under this key. It computes the shapes of
# the results, allocates them, and then calls ``func.out``.
_SHAPES_FIRST: Any = torch._C.DispatchKey.CompositeExplicitAutogradNonFunctional
_WRITTEN_WITH_OPERATORS: Any = torch._C.DispatchKey.CompositeExplicitAutograd
autocast_keys: Any = torch._C.DispatchKeySet(autocast_key)
exclude_keys: Any = torch._C._ExcludeDispatchKeyGuard
# With these keys PyTorch marks a tensor as conjugated or negated, and computes it later.
lazy_keys: Any = tuple(getattr(torch._C.DispatchKey, name) for name in ("Conjugate", "Negative"))
# Below torch.enable_grad(), which is a call of Python that takes the host's time.
set_grad_enabled: Any = torch._C._set_grad_enabled
exclude_key_from_here: Any = torch._C._dispatch_tls_set_dispatch_key_excluded
is_key_excluded: Any = torch._C._dispatch_tls_is_dispatch_key_excluded
# An operator's kernel runs with these keys excluded, so autograd records nothing inside it.
autograd_keys: Any = tuple(
    getattr(torch._C.DispatchKey, name) for name in ("AutogradCPU", "ADInplaceOrView")
)
has_backend_fallback: Any = torch._C._dispatch_has_backend_fallback
# For pickle, torch.save and copy.deepcopy: the functions that torch itself names in its files.
untyped_dtypes: Any = torch.storage._new_dtypes
tensor_metadata: Any = torch._utils.get_tensor_metadata
set_tensor_metadata: Any = torch._utils.set_tensor_metadata
rebuild_tensor: Any = torch._utils._rebuild_tensor_v2
rebuild_untyped_tensor: Any = torch._utils._rebuild_tensor_v3
rebuild_parameter: Any = torch._utils._rebuild_parameter
rebuild_parameter_with_state: Any = torch._utils._rebuild_parameter_with_state
rebuild_from_type: Any = torch._tensor._rebuild_from_type_v2
swap_tensors: Any = torch.utils.swap_tensors  # public, but without types
device_index: Any = torch.cuda._utils._get_device_index
_eval_frame: Any = torch._C._dynamo.eval_frame  # what the compiler looks at
Overload: Any = torch._ops.OpOverload  # the class of operators with a schema
# A range that PyTorch's profiler records, and the switch of what it records on this thread.
RecordedRange: Any = torch._C._profiler._RecordFunctionFast
record_ranges: Any = torch._C._autograd._enable_record_function
# The virtual clock charges the host for each call of the next three.
LoaderIterator: Any = torch.utils.data.dataloader._BaseDataLoaderIter
call_module: Any = torch.nn.Module._call_impl
list_members_of: Any = torch.nn.Module._named_members
DeviceContext: Any = torch.utils._device.DeviceContext
# The base class of the parameters of lazy modules, which have no sizes before the first call.
UninitializedTensor: Any = vars(torch.nn.parameter)["UninitializedTensorMixin"]
# TorchScript: its modules are recognized by their class, and it calls operators by a table of its
# own.
ScriptModule: Any = vars(torch.jit)["RecursiveScriptModule"]
script_operators: Any = torch.jit._builtins._get_builtin_table
# The next two serve torch.set_default_device and `with torch.device(...)`.
device_constructors: Any = torch.utils._device._device_constructors
function_modes: Any = torch.overrides._get_current_function_mode_stack
_is_wrapped: Any = torch._C._functorch.is_functorch_wrapped_tensor
_unwrapped: Any = torch._C._functorch.get_unwrapped
CheckpointHooks: Any = torch.utils.checkpoint._checkpoint_hook
engine_run_backward: Any = torch.autograd._engine_run_backward  # type: ignore[attr-defined] # not in the stubs
next_sequence_number: Any = torch.autograd._get_sequence_nr  # type: ignore[attr-defined] # not in the stubs
nested_from_mask_left_aligned: Any = torch._nested_tensor_from_mask_left_aligned
# What the program has chosen, also while a virtual GPU has replaced the functions that set it.
deterministic_mode: Any = torch._C._get_deterministic_algorithms
is_only_warned: Any = torch._C._get_deterministic_algorithms_warn_only
set_deterministic_mode: Any = torch._C._set_deterministic_algorithms
fills_new_memory: Any = torch._C._get_deterministic_fill_uninitialized_memory
# None before torch 2.9, which has one switch for each kind of operator.
_float32_precision: Any = getattr(torch._C, "_get_fp32_precision_getter", None)
# The memory format that cuDNN chooses by a tensor's strides.
suggest_memory_format: Any = torch._prims_common.suggest_memory_format
group_tensors: Any = torch._C._group_tensors_by_device_and_dtype

# Operators without a public name.
conj_view: Any = torch.ops.aten._conj.default
neg_view: Any = torch.ops.aten._neg_view.default
to_copy: Any = torch.ops.aten._to_copy.default
read_scalar: Any = torch.ops.aten._local_scalar_dense.default
pack_padded_sequence: Any = torch.ops.aten._pack_padded_sequence.default
pad_packed_sequence: Any = torch.ops.aten._pad_packed_sequence.default
flash_attention_for_cpu: Any = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
flash_attention_for_cpu_backward: Any = (
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward.default
)
unsafe_view: Any = torch.ops.aten._unsafe_view.default
check_errors: Any = torch.ops.aten._linalg_check_errors.default
linalg_eigh: Any = torch.ops.aten._linalg_eigh.default
linalg_svd: Any = torch.ops.aten._linalg_svd.default
index_put_impl: Any = torch.ops.aten._index_put_impl_.default
unsafe_index_put: Any = torch.ops.aten._unsafe_index_put.default
fused_rms_norm: Any = torch.ops.aten._fused_rms_norm.default
efficient_zero_tensor: Any = torch.ops.aten._efficientzerotensor.default


def allows_tf32(area: str) -> bool:
    """Return whether TF32 may be used on a GPU, for ``"matmul"``, ``"conv"`` or ``"rnn"``.

    It follows PyTorch's new switches (``fp32_precision``) and its old ones (``allow_tf32``). The
    old ones raise an error when they are read, if the program has used a new one.
    """
    if _float32_precision is None:
        backend = torch.backends.cuda.matmul if area == "matmul" else torch.backends.cudnn
        return bool(backend.allow_tf32)
    return bool(_float32_precision("cuda", area) == "tf32")


def current_stance() -> Any:  # noqa: ANN401 # the class is private
    """Return the current stance of ``torch.compile``, for :func:`restore_stance`."""
    import torch._dynamo.eval_frame as dynamo  # importing it takes a second

    return dynamo._stance


def restore_stance(stance: Any) -> None:  # noqa: ANN401 # as above
    """Set the stance of ``torch.compile`` back to what :func:`current_stance` returned."""
    import torch._dynamo.eval_frame as dynamo

    dynamo._stance = stance


def mode_flags() -> dict[str, bool]:
    """Return torch's own flags about the active dispatch modes, for :func:`leave_mode`."""
    flags = vars(torch.utils._python_dispatch)
    return {name: flags[name] for name in flags if name.startswith("_is_in_")}


def leave_mode(mode: Any, flags: dict[str, bool]) -> None:  # noqa: ANN401 # torch's is untyped
    """Leave a dispatch mode if it is still active, even after its own ``__exit__`` has failed.

    It need not be the innermost one; ``flags`` are :func:`mode_flags` before it was entered.
    """
    modes: Any = torch.utils._python_dispatch
    if any(entered is mode for entered in modes._get_current_dispatch_mode_stack()):
        # Modes that were entered later and are still active, as in an ExitStack that outlives it.
        above = []
        while (top := modes._pop_mode()) is not mode:
            above.append(top)
        for entered in reversed(above):
            modes._push_mode(entered)
    # torch sets these flags when a mode is entered, and resets them in the __exit__ that has
    # failed.
    vars(modes).update(flags)
    # New in torch 2.12: C++ keeps a copy of this flag.
    set_copy = getattr(modes, "set_is_in_mode_without_ignore_compile_internals", None)
    if set_copy is not None:
        set_copy(flags["_is_in_any_mode_without_ignore_compile_internals"])


def schema_of(func: Any) -> Any:  # noqa: ANN401 # operators have no public type
    """Return an operator's schema: its name, arguments and results."""
    return func._schema


def arguments_of(func: Any) -> Any:  # noqa: ANN401 # as above
    """Return the arguments of an operator's schema, with name, default and alias information."""
    return schema_of(func).arguments


def results_of(func: Any) -> Any:  # noqa: ANN401 # as above
    """Return the results of an operator's schema, with alias information."""
    return schema_of(func).returns


def not_compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that ``torch.compile`` does not look at, nor at what it calls.

    Python code that PyTorch's dispatcher runs inside a compiled region would be compiled, too.
    """
    skip = _eval_frame._FrameAction.SKIP
    strategy = _eval_frame._FrameExecStrategy(skip, skip)
    _eval_frame.set_code_exec_strategy(function.__code__, strategy)
    return function


class DispatchMode(torch.utils._python_dispatch.TorchDispatchMode):  # type: ignore[no-untyped-call] # torch's is untyped
    """The base of dispatch modes that do not import PyTorch's compiler."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # With True, torch 2.13 imports torch._dynamo (1.3 s) and wraps every operation.
        return False


def overload_name(func: Any) -> str:  # noqa: ANN401 # as above
    """Return the name of an operator's overload, such as ``"out"`` or ``"default"``."""
    return str(func._overloadname)


def sequence_number(node: Any) -> int:  # noqa: ANN401 # nodes of autograd have no public type
    """Return the sequence number of an autograd node; later operations have higher numbers."""
    return int(node._sequence_nr())


def module_hooks(module: Any) -> tuple[Any, ...]:  # noqa: ANN401 # any module
    """Return a module's own hooks, by kind."""
    return (
        module._forward_hooks,
        module._forward_pre_hooks,
        module._backward_hooks,
        module._backward_pre_hooks,
    )


def is_view(tensor: torch.Tensor) -> bool:
    """Return whether autograd treats a tensor as a view of another."""
    return bool(tensor._is_view())


def address_of(generator: torch.Generator) -> int:
    """Return the address of a random generator's C++ object."""
    return int(generator._cdata)  # type: ignore[attr-defined] # not in the stubs


def innermost(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor inside the wrappers of ``torch.func``, or the tensor itself."""
    while _is_wrapped(tensor):
        tensor = _unwrapped(tensor)
    return tensor


def default_device_context() -> Any:  # noqa: ANN401 # it has no public type
    """Return the context that ``torch.set_default_device`` entered on this thread, or None."""
    return getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)


# The functions below look their names up at each call: a virtual GPU replaces them while in use.
_cuda: Any = torch.cuda


def current_raw_stream() -> int:
    """Return the address of the current stream, 0 for the default one.

    Unlike ``torch.cuda.current_stream()`` this makes no object, so it takes no time on the host.
    """
    import torch

    return int(torch._C._cuda_getCurrentRawStream(torch.cuda.current_device()))


def spin(n_cycles: int) -> None:
    """Enqueue on the current stream a kernel that only waits for so many clock cycles."""
    _cuda._sleep(n_cycles)


def is_profiler_open() -> bool:
    """Return whether a session of a profiler of PyTorch is open."""
    autograd: Any = torch.autograd
    return bool(autograd.profiler._is_profiler_enabled or autograd._profiler_enabled())


def has_profiler_schedule() -> bool:
    """Return whether a ``torch.profiler.profile`` exists whose ``with`` block was not left yet.

    torch 2.13 shows nowhere else that a profiler is in the warm-up of its schedule.
    """
    autograd: Any = torch.autograd
    return "ProfilerStep" in autograd.profiler.KinetoStepTracker._step_dict


def start_profiler_list(*, with_shapes: bool, with_flops: bool) -> None:
    """Let PyTorch record where each operator and range of this thread begins and ends."""
    profiler: Any = torch._C._profiler
    # The older of PyTorch's CPU profilers: it gives the entries in their order, and is silent.
    config = profiler.ProfilerConfig(
        profiler.ProfilerState.CPU,
        with_shapes,
        False,  # noqa: FBT003 # C++ has no names: no memory
        False,  # noqa: FBT003 # and no stacks
        with_flops,
        False,  # noqa: FBT003 # and no modules
        profiler._ExperimentalConfig(),
    )
    torch._C._autograd._enable_profiler_legacy(config)


def stop_profiler_list() -> list[Any]:
    """Stop what :func:`start_profiler_list` started, and return its entries in their order."""
    threads = torch._C._autograd._disable_profiler_legacy()
    return [entry for entries in threads for entry in entries]


def overrides_stale_streams() -> bool:
    """Return whether a backward pass in a capture leaves streams that are not captured.

    That is the switch ``torch.autograd.graph.set_override_stale_capture_stream`` of torch 2.13.
    """
    switch: Any = getattr(torch._C, "_override_stale_capture_stream", None)
    return switch is not None and bool(switch())


@cache
def is_written_with_operators(func: Any) -> bool:  # noqa: ANN401 # operators have no public type
    """Return whether an operator has a kernel for every device, which calls other operators."""
    return has_own_kernel(func, _WRITTEN_WITH_OPERATORS.name)


@cache
def has_own_kernel(func: Any, key: str) -> bool:  # noqa: ANN401 # as above
    """Return whether an operator has a kernel for a device or dispatch key, e.g. ``"CPU"``."""
    try:
        return bool(has_kernel(func.name(), key))
    except RuntimeError:  # the dispatcher has no such name, e.g. aten::add_.t
        return False


def call_inside(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401 # as above
    """Call the kernel that an operator has for every device."""
    return func._op_dk(_WRITTEN_WITH_OPERATORS, *args, **kwargs)


def record_memory_history(enabled: str | None, **options: object) -> None:
    """Start to record what the allocator does; ``enabled=None`` ends it."""
    _cuda.memory._record_memory_history(enabled=enabled, **options)


def is_memory_history_kept() -> bool:
    """Return whether a CUDA GPU's allocator records its history now, for us or for the user."""
    return bool(C._cuda_isHistoryEnabled())


def memory_snapshot() -> dict[str, Any]:
    """Return the allocator's state and the history that was kept, as plain data."""
    snapshot: dict[str, Any] = _cuda.memory._snapshot()
    return snapshot


@cache
def functions_never_compiled() -> tuple[Callable[..., Any], ...]:
    """Return PyTorch's kernels in Python and optimizer methods that are marked as not compiled.

    When one of them runs for the first time, PyTorch imports its compiler, which takes a second.
    It does not if the function has an attribute ``__dynamo_disable``, which it then calls instead.
    """
    guard = disable_compiler(lambda: None).__code__
    tables = torch._decomp.global_decomposition_table.values()
    kernels = {kernel for table in tables for kernel in table.values()}
    outermost = [*kernels, *vars(torch.optim.Optimizer).values()]
    functions = {function for entry in outermost for function in _within(entry)}
    guards = [function for function in functions if function.__code__ is guard]
    return tuple(inspect.getclosurevars(function).nonlocals["fn"] for function in guards)


def _within(function: Any) -> Iterator[FunctionType]:  # noqa: ANN401 # kernels have no type
    """Yield a function and the functions that it decorates, which are in its closure."""
    if isinstance(function, FunctionType):
        yield function
        for cell in function.__closure__ or ():
            yield from _within(cell.cell_contents)


def has_shape_function(func: Any) -> bool:  # noqa: ANN401 # operators have no public type
    """Return whether an operator has a C++ function that only computes its results' shapes."""
    is_structured = has_kernel(func.name(), _SHAPES_FIRST.name)
    return is_structured and not any(argument.is_out for argument in arguments_of(func))


def call_shape_function(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401 # as above
    """Allocate an operator's results, then call its ``out`` overload, which writes into them."""
    return func._op_dk(_SHAPES_FIRST, *args, **kwargs)
