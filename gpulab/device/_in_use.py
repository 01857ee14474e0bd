"""The GPU in use: choose it, look it up, and enter it; diagnose the machine that it is in."""

import platform
import sys
import warnings
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import UTC, datetime

from gpulab import gpus
from gpulab._version import __version__
from gpulab.device import _diagnostics, _probe
from gpulab.device._device import STAND_IN, Device, as_device, make_virtual, outside
from gpulab.device._notebook_session import session
from gpulab.device._report import Report
from gpulab.interrupts import contextmanager
from gpulab.measurement import Conditions
from gpulab.virtual import entered


class NotEnteredWarning(UserWarning):
    """A virtual GPU was chosen in a script, where nothing enters it."""


def use(gpu: str = "auto") -> Device:
    """Choose the GPU for all that follows, and return it.

    In a notebook a virtual GPU stands behind ``torch.cuda`` while a cell runs, and only then, so
    that the kernel itself keeps real time. In a script, enter it by
    ``with gpulab.virtual_gpu(...)``; a warning says so.

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
    VirtualGpuError
        If a notebook calls it on another thread than the one that runs the cells.

    Examples
    --------
    In a notebook:

    >>> import gpulab
    >>> gpulab.use("H200")  # doctest: +SKIP
    NVIDIA H200, virtual: you asked for it
    """
    chosen = session.switch(gpu)
    is_script = sys._getframe(1).f_globals.get("__name__") == "__main__"  # noqa: SLF001 # the caller
    if chosen.virtual is not None and session.shell is None and is_script:
        name = chosen.virtual.spec.name
        warnings.warn(
            f"gpulab.use({gpu!r}) in a script chooses the GPU of gpulab's own functions, such as "
            "measure; for torch.cuda itself write "
            f"`with gpulab.virtual_gpu({name!r}):` round that code",
            NotEnteredWarning,
            stacklevel=2,
        )
    return chosen


def current() -> Device:
    """Return the GPU in use: one that is entered by hand, else the chosen one, else ``"auto"``."""
    by_hand = entered()
    if by_hand is not None and by_hand is not session.virtual:
        return as_device(by_hand, "its context was entered")
    return session.choose()


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
    """Report what can be timed on this machine, and what is used instead of what is missing.

    Examples
    --------
    >>> import gpulab
    >>> str(gpulab.doctor()).splitlines()[0].split()[0]
    'Python'
    """
    with outside():
        obstacle = _probe.cuda_obstacle()
        return _diagnostics.examine(
            in_use=_name_in_use(obstacle), obstacle=obstacle, virtual=_try_virtual()
        )


def _name_in_use(obstacle: _probe.Obstacle | None) -> str:
    """Name what measurements take now, or would take by default, without making it."""
    if session.device is None and obstacle is None:
        return _probe.cuda_name()
    if session.device is None:
        return f"the virtual {gpus.gpu(STAND_IN).driver_name}"
    return f"{'' if session.virtual is None else 'the virtual '}{session.device.name}"


def _try_virtual() -> str | None:
    """Return what of the virtual GPU does not work on this torch, or None."""
    try:
        from gpulab import virtual

        with make_virtual(STAND_IN):
            failed = virtual.failures()
    except Exception as error:  # noqa: BLE001 # a report must say what failed, whatever it was
        return f"{type(error).__name__}: {error}"
    return "; ".join(f"{name}: {reason}" for name, reason in failed.items()) or None
