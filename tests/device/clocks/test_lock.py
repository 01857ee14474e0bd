"""Locking the clock: who may do it, each refusal's message, and that it is always undone.

No hardware is touched: NVML is a fake, also in the processes started here.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch

import gpulab
from gpulab.core.errors import ClockLockError, InvalidOptionError
from gpulab.device.clocks import _lock, _nvml, lock, read
from gpulab.virtual import VirtualGpu

ROOT = Path(__file__).parents[3]

# It appends each call to $LOG.
PYNVML = """
import os
NVML_ERROR_UNINITIALIZED, NVML_CLOCK_SM = 1, 1
class NVMLError(Exception):
    value = 4
    def __str__(self):
        return "Insufficient Permissions"
def log(*words):
    with open(os.environ["LOG"], "a") as file:
        print(*words, file=file)
def nvmlInit():
    pass
def nvmlDeviceGetHandleByIndex(index):
    return index
def nvmlDeviceGetSupportedMemoryClocks(handle):
    return [3201, 2201]
def nvmlDeviceGetSupportedGraphicsClocks(handle, memory_mhz):
    return list(range(1980, 344, -15)) if memory_mhz == 3201 else [345]
def nvmlDeviceSetGpuLockedClocks(handle, lowest_mhz, highest_mhz):
    if os.environ.get("REFUSES"):
        raise NVMLError
    log("lock", handle, lowest_mhz, highest_mhz)
def nvmlDeviceResetGpuLockedClocks(handle):
    if os.environ.get("REFUSES"):
        raise NVMLError
    log("reset", handle)
"""
TORCH = """
class cuda:
    is_initialized = staticmethod(lambda: False)
    _get_nvml_device_index = staticmethod(lambda device: device)
"""


class Fakes:
    """A fake of NVML, and the calls that it got."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "log"
        self.log.touch()

    @property
    def asked(self) -> list[str]:
        """The calls so far, in order."""
        return self.log.read_text("utf-8").splitlines()

    def wait_for(self, n_lines: int) -> list[str]:
        """Return the calls as soon as there are `n_lines` of them."""
        while len(self.asked) < n_lines:
            time.sleep(0.01)
        return self.asked


@pytest.fixture
def fakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fakes]:
    """Put the fake where this process and its children look for NVML."""
    modules = tmp_path / "modules"
    modules.mkdir()
    (modules / "pynvml.py").write_text(PYNVML, "utf-8")
    (modules / "torch.py").write_text(TORCH, "utf-8")
    module = ModuleType("pynvml")
    exec(PYNVML, vars(module))  # the text above
    monkeypatch.setitem(sys.modules, "pynvml", module)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(modules), str(ROOT))))
    monkeypatch.setenv("LOG", str(tmp_path / "log"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    _nvml.forget()
    yield Fakes(tmp_path)
    _nvml.forget()
    assert not _lock._entries


@pytest.fixture
def gpu() -> Iterator[VirtualGpu]:
    """Enter a virtual H200 whose clock may be locked."""
    with gpulab.virtual_gpu("H200") as virtual:
        virtual.machine.gpu.device.regime.has_clock_rights = True
        yield virtual


def clock_mhz() -> int | None:
    """Return the clock after it has had time to rise."""
    time.sleep(0.5)  # of the virtual clock
    return read(parts=["sm_mhz"]).sm_mhz


def message_of(kind: type[Exception], call: Callable[[], object]) -> str:
    """Return the message of the error that a call raises."""
    with pytest.raises(kind) as error:
        call()
    return str(error.value)


def locking(sm_mhz: int, device: int | None = None) -> Callable[[], None]:
    """Return a function that locks the clock and unlocks it at once."""

    def call() -> None:
        with lock(sm_mhz, device=device):
            pass

    return call


@pytest.mark.usefixtures("gpu")
def test_inner_lock_restores_the_outer() -> None:
    """Leaving a nested lock restores the clock of the lock around it."""
    with lock(1410):
        with lock(1005):
            with lock(1200):
                assert clock_mhz() == 1200
            assert clock_mhz() == 1005
        assert clock_mhz() == 1410
    assert clock_mhz() == 1980


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_errors_unlock_the_clock(error: type[BaseException]) -> None:
    """Errors, Ctrl-C and SystemExit pass through and unlock the clock."""
    with pytest.raises(error), lock(1410):
        raise error
    assert clock_mhz() == 1980


def test_interrupt_while_locking_is_undone(
    gpu: VirtualGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C just after the driver has locked the clock unlocks it again."""
    nvml = sys.modules["pynvml"]
    obey = vars(nvml)["nvmlDeviceSetGpuLockedClocks"]

    def obey_and_interrupt(*args: object) -> None:
        obey(*args)
        raise KeyboardInterrupt

    monkeypatch.setitem(vars(nvml), "nvmlDeviceSetGpuLockedClocks", obey_and_interrupt)
    with pytest.raises(KeyboardInterrupt):
        locking(1410)()
    assert gpu.machine.gpu.device.regime.clock_mhz(gpu.machine.host.now_ns + 500_000_000) == 1980
    assert not _lock._entries


def test_virtual_lock_never_touches_a_real_gpu(fakes: Fakes) -> None:
    """A virtual lock released outside its context does not call the real driver."""
    virtual = gpulab.virtual_gpu("H200")
    virtual.machine.gpu.device.regime.has_clock_rights = True
    held = lock(1410, device=0)
    with virtual:
        held.__enter__()
    held.__exit__(None, None, None)
    assert fakes.asked == []
    with virtual:
        assert clock_mhz() == 1980


def test_virtual_gpu_without_rights_never_calls_the_command(fakes: Fakes) -> None:
    """The refusal prints the command for a real GPU, and does not run it."""
    with gpulab.virtual_gpu("H200"):
        message = message_of(ClockLockError, locking(1410))
    assert message == (
        "the clock of virtual GPU 0 was not locked at 1410 MHz (NVML answers: Insufficient "
        "Permissions); on a real one an administrator can, with "
        "`sudo nvidia-smi -i 0 -lgc 1410,1410`, and undo it with `sudo nvidia-smi -i 0 -rgc`"
    )
    assert fakes.asked == []


@pytest.mark.usefixtures("gpu")
def test_unsupported_clock_names_the_nearest() -> None:
    """The error for an unsupported clock gives the range and the nearest supported one."""
    assert message_of(InvalidOptionError, locking(1400)) == (
        "sm_mhz=1400; the GPU supports clocks from 345 to 1980 MHz, "
        "and the nearest of them is 1395"
    )
    assert message_of(InvalidOptionError, locking(3000)).endswith("nearest of them is 1980")


def test_driver_locks_and_resets(fakes: Fakes) -> None:
    """NVML gets one lock with equal limits and one reset, and the watchdog ends."""
    with lock(1410, device=2) as held:
        assert fakes.asked == ["lock 2 1410 1410"]
        (entry,) = _lock._entries
        assert entry.process is not None
        process = entry.process
        assert process.poll() is None
    assert str(held) == (
        "clock asked to stay at 1410 MHz; to undo by hand: sudo nvidia-smi -i 2 -rgc"
    )
    assert process.returncode == 0
    assert fakes.asked == ["lock 2 1410 1410", "reset 2"]


def test_refusal_says_how_by_hand(fakes: Fakes, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error has the answer and both commands, and nothing is reset."""
    monkeypatch.setenv("REFUSES", "1")
    assert message_of(ClockLockError, locking(1410)) == (
        "the clock of GPU 0 was not locked at 1410 MHz (NVML answers: Insufficient Permissions); "
        "an administrator can, with `sudo nvidia-smi -i 0 -lgc 1410,1410`, and undo it with "
        "`sudo nvidia-smi -i 0 -rgc`"
    )
    assert fakes.asked == []


def test_clock_that_cannot_be_unlocked_is_reported(
    fakes: Fakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If unlocking fails, the error says what to do, and the watchdog tries once more."""
    held = lock(1410)
    held.__enter__()
    refuse = sys.modules["pynvml"].NVMLError

    def reset(_handle: object) -> None:
        raise refuse

    (entry,) = _lock._entries
    monkeypatch.setattr(entry, "_reset_clocks", reset)
    assert message_of(ClockLockError, lambda: held.__exit__(None, None, None)) == (
        "the clock of GPU 0 may still be locked at 1410 MHz (NVML answers: Insufficient "
        "Permissions); unlock it with `sudo nvidia-smi -i 0 -rgc`"
    )
    assert fakes.asked == ["lock 0 1410 1410", "reset 0"]


def test_without_a_watchdog_nothing_is_locked(
    fakes: Fakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the watchdog does not start, the clock is not locked, as a kill would leave it so."""
    program = fakes.log.parent / "python"
    program.write_text("#!/bin/sh\nexit 3\n", "utf-8")
    program.chmod(0o755)
    start = "the clock was not locked at 1410 MHz, because nothing would unlock it if this process"
    end = "do it by hand: `sudo nvidia-smi -i 0 -lgc 1410,1410`"
    for name, reason in (
        (program, "it ended with status 3"),
        (program.parent / "no", "[Errno 2]"),
    ):
        monkeypatch.setattr(sys, "executable", str(name))
        message = message_of(ClockLockError, locking(1410))
        assert message.startswith(
            f"{start} were killed: the process that waits for that did not start ({reason}"
        )
        assert message.endswith(end)
    assert fakes.asked == []


def run(code: str) -> subprocess.CompletedProcess[str]:
    """Run a program that locks GPU 0 at 1410 MHz and never leaves the ``with``."""
    program = (
        "import os, signal, sys\n"
        "from gpulab.device.clocks._lock import lock\n"
        "held = lock(1410)\n"
        "held.__enter__()\n"
        f"{code}\n"
    )
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
    )


@pytest.mark.slow
@pytest.mark.usefixtures("fakes")
@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("os.kill(os.getpid()", "SIGKILL"),
        ("os.killpg(os.getpgid(0)", "SIGHUP"),
    ],
)
def test_killed_process_leaves_no_lock(fakes: Fakes, target: str, name: str) -> None:
    """The watchdog unlocks the clock if the process or its whole group is killed."""
    done = run(f"{target}, signal.{name})")
    assert done.returncode == -getattr(signal, name), done.stderr
    assert fakes.wait_for(2) == ["lock 0 1410 1410", "reset 0"]


@pytest.mark.usefixtures("fakes")
def test_watchdog_outlives_signals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Signals that end a batch job do not end the watchdog before its process."""
    monkeypatch.setattr(_lock, "_PATIENCE_S", 3600)  # on a busy machine it ends late
    with lock(1410):
        (entry,) = _lock._entries
        process = entry.process
        assert process is not None
        for name in ("SIGTERM", "SIGINT", "SIGHUP"):
            process.send_signal(getattr(signal, name))
    assert process.returncode == 0


@pytest.mark.slow
def test_end_of_python_undoes_the_lock(fakes: Fakes) -> None:
    """The exit of Python unlocks the clock, as when a notebook's kernel is shut down."""
    done = run("sys.modules['gpulab.device.clocks._lock'].keep = held\nsys.exit(7)")
    assert done.returncode == 7, done.stderr
    assert fakes.asked == ["lock 0 1410 1410", "reset 0"]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_forked_child_does_not_undo_the_lock(fakes: Fakes) -> None:
    """The exit of a forked child does not unlock its parent's clock."""
    code = (
        "for how in (sys.exit, os._exit):\n"
        "    child = os.fork()\n"
        "    if not child: how(0)\n"
        "    os.waitpid(child, 0)\n"
        "open(os.environ['LOG'], 'a').write('children gone\\n')"
    )
    done = run(code)
    assert done.returncode == 0, done.stderr
    assert fakes.asked == ["lock 0 1410 1410", "children gone", "reset 0"]
