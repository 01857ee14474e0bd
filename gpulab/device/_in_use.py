"""The GPU in use: choose it, look it up, enter it, and diagnose its machine."""

import platform
import sys
import warnings
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import UTC, datetime

from gpulab import __version__, gpus
from gpulab.core import versions
from gpulab.core.interrupts import contextmanager
from gpulab.device import _diagnostics, _probe
from gpulab.device._device import STAND_IN, VALUE_BYTES, Device, as_device, outside
from gpulab.device._notebook_session import session
from gpulab.device._report import Report
from gpulab.device.measurement import Conditions
from gpulab.virtual import entered


class NotEnteredWarning(UserWarning):
    """You chose a virtual GPU in a script, where ``torch.cuda`` does not use it."""


def use(gpu: str = "auto", *, max_value_bytes: int = VALUE_BYTES) -> Device:
    """Choose the GPU for everything that follows, and return it.

    In a notebook, ``torch.cuda`` uses a virtual GPU while a cell runs, and only then, so that the
    Jupyter kernel itself stays in real time. In a script, write ``with gpulab.virtual_gpu(...)``
    around your code instead; a warning reminds you.

    Parameters
    ----------
    gpu
        ``"auto"``: the CUDA GPU if torch can use one, else the virtual H200. ``"cuda"``: the CUDA
        GPU or an error. A name such as ``"A100"``: the virtual GPU of that name.
    max_value_bytes
        The most real memory for the values of a virtual GPU's tensors, in bytes. A tensor beyond
        it has a shape and a time, and no values: if you read it you get ``nan`` and a warning.
        A small number keeps the kernel of a notebook small that only times large tensors.

    Raises
    ------
    NoGpuError
        If you asked for ``"cuda"`` and torch cannot use a CUDA GPU.
    UnknownNameError
        If there is no such GPU; the message suggests the nearest.
    UnsupportedVersionError
        If Python is outside the supported range, or the virtual GPU is chosen and fails its
        self-check with a torch that was not tried.
    VirtualGpuError
        If a notebook calls it on another thread than the one that runs the cells.

    Examples
    --------
    >>> import gpulab
    >>> print(gpulab.use("H200"))
    NVIDIA H200, virtual: it was asked for by name, so nothing here is measured on hardware
    >>> _ = gpulab.use("auto")  # back to the default
    """
    chosen = session.switch(gpu, max_value_bytes)
    # Only the script itself is __main__: a library that calls use() gives its users no warning.
    is_script = sys._getframe(1).f_globals.get("__name__") == "__main__"  # noqa: SLF001 # the caller
    if chosen.virtual is not None and session.shell is None and is_script:
        name = chosen.virtual.spec.name
        warnings.warn(
            f"gpulab.use({gpu!r}) in a script chooses the GPU of gpulab's own functions, such as "
            "measure; for torch.cuda itself write "
            f"`with gpulab.virtual_gpu({name!r}):` around that code",
            NotEnteredWarning,
            stacklevel=2,
        )
    return chosen


def current() -> Device:
    """Return the GPU in use: the one you entered, else the one you chose, else ``"auto"``."""
    by_hand = entered()
    # A notebook's own GPU is entered in every cell; only another one was entered by hand.
    if by_hand is not None and by_hand is not session.virtual:
        return as_device(by_hand, "its context was entered")
    return session.choose()


@contextmanager
def active() -> Iterator[Device]:
    """Let ``torch.cuda`` use the GPU in use inside the block, if it does not already.

    Raises `VirtualGpuError` if the virtual GPU is entered on another thread; its clock belongs to
    it.
    """
    device = current()
    # Entering a virtual GPU again is free and only counts, so no test for that is needed.
    with device.virtual or nullcontext():
        yield device


def conditions() -> Conditions:
    """Return the conditions of a measurement on the GPU in use now, without its clocks.

    Clocks mean something only if they are read right before and after the measurement.
    """
    device = current()
    real = device.virtual is None
    return Conditions(
        device_name=device.name,
        torch_version=versions.torch_version(),
        python_version=platform.python_version(),
        gpulab_version=__version__,
        cuda_version=_probe.cuda_version() if real else None,
        driver_version=_probe.driver_version() if real else None,
        cache="hot",
        taken_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def doctor() -> Report:
    """Return a report: what can be timed on this machine, and what replaces what is missing.

    Examples
    --------
    >>> import gpulab
    >>> str(gpulab.doctor()).splitlines()[0].split()[0]
    'Python'
    """
    # Inside a virtual GPU, the report would describe that one instead of the machine.
    with outside():
        obstacle = _probe.cuda_obstacle()
        return _diagnostics.examine(
            in_use=_name_in_use(obstacle), obstacle=obstacle, virtual=_try_virtual()
        )


def _name_in_use(obstacle: _probe.Obstacle | None) -> str:
    """Return the name of the GPU that measurements use now or by default, without making it."""
    if session.device is None and obstacle is None:
        return _probe.cuda_name()
    if session.device is None:
        return f"the virtual {gpus.gpu(STAND_IN).driver_name}"
    return f"{'' if session.virtual is None else 'the virtual '}{session.device.name}"


def _try_virtual() -> str | None:
    """Return which parts of the virtual GPU fail with this torch, or None."""
    try:
        from gpulab import virtual

        return virtual.self_check() or None
    except Exception as error:  # noqa: BLE001 # a report must say what failed, also an import
        return f"{type(error).__name__}: {error}"
