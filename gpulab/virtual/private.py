"""The private names of torch that the virtual GPU needs, all in one place."""

from typing import Any

import torch
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
