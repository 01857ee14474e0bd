"""Random number generators on the virtual GPU: a seed and an offset, as CUDA has for Philox.

The same seed always gives the same numbers here. They differ from those of a CPU generator and
from those of a real GPU.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from operator import index
from typing import Any, SupportsIndex
from weakref import WeakKeyDictionary, WeakValueDictionary

import torch

from gpulab.core.torch_private import address_of, arguments_of
from gpulab.virtual.simulator import Machine, active

# The state of a generator on CUDA: the seed and the offset, each in 8 bytes, low byte first.
_N_STATE_BYTES = 16
_N_SEED_BYTES = 8
# Offsets on CUDA are multiples of 4, the numbers of one step of Philox. There a launch uses as
# many steps as each of its threads needs; here every launch uses one.
_OFFSET_STEP = 4
_UINT64 = 0xFFFF_FFFF_FFFF_FFFF
# PyTorch's seed of a new generator (c10::default_rng_seed_val). Its default generators on CUDA
# start from another seed in each process; ours do not, so that runs can be repeated.
_FIRST_SEED = 67_280_421_310_721

# The class that C++ checks; a patch replaces ``torch.Generator`` while a virtual GPU is entered.
TorchGenerator = torch.Generator


@dataclass(slots=True)
class Philox:
    """The position of a generator in its sequence.

    Attributes
    ----------
    seed
        Selects the sequence, from 0 to 2**64 - 1.
    offset
        How many random numbers each thread has used.
    captured
        While a graph is captured: how many numbers the graph has used so far. At a replay they
        count from the offset at its launch. None outside a capture.
    is_registered
        Whether the graph that is being captured may draw from it.
    """

    seed: int = _FIRST_SEED
    offset: int = 0
    captured: int | None = None
    is_registered: bool = False

    def go_to(self, offset: int) -> None:
        """Set the offset; during a capture, the offset inside the graph, as on CUDA."""
        if self.captured is None:
            self.offset = offset
        else:
            self.captured = offset


class VirtualGenerator(torch.Generator):
    """A generator on the virtual GPU; PyTorch's C++ code sees a CPU generator.

    If you use it on the CPU, outside the virtual GPU, it gives the CPU's numbers for its seed.
    ``philox`` has the seed and the offset; several generators may share them.
    """

    philox: Philox
    _device: torch.device
    _cdata: int

    def __new__(cls, device: torch.device) -> "VirtualGenerator":  # noqa: PYI034 # torch's is no Self
        """Return a generator with PyTorch's default seed."""
        generator = super().__new__(cls)
        generator._device = device
        generator.philox = Philox()
        _by_address[generator._cdata] = generator
        return generator

    def __init__(self, device: torch.device) -> None:
        pass

    @property
    def device(self) -> torch.device:  # type: ignore[override] # a property here, an attribute in C
        """The device as the program gave it: ``"cuda"`` has no index here, as in PyTorch."""
        return self._device

    def manual_seed(self, seed: int) -> "VirtualGenerator":
        """Start the sequence of ``seed``; a negative seed counts back from 2**64."""
        if self.philox.captured is not None:
            if seed & _UINT64 != self.philox.seed:
                raise RuntimeError(
                    "CUDAGeneratorImpl::set_current_seed can be called during stream capture only "
                    "if new seed is the same as the original seed."
                )
            return self
        # PyTorch's own method checks the seed, and counts a negative one back from 2**64.
        super().manual_seed(seed)
        self.philox.seed, self.philox.offset = super().initial_seed(), 0
        return self

    def seed(self) -> int:
        """Start a random sequence, and return its seed."""
        self.manual_seed(super().seed())
        return self.philox.seed

    def initial_seed(self) -> int:
        """Return the seed of the sequence."""
        return self.philox.seed

    def get_offset(self) -> int:
        """Return how many numbers each thread has used; every launch uses 4 here."""
        return self.philox.offset

    def set_offset(self, offset: SupportsIndex) -> "VirtualGenerator":
        """Set the offset in the sequence."""
        if index(offset) % _OFFSET_STEP:
            raise RuntimeError("offset must be a multiple of 4")
        self.philox.go_to(index(offset) & _UINT64)
        return self

    def get_state(self) -> torch.Tensor:
        """Return seed and offset as a tensor of 16 bytes on the CPU."""
        captured = self.philox.captured
        numbers = (self.philox.seed, self.philox.offset if captured is None else captured)
        state = b"".join(number.to_bytes(_N_SEED_BYTES, "little") for number in numbers)
        return torch.tensor(list(state), dtype=torch.uint8, device="cpu")

    def set_state(self, new_state: torch.Tensor) -> "VirtualGenerator":
        """Set seed and offset from the bytes of ``get_state``; 8 bytes set the seed alone."""
        if not isinstance(new_state, torch.Tensor):
            kind = type(new_state).__name__
            raise TypeError(f"expected a torch.ByteTensor, but got {kind}")
        is_bytes = new_state.dtype == torch.uint8 and new_state.device.type == "cpu"
        if not is_bytes or not new_state.is_contiguous():
            raise TypeError("RNG state must be a torch.ByteTensor")
        state = bytes(new_state.tolist())
        if len(state) not in (_N_SEED_BYTES, _N_STATE_BYTES):
            raise RuntimeError("RNG state is wrong size")
        self.manual_seed(int.from_bytes(state[:_N_SEED_BYTES], "little"))
        return self.set_offset(int.from_bytes(state[_N_SEED_BYTES:], "little"))

    def clone_state(self) -> "VirtualGenerator":
        """Return an independent generator at the same offset."""
        return self._with_state(replace(self.philox))

    def graphsafe_get_state(self) -> "VirtualGenerator":
        """Return a generator that shares its state with this one."""
        return self._with_state(self.philox)

    def graphsafe_set_state(self, state: torch.Generator) -> "VirtualGenerator":
        """Share the state of another generator from now on."""
        if not isinstance(state, TorchGenerator):
            raise TypeError(f"expected a Generator, but got {type(state).__name__}")
        if not isinstance(state, VirtualGenerator):
            raise RuntimeError("Expected a CUDA Generator")  # noqa: TRY004 # as PyTorch
        self.philox = state.philox
        return self

    def _with_state(self, philox: Philox) -> "VirtualGenerator":
        generator = VirtualGenerator(self._device)
        generator.philox = philox
        return generator

    def __reduce__(self) -> Any:
        return _rebuild, (self._device, self.philox.seed, self.philox.offset)


def _rebuild(device: torch.device, seed: int, offset: int) -> VirtualGenerator:
    return VirtualGenerator(device).manual_seed(seed).set_offset(offset)


# An operator gets its generator from C++ as a new Python object. Its address finds ours.
_by_address: "WeakValueDictionary[int, VirtualGenerator]" = WeakValueDictionary()
_defaults: "WeakKeyDictionary[Machine, tuple[VirtualGenerator, ...]]" = WeakKeyDictionary()


def default_generators(machine: Machine) -> tuple[VirtualGenerator, ...]:
    """Return the default generators of a machine's devices; they outlive the ``with`` block."""
    if machine not in _defaults:
        devices = [torch.device("cuda", gpu.index) for gpu in machine.gpus]
        _defaults[machine] = tuple(VirtualGenerator(device) for device in devices)
    return _defaults[machine]


@cache
def _position(func: Any) -> int | None:
    """Return the position of the argument ``generator`` in an operator's schema, or None."""
    names = [argument.name for argument in arguments_of(func)]
    return names.index("generator") if "generator" in names else None


def generator_in(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the generator in the arguments of a call, or None."""
    position = _position(func)
    if position is None:
        return None
    generator = args[position] if position < len(args) else kwargs.get("generator")
    return None if generator is None else _by_address.get(address_of(generator), generator)


def without_generator(
    func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call without its generator."""
    # In PyTorch's schemas nothing positional follows a positional generator, so it can be cut off.
    # A keyword argument becomes None.
    position = _position(func)
    if position is not None and position < len(args):
        return args[:position], kwargs
    return args, {**kwargs, "generator": None}


def require_host(generator: torch.Generator | None) -> None:
    """Raise PyTorch's error if an operation of the CPU got a generator of the virtual GPU."""
    if isinstance(generator, VirtualGenerator):
        raise RuntimeError(  # noqa: TRY004 # as PyTorch
            "Expected a 'cpu' device type for generator but found 'cuda'"
        )


def generator_for(generator: torch.Generator | None, device_index: int) -> VirtualGenerator:
    """Return the generator for an operation on a device: the given one, or the default.

    Raises
    ------
    RuntimeError
        If the generator is one of the CPU; the text is PyTorch's.
    """
    if generator is None:
        return default_generators(active())[device_index]
    if not isinstance(generator, VirtualGenerator):
        raise RuntimeError(  # noqa: TRY004 # as PyTorch
            f"Expected a 'cuda' device type for generator but found '{generator.device.type}'"
        )
    return generator


def next_seed(generator: VirtualGenerator) -> int:
    """Return the seed for the numbers of one launch, from 0 to 2**32 - 1; advance the offset."""
    philox = generator.philox
    seed = _seed_at(philox, philox.offset)
    philox.offset += _OFFSET_STEP
    return seed


def _seed_at(philox: Philox, offset: int) -> int:
    # The CPU's Mersenne Twister uses 32 bits of a seed. Mixed, so that neighbouring offsets and
    # seeds give numbers that are not alike.
    return _mixed(_mixed(philox.seed) ^ offset) >> 32


def captured_seeds(generator: VirtualGenerator) -> Callable[[], int]:
    """Return a function that gives the seed of a captured launch at each replay.

    A replay draws the same numbers as the same work without a graph. So if a checkpoint restores
    an earlier state during the capture, each replay draws the same numbers twice.

    Raises
    ------
    RuntimeError
        If the generator is not registered for the graph; the text is PyTorch's.
    """
    philox = generator.philox
    if not philox.is_registered:
        raise RuntimeError("Attempt to increase offset for a CUDA generator not in capture mode.")
    position = philox.captured or 0
    philox.captured = position + _OFFSET_STEP
    return lambda: _seed_at(philox, philox.offset + position)


def begin_capture(registered: Iterable[VirtualGenerator]) -> None:
    """Make all generators count how many numbers the captured launches use.

    A graph may draw only from the default generators and from those registered for it.
    """
    for generator in _by_address.values():
        generator.philox.captured = 0
    for generator in (*default_generators(active()), *registered):
        generator.philox.is_registered = True


def end_capture() -> list[tuple[Philox, int]]:
    """Return each position that the graph advances, and by how much at each replay."""
    # By identity, because generators may share their position.
    philoxes = {id(generator.philox): generator.philox for generator in _by_address.values()}
    used = [(philox, philox.captured) for philox in philoxes.values() if philox.captured]
    for philox in philoxes.values():
        philox.captured = None
        philox.is_registered = False
    return used


def _mixed(number: int) -> int:
    """Scatter the bits of a 64-bit number (SplitMix64: Steele, Lea and Flood, 2014)."""
    number = (number + 0x9E37_79B9_7F4A_7C15) & _UINT64
    number = (number ^ (number >> 30)) * 0xBF58_476D_1CE4_E5B9 & _UINT64
    number = (number ^ (number >> 27)) * 0x94D0_49BB_1331_11EB & _UINT64
    return number ^ (number >> 31)
