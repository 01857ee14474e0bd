"""A probe is a few lines of ordinary PyTorch with the result that it must have."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol

import torch

import gpulab

# Relative and absolute. A GPU adds in another order than a CPU, so results differ by rounding.
TOLERANCES = {
    torch.float16: 2e-3,
    torch.bfloat16: 2e-2,
    torch.float32: 1e-5,
    torch.complex64: 1e-5,
}

Place = Callable[[int], AbstractContextManager[object]]


def virtual(n_gpus: int) -> AbstractContextManager[object]:
    """Return a context that enters a virtual machine with this many GPUs."""
    if n_gpus == 1:
        return gpulab.virtual_gpu("H200", first_use=False)
    return gpulab.virtual_gpu("H200", first_use=False, count=n_gpus)


def hardware(n_gpus: int) -> AbstractContextManager[object]:
    """Return an empty context, as the GPUs of this computer need no entering."""
    if torch.cuda.device_count() < n_gpus:
        raise LookupError(f"this computer has {torch.cuda.device_count()} GPUs, not {n_gpus}")
    torch.backends.cudnn.allow_tf32 = False  # with TF32 convolutions differ in the third digit
    return nullcontext()


class Probe(Protocol):
    """A small program and the result that it must have."""

    @property
    def name(self) -> str:
        """The feature that the program uses, in words."""

    def check(self, place: Place) -> None:
        """Run the program in ``place``, and raise AssertionError if its result is wrong."""


@dataclass(frozen=True, slots=True)
class Same:
    """A program whose result on the GPU must be that of the CPU.

    Attributes
    ----------
    run
        Takes the name of a device and returns tensors or plain values, in any containers.
    on_host
        Whether the program returns tensors on the host.
    tolerance
        Relative and absolute tolerance; None means that of the type.
    """

    name: str
    run: Callable[[str], object]
    on_host: bool = False
    tolerance: float | None = None

    def check(self, place: Place) -> None:
        """Compare values, types, shapes and containers with those of the CPU."""
        torch.manual_seed(0)
        expected = self.run("cpu")
        with place(1):
            torch.manual_seed(0)
            actual = fetch(self.run("cuda"), "cpu" if self.on_host else "cuda")
        compare(actual, fetch(expected, "cpu"), self.tolerance)


@dataclass(frozen=True, slots=True)
class Gives:
    """A program that must return a given plain value, for features that the CPU lacks."""

    name: str
    run: Callable[[], object]
    expected: object = True
    n_gpus: int = 1

    def check(self, place: Place) -> None:
        """Compare the returned value with the expected one."""
        with place(self.n_gpus):
            torch.manual_seed(0)
            actual = self.run()
        compare(actual, self.expected)


@dataclass(frozen=True, slots=True)
class Raises:
    """A program that must raise an error, with a pattern for its whole message."""

    name: str
    run: Callable[[], object]
    error: type[Exception]
    message: str
    n_gpus: int = 1

    def check(self, place: Place) -> None:
        """Compare the type and the message of the error with the expected ones."""
        with place(self.n_gpus):
            try:
                actual = self.run()
            except self.error as error:
                text = str(error)
            else:
                raise AssertionError(f"returned {actual!r}, expected {self.error.__name__}")
        if not re.fullmatch(self.message, text, flags=re.DOTALL):
            raise AssertionError(f"said {text!r}, expected {self.message!r}")


def fetch(value: object, device_type: str) -> object:
    """Return ``value`` with its tensors on the host; each must be on a device of this type."""
    if isinstance(value, torch.Tensor):
        if value.device.type != device_type:
            raise AssertionError(f"a tensor is on {value.device}, expected {device_type}")
        return value.detach().cpu()
    if isinstance(value, Mapping):
        return {key: fetch(item, device_type) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [fetch(item, device_type) for item in value]
    return value


def compare(actual: object, expected: object, tolerance: float | None = None) -> None:
    """Raise AssertionError if two values differ in value, type or shape."""
    if type(actual) is not type(expected):
        raise AssertionError(f"{actual!r} is a {type(actual).__name__}, expected {expected!r}")
    if isinstance(expected, (torch.Tensor, float)):
        dtype = expected.dtype if isinstance(expected, torch.Tensor) else torch.float32
        near = TOLERANCES.get(dtype) if tolerance is None else tolerance
        torch.testing.assert_close(actual, expected, rtol=near, atol=near, equal_nan=True)
    elif isinstance(expected, Mapping):
        _compare_all(list(actual), list(expected), tolerance)
        _compare_all(list(actual.values()), list(expected.values()), tolerance)
    elif isinstance(expected, (list, tuple)):
        _compare_all(actual, expected, tolerance)
    elif actual != expected:
        raise AssertionError(f"{actual!r}, expected {expected!r}")


def _compare_all(
    actual: Sequence[object], expected: Sequence[object], tolerance: float | None
) -> None:
    if len(actual) != len(expected):
        raise AssertionError(f"{len(actual)} values, expected {len(expected)}: {actual!r}")
    for actual_item, expected_item in zip(actual, expected, strict=True):
        compare(actual_item, expected_item, tolerance)


def outcome(probe: Probe, place: Place = virtual) -> str:
    """Run a probe and return its outcome in one line."""
    try:
        probe.check(place)
    except AssertionError as error:
        return f"differs: {_one_line(error)}"
    except Exception as error:  # noqa: BLE001 # any error is the outcome of the probe
        return f"raises {type(error).__name__}: {_one_line(error)}"
    return "ok"


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def normal(device: str, *sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Return normal random numbers, drawn on the host so that every device gets the same."""
    return torch.randn(sizes).to(device, dtype)


def integers(device: str, high: int, *sizes: int) -> torch.Tensor:
    """Return whole random numbers from 0 to ``high - 1``, drawn on the host."""
    return torch.randint(high, sizes).to(device)


def same(programs: Mapping[str, Callable[[str], object]]) -> Iterable[Same]:
    """Return a `Same` probe of each program."""
    return [Same(name, run) for name, run in programs.items()]
