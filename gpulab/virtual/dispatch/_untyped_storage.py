"""The result of ``Tensor.untyped_storage()`` for a virtual tensor."""

import math
from collections.abc import Callable
from typing import Any, Self
from weakref import WeakValueDictionary

import torch

from gpulab.core.errors import NotModelledError
from gpulab.virtual._streams import index_of
from gpulab.virtual.dispatch._copies import copy_in, copy_to_show, is_pinned
from gpulab.virtual.dispatch._value_limits import missing_by_size
from gpulab.virtual.simulator import active
from gpulab.virtual.tensors import Storage, TensorLayout, VirtualTensor, cuda_device, layout, wrap


class VirtualStorage(torch.UntypedStorage):
    """The memory of virtual tensors as PyTorch's ``UntypedStorage``.

    It has an address and a size, and can be read. Methods that would change it raise an error;
    change a tensor instead.

    Attributes
    ----------
    block
        The storage in device memory.
    """

    block: Storage
    _is_untyped: bool

    def __new__(cls, block: Storage, *, is_untyped: bool = False) -> Self:
        """Return a new object for ``block``; to PyTorch's C++ layer it is empty host memory."""
        storage = super().__new__(cls, 0)  # type: ignore[call-arg] # object's in the stub
        storage.block = block
        storage._is_untyped = is_untyped
        _storages[block.identity] = storage
        return storage

    @classmethod
    def of_host(cls, source: torch.UntypedStorage, device: torch.device) -> Self:
        """Return a copy of a host storage in new memory of a virtual GPU."""
        machine, n_bytes = active(), source.nbytes()
        # The storage has no type until a tensor views it, so the number of elements is not known.
        # The values are kept if they would be few enough as elements of the widest type; the first
        # view then decides. See view().
        n_elements = math.ceil(n_bytes / torch.complex128.itemsize)
        missing = missing_by_size(machine, layout((n_elements,), (1,), torch.complex128))
        block = Storage(machine, machine.gpus[index_of(device, machine)], n_bytes, missing)
        # In torch.save's old format the bytes come later in the file, after the tensors.
        if n_bytes and not getattr(source, "_torch_load_uninitialized", False):
            _fill(block, source)
        return cls(block, is_untyped=True)

    device = property(lambda self: cuda_device(self.block.gpu.index))

    def nbytes(self) -> int:
        """Return the size in bytes."""
        return self.block.values.size_bytes

    size = __len__ = nbytes

    def data_ptr(self) -> int:
        """Return the address in the virtual device's memory; 0 if it is empty."""
        return self.block.address if self.nbytes() else 0

    def is_shared(self) -> bool:
        """Return True, as PyTorch does for all CUDA memory."""
        return True

    def is_pinned(self, device: object = None) -> bool:  # noqa: ARG002 # torch's signature
        """Return False: only host memory can be pinned."""
        return False

    def cpu(self) -> Any:
        """Wait for the device and return a copy in host memory.

        Raises
        ------
        NoValuesError
            If its values are not computed.
        """
        # As a tensor of bytes, so that the copy takes time and waits like any other.
        return _as_bytes(self.block).cpu().untyped_storage()

    def to(self, *, device: Any, non_blocking: bool = False) -> Any:
        """Return a copy on the host or on another virtual GPU; itself if it is there already."""
        target = torch.device(device)
        if target.type == "cpu":
            return self.cpu()
        if target.type == "cuda" and index_of(target, active()) == self.block.gpu.index:
            return self
        return self.cpu().to(device=target, non_blocking=non_blocking)

    def tolist(self) -> Any:
        """Copy its bytes to the host and return them as a list."""
        return self.cpu().tolist()

    def __getitem__(self, index: Any) -> Any:
        return self.cpu()[index]

    def __repr__(self) -> str:
        note = f"[torch.storage.UntypedStorage(device={self.device}) of size {self.nbytes()}]"
        copied = copy_to_show(_as_bytes(self.block))
        if copied is None:
            return f"...\n{note}"
        return "\n ".join([" ", *map(str, copied.tolist())])[2:] + f"\n{note}"

    def view(self, tensor: VirtualTensor, key: TensorLayout, offset: int) -> None:
        """Make ``tensor`` a view of this memory, starting at element ``offset``."""
        # A loaded storage has no type at first, so only its first view shows whether it has too
        # many elements to have values.
        if self._is_untyped:
            self._is_untyped = False
            n_elements = self.nbytes() // key.dtype.itemsize
            flat = layout((n_elements,), (1,), key.dtype)
            counted_bytes = self.block.counted_bytes
            too_large = missing_by_size(active(), flat, counted_bytes=counted_bytes)
            self.block.set_missing(self.block.values.missing or too_large)
        tensor.become(wrap(key, self.block, offset, like=tensor))

    def _write_file(self, *args: Any) -> None:
        self.cpu()._write_file(*args)  # noqa: SLF001 # PyTorch's storage

    def _set_from_file(self, *args: Any) -> None:
        """Read the bytes of a storage from a file in torch.save's old format."""
        on_host: Any = torch.UntypedStorage(self.nbytes())  # type: ignore[no-untyped-call] # torch's is untyped
        on_host._set_from_file(*args)  # noqa: SLF001 # PyTorch's storage
        _fill(self.block, on_host)


# torch.save writes the name of a storage's class into the file, and a program without gpulab must
# be able to load it.
VirtualStorage.__name__ = "UntypedStorage"

# One object for each storage as long as somebody refers to it: PyTorch finds out by it which
# tensors share memory.
_storages: WeakValueDictionary[int, VirtualStorage] = WeakValueDictionary()


def _refuse(name: str) -> Callable[..., Any]:
    def refused(*_args: object, **_kwargs: object) -> Any:
        raise NotModelledError(
            f"the virtual GPU has no model of torch.UntypedStorage.{name}; "
            "work with the tensor, or with a copy of the storage on the CPU"
        )

    return refused


for _name in ("__setitem__", "byteswap", "clone", "copy_", "fill_", "new", "resize_"):
    setattr(VirtualStorage, _name, _refuse(_name))


def _fill(block: Storage, source: torch.UntypedStorage) -> None:
    """Copy the bytes of a host storage into device memory."""
    on_host = torch.empty(0, dtype=torch.uint8, device="cpu").set_(source)
    copy_in(_as_bytes(block), on_host, pinned=is_pinned(on_host), non_blocking=False)


def _as_bytes(block: Storage) -> VirtualTensor:
    return wrap(layout((block.values.size_bytes,), (1,), torch.uint8), block)


def storage_of(tensor: VirtualTensor) -> VirtualStorage:
    """Return the storage of a tensor: the same object for all tensors that share its memory."""
    # Raises an error if the tensor has outlived its virtual_gpu() context.
    active()
    block = tensor.storage_block
    return _storages.get(block.identity) or VirtualStorage(block)


def set_to(
    tensor: VirtualTensor,
    source: Any = None,
    storage_offset: int = 0,
    size: Any = None,
    stride: Any = None,
) -> VirtualTensor:
    """Make a tensor a view of other memory, as ``Tensor.set_`` does."""
    machine = active()
    if isinstance(source, VirtualTensor) and size is None:
        view = wrap(source.layout_key, source.storage_block, source.offset, like=tensor)
        tensor.become(view)
        return tensor
    if source is None:
        gpu = tensor.storage_block.gpu
        # Without a source ``set_`` gives the tensor a new storage of its own, which is empty.
        source, size = VirtualStorage(Storage(machine, gpu, 0)), (0,)
    storage = source.untyped_storage() if isinstance(source, torch.Tensor) else source.untyped()
    if not isinstance(storage, VirtualStorage):
        raise RuntimeError(  # noqa: TRY004 # as PyTorch
            f'Attempted to set the storage of a tensor on device "{tensor.device}" to a storage '
            f'on different device "{storage.device}".  This is no longer allowed; the devices '
            "must match."
        )
    sizes = (storage.nbytes() // tensor.dtype.itemsize,) if size is None else tuple(size)
    strides = _dense(sizes) if stride is None else tuple(stride)
    storage.view(tensor, layout(sizes, strides, tensor.dtype), storage_offset)
    return tensor


def _dense(sizes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(math.prod(sizes[index + 1 :]) for index in range(len(sizes)))


# Set here and not in the class, because these functions need copies, and copies need the class.
for _name, _method in {
    "untyped_storage": storage_of,
    # C++ would take the storage for empty host memory.
    "set_": set_to,
}.items():
    setattr(VirtualTensor, _name, _method)
