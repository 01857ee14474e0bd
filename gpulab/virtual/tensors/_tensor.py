"""``VirtualTensor``: a ``meta`` tensor to PyTorch's C++ layer, a ``cuda:0`` tensor to Python.

C++ sees a meta tensor because autograd accepts those on every build of PyTorch. If C++ saw a
``cuda`` tensor, ``backward()`` would end the process on a build without CUDA.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import torch

from gpulab.core.torch_private import (
    autocast_keys,
    disable_dispatch,
    disabled_torch_function,
    get_data,
    make_wrapper_subclass,
    set_data,
)
from gpulab.core.tracebacks import drop_this_frame, ends_at_the_call
from gpulab.happens_before import MemoryAccess
from gpulab.virtual.simulator import active
from gpulab.virtual.tensors._storage import Reference, Storage, TensorLayout

# What C++ accepts as a number beside tensors.
_NUMBERS = (int, float, complex, np.integer)
_LONG_LIST = 32  # PyTorch's own limit for a list of indices that stands for a tuple
_META = torch.device("meta")

# This package cannot import the dispatcher, which imports it, so the dispatcher registers itself,
# and the function that copies a tensor to the host to show it.
Dispatch = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]
CopyToShow = Callable[["VirtualTensor"], torch.Tensor | None]
_dispatch: list[Dispatch] = []
_copy_to_show: list[CopyToShow] = []


@cache
def cuda_device(index: int) -> torch.device:
    """Return ``cuda:index``, the same object each time."""
    return torch.device("cuda", index)


def set_dispatch(dispatch: Dispatch, copy_to_show: CopyToShow) -> None:
    """Set the function that runs operations on virtual tensors, and the one that shows them.

    ``copy_to_show`` returns None, after the same time, if a tensor has no values.
    """
    _dispatch[:] = [dispatch]
    _copy_to_show[:] = [copy_to_show]


class VirtualTensor(torch.Tensor):
    """A tensor on the virtual GPU.

    It has a layout and a storage with a device address. It has values only if it is small and
    cheap to compute; see ``has_values``.
    """

    # A subclass's default __torch_function__ runs at each Python call on a tensor, which takes
    # time, and converts every result to this class.
    __torch_function__ = disabled_torch_function
    layout_key: TensorLayout
    storage_block: Storage
    offset: int
    read_access: MemoryAccess | None = None

    @property
    def device(self) -> torch.device:  # type: ignore[override] # a property here, an attribute in C
        """The virtual device, e.g. ``cuda:0``."""
        return cuda_device(self.storage_block.gpu.index)

    # C++ would answer these three as for a meta tensor.
    is_cuda = property(lambda _self: True)
    is_cpu = property(lambda _self: False)
    is_meta = property(lambda _self: False)

    @property
    def has_values(self) -> bool:
        """Whether the elements are computed, so that a copy to the host returns real numbers."""
        return self.storage_block.values.missing is None

    def become(self, value: torch.Tensor) -> None:
        """Take the shape and the memory of another tensor, as ``x.data = y`` does."""
        set_data(self, value)
        if type(value) is VirtualTensor:
            self.layout_key = value.layout_key
            self.storage_block = value.storage_block
            self.offset = value.offset
            # It described the old memory.
            self.read_access = None

    data = property(get_data, become)

    def get_device(self) -> int:
        """Return the device's index."""
        return self.storage_block.gpu.index

    def record_stream(self, stream: Any) -> None:
        """Reuse the memory only after the work that ``stream`` has when it is dropped."""
        self.storage_block.record_stream(stream.core)

    def is_pinned(self, device: object = None) -> bool:  # noqa: ARG002 # torch's signature
        """Return False: only host memory can be pinned."""
        return False

    def data_ptr(self) -> int:
        """Return the address in the virtual device's memory."""
        return self.storage_block.address + self.offset * self.dtype.itemsize

    def __getitem__(self, index: Any) -> Any:
        try:
            return super().__getitem__(_on_host(index))
        except Exception as error:
            drop_this_frame(error)
            raise

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(value, _NUMBERS):
            # As for a CUDA tensor. C++ would make it on the tensor's device, which it takes for
            # meta, and so launch a kernel that writes it.
            value = _number_on_host(value, self.dtype)
        try:
            super().__setitem__(_on_host(index), value)
        except Exception as error:
            drop_this_frame(error)
            raise

    def apply_(self, *_functions: Any) -> Any:
        """Raise the TypeError that PyTorch raises for a CUDA tensor."""
        raise TypeError("apply_ is only implemented on CPU tensors")

    def map_(self, *_functions: Any) -> Any:
        """Raise the TypeError that PyTorch raises for a CUDA tensor."""
        raise TypeError("map_ is only implemented on CPU tensors")

    def tolist(self) -> Any:
        """Copy the values to the host and return them as a nested list."""
        return self.detach().cpu().tolist()

    @ends_at_the_call
    def numpy(self, *, force: bool = False) -> Any:
        """Return an array if ``force`` is set; otherwise raise TypeError as PyTorch does."""
        if force:
            return self.detach().cpu().numpy()
        raise TypeError(
            f"can't convert {self.device} device type tensor to numpy. "
            "Use Tensor.cpu() to copy the tensor to host memory first."
        )

    def __array__(self, *_args: object) -> Any:
        return self.numpy()

    def __repr__(self, **_options: object) -> str:  # type: ignore[override] # torch passes options
        copied = _copy_to_show[0](self)
        if copied is None:
            # A text and not nan, so that a program which only prints its tensors gets no warning.
            description = f"device='{self.device}', size={tuple(self.shape)}, dtype={self.dtype}"
            return f"tensor(<no values>, {description})"
        # By which operators PyTorch finds the best format depends on the values, and so the
        # program pays for the copy alone.
        guard = disable_dispatch()
        try:
            with active().host.uncharged():
                shown = repr(copied)
        finally:
            del guard
        # PyTorch prints the device between the values and the size or type.
        options = re.search(r", (?:size|dtype)=", shown)
        at = options.start() if options else len(shown) - 1
        kind = "Parameter containing:\n" if getattr(self, "_is_param", False) else ""
        note = self._gradient_note()
        return f"{kind}{shown[:at]}, device='{self.device}'{shown[at:-1]}{note})"

    def _gradient_note(self) -> str:
        if self.grad_fn is not None:
            return f", grad_fn=<{type(self.grad_fn).__name__}>"
        return ", requires_grad=True" if self.requires_grad else ""

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if self.dim() == 0 else repr(self)

    def __deepcopy__(self, memo: dict[int, object]) -> torch.Tensor:
        # PyTorch's own method copies the storage, which is empty in the C++ layer.
        copied = self.detach().clone().requires_grad_(self.requires_grad)
        if getattr(self, "_is_param", False):
            copied._is_param = True  # noqa: SLF001 # PyTorch's own mark of a parameter
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
        # Raises an error if the tensor has outlived its virtual_gpu() context.
        active()
        return _dispatch[0](func, args, kwargs or {})


def _number_on_host(value: Any, dtype: torch.dtype) -> torch.Tensor:
    # PyTorch calls no operator for it, so it costs no host time.
    guard = disable_dispatch()
    try:
        return torch.scalar_tensor(value, dtype=dtype, device="cpu")
    finally:
        del guard


def _on_host(index: Any) -> Any:
    """Return an index with its lists and arrays converted to host tensors."""
    # PyTorch would convert them on the tensor's device, which C++ takes for meta, and so lose the
    # values.
    if isinstance(index, tuple):
        # From a list, which is faster than from a generator.
        return tuple([_as_index(item) for item in index])
    # PyTorch takes a short list for a tuple if not all of it are numbers.
    if isinstance(index, list) and len(index) < _LONG_LIST and not all(map(_is_number, index)):
        return [_as_index(item) for item in index]
    return _as_index(index)


def _is_number(item: Any) -> bool:
    return isinstance(item, _NUMBERS)


def _as_index(item: Any) -> Any:
    # Most indices are of these types, and the check against Sequence below is slow.
    if isinstance(item, (int, slice, torch.Tensor)):
        return item
    if not isinstance(item, (np.ndarray, Sequence)) or isinstance(item, str):
        return item
    if isinstance(item, Sequence) and len(item) == 0:
        return torch.empty(0, dtype=torch.long, device="cpu")
    return torch.as_tensor(item, device="cpu")


def wrap(
    layout: TensorLayout, storage: Storage, offset: int = 0, *, like: VirtualTensor | None = None
) -> VirtualTensor:
    """Return a new tensor of ``layout`` over ``storage``, starting at element ``offset``.

    The result is an inference tensor if ``like`` is one, as a view of it is in PyTorch. Without
    ``like`` it is one if inference mode is on. PyTorch itself then checks whether it may be
    changed or saved for backward.
    """
    # A view of a normal tensor is a normal one in inference mode, too, and the other way round.
    if like is not None and like.is_inference() != torch.is_inference_mode_enabled():
        with torch.inference_mode(like.is_inference()):
            return wrap(layout, storage, offset)
    tensor: VirtualTensor = make_wrapper_subclass(
        VirtualTensor,
        layout.sizes,
        strides=layout.strides,
        storage_offset=offset,
        dtype=layout.dtype,
        device=_META,
        _extra_dispatch_keys=autocast_keys,
    )
    tensor.layout_key = layout
    tensor.storage_block = storage
    tensor.offset = offset
    return tensor


def reference(tensor: VirtualTensor) -> Reference:
    """Return a reference to the values of ``tensor``."""
    return Reference(tensor.storage_block.values, tensor.layout_key, tensor.offset)
