"""The private names of torch that gpulab needs, all in one place."""

from typing import Any

import torch
import torch.overrides
import torch.utils._device
from torch.utils.flop_counter import flop_registry

C: Any = torch._C  # the C layer below torch.cuda, into which the shims go
disable_dispatch: Any = torch._C._DisableTorchDispatch
disabled_torch_function: Any = torch._C._disabled_torch_function_impl
make_wrapper_subclass: Any = torch.Tensor._make_wrapper_subclass
set_data: Any = torch._C.TensorBase.data.__set__  # type: ignore[attr-defined] # not in the stubs
get_data: Any = torch._C.TensorBase.data.__get__  # type: ignore[attr-defined] # not in the stubs
parse_to: Any = torch._C._nn._parse_to
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
device_constructors: Any = torch.utils._device._device_constructors
function_modes: Any = torch.overrides._get_current_function_mode_stack
engine_run_backward: Any = torch.autograd._engine_run_backward  # type: ignore[attr-defined] # not in the stubs
next_sequence_number: Any = torch.autograd._get_sequence_nr  # type: ignore[attr-defined] # not in the stubs


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
