"""The figures of ``torch.cuda.memory_stats``: current, peak, allocated and freed."""

from copy import deepcopy
from typing import Any

from gpulab.virtual.simulator.memory._blocks import PoolId

# PyTorch's names, which are the keys of the dictionary that a program sees.
_KINDS = ("small_pool", "large_pool")
_QUANTITIES = (
    *("allocation", "segment", "active", "inactive_split"),
    *("allocated_bytes", "reserved_bytes", "active_bytes", "inactive_split_bytes"),
    "requested_bytes",
)
_COUNTS = (
    *("num_alloc_retries", "num_ooms", "num_sync_all_streams"),
    *("num_device_alloc", "num_device_free", "num_oom_rejections"),
)
_NOTHING = {"current": 0, "peak": 0, "allocated": 0, "freed": 0}


class MemoryStatistic:
    """One figure for small requests, for large ones, and for both together.

    Attributes
    ----------
    current
        The present values. Others may subtract from them directly, but must add by :meth:`add`,
        which counts the peak and the total, too.
    """

    __slots__ = ("_ever", "_ever_at_reset", "_freed_at_reset", "_peak", "_peak_of_all", "current")

    def __init__(self) -> None:
        self.current = [0, 0]
        # The sum of all increases. "Freed" is this minus the present value, so that a decrease
        # needs no count of its own.
        self._ever = [0, 0]
        self._peak = [0, 0]
        self._peak_of_all = 0
        self._ever_at_reset = [0, 0]
        self._freed_at_reset = [0, 0]

    def add(self, kind: int, amount: int) -> None:
        """Increase the figure of small (0) or large (1) requests."""
        current = self.current
        self._ever[kind] += amount
        now = current[kind] = current[kind] + amount
        if now > self._peak[kind]:  # noqa: PLR1730 # a call of max is slow, and this runs always
            self._peak[kind] = now
        now = current[0] + current[1]
        if now > self._peak_of_all:  # noqa: PLR1730 # as above
            self._peak_of_all = now

    def change(self, kind: int, amount: int) -> None:
        """Increase the figure, or decrease it by a negative amount."""
        if amount > 0:
            self.add(kind, amount)
        else:
            self.current[kind] += amount

    @property
    def total(self) -> int:
        """The present value for both kinds of requests together."""
        return self.current[0] + self.current[1]

    def reset_peak(self) -> None:
        """Set the peak to the present value."""
        self._peak = list(self.current)
        self._peak_of_all = self.total

    def reset_accumulated(self) -> None:
        """Set the totals of increases and decreases back to zero."""
        # The totals go on; what they were at the reset is subtracted when they are shown. So the
        # hot path of an allocation needs no second set of counters.
        self._ever_at_reset = list(self._ever)
        self._freed_at_reset = [
            ever - now for ever, now in zip(self._ever, self.current, strict=True)
        ]

    def nested(self) -> dict[str, dict[str, int]]:
        """Return the figures under PyTorch's names."""
        by_kind = {name: self._figures(kind) for kind, name in enumerate(_KINDS)}
        both = {
            name: sum(figures[name] for figures in by_kind.values())
            for name in ("current", "allocated", "freed")
        }
        return {"all": {**both, "peak": self._peak_of_all}, **by_kind}

    def _figures(self, kind: int) -> dict[str, int]:
        ever, current = self._ever[kind], self.current[kind]
        return {
            "current": current,
            "peak": self._peak[kind],
            "allocated": ever - self._ever_at_reset[kind],
            "freed": ever - current - self._freed_at_reset[kind],
        }


class MemoryUsage:
    """All figures of one device's memory.

    Attributes
    ----------
    allocation, allocated_bytes
        Blocks in use and their bytes.
    active, active_bytes, requested_bytes
        Blocks in use, and released blocks that other streams may still use.
    segment, reserved_bytes
        Segments of the allocator and their bytes.
    inactive_split, inactive_split_bytes
        Free blocks in segments that are partly in use.
    counts
        How often something happened, by PyTorch's names.
    reserved_by_pool
        Bytes of each private pool, also of removed ones.
    """

    def __init__(self) -> None:
        self.allocation = MemoryStatistic()
        self.allocated_bytes = MemoryStatistic()
        # The same figures as those of the blocks in use, until a stream holds a released block.
        self.active = self.allocation
        self.active_bytes = self.allocated_bytes
        self.requested_bytes = MemoryStatistic()
        self.segment = MemoryStatistic()
        self.reserved_bytes = MemoryStatistic()
        self.inactive_split = MemoryStatistic()
        self.inactive_split_bytes = MemoryStatistic()
        self.counts = dict.fromkeys(_COUNTS, 0)
        self.reserved_by_pool: dict[PoolId, MemoryStatistic] = {}

    def hand_out(self, kind: int, size_bytes: int, requested_bytes: int) -> None:
        """Count a block that a tensor gets."""
        self.allocation.add(kind, 1)
        self.allocated_bytes.add(kind, size_bytes)
        if self.active is not self.allocation:
            self.active.add(kind, 1)
            self.active_bytes.add(kind, size_bytes)
        self.requested_bytes.add(kind, requested_bytes)

    def release(self, kind: int, size_bytes: int, *, is_held: bool) -> None:
        """Count a block that its tensor gives up; held, if other streams may still use it."""
        if is_held and self.active is self.allocation:
            self.active = deepcopy(self.allocation)
            self.active_bytes = deepcopy(self.allocated_bytes)
        self.allocation.current[kind] -= 1
        self.allocated_bytes.current[kind] -= size_bytes

    def split(self, kind: int, n_parts: int, size_bytes: int) -> None:
        """Count new free parts of segments and their bytes; negative numbers are removed ones."""
        if n_parts:
            self.inactive_split.change(kind, n_parts)
        self.inactive_split_bytes.change(kind, size_bytes)

    def take_back(self, kind: int, size_bytes: int, requested_bytes: int) -> None:
        """Count a block that nothing uses any longer."""
        if self.active is not self.allocation:
            self.active.current[kind] -= 1
            self.active_bytes.current[kind] -= size_bytes
        self.requested_bytes.current[kind] -= requested_bytes

    def reserve(self, kind: int, pool: PoolId | None, size_bytes: int) -> None:
        """Count a new segment, or with a negative size one that went back to the device."""
        if size_bytes > 0:
            self.counts["num_device_alloc"] += 1
        else:
            self.counts["num_device_free"] += 1
        self.segment.change(kind, 1 if size_bytes > 0 else -1)
        self.reserved_bytes.change(kind, size_bytes)
        if pool is not None:
            self.reserved_by_pool.setdefault(pool, MemoryStatistic()).change(kind, size_bytes)

    def reset_peak(self) -> None:
        """Set all peaks to the present values."""
        for quantity in self._quantities():
            quantity.reset_peak()

    def reset_accumulated(self) -> None:
        """Set all totals that only grow back to zero."""
        self.counts = dict.fromkeys(_COUNTS, 0)
        for quantity in self._quantities():
            quantity.reset_accumulated()

    def nested(self) -> dict[str, Any]:
        """Return all figures, nested as in PyTorch."""
        return {
            **self.counts,
            **{name: getattr(self, name).nested() for name in _QUANTITIES},
            # -1 is PyTorch's default: blocks of any size may be split, so none is oversize.
            "max_split_size": -1,
            "oversize_allocations": dict(_NOTHING),
            "oversize_segments": dict(_NOTHING),
            "reserved_bytes_by_private_pools": {
                pool: quantity.nested() for pool, quantity in self.reserved_by_pool.items()
            },
        }

    def _quantities(self) -> list[MemoryStatistic]:
        own: list[MemoryStatistic] = [getattr(self, name) for name in _QUANTITIES]
        return own + list(self.reserved_by_pool.values())
