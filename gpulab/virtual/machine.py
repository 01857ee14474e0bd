"""The virtual machine: a host, a device and its memory, and which one is active now."""

from dataclasses import dataclass

from gpulab.errors import VirtualGpuError
from gpulab.gpus import GpuSpec
from gpulab.virtual.allocator import Allocator, Block
from gpulab.virtual.device import DEFAULT_STREAM, Device
from gpulab.virtual.host import Host

# PyTorch hands out side streams from a pool of 32, round and round.
_N_POOL_STREAMS = 32

# A request to the device: 77 µs for 64 MB, seen on an H200 after the first; the first took 914 µs.
_DEVICE_ALLOCATION_NS = 75_000


@dataclass(frozen=True, slots=True)
class ValueLimits:
    """Up to which size tensors carry values, and up to how much arithmetic results do."""

    max_elements: int
    max_flops: int


class Machine:
    """One virtual GPU with the host that drives it; it lives on between contexts.

    Attributes
    ----------
    stream
        Number of the current stream.
    seed, n_random
        Seed of the device's random numbers, and how many operations have drawn from it.
    """

    def __init__(self, spec: GpuSpec, limits: ValueLimits, *, first_use: bool) -> None:
        self.spec = spec
        self.limits = limits
        self.device = Device(spec)
        self.host = Host(self.device, first_use=first_use)
        self.memory = Allocator(spec.memory_bytes)
        self.stream = DEFAULT_STREAM
        self.seed = 0
        self.n_random = 0
        self._n_storages = 0
        self._n_streams_made = 0

    def new_stream(self) -> int:
        """Return the number of the next side stream of the pool."""
        number = 1 + self._n_streams_made % _N_POOL_STREAMS
        self._n_streams_made += 1
        self.host.spend(self.host.costs.stream_create_ns)
        while self.device.n_streams <= number:
            self.device.add_stream()
        return number

    def new_storage(self) -> int:
        """Return an identity for a storage that was never used before."""
        self._n_storages += 1
        return self._n_storages

    def allocate(self, size_bytes: int) -> Block:
        """Take device memory for the current stream, at the host's cost."""
        self.host.start_context()
        before = self.memory.n_device_allocations
        block = self.memory.allocate(size_bytes, self.stream)
        if self.memory.n_device_allocations > before:
            self.host.spend(_DEVICE_ALLOCATION_NS)
        return block

    def next_random(self) -> int:
        """Return the seed of the next random operation, by order of launch."""
        self.n_random += 1
        return hash((self.seed, self.n_random)) & 0x7FFF_FFFF

    def set_seed(self, seed: int) -> None:
        """Restart the device's random numbers."""
        self.seed = seed
        self.n_random = 0


_entered: list[Machine] = []


def active() -> Machine:
    """Return the machine whose context is entered.

    Raises
    ------
    VirtualGpuError
        If none is.
    """
    if not _entered:
        raise VirtualGpuError(
            "no virtual GPU is active, but a tensor or stream of one is used; "
            "work with it inside `with gpu:` or after gpulab.use(...)"
        )
    return _entered[-1]


def enter(machine: Machine) -> None:
    """Make ``machine`` the active one."""
    _entered.append(machine)


def leave() -> None:
    """Undo the last :func:`enter`."""
    _entered.pop()
