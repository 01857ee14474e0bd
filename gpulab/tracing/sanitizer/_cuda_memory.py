"""Follow the memory of a CUDA GPU from Python: which tensors use it, and when it is freed."""

import weakref
from collections.abc import Hashable
from dataclasses import dataclass, field

import torch

from gpulab.happens_before import Allocation, Checker, StreamKey

MemoryKey = Hashable


@dataclass(slots=True)
class _FollowedStorage:
    """A storage that exists, its block, and the streams of its ``record_stream`` calls."""

    storage: weakref.ref[torch.UntypedStorage]
    block: Allocation
    recorded_on: set[StreamKey] = field(default_factory=set)


class Memories:
    """Follows each storage from the first time a tensor of it is seen until it is freed."""

    def __init__(self, checker: Checker) -> None:
        self._checker = checker
        self._followed: dict[MemoryKey, _FollowedStorage] = {}
        self._pinned: dict[MemoryKey, weakref.ref[torch.UntypedStorage]] = {}

    @property
    def has_pinned(self) -> bool:
        """Whether any copy has used pinned memory."""
        return bool(self._pinned)

    def see(self, tensor: torch.Tensor, stream: StreamKey) -> MemoryKey:
        """Return the key of a device tensor's memory, allocated for ``stream`` if it is new."""
        storage = tensor.untyped_storage()
        key = ("device", storage.data_ptr())
        if key not in self._followed:
            # PyTorch returns the same Python object for a storage as long as it exists, so this
            # callback comes when the memory goes back to the allocator.
            reference = weakref.ref(storage, lambda _storage: self._free(key))
            block = Allocation(stream, storage.data_ptr(), storage.nbytes())
            self._followed[key] = _FollowedStorage(reference, block)
            self._checker.allocate(key, block)
        return key

    def pin(self, key: MemoryKey, tensor: torch.Tensor) -> None:
        """Follow pinned host memory, to drop its records when it is gone."""
        if key not in self._pinned:
            storage = tensor.untyped_storage()
            self._pinned[key] = weakref.ref(storage, lambda _storage: self._unpin(key))

    def record_stream(self, key: MemoryKey, stream: StreamKey) -> None:
        """Note that the allocator waits for ``stream`` before it reuses the memory."""
        followed = self._followed[key]
        if stream != followed.block.stream:  # the allocator ignores the memory's own stream
            followed.recorded_on.add(stream)

    def close(self) -> None:
        """Stop following all memory."""
        self._followed.clear()
        self._pinned.clear()

    def _free(self, key: MemoryKey) -> None:
        followed = self._followed.pop(key, None)
        if followed is not None:
            self._checker.free(key, followed.block, followed.recorded_on)

    def _unpin(self, key: MemoryKey) -> None:
        if self._pinned.pop(key, None) is not None:
            self._checker.forget(key)
