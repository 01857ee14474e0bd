"""The private names of torch that gpulab needs, all in one place."""

from typing import Any

import torch
import torch.overrides
import torch.utils._device
import torch.utils._python_dispatch
from torch.utils.flop_counter import flop_registry

C: Any = torch._C  # the C layer below torch.cuda
C_nn: Any = torch._C._nn  # and below torch.nn.functional
variable_functions: Any = torch._VF
tensor_utils: Any = torch._utils
disable_dispatch: Any = torch._C._DisableTorchDispatch
disabled_torch_function: Any = torch._C._disabled_torch_function_impl
make_wrapper_subclass: Any = torch.Tensor._make_wrapper_subclass
set_data: Any = torch._C.TensorBase.data.__set__  # type: ignore[attr-defined] # not in the stubs
get_data: Any = torch._C.TensorBase.data.__get__  # type: ignore[attr-defined] # not in the stubs
parse_to: Any = C_nn._parse_to
has_kernel: Any = torch._C._dispatch_has_kernel_for_dispatch_key
flop_formulas: Any = flop_registry
autocast_key: Any = torch._C.DispatchKey.AutocastPrivateUse1  # type: ignore[attr-defined] # not in the stubs
autocast_keys: Any = torch._C.DispatchKeySet(autocast_key)
exclude_keys: Any = torch._C._ExcludeDispatchKeyGuard
exclude_key_from_here: Any = torch._C._dispatch_tls_set_dispatch_key_excluded
has_backend_fallback: Any = torch._C._dispatch_has_backend_fallback
untyped_dtypes: Any = torch.storage._new_dtypes
tensor_metadata: Any = torch._utils.get_tensor_metadata
set_tensor_metadata: Any = torch._utils.set_tensor_metadata
rebuild_tensor: Any = torch._utils._rebuild_tensor_v2
rebuild_untyped_tensor: Any = torch._utils._rebuild_tensor_v3
rebuild_parameter: Any = torch._utils._rebuild_parameter
rebuild_parameter_with_state: Any = torch._utils._rebuild_parameter_with_state
rebuild_from_type: Any = torch._tensor._rebuild_from_type_v2
device_index: Any = torch.cuda._utils._get_device_index
autograd_node: Any = torch._C._current_autograd_node
DeviceContext: Any = torch.utils._device.DeviceContext
script_operators: Any = torch.jit._builtins._get_builtin_table
device_constructors: Any = torch.utils._device._device_constructors
function_modes: Any = torch.overrides._get_current_function_mode_stack
engine_run_backward: Any = torch.autograd._engine_run_backward  # type: ignore[attr-defined] # not in the stubs
next_sequence_number: Any = torch.autograd._get_sequence_nr  # type: ignore[attr-defined] # not in the stubs
_dispatch_modes: Any = torch.utils._python_dispatch._get_current_dispatch_mode_stack
_pop_dispatch_mode: Any = torch.utils._python_dispatch._pop_mode
_push_dispatch_mode: Any = torch.utils._python_dispatch._push_mode
group_tensors: Any = torch._C._group_tensors_by_device_and_dtype

# Operators without a public name.
conj_view: Any = torch.ops.aten._conj.default
neg_view: Any = torch.ops.aten._neg_view.default
to_copy: Any = torch.ops.aten._to_copy.default
read_scalar: Any = torch.ops.aten._local_scalar_dense.default
pack_padded_sequence: Any = torch.ops.aten._pack_padded_sequence.default
pad_packed_sequence: Any = torch.ops.aten._pad_packed_sequence.default
flash_attention_for_cpu: Any = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
fused_rms_norm: Any = torch.ops.aten._fused_rms_norm.default


def arguments_of(func: Any) -> Any:  # noqa: ANN401 # operators have no public type
    """Return the arguments of an operator's schema, with name, default and alias information."""
    return func._schema.arguments


def results_of(func: Any) -> Any:  # noqa: ANN401 # as above
    """Return the results of an operator's schema, with alias information."""
    return func._schema.returns


def overload_name(func: Any) -> str:  # noqa: ANN401 # as above
    """Return the name of an operator's overload, such as ``"out"`` or ``"default"``."""
    return str(func._overloadname)


def sequence_number(node: Any) -> int:  # noqa: ANN401 # nodes of autograd have no public type
    """Return the number of autograd's node; a later operation has a higher one."""
    return int(node._sequence_nr())


def is_view(tensor: torch.Tensor) -> bool:
    """Tell whether autograd knows a tensor as a view of another."""
    return bool(tensor._is_view())


def address_of(generator: torch.Generator) -> int:
    """Return where the C++ object of a random generator lies."""
    return int(generator._cdata)  # type: ignore[attr-defined] # not in the stubs


def in_derivative() -> bool:
    """Tell whether autograd computes derivatives now: backward, or forward beside the values."""
    forward: Any = torch.autograd.forward_ad
    return autograd_node() is not None or forward._current_level >= 0


def default_device_context() -> Any:  # noqa: ANN401 # it has no public type
    """Return what ``torch.set_default_device`` has put in force on this thread, or None."""
    return getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)


def remove_dispatch_mode(mode: Any) -> None:  # noqa: ANN401 # torch's is untyped
    """Take a mode off this thread's stack of dispatch modes, and leave those above it in force.

    They were entered after it and will be left after it, as by an ExitStack that outlives it.
    """
    if not any(entered is mode for entered in _dispatch_modes()):
        return
    above = []
    while (top := _pop_dispatch_mode()) is not mode:
        above.append(top)
    _push_dispatch_mode(mode)
    mode.__exit__(None, None, None)
    for entered in reversed(above):
        _push_dispatch_mode(entered)


# These are looked up at each call, because a virtual GPU replaces them while it is in use.
_cuda: Any = torch.cuda


def spin(n_cycles: int) -> None:
    """Enqueue a kernel that counts clock cycles and does nothing else, on the current stream."""
    _cuda._sleep(n_cycles)


def record_memory_history(enabled: str | None, **options: object) -> None:
    """Start keeping what the allocator does, or end it with None."""
    _cuda.memory._record_memory_history(enabled=enabled, **options)


def is_memory_history_kept() -> bool:
    """Tell whether somebody keeps what the allocator does."""
    return bool(C._cuda_isHistoryEnabled())


def memory_snapshot() -> dict[str, Any]:
    """Return the allocator's state and the history that was kept, as plain data."""
    snapshot: dict[str, Any] = _cuda.memory._snapshot()
    return snapshot


def schema_of(operator: Any) -> Any:  # noqa: ANN401 # torch's operators have no public type
    """Return the name and the arguments of one of PyTorch's operators."""
    return operator._schema
