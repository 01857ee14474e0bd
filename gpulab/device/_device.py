"""A GPU to measure on, real or virtual: the record of it, and how it is found by its name."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpulab import gpus
from gpulab.device import _probe
from gpulab.errors import NoGpuError, UnknownNameError
from gpulab.foreign_text import one_line
from gpulab.interrupts import contextmanager
from gpulab.markup import clean
from gpulab.virtual import entered

if TYPE_CHECKING:
    from gpulab.virtual import VirtualGpu


STAND_IN = "H200"


@dataclass(frozen=True, slots=True)
class Device:
    """The GPU that measurements take.

    Attributes
    ----------
    name
        As the driver reports it, e.g. ``"NVIDIA H200"``.
    source
        ``"measured"`` for a real GPU, ``"virtual"`` for a computed one.
    reason
        Why it is this one.
    virtual
        The virtual GPU itself, or None for a real one.
    stands_in
        Whether a virtual GPU is used only because there is no CUDA GPU: nobody asked for it, by
        its name or by entering its context.
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

    @property
    def _is_extrapolated(self) -> bool:
        return self.virtual is not None and not self.virtual.spec.recorded

    def _repr_html_(self) -> str:
        name = one_line(self.name)
        return f"<p><strong>{clean(name)}</strong>{clean(str(self)[len(name) :])}</p>"


def find(gpu: str) -> Device:
    """Return the GPU of this name without choosing it; names and errors are those of :func:`use`.

    Parameters
    ----------
    gpu
        ``"auto"``, ``"cuda"`` or the name of a virtual GPU.
    """
    _probe.check_versions()
    with outside():  # inside, torch would see the virtual GPU and take it for a real one
        return _choose(gpu, _probe.cuda_obstacle())


def _choose(gpu: str, obstacle: _probe.Obstacle | None) -> Device:
    if gpus.is_known(gpu):
        return as_device(make_virtual(gpu), "it was asked for by name")
    if not isinstance(gpu, str) or gpu not in {"auto", "cuda"}:
        raise UnknownNameError("GPU", gpu, ("auto", "cuda", *gpus.names()))
    if obstacle is None:
        return Device(_probe.cuda_name(), "measured", "torch can use it")
    if gpu == "cuda":
        raise NoGpuError(f"no CUDA GPU can be used: {obstacle.reason}; {obstacle.cure}")
    return as_device(make_virtual(STAND_IN), obstacle.reason, stands_in=True)


def make_virtual(gpu: str) -> "VirtualGpu":
    """Return a new virtual GPU of this name, which is not entered yet."""
    from gpulab.virtual import virtual_gpu

    return virtual_gpu(gpu)


def as_device(virtual: "VirtualGpu", reason: str, *, stands_in: bool = False) -> Device:
    """Return the record of a virtual GPU."""
    return Device(virtual.spec.driver_name, "virtual", reason, virtual, stands_in)


def _enter_again(left: "list[VirtualGpu]") -> None:
    for virtual in left:
        virtual.__enter__()


@contextmanager
def outside() -> Iterator[None]:
    """Show torch as it is: leave the virtual GPU that is entered, and come back to it."""
    left: list[VirtualGpu] = []
    try:
        while (inner := entered()) is not None:  # it may be entered more than once
            left.append(inner)
            inner.__exit__(None, None, None)
        yield
    finally:
        _enter_again(left)
