"""The tensor that lives on the virtual GPU: ``meta`` to PyTorch's C++ layer, ``cuda:0`` to Python.

To C++ it is a meta tensor because autograd accepts those on every build of PyTorch; a tensor that
claims to be on ``cuda`` there ends the process in ``backward()`` when CUDA is missing.
"""

from collections.abc import Callable
from typing import Any

import torch

from gpulab.virtual.machine import active
from gpulab.virtual.private import (
    disabled_torch_function,
    get_data,
    make_wrapper_subclass,
    set_data,
)
from gpulab.virtual.storage import Layout, Storage

CUDA = torch.device("cuda", 0)
_META = torch.device("meta")

Dispatch = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]
_dispatch: list[Dispatch] = []


def set_dispatch(dispatch: Dispatch) -> None:
    """Name the function that runs operations on virtual tensors."""
    _dispatch[:] = [dispatch]


class VirtualTensor(torch.Tensor):
    """A tensor on the virtual GPU.

    It has a layout and a storage with a device address, and values only if it is small and
    cheap; ``has_values`` tells.
    """

    __torch_function__ = disabled_torch_function
    layout_key: Layout
    storage_block: Storage
    offset: int

    @property
    def device(self) -> torch.device:  # type: ignore[override] # a property here, an attribute in C
        """The virtual device."""
        return CUDA

    is_cuda = property(lambda _self: True)
    is_cpu = property(lambda _self: False)
    is_meta = property(lambda _self: False)

    @property
    def has_values(self) -> bool:
        """Whether its elements are computed."""
        return self.storage_block.values.known

    def _set_data(self, value: torch.Tensor) -> None:
        set_data(self, value)
        if type(value) is VirtualTensor:
            self.layout_key = value.layout_key
            self.storage_block = value.storage_block
            self.offset = value.offset

    data = property(get_data, _set_data)

    def get_device(self) -> int:
        """Return the device's index."""
        return 0

    def is_pinned(self, device: object = None) -> bool:  # noqa: ARG002 # torch's signature
        """Return False: only host memory can be pinned."""
        return False

    def data_ptr(self) -> int:
        """Return the address in the virtual device's memory."""
        return self.storage_block.block.address + self.offset * self.dtype.itemsize

    def elements(self) -> torch.Tensor:
        """Return the values as a CPU tensor over the same bytes, as they are by now."""
        return self.storage_block.values.view(self.layout_key, self.offset)

    def tolist(self) -> Any:
        """Copy the values to the host, as a list."""
        return self.detach().cpu().tolist()

    def numpy(self, *, force: bool = False) -> Any:
        """Refuse as PyTorch does, unless ``force`` copies to the host first."""
        if force:
            return self.detach().cpu().numpy()
        raise TypeError(
            "can't convert cuda:0 device type tensor to numpy. "
            "Use Tensor.cpu() to copy the tensor to host memory first."
        )

    def __array__(self, *_args: object) -> Any:
        return self.numpy()

    def __repr__(self, **_options: object) -> str:  # type: ignore[override] # torch passes options
        if not self.has_values:
            # Printing waits for the device, whether or not there is something to show.
            active().host.wait_for_stream(active().stream)
            shape = tuple(self.shape)
            return f"tensor(<no values>, device='cuda:0', size={shape}, dtype={self.dtype})"
        return f"{repr(self.detach().cpu())[:-1]}, device='cuda:0'{self._gradient_note()})"

    def _gradient_note(self) -> str:
        if self.grad_fn is not None:
            return f", grad_fn=<{type(self.grad_fn).__name__}>"
        return ", requires_grad=True" if self.requires_grad else ""

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if self.dim() == 0 and spec else repr(self)

    def __deepcopy__(self, memo: dict[int, object]) -> torch.Tensor:
        copied = self.detach().clone().requires_grad_(self.requires_grad)
        if getattr(self, "_is_param", False):
            copied._is_param = True
        memo[id(self)] = copied
        return copied

    @classmethod
    def __torch_dispatch__(  # type: ignore[override] # the stub lacks the operator
        cls,
        func: Any,
        types: object,  # torch's signature
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        active()  # raises when the tensor has outlived its context
        return _dispatch[0](func, args, kwargs or {})


def wrap(layout: Layout, storage: Storage, offset: int = 0) -> VirtualTensor:
    """Make a tensor of ``layout`` over ``storage``, ``offset`` elements in."""
    if torch.is_inference_mode_enabled():
        # A wrapper made in inference mode cannot be changed outside it.
        with torch.inference_mode(False):  # noqa: FBT003 # torch's signature
            return wrap(layout, storage, offset)
    tensor: VirtualTensor = make_wrapper_subclass(
        VirtualTensor, layout.sizes, strides=layout.strides, dtype=layout.dtype, device=_META
    )
    tensor.layout_key = layout
    tensor.storage_block = storage
    tensor.offset = offset
    return tensor
