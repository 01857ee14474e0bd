"""The record of a GPU to measure on, real or virtual, and how to find one by its name."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpulab import gpus
from gpulab.core import versions
from gpulab.core.errors import NoGpuError, UnknownNameError
from gpulab.core.foreign_text import one_line
from gpulab.core.interrupts import contextmanager
from gpulab.core.markup import clean
from gpulab.core.requirements import COUNT_OR_ZERO
from gpulab.device import _probe
from gpulab.virtual import entered

if TYPE_CHECKING:
    from gpulab.virtual import VirtualGpu


STAND_IN = "H200"  # the virtual GPU that is used if there is no CUDA GPU
VALUE_BYTES = 4 << 30  # as for `virtual_gpu`


@dataclass(frozen=True, slots=True)
class Device:
    """The GPU that measurements use.

    Attributes
    ----------
    name
        As the driver reports it, e.g. ``"NVIDIA H200"``.
    source
        ``"measured"`` for a real GPU, ``"virtual"`` for a virtual one.
    reason
        Why this GPU is used.
    virtual
        The virtual GPU itself; None for a real one.
    stands_in
        Whether a virtual GPU is used only because there is no CUDA GPU. False if you chose it by
        name or entered its context.
    """

    name: str
    source: str
    reason: str
    virtual: "VirtualGpu | None" = field(default=None, repr=False)
    stands_in: bool = field(default=False, repr=False)

    def __str__(self) -> str:
        warning = "" if self.virtual is None else ", so nothing here is measured on hardware"
        source = "real" if self.virtual is None else "virtual"
        basis = ", extrapolated from its data sheet" if self._is_extrapolated else ""
        return f"{one_line(self.name)}, {source}{basis}: {one_line(self.reason)}{warning}"

    __repr__ = __str__

    @property
    def _is_extrapolated(self) -> bool:
        return self.virtual is not None and not self.virtual.spec.recorded

    def _repr_html_(self) -> str:
        name = one_line(self.name)
        return f"<p><strong>{clean(name)}</strong>{clean(str(self)[len(name) :])}</p>"


def find(gpu: str, *, max_value_bytes: int = VALUE_BYTES) -> Device:
    """Return the GPU of this name without choosing it; names and errors are those of :func:`use`.

    ``max_value_bytes`` is the most real memory for the values of a virtual GPU's tensors.
    """
    COUNT_OR_ZERO.check(max_value_bytes=max_value_bytes)
    versions.check_python()
    versions.warn_of_untried_torch()
    with outside():  # inside a virtual GPU, torch would see it and take it for a real one
        return _choose(gpu, _probe.cuda_obstacle(), max_value_bytes)


def _choose(gpu: str, obstacle: _probe.Obstacle | None, max_value_bytes: int) -> Device:
    if gpus.is_known(gpu):
        return as_device(make_virtual(gpu, max_value_bytes), "it was asked for by name")
    if not isinstance(gpu, str) or gpu not in {"auto", "cuda"}:
        raise UnknownNameError("GPU", gpu, ("auto", "cuda", *gpus.names()))
    if obstacle is None:
        return Device(_probe.cuda_name(), "measured", "torch can use it")
    if gpu == "cuda":
        raise NoGpuError(f"no CUDA GPU can be used: {obstacle.reason}; {obstacle.cure}")
    return as_device(make_virtual(STAND_IN, max_value_bytes), obstacle.reason, stands_in=True)


def make_virtual(gpu: str, max_value_bytes: int = VALUE_BYTES) -> "VirtualGpu":
    """Return a new virtual GPU of this name, not yet entered."""
    from gpulab.virtual import virtual_gpu

    return virtual_gpu(gpu, max_value_bytes=max_value_bytes)


def as_device(virtual: "VirtualGpu", reason: str, *, stands_in: bool = False) -> Device:
    """Return the record of a virtual GPU."""
    return Device(virtual.spec.driver_name, "virtual", reason, virtual, stands_in)


def _enter_again(virtual: "VirtualGpu", depth: int) -> None:
    while virtual.depth < depth:
        virtual.__enter__()


@contextmanager
def outside() -> Iterator[None]:
    """Leave the virtual GPU inside the block, if one is entered, and enter it again afterwards.

    Inside the block, torch sees the machine as it is, and time is real.
    """
    inner = entered()
    if inner is None:
        yield
        return
    depth = inner.depth
    try:
        # Each `with` counts on its own, so leaving must happen as often as entering did.
        while entered() is not None:
            inner.__exit__(None, None, None)
        yield
    finally:
        _enter_again(inner, depth)
