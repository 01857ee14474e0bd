"""Lock the clock of a GPU for a block of code, and unlock it however the block ends."""

# Several lines of defence unlock the clock: the end of the block, atexit, and a watchdog process
# for the case that this process is killed.

import atexit
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gpulab.core.errors import ClockLockError, InvalidOptionError
from gpulab.core.interrupts import ExitStack, contextmanager, step
from gpulab.core.requirements import COUNT, COUNT_OR_ZERO
from gpulab.device.clocks import _nvml as driver
from gpulab.device.clocks import _watchdog as watchdog

# A dismissed watchdog only has to exit. It may take longer if it unlocks the clock itself, and
# then it goes on alone.
_PATIENCE_S = 5.0  # how long to wait for the watchdog to end


@dataclass(frozen=True, slots=True)
class Lock:
    """A lock on the clock of a GPU.

    Attributes
    ----------
    sm_mhz
        The clock that the GPU was asked for. Power and heat may still push it below.
    device
        PyTorch's index of the GPU.
    undo
        The command that unlocks the clock by hand, if everything else fails.

    Examples
    --------
    >>> from gpulab.device.clocks import Lock
    >>> print(Lock(1500, 0, "sudo nvidia-smi -i 0 -rgc"))
    clock asked to stay at 1500 MHz; to undo by hand: sudo nvidia-smi -i 0 -rgc
    """

    sm_mhz: int
    device: int
    undo: str

    def __str__(self) -> str:
        return f"clock asked to stay at {self.sm_mhz} MHz; to undo by hand: {self.undo}"


@contextmanager
def lock(sm_mhz: int, *, device: int | None = None) -> Iterator[Lock]:
    """Lock the GPU's clock at ``sm_mhz`` inside the block.

    On most machines this needs the rights of an administrator. It affects every program on that
    GPU. At the end of the block the clock is unlocked, or set back to what an outer ``lock`` asked
    for. This also happens after an exception or Ctrl-C, at the end of Python, and when this
    process is killed, because a small second process waits for that. You must unlock by hand in
    two cases: after the machine, or a container with all its processes, was stopped at once; and
    after this process forked, because it counts as alive as long as the child lives.

    NVML does not report an earlier lock, so a lock by another program is lost. Choose a value well
    below the highest clock: a locked clock still falls at the power limit.

    Parameters
    ----------
    sm_mhz
        Clock of the multiprocessors, in MHz; one of those that the GPU supports.
    device
        PyTorch's index; None is the current device.

    Raises
    ------
    ClockLockError
        If the driver refuses; the message says how to do it by hand.
    ClocksUnavailableError
        If the package ``nvidia-ml-py`` is not installed, or there is no such GPU.
    InvalidOptionError
        If the GPU does not support this clock; the message suggests the nearest.

    Examples
    --------
    On a machine where you have the right to do so:

    ::

        with gpulab.clocks.lock(1500):
            print(gpulab.measure(lambda: a @ a))

    A virtual GPU refuses, as most machines do:

    >>> import gpulab
    >>> with gpulab.virtual_gpu("H200"):
    ...     try:
    ...         with gpulab.clocks.lock(1500):
    ...             pass
    ...     except gpulab.core.errors.ClockLockError as error:
    ...         print(str(error).partition(";")[0])
    the clock of virtual GPU 0 was not locked at 1500 MHz (NVML answers: Insufficient Permissions)
    """
    COUNT.check(sm_mhz=sm_mhz)
    COUNT_OR_ZERO.or_none.check(device=device)
    index = driver.torch_index(device)
    gpu = driver.gpu_of(index)
    _check_supported(gpu, sm_mhz)
    entry = _Entry(gpu, sm_mhz)
    with ExitStack() as stack:
        stack.callback(_release, entry)
        _take(entry)
        yield Lock(sm_mhz, index, _undo(entry))


class _Entry:
    """One lock, from before it is set until it is released."""

    def __init__(self, gpu: driver.NvmlGpu, sm_mhz: int) -> None:
        self.gpu = gpu
        self.sm_mhz = sm_mhz
        self.process: subprocess.Popen[str] | None = None
        self.pid = os.getpid()
        # Looked up now, because a virtual GPU may have replaced these functions when the clock is
        # unlocked.
        self._lock_clocks = gpu.nvml.nvmlDeviceSetGpuLockedClocks
        self._reset_clocks = gpu.nvml.nvmlDeviceResetGpuLockedClocks

    def apply(self, sm_mhz: int | None) -> str | None:
        """Set the clock in MHz, or unlock it if given None; return why that was refused."""
        try:
            if sm_mhz is None:
                self._reset_clocks(self.gpu.handle)
            else:
                # The same lowest and highest clock, or the driver would still choose one in
                # between.
                self._lock_clocks(self.gpu.handle, sm_mhz, sm_mhz)
        except self.gpu.nvml.NVMLError as error:
            return f"NVML answers: {error}"
        return None


# The locks in force, outermost first.
_entries: list[_Entry] = []


def _command(index: int, *options: str) -> str:
    return " ".join(("sudo", "nvidia-smi", "-i", str(index), *options))


def _undo(entry: _Entry) -> str:
    real = _command(entry.gpu.index, "-rgc")
    return f"leave the `with`; of a real GPU, {real}" if entry.gpu.is_virtual else real


def _check_supported(gpu: driver.NvmlGpu, sm_mhz: int) -> None:
    try:
        # NVML lists graphics clocks for each memory clock. A GPU at work runs its memory at the
        # highest one; a lower one may allow fewer graphics clocks.
        memory_mhz = max(gpu.nvml.nvmlDeviceGetSupportedMemoryClocks(gpu.handle))
        clocks_mhz = gpu.nvml.nvmlDeviceGetSupportedGraphicsClocks(gpu.handle, memory_mhz)
    except gpu.nvml.NVMLError:
        return  # some GPUs have no such list; the driver then decides
    if sm_mhz in clocks_mhz:
        return
    nearest_mhz = min(clocks_mhz, key=lambda mhz: abs(mhz - sm_mhz))
    raise InvalidOptionError(
        f"sm_mhz={sm_mhz}; the GPU supports clocks from {min(clocks_mhz)} to {max(clocks_mhz)} "
        f"MHz, and the nearest of them is {nearest_mhz}"
    )


def _take(entry: _Entry) -> None:
    if not entry.gpu.is_virtual:  # a virtual GPU ends with this process
        entry.process = _start_watchdog(entry)
    # Added before the clock is set: if an interrupt comes in between, the clock is still unlocked.
    _entries.append(entry)
    answer = entry.apply(entry.sm_mhz)
    if answer is not None:
        _entries.remove(entry)
        _dismiss(entry)
        raise ClockLockError(_refusal(entry, answer))


def _refusal(entry: _Entry, answer: str) -> str:
    index, is_virtual = entry.gpu.index, entry.gpu.is_virtual
    lock_command = _command(index, "-lgc", f"{entry.sm_mhz},{entry.sm_mhz}")
    undo_command = _command(index, "-rgc")
    name = f"{'virtual ' if is_virtual else ''}GPU {index}"
    who = "on a real one an administrator" if is_virtual else "an administrator"
    return (
        f"the clock of {name} was not locked at {entry.sm_mhz} MHz ({answer}); "
        f"{who} can, with `{lock_command}`, and undo it with `{undo_command}`"
    )


@step
def _release(entry: _Entry) -> None:
    # Not in the list: refused, or already released. A forked child must leave it to the parent.
    if entry not in _entries or entry.pid != os.getpid():
        return
    # The latest of the other locks counts, whichever order the blocks end in.
    index = entry.gpu.index
    others = [each for each in _entries if each is not entry and each.gpu.index == index]
    answer = entry.apply(others[-1].sm_mhz if others else None)
    # Removed only now: after an interrupt before this line, atexit unlocks the clock.
    _entries.remove(entry)
    if answer is None:
        _dismiss(entry)
        return
    _dismiss(entry, word="")  # without DONE, the watchdog tries to unlock the clock itself
    raise ClockLockError(
        f"the clock of GPU {index} may still be locked at {entry.sm_mhz} MHz ({answer}); "
        f"unlock it with `{_command(index, '-rgc')}`"
    )


def _release_all() -> None:
    # Innermost first, so that the last call resets the clock and none sets it again.
    for entry in reversed(_entries.copy()):
        with suppress(ClockLockError):
            _release(entry)


atexit.register(_release_all)


def _start_watchdog(entry: _Entry) -> "subprocess.Popen[str]":
    # Run by its path, and with -P without its folder on sys.path, so that it imports nothing of
    # gpulab.
    command = [sys.executable, "-P", str(Path(watchdog.__file__)), str(entry.gpu.index)]
    try:
        process = subprocess.Popen(  # noqa: S603 # our own script and a number
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,  # so that Ctrl-C and a closed terminal do not end it
        )
    except OSError as error:
        raise ClockLockError(_no_watchdog(entry, str(error))) from error
    # Waits until the watchdog ignores signals. Before that, whatever kills this process would kill
    # the watchdog as well.
    if process.stdout is not None and process.stdout.readline().strip() == watchdog.READY:
        return process
    entry.process = process
    _dismiss(entry)
    raise ClockLockError(_no_watchdog(entry, f"it ended with status {process.returncode}"))


def _no_watchdog(entry: _Entry, reason: str) -> str:
    return (
        f"the clock was not locked at {entry.sm_mhz} MHz, because nothing would unlock it if this "
        f"process were killed: the process that waits for that did not start ({reason}); do it by "
        f"hand: `{_command(entry.gpu.index, '-lgc', f'{entry.sm_mhz},{entry.sm_mhz}')}`"
    )


def _dismiss(entry: _Entry, word: str = watchdog.DONE) -> None:
    """End the watchdog; it does nothing if it reads ``DONE``, and otherwise unlocks the clock."""
    if entry.process is None:
        return
    # It may have ended already, and one that hangs must not block the user's program.
    with suppress(OSError, subprocess.TimeoutExpired):
        entry.process.communicate(word, timeout=_PATIENCE_S)
    entry.process = None
