"""Which memory of a CUDA GPU the program's tensors hold, and when it goes back."""

import weakref
from collections.abc import Hashable
from dataclasses import dataclass, field

import torch

from gpulab.happens_before import Allocation, Checker, StreamKey

MemoryKey = Hashable


@dataclass(slots=True)
class _Held:
    storage: weakref.ref[torch.UntypedStorage]
    block: Allocation
    told: set[StreamKey] = field(default_factory=set)


class Memories:
    """Follows storages from the first tensor seen to the end of the last one."""

    def __init__(self, checker: Checker) -> None:
        self._checker = checker
        self._held: dict[MemoryKey, _Held] = {}
        self._pinned: dict[MemoryKey, weakref.ref[torch.UntypedStorage]] = {}

    @property
    def has_pinned(self) -> bool:
        """Whether pinned memory was copied from or to at all."""
        return bool(self._pinned)

    def see(self, tensor: torch.Tensor, stream: StreamKey) -> MemoryKey:
        """Return what names the memory of a device tensor, allocated for ``stream`` if new."""
        storage = tensor.untyped_storage()
        key = ("device", storage.data_ptr())
        if key not in self._held:
            gone = weakref.ref(storage, lambda _storage: self._free(key))
            block = Allocation(stream, storage.data_ptr(), storage.nbytes())
            self._held[key] = _Held(gone, block)
            self._checker.allocate(key, block)
        return key

    def pin(self, key: MemoryKey, tensor: torch.Tensor) -> None:
        """Follow pinned host memory, so that nothing is remembered of it when it is gone."""
        if key not in self._pinned:
            storage = tensor.untyped_storage()
            self._pinned[key] = weakref.ref(storage, lambda _storage: self._unpin(key))

    def tell(self, key: MemoryKey, stream: StreamKey) -> None:
        """Take note that the allocator waits for ``stream`` before it reuses the memory."""
        held = self._held[key]
        if stream != held.block.stream:  # its own stream the allocator knows of
            held.told.add(stream)

    def close(self) -> None:
        """Follow nothing any longer."""
        self._held.clear()
        self._pinned.clear()

    def _free(self, key: MemoryKey) -> None:
        held = self._held.pop(key, None)
        if held is not None:
            self._checker.free(key, held.block, held.told)

    def _unpin(self, key: MemoryKey) -> None:
        if self._pinned.pop(key, None) is not None:
            self._checker.forget(key)
