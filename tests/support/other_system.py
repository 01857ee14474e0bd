"""Run gpulab's main paths in a Python that looks as on Windows or on macOS.

``python other_system.py win32`` imports every module of gpulab and uses it as a learner does. It
does so twice: first on this system, so that other packages load what they need, then without the
names, modules and files that the other system lacks. mypy checks the lines that do not run.
"""

import importlib
import os
import pkgutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from types import ModuleType

LINUX_ONLY: dict[ModuleType, str] = {
    os: "sched_getaffinity sched_setaffinity sched_getscheduler sched_setscheduler sched_yield "
    "memfd_create eventfd pidfd_open copy_file_range posix_fadvise posix_fallocate pipe2 "
    "getresuid setresuid",
    signal: "sigwaitinfo sigtimedwait SIGPWR",
    time: "CLOCK_BOOTTIME pthread_getcpuclockid",
}
UNIX_ONLY: dict[ModuleType, str] = {
    os: "fork forkpty getuid geteuid getgid getegid getpgid getpgrp setpgid getsid setsid killpg "
    "nice uname chown fchown lchown mkfifo mknod getloadavg statvfs fstatvfs sysconf confstr "
    "wait3 wait4 waitid posix_spawn getpriority setpriority openpty ttyname getgroups "
    "register_at_fork sendfile O_NOFOLLOW O_CLOEXEC O_DIRECTORY",
    signal: "SIGHUP SIGALRM SIGUSR1 SIGUSR2 SIGCHLD SIGCONT SIGQUIT SIGTSTP ITIMER_REAL alarm "
    "getitimer setitimer pause pthread_kill pthread_sigmask siginterrupt sigpending sigwait",
    time: "clock_gettime clock_gettime_ns clock_getres CLOCK_MONOTONIC CLOCK_MONOTONIC_RAW tzset",
}
UNIX_MODULES = ["fcntl", "grp", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty"]
# Folders that only Linux has. psutil may read them: it has its own code for each system.
LINUX_FOLDERS = ("/proc/", "/sys/")
READING = {"open", "os.scandir", "os.listdir"}


def _windows_locks() -> ModuleType:
    """Return a replacement for a module that only Windows has; it locks nothing."""
    made = ModuleType("msvcrt")
    vars(made).update(locking=lambda *_arguments: None, LK_NBLCK=2, LK_UNLCK=0)
    return made


def import_all() -> int:
    """Import every module of gpulab, and return how many there are."""
    if sys.platform == "win32":
        sys.modules.setdefault("msvcrt", _windows_locks())
    package = importlib.import_module("gpulab")
    names = [each.name for each in pkgutil.walk_packages(package.__path__, "gpulab.")]
    for name in names:
        importlib.import_module(name)
    return len(names)


def forget_gpulab() -> None:
    """Forget the imported modules of gpulab, but not those of other packages."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "gpulab"]:
        del sys.modules[name]


def look_like(system: str) -> None:
    """Remove the names, modules and files that the other system does not have."""
    sys.platform = system
    for module, names in LINUX_ONLY.items():
        remove(module, names)
    if system == "win32":
        for module, names in UNIX_ONLY.items():
            remove(module, names)
        sys.modules.update(dict.fromkeys(UNIX_MODULES))  # None: "import fcntl" fails
    real_stat = os.stat

    def stat(path: object, *arguments: object, **options: object) -> os.stat_result:
        refuse("open", (path,))
        return real_stat(path, *arguments, **options)  # type: ignore[arg-type] # as it came

    os.stat = stat  # type: ignore[assignment] # looks at the path, and passes it on
    sys.addaudithook(refuse)


def remove(module: ModuleType, names: str) -> None:
    """Delete names from a module; names that this Python lacks are skipped."""
    for name in names.split():
        vars(module).pop(name, None)


def refuse(event: str, arguments: tuple[object, ...]) -> None:
    """Hide the files of Linux, except from psutil."""
    if event not in READING or not str(arguments[0]).startswith(LINUX_FOLDERS):
        return
    frame = sys._getframe()
    while frame is not None:
        if str(frame.f_globals.get("__name__")).startswith("psutil"):
            return
        frame = frame.f_back  # type: ignore[assignment] # None ends the loop
    raise FileNotFoundError(2, "No such file or directory", str(arguments[0]))


def time_on_the_virtual_gpu() -> None:
    """Measure, compare, make a timeline, and look for races."""
    import torch

    import gpulab

    with gpulab.virtual_gpu("H200"):
        a = torch.randn(64, 64, device="cuda")
        assert gpulab.measure(lambda: a @ a, n_samples=10).median_s > 0
        assert gpulab.compare(lambda: a @ a, lambda: a + a, n_samples=10).verdict()
        assert gpulab.timeline(lambda: a @ a).spans
        with gpulab.hazards() as found:
            a @ a
        assert len(found) == 0


def sweep_on_both(folder: Path) -> None:
    """Sweep on the CPU and on the GPU into a file, and resume it."""
    import gpulab
    from gpulab.workloads.sweeps import tasks_of

    with gpulab.virtual_gpu("H200"):
        todo = tasks_of(["add"], [64], on=["cpu", "gpu"])
        out = folder / "sweep.jsonl"
        assert len(gpulab.sweep(todo, out=out).points) == 2
        assert len(gpulab.sweep(todo, out=out).points) == 2


def look_at_the_machine() -> None:
    """Run the commands doctor and version."""
    from click.testing import CliRunner

    from gpulab.cli import main

    for command in ("doctor", "version"):
        done = CliRunner().invoke(main, [command])
        assert done.exit_code == 0, done.output


def prepare_the_lessons(folder: Path) -> None:
    """Copy the lessons, find a port, and build the command that opens them."""
    from gpulab import lessons
    from gpulab.lessons._server import lab_command

    assert "00_start_here.ipynb" in lessons.copy_lessons(folder / "lessons").written
    command = lab_command(folder, port=lessons.usable_port(), browser=False)
    assert ("--allow-root" in command) == (hasattr(os, "geteuid") and os.geteuid() == 0)


def use_the_magic() -> None:
    """Time a cell in IPython."""
    from IPython.core.interactiveshell import InteractiveShell

    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "gpulab")
    for line in ("import torch, gpulab", "gpulab.use('H200')", "a = torch.ones(9, device='cuda')"):
        shell.run_cell(line).raise_error()
    shell.run_cell("%%cudatime -n 10\na + a").raise_error()


def walk_through() -> str:
    """Import and use everything, and return the number of modules as text."""
    n_modules = import_all()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        time_on_the_virtual_gpu()
        sweep_on_both(folder)
        look_at_the_machine()
        prepare_the_lessons(folder)
        use_the_magic()
    return f"{n_modules} modules"


def main(system: str) -> None:
    """Use gpulab on this system, and then as if on the other one."""
    here = walk_through()
    forget_gpulab()
    look_like(system)
    print(f"{sys.platform}: {walk_through()} of {here}")  # noqa: T201 # a script of tests


if __name__ == "__main__":
    main(*sys.argv[1:])
