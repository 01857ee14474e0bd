"""Make the result of ``torch.cuda.get_device_properties`` for a virtual GPU."""

from dataclasses import dataclass
from uuid import UUID

from gpulab.gpus import GpuSpec

# Limits by compute capability, from the table of technical specifications in NVIDIA's CUDA C++
# Programming Guide: shared memory of a multiprocessor in KiB, and its threads. A capability that
# is not here gets the values of 9.0.
_SHARED_KIB = {(7, 0): 96, (7, 5): 64, (8, 0): 164, (8, 6): 100, (8, 9): 100, (9, 0): 228}
_N_THREADS = {(7, 5): 1024, (8, 6): 1536, (8, 9): 1536}
# Since Ampere the system reserves this much shared memory for each block.
_RESERVED_BYTES = 1024


@dataclass(frozen=True, slots=True)
class DeviceUuid:
    """The UUID of a GPU: a text, and ``bytes`` as numbers from 0 to 255, as in PyTorch."""

    text: str

    @property
    def bytes(self) -> list[int]:
        """The sixteen bytes, as numbers."""
        return list(UUID(self.text).bytes)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class DeviceProperties:
    """The properties of a device, by PyTorch's names."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    L2_cache_size: int
    uuid: DeviceUuid
    clock_rate: int
    memory_clock_rate: int
    max_threads_per_multi_processor: int
    shared_memory_per_multiprocessor: int
    shared_memory_per_block_optin: int
    shared_memory_per_block: int = 49_152
    max_threads_per_block: int = 1024
    regs_per_multiprocessor: int = 65_536
    warp_size: int = 32
    memory_bus_width: int = 0
    is_integrated: int = 0
    is_multi_gpu_board: int = 0
    pci_bus_id: int = 0
    pci_device_id: int = 0
    pci_domain_id: int = 0
    gcnArchName: str = ""  # noqa: N815 # torch's name

    def __str__(self) -> str:
        return (
            f"_CudaDeviceProperties(name='{self.name}', major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory >> 20}MB, "
            f"multi_processor_count={self.multi_processor_count}, uuid={self.uuid}, "
            f"pci_bus_id={self.pci_bus_id}, pci_device_id={self.pci_device_id}, "
            f"pci_domain_id={self.pci_domain_id}, L2_cache_size={self.L2_cache_size >> 20}MB)"
        )

    __repr__ = __str__


def uuid_of(index: int) -> DeviceUuid:
    """Return the UUID of a GPU: the same in every run, so that two runs print the same."""
    return DeviceUuid(f"00000000-0000-0000-0000-{index:012d}")


def device_properties(spec: GpuSpec, index: int = 0) -> DeviceProperties:
    """Return the properties of the GPU with this data sheet and index."""
    capability = spec.compute_capability
    shared_bytes = _SHARED_KIB.get(capability, 228) << 10
    reserved_bytes = _RESERVED_BYTES if capability[0] >= 8 else 0  # noqa: PLR2004 # Ampere
    return DeviceProperties(
        name=spec.driver_name,
        major=capability[0],
        minor=capability[1],
        total_memory=spec.memory_bytes,
        multi_processor_count=spec.n_sms,
        L2_cache_size=spec.l2_bytes,
        uuid=uuid_of(index),
        # PyTorch's clock rates are in kHz.
        clock_rate=spec.boost_clock_mhz * 1000,
        memory_clock_rate=spec.memory_clock_mhz * 1000,
        max_threads_per_multi_processor=_N_THREADS.get(capability, 2048),
        shared_memory_per_multiprocessor=shared_bytes,
        shared_memory_per_block_optin=shared_bytes - reserved_bytes,
        # A property of AMD's GPUs; in builds for CUDA PyTorch has the name of the GPU there.
        gcnArchName=spec.driver_name,
    )
