"""Random number generators on the virtual GPU: a seed and an offset, as CUDA keeps for Philox.

The same seed gives the same numbers here again, and neither those of a CPU generator nor those of
a real GPU.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from operator import index
from typing import Any, SupportsIndex
from weakref import WeakKeyDictionary, WeakValueDictionary

import torch

from gpulab.torch_private import address_of, arguments_of
from gpulab.virtual.simulator import Machine, active

# A generator's state on CUDA: the seed and the offset, each in 8 bytes, low byte first.
_N_STATE_BYTES = 16
_N_SEED_BYTES = 8
# Offsets on CUDA are multiples of 4, one step of Philox. There a launch takes as many steps as
# each of its threads needs; here every launch takes one.
_OFFSET_STEP = 4
_UINT64 = 0xFFFF_FFFF_FFFF_FFFF
# What PyTorch seeds a new generator with (c10::default_rng_seed_val). Its default generators on
# CUDA start from a seed that differs in each process; these do not, so that runs can be repeated.
_FIRST_SEED = 67_280_421_310_721

_Generator = torch.Generator


@dataclass(slots=True)
class Philox:
    """Where a generator is in its sequence.

    Attributes
    ----------
    seed
        Names the sequence, from 0 to 2**64 - 1.
    offset
        How far it is used up, in random numbers of each thread.
    captured
        While a graph is captured: how far the graph uses it up, beyond the offset at its launch.
    """

    seed: int = _FIRST_SEED
    offset: int = 0
    captured: int | None = None

    def go_to(self, offset: int) -> None:
        """Go to an offset: in the graph while one is captured, as on CUDA."""
        if self.captured is None:
            self.offset = offset
        else:
            self.captured = offset


class VirtualGenerator(torch.Generator):
    """A generator on the virtual GPU; to C++ a generator of the CPU.

    Used outside the virtual GPU, on the CPU, it gives the CPU's numbers for its seed.
    """

    _philox: Philox
    _device: torch.device
    _cdata: int

    def __new__(cls, device: torch.device) -> "VirtualGenerator":  # noqa: PYI034 # torch's is no Self
        """Make a generator that starts from PyTorch's first seed."""
        generator = super().__new__(cls)
        generator._device = device
        generator._philox = Philox()
        _by_address[generator._cdata] = generator
        return generator

    def __init__(self, device: torch.device) -> None:
        pass

    @property
    def device(self) -> torch.device:  # type: ignore[override] # a property here, an attribute in C
        """The device as it was asked for: ``"cuda"`` stays without an index, as in PyTorch."""
        return self._device

    @property
    def philox(self) -> Philox:
        """The seed and the offset, which generators may share."""
        return self._philox

    def manual_seed(self, seed: int) -> "VirtualGenerator":
        """Start the sequence of ``seed`` from its beginning; negative ones count from 2**64."""
        if self._philox.captured is not None:
            if seed & _UINT64 != self._philox.seed:
                raise RuntimeError(
                    "CUDAGeneratorImpl::set_current_seed can be called during stream capture only "
                    "if new seed is the same as the original seed."
                )
            return self
        super().manual_seed(seed)
        self._philox.seed, self._philox.offset = super().initial_seed(), 0
        return self

    def seed(self) -> int:
        """Start a sequence that nobody chose, and return its seed."""
        self.manual_seed(super().seed())
        return self._philox.seed

    def initial_seed(self) -> int:
        """Return the seed of the sequence."""
        return self._philox.seed

    def get_offset(self) -> int:
        """Return how far the sequence is used up; every launch takes 4 here."""
        return self._philox.offset

    def set_offset(self, offset: SupportsIndex) -> "VirtualGenerator":
        """Go to an offset in the sequence."""
        if not isinstance(offset, SupportsIndex):
            kind = type(offset).__name__
            raise RuntimeError(f"manual_offset expected a long, but got {kind}")  # noqa: TRY004 # as PyTorch
        if index(offset) % _OFFSET_STEP:
            raise RuntimeError("offset must be a multiple of 4")
        self._philox.go_to(index(offset) & _UINT64)
        return self

    def get_state(self) -> torch.Tensor:
        """Return seed and offset as 16 bytes on the host."""
        captured = self._philox.captured
        numbers = (self._philox.seed, self._philox.offset if captured is None else captured)
        state = b"".join(number.to_bytes(_N_SEED_BYTES, "little") for number in numbers)
        return torch.tensor(list(state), dtype=torch.uint8, device="cpu")

    def set_state(self, new_state: torch.Tensor) -> "VirtualGenerator":
        """Take over seed and offset from such bytes; without an offset it starts anew."""
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
        """Return a generator at the same offset, which goes on by itself."""
        return self._with_state(replace(self._philox))

    def graphsafe_get_state(self) -> "VirtualGenerator":
        """Return a generator that shares its state with this one."""
        return self._with_state(self._philox)

    def graphsafe_set_state(self, state: torch.Generator) -> "VirtualGenerator":
        """Share the state of another generator from now on."""
        if not isinstance(state, _Generator):
            raise TypeError(f"expected a Generator, but got {type(state).__name__}")
        if not isinstance(state, VirtualGenerator):
            raise RuntimeError("Expected a CUDA Generator")  # noqa: TRY004 # as PyTorch
        self._philox = state.philox
        return self

    def _with_state(self, philox: Philox) -> "VirtualGenerator":
        generator = VirtualGenerator(self._device)
        generator._philox = philox
        return generator

    def __reduce__(self) -> Any:
        return _rebuild, (self._device, self._philox.seed, self._philox.offset)


def _rebuild(device: torch.device, seed: int, offset: int) -> VirtualGenerator:
    return VirtualGenerator(device).manual_seed(seed).set_offset(offset)


# C++ gives a generator back as another Python object, at the same address.
_by_address: "WeakValueDictionary[int, VirtualGenerator]" = WeakValueDictionary()
_defaults: "WeakKeyDictionary[Machine, tuple[VirtualGenerator, ...]]" = WeakKeyDictionary()


def default_generators(machine: Machine) -> tuple[VirtualGenerator, ...]:
    """Return the generators of a machine's devices, the same from one ``with`` to the next."""
    if machine not in _defaults:
        devices = [torch.device("cuda", gpu.index) for gpu in machine.gpus]
        _defaults[machine] = tuple(VirtualGenerator(device) for device in devices)
    return _defaults[machine]


@cache
def _position(func: Any) -> int | None:
    """Return the position of the argument that is the generator, or None."""
    names = [argument.name for argument in arguments_of(func)]
    return names.index("generator") if "generator" in names else None


def generator_in(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the generator in the arguments of a call, or None."""
    position = _position(func)
    if position is None:
        return None
    found = args[position] if position < len(args) else kwargs.get("generator")
    return None if found is None else _by_address.get(address_of(found), found)


def without_generator(
    func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call without its generator."""
    # A positional generator is the last argument and can be cut off; a named one becomes None.
    position = _position(func)
    if position is not None and position < len(args):
        return args[:position], kwargs
    return args, {**kwargs, "generator": None}


def require_host(generator: torch.Generator | None) -> None:
    """Refuse a generator of the virtual GPU for an operation of the CPU.

    Raises
    ------
    RuntimeError
        In PyTorch's words.
    """
    if isinstance(generator, VirtualGenerator):
        raise RuntimeError(  # noqa: TRY004 # as PyTorch
            "Expected a 'cpu' device type for generator but found 'cuda'"
        )


def generator_for(generator: torch.Generator | None, device_index: int) -> VirtualGenerator:
    """Return the generator that an operation on the device of this index draws from.

    Raises
    ------
    RuntimeError
        In PyTorch's words, if the generator is one of the CPU.
    """
    if generator is None:
        return default_generators(active())[device_index]
    if not isinstance(generator, VirtualGenerator):
        raise RuntimeError(  # noqa: TRY004 # as PyTorch
            f"Expected a 'cuda' device type for generator but found '{generator.device.type}'"
        )
    return generator


def next_seed(generator: VirtualGenerator) -> int:
    """Return the seed, from 0 to 2**32 - 1, for the numbers of one launch, and go on."""
    philox = generator.philox
    seed = _seed_at(philox, philox.offset)
    philox.offset += _OFFSET_STEP
    return seed


def _seed_at(philox: Philox, offset: int) -> int:
    return _mixed(_mixed(philox.seed) ^ offset) >> 32


def captured_seeds(generator: VirtualGenerator) -> Callable[[], int]:
    """Return what draws the seed of a launch that is captured now, at each of its replays.

    A replay draws what the same work would draw without a graph: a checkpoint that goes back to an
    earlier state while it is captured draws the same numbers twice in each replay.
    """
    philox = generator.philox
    position = philox.captured or 0
    philox.captured = position + _OFFSET_STEP
    return lambda: _seed_at(philox, philox.offset + position)


def begin_capture() -> None:
    """Count in all generators, from here on, what the launches of a graph use up."""
    for generator in _by_address.values():
        generator.philox.captured = 0


def end_capture() -> list[tuple[Philox, int]]:
    """Return the generators that the graph draws from, and how far each replay uses them up."""
    philoxes = {id(generator.philox): generator.philox for generator in _by_address.values()}
    used = [(philox, philox.captured) for philox in philoxes.values() if philox.captured]
    for philox in philoxes.values():
        philox.captured = None
    return used


def _mixed(number: int) -> int:
    """Scatter the bits of a 64-bit number (SplitMix64: Steele, Lea and Flood, 2014)."""
    number = (number + 0x9E37_79B9_7F4A_7C15) & _UINT64
    number = (number ^ (number >> 30)) * 0xBF58_476D_1CE4_E5B9 & _UINT64
    number = (number ^ (number >> 27)) * 0x94D0_49BB_1331_11EB & _UINT64
    return number ^ (number >> 31)
