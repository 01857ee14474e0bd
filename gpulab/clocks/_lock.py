"""Lock the clock of a GPU for a block of code, and unlock it however the block ends."""

import atexit
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from gpulab.clocks import _nvml as driver
from gpulab.clocks import _watchdog as watchdog
from gpulab.errors import ClockLockError, ClocksUnavailableError, InvalidOptionError
from gpulab.interrupts import contextmanager, ending
from gpulab.requirements import COUNT, COUNT_OR_ZERO

_PATIENCE_S = 5.0  # for a watchdog that has nothing left to do

# Takes the clock in MHz, or None to give it free; returns why that was refused, or None.
Setter = Callable[[int | None], str | None]


@dataclass(frozen=True, slots=True)
class Lock:
    """A clock that is locked.

    Attributes
    ----------
    sm_mhz
        What the GPU is asked to keep. Power and heat may still push it below.
    device
        Torch's index of the GPU.
    undo
        The command that gives the clock free by hand, should everything else fail.
    """

    sm_mhz: int
    device: int
    undo: str

    def __str__(self) -> str:
        return f"clock asked to stay at {self.sm_mhz} MHz; to undo by hand: {self.undo}"


@contextmanager
def lock(sm_mhz: int, *, device: int | None = None) -> Iterator[Lock]:
    """Ask the GPU to keep its clock at ``sm_mhz`` inside the ``with``.

    It needs an administrator's rights on most machines, and concerns every program on that GPU.
    At the end the clock is free again, or back at what a ``lock`` around this one asked for: after
    an exception or Ctrl-C too, at the end of Python, and, through a small second process that
    waits for that, when this one is killed. What is left to do by hand: a GPU whose machine, or
    whose container with all its processes, was stopped at once; and a process that forked, which
    counts as alive while the child lives.

    NVML does not tell what was locked before, so a lock that another program made is lost.
    A value well below the highest is the stable one: a locked clock still gives way to the power
    limit.

    Parameters
    ----------
    sm_mhz
        Clock of the multiprocessors, in MHz; one of those that the GPU supports.
    device
        Torch's index; None is the current device.

    Raises
    ------
    ClockLockError
        If the driver refuses; the message says how to do it by hand.
    InvalidOptionError
        If the GPU does not support this clock; the message names the nearest.

    Examples
    --------
    Where the driver allows it:

    >>> import torch, gpulab
    >>> a = torch.ones(4096, 4096, device="cuda")  # doctest: +SKIP
    >>> with gpulab.clocks.lock(1500):  # doctest: +SKIP
    ...     print(gpulab.measure(lambda: a @ a))
    """
    COUNT.check(sm_mhz=sm_mhz)
    COUNT_OR_ZERO.or_none.check(device=device)
    place = driver.torch_index(device)
    entry = _prepare(sm_mhz, place)
    try:
        _take(entry)
        yield Lock(sm_mhz, place, _undo(entry))
    finally:
        _release(entry)


@dataclass(eq=False, slots=True)
class _Entry:
    """One lock, from before it is set until it is undone."""

    index: int
    sm_mhz: int
    is_virtual: bool
    setters: list[Setter]
    process: "subprocess.Popen[str] | None" = None
    pid: int = field(default_factory=os.getpid)


# What is locked now, outermost first.
_entries: list[_Entry] = []


def _command(index: int, *options: str) -> str:
    return " ".join(("sudo", "nvidia-smi", "-i", str(index), *options))


def _undo(entry: _Entry) -> str:
    real = _command(entry.index, "-rgc")
    return f"leave the `with`; of a real GPU, {real}" if entry.is_virtual else real


def _prepare(sm_mhz: int, device: int) -> _Entry:
    try:
        gpu = driver.gpu_of(device)
    except ClocksUnavailableError:
        # nvidia-smi comes with the driver, nvidia-ml-py does not.
        index = driver.index_in_environment(device)
        return _Entry(index, sm_mhz, False, [_through_nvidia_smi(index)])  # noqa: FBT003 # a field
    _check_supported(gpu, sm_mhz)
    setters = [_through_nvml(gpu)]
    if not gpu.is_virtual:  # the command would reach for a real one
        setters.append(_through_nvidia_smi(gpu.index))
    return _Entry(gpu.index, sm_mhz, gpu.is_virtual, setters)


def _through_nvml(gpu: driver.NvmlGpu) -> Setter:
    # Looked up now: when the clock is given free, another GPU may stand behind these names.
    lock_clocks = gpu.nvml.nvmlDeviceSetGpuLockedClocks
    reset_clocks = gpu.nvml.nvmlDeviceResetGpuLockedClocks

    def apply(sm_mhz: int | None) -> str | None:
        try:
            if sm_mhz is None:
                reset_clocks(gpu.handle)
            else:
                lock_clocks(gpu.handle, sm_mhz, sm_mhz)
        except gpu.nvml.NVMLError as error:
            return f"NVML answers: {error}"
        return None

    return apply


def _through_nvidia_smi(index: int) -> Setter:
    def apply(sm_mhz: int | None) -> str | None:
        options = ("-rgc",) if sm_mhz is None else ("-lgc", f"{sm_mhz},{sm_mhz}")
        return watchdog.nvidia_smi(index, *options)

    return apply


def _check_supported(gpu: driver.NvmlGpu, sm_mhz: int) -> None:
    try:
        memory_mhz = max(gpu.nvml.nvmlDeviceGetSupportedMemoryClocks(gpu.handle))
        known = gpu.nvml.nvmlDeviceGetSupportedGraphicsClocks(gpu.handle, memory_mhz)
    except gpu.nvml.NVMLError:
        return  # some GPUs have no such list; the driver then takes what it can
    if sm_mhz in known:
        return
    nearest_mhz = min(known, key=lambda mhz: abs(mhz - sm_mhz))
    raise InvalidOptionError(
        f"sm_mhz={sm_mhz}; the GPU supports clocks from {min(known)} to {max(known)} MHz, "
        f"and the nearest of them is {nearest_mhz}"
    )


def _take(entry: _Entry) -> None:
    if not entry.is_virtual:  # a virtual GPU dies with this process
        entry.process = _start_watchdog(entry)
    _entries.append(entry)  # before the clock is set, so that an interrupt finds it
    answers = []
    for setter in list(entry.setters):
        answer = setter(entry.sm_mhz)
        if answer is None:
            entry.setters = [setter]
            return
        answers.append(answer)
    _entries.remove(entry)
    _dismiss(entry)
    raise ClockLockError(_refusal(entry, answers))


def _refusal(entry: _Entry, answers: list[str]) -> str:
    lock_command = _command(entry.index, "-lgc", f"{entry.sm_mhz},{entry.sm_mhz}")
    undo_command = _command(entry.index, "-rgc")
    name = f"{'virtual ' if entry.is_virtual else ''}GPU {entry.index}"
    who = "on a real one an administrator" if entry.is_virtual else "an administrator"
    return (
        f"the clock of {name} was not locked at {entry.sm_mhz} MHz ({'; '.join(answers)}); "
        f"{who} can, with `{lock_command}`, and undo it with `{undo_command}`"
    )


@ending
def _release(entry: _Entry) -> None:
    if entry not in _entries or entry.pid != os.getpid():  # refused, or undone; or a forked child
        return
    others = [each for each in _entries if each is not entry and each.index == entry.index]
    answer = entry.setters[0](others[-1].sm_mhz if others else None)
    _entries.remove(entry)  # only now: an interrupt before leaves it to the end of Python
    if answer is None:
        _dismiss(entry)
        return
    _dismiss(entry, word="")  # and the watchdog tries in its own way
    raise ClockLockError(
        f"the clock of GPU {entry.index} may still be locked at {entry.sm_mhz} MHz ({answer}); "
        f"give it free with `{_command(entry.index, '-rgc')}`"
    )


def _release_all() -> None:
    for entry in reversed(_entries.copy()):
        with suppress(ClockLockError):
            _release(entry)


atexit.register(_release_all)


def _start_watchdog(entry: _Entry) -> "subprocess.Popen[str]":
    # By its path and without its folder on the path of imports, so that it needs nothing of ours.
    command = [sys.executable, "-P", str(Path(watchdog.__file__)), str(entry.index)]
    try:
        process = subprocess.Popen(  # noqa: S603 # our own script and a number
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,  # Ctrl-C and the end of a session are not for it
        )
    except OSError as error:
        raise ClockLockError(_no_watchdog(entry, str(error))) from error
    if process.stdout is not None and process.stdout.readline().strip() == watchdog.READY:
        return process
    entry.process = process
    _dismiss(entry)
    raise ClockLockError(_no_watchdog(entry, f"it ended with status {process.returncode}"))


def _no_watchdog(entry: _Entry, reason: str) -> str:
    return (
        f"the clock was not locked at {entry.sm_mhz} MHz, because nothing would unlock it if this "
        f"process were killed: the process that waits for that did not start ({reason}); do it by "
        f"hand: `{_command(entry.index, '-lgc', f'{entry.sm_mhz},{entry.sm_mhz}')}`"
    )


def _dismiss(entry: _Entry, word: str = watchdog.DONE) -> None:
    """Let the watchdog go, which does nothing if it is told ``DONE``."""
    if entry.process is None:
        return
    # It may be gone already, and one that hangs must not hold up the user's program.
    with suppress(OSError, subprocess.TimeoutExpired):
        entry.process.communicate(word, timeout=_PATIENCE_S)
    entry.process = None
