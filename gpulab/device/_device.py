"""Which GPU is in use: a real one, or the virtual one that stands in for it."""

import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING, Any

from gpulab import gpus
from gpulab._version import __version__
from gpulab.device import _diagnostics, _probe
from gpulab.device._report import Report
from gpulab.errors import NoGpuError, UnknownNameError
from gpulab.measurement import Conditions
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
    """

    name: str
    source: str
    reason: str
    virtual: "VirtualGpu | None" = field(default=None, repr=False)

    def __str__(self) -> str:
        warning = "" if self.virtual is None else ", so nothing here is measured on hardware"
        source = "real" if self.virtual is None else "virtual"
        basis = ", extrapolated from its data sheet" if self._is_extrapolated else ""
        return f"{self.name}, {source}{basis}: {self.reason}{warning}"

    @property
    def _is_extrapolated(self) -> bool:
        return self.virtual is not None and not self.virtual.spec.recorded

    def _repr_html_(self) -> str:
        return f"<p><strong>{escape(self.name)}</strong>{escape(str(self)[len(self.name) :])}</p>"


def use(gpu: str = "auto") -> Device:
    """Choose the GPU for all that follows, and return it.

    In a notebook a virtual GPU stands behind ``torch.cuda`` while a cell runs, and only then, so
    that the kernel itself keeps real time. In a script, enter it with :func:`active`.

    Parameters
    ----------
    gpu
        ``"auto"``: the CUDA GPU if torch can use one, else the virtual H200. ``"cuda"``: the CUDA
        GPU or an error. A name such as ``"A100"``: the virtual GPU of that name.

    Raises
    ------
    NoGpuError
        If ``"cuda"`` was asked for and torch cannot use a CUDA GPU.
    UnknownNameError
        If there is no such GPU; the message names the nearest.
    UnsupportedVersionError
        If Python or torch is outside the supported range.
    """
    return _session.switch(gpu)


def current() -> Device:
    """Return the GPU in use: one that is entered by hand, else the chosen one, else ``"auto"``."""
    by_hand = entered()
    if by_hand is not None and by_hand is not _session.virtual:
        return _as_device(by_hand, "its context was entered")
    return _session.choose()


@contextmanager
def active() -> Iterator[Device]:
    """Put the GPU in use behind ``torch.cuda``; nothing happens where it already is.

    Raises
    ------
    VirtualGpuError
        If the virtual GPU is entered on another thread, whose clock it is.
    """
    device = current()
    with device.virtual or nullcontext():
        yield device


def conditions() -> Conditions:
    """Return under what a measurement would be taken now, on the GPU in use.

    Clocks are left out: they are worth something only when read around the measurement.
    """
    device = current()
    real = device.virtual is None
    return Conditions(
        device_name=device.name,
        torch_version=_probe.torch_version(),
        python_version=platform.python_version(),
        gpulab_version=__version__,
        cuda_version=_probe.cuda_version() if real else None,
        driver_version=_probe.driver_version() if real else None,
        cache="hot",
        taken_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def doctor() -> Report:
    """Report what can be timed on this machine, and what is used instead of what is missing."""
    with outside():
        obstacle = _probe.cuda_obstacle()
        return _diagnostics.examine(
            in_use=_name_in_use(obstacle), obstacle=obstacle, virtual=_try_virtual()
        )


def _name_in_use(obstacle: _probe.Obstacle | None) -> str:
    """Name what measurements take now, or would take by default, without making it."""
    if _session.device is None and obstacle is None:
        return _probe.cuda_name()
    if _session.device is None:
        return f"the virtual {gpus.gpu(STAND_IN).driver_name}"
    return f"{'' if _session.virtual is None else 'the virtual '}{_session.device.name}"


def _choose(gpu: str, obstacle: _probe.Obstacle | None) -> Device:
    if gpus.is_known(gpu):
        return _virtual(gpu, "it was asked for by name")
    if gpu not in {"auto", "cuda"}:
        raise UnknownNameError("GPU", gpu, ("auto", "cuda", *gpus.names()))
    if obstacle is None:
        return Device(_probe.cuda_name(), "measured", "torch can use it")
    if gpu == "cuda":
        raise NoGpuError(f"no CUDA GPU can be used: {obstacle.reason}; {obstacle.cure}")
    return _virtual(STAND_IN, obstacle.reason)


def _virtual(gpu: str, reason: str) -> Device:
    return _as_device(_make_virtual(gpu), reason)


def _make_virtual(gpu: str) -> "VirtualGpu":
    from gpulab.virtual import virtual_gpu

    return virtual_gpu(gpu)


def _as_device(virtual: "VirtualGpu", reason: str) -> Device:
    return Device(virtual.spec.driver_name, "virtual", reason, virtual)


def _try_virtual() -> str | None:
    """Return what of the virtual GPU does not work on this torch, or None."""
    try:
        from gpulab import virtual

        with _make_virtual(STAND_IN):
            failed = virtual.failures()
    except Exception as error:  # noqa: BLE001 # a report must say what failed, whatever it was
        return f"{type(error).__name__}: {error}"
    return "; ".join(f"{name}: {reason}" for name, reason in failed.items()) or None


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


@contextmanager
def outside() -> Iterator[None]:
    """Show torch as it is: leave the virtual GPU that is entered, and come back to it."""
    left = []
    while (inner := entered()) is not None:  # it may be entered more than once
        inner.__exit__(None, None, None)
        left.append(inner)
    try:
        yield
    finally:
        for virtual in left:
            virtual.__enter__()


class _Session:
    """The choice of this process, and the hooks that keep it in force in a notebook."""

    def __init__(self) -> None:
        self.device: Device | None = None
        self.shell: Any = None
        self.n_cells_running = 0

    @property
    def virtual(self) -> "VirtualGpu | None":
        return None if self.device is None else self.device.virtual

    def choose(self) -> Device:
        if self.device is None:
            self.device = find("auto")
        return self.device

    def switch(self, gpu: str) -> Device:
        device = find(gpu)  # may refuse, and then nothing has changed
        self.release()  # the old GPU must be left before the new one can be entered
        self.device = device
        self.hold()
        return device

    def hold(self) -> None:
        """Keep a virtual GPU entered during each cell, this one included."""
        shell = _ipython()
        if self.virtual is None or shell is None:
            return
        self.shell = shell
        shell.events.register("pre_run_cell", self.enter)
        shell.events.register("post_run_cell", self.leave)  # runs after errors and Ctrl-C too
        self.enter()

    def release(self) -> None:
        """Take the hooks back and leave the virtual GPU."""
        if self.shell is None:
            return
        self.shell.events.unregister("pre_run_cell", self.enter)
        self.shell.events.unregister("post_run_cell", self.leave)
        self.shell = None
        self.n_cells_running = 0
        self.leave()

    def enter(self, _info: object = None) -> None:
        # a cell may run another one, as some magics do: only the outermost enters and leaves
        self.n_cells_running += 1
        if self.virtual is not None and entered() is None:  # the learner may have entered one
            self.virtual.__enter__()

    def leave(self, _result: object = None) -> None:
        self.n_cells_running = max(0, self.n_cells_running - 1)
        if self.virtual is not None and self.virtual.entered and not self.n_cells_running:
            self.virtual.__exit__(None, None, None)


def _ipython() -> Any:  # noqa: ANN401 # IPython's shell is not typed, and need not be installed
    module = sys.modules.get("IPython")
    return None if module is None else module.get_ipython()


# the choice holds for the process, like torch's own current device
_session = _Session()
