"""Shapes and bytes of virtual tensors: layouts, storages, and the values that small ones carry."""

import math
from functools import cache

import torch

from gpulab.virtual.allocator import OutOfDeviceMemoryError
from gpulab.virtual.machine import Machine


class Layout:
    """Sizes, strides and type of a tensor; made once for each combination, so that it is a key.

    Attributes
    ----------
    n_elements
        Elements of the tensor.
    size_bytes
        Bytes that reading it touches: less than its elements take where it is expanded.
    span_bytes
        Bytes from its first to its last element.
    """

    __slots__ = ("dtype", "n_elements", "size_bytes", "sizes", "span_bytes", "strides")

    def __init__(
        self, sizes: tuple[int, ...], strides: tuple[int, ...], dtype: torch.dtype
    ) -> None:
        self.sizes = sizes
        self.strides = strides
        self.dtype = dtype
        self.n_elements = math.prod(sizes)
        reach = sum((n - 1) * step for n, step in zip(sizes, strides, strict=True))
        span = reach + 1 if self.n_elements else 0
        self.span_bytes = span * dtype.itemsize
        self.size_bytes = min(self.n_elements, span) * dtype.itemsize


@cache
def layout(sizes: tuple[int, ...], strides: tuple[int, ...], dtype: torch.dtype) -> Layout:
    """Return the one layout of these sizes, strides and type."""
    return Layout(sizes, strides, dtype)


def layout_of(tensor: torch.Tensor) -> Layout:
    """Return the layout of a tensor."""
    return layout(tuple(tensor.shape), tensor.stride(), tensor.dtype)


class Values:
    """The bytes behind a storage, made when first needed.

    Work that is still pending holds these and not the storage, so that memory is free again as
    soon as the program drops its tensors.

    Attributes
    ----------
    known
        Whether the bytes are computed at all; if not, the tensor has shape and cost only.
    """

    __slots__ = ("_data", "known", "size_bytes")

    def __init__(self, size_bytes: int, *, known: bool) -> None:
        self.size_bytes = size_bytes
        self.known = known
        self._data: torch.UntypedStorage | None = None

    def view(self, layout: Layout, offset: int) -> torch.Tensor:
        """Return a CPU tensor over these bytes; ``offset`` counts elements."""
        if self._data is None:
            self._data = torch.zeros(max(self.size_bytes, 1), dtype=torch.uint8).untyped_storage()
        empty = torch.empty(0, dtype=layout.dtype)
        return empty.set_(self._data, offset, layout.sizes, layout.strides)


class Storage:
    """Device memory of one or several tensors.

    Attributes
    ----------
    identity
        Number that the cache knows it by.
    values
        What it holds, if that is computed.
    """

    __slots__ = ("__weakref__", "block", "identity", "machine", "values")

    def __init__(self, machine: Machine, size_bytes: int, *, known: bool) -> None:
        self.machine = machine
        self.identity = machine.new_storage()
        try:
            self.block = machine.allocate(size_bytes)
        except OutOfDeviceMemoryError as error:
            raise torch.OutOfMemoryError(f"CUDA out of memory. {error}") from None
        self.values = Values(size_bytes, known=known)

    def __del__(self) -> None:
        # Without a block the allocation had failed.
        if hasattr(self, "block"):
            self.machine.memory.release(self.block)
            self.machine.device.cache.forget(self.identity)
