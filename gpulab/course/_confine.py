"""Confine the process that runs a learner's function: no Python code can lift these limits.

There are three walls. Resource limits work on every Unix. On Linux a network namespace without a
network and Landlock rules cut off network, files and signals, as far as the kernel supports them.
An audit hook works everywhere and reports what was tried, but machine code can get past it.
"""

import ctypes
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38
_SIGKILL = 9
# System calls of Landlock: the same numbers on every architecture that torch runs on.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION, _PATH_BENEATH = 1, 1
_EXECUTE, _READ_FILE, _READ_DIR = 1, 1 << 2, 1 << 3
_READING = _EXECUTE | _READ_FILE | _READ_DIR
# How many rights for files each version of Landlock knows. A kernel refuses a ruleset with a right
# that it does not know. Versions after 5 added no right for files.
_N_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
# Versions from which Landlock restricts TCP, and from which it restricts signals.
_TCP_FROM, _SCOPES_FROM = 4, 6


@dataclass(frozen=True, slots=True)
class AnswerLimits:
    """Limits on time, memory and output of one answer.

    Attributes
    ----------
    cpu_s
        Seconds of processor time.
    wall_s
        Seconds from start to end. Allow more than ``cpu_s``, because the machine may be busy.
    memory_bytes
        Memory beyond what torch and gpulab already use.
    output_bytes
        Bytes that it may print.

    Examples
    --------
    >>> from gpulab import course
    >>> course.AnswerLimits(cpu_s=2).memory_bytes
    1073741824
    """

    cpu_s: int = 10
    wall_s: float = 60.0
    memory_bytes: int = 2**30
    output_bytes: int = 2**20


if sys.platform == "win32":

    def limit_resources(limits: AnswerLimits) -> None:
        """Refuse: Windows has no such limits."""
        raise OSError(f"Windows has no {limits}")

else:
    import resource

    def limit_resources(limits: AnswerLimits) -> None:
        """Limit this process in processor time, memory and writing to files, until it ends."""
        # SIGXCPU comes at the first number. A second later SIGKILL ends whoever ignored it.
        resource.setrlimit(resource.RLIMIT_CPU, (limits.cpu_s, limits.cpu_s + 1))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        # With no byte allowed, every write to a file fails; pipes are not files.
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        with suppress(OSError, ValueError):  # macOS refuses
            space = _address_space() + limits.memory_bytes
            resource.setrlimit(resource.RLIMIT_AS, (space, space))

    def _address_space() -> int:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
        return pages * os.sysconf("SC_PAGE_SIZE")


def cut_off(readable: Iterable[Path]) -> None:
    """Cut this process off from network, files and other processes, as far as the kernel can.

    Parameters
    ----------
    readable
        Files and folders that may still be read. Nothing may be written.
    """
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, _SIGKILL)  # die with the process that forked this one
    # A user namespace lets an ordinary user open a network namespace. Some systems forbid it;
    # the audit hook still refuses sockets there.
    libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET)
    version = libc.syscall(_CREATE_RULESET, None, 0, _VERSION)
    if version < 1:
        return
    _landlock(libc, version, readable)


def walls() -> str:
    """Return which of the walls this machine has, for the instructor's report."""
    if sys.platform != "linux":
        return "limits and an audit hook; machine code reaches files, network and processes"
    version = ctypes.CDLL(None).syscall(_CREATE_RULESET, None, 0, _VERSION)
    if version < 1:
        return "limits and an audit hook; this kernel has no Landlock, so machine code reads files"
    walled = ("files", *["TCP"][: version >= _TCP_FROM], *["signals"][: version >= _SCOPES_FROM])
    return f"limits, an audit hook and Landlock {version} ({', '.join(walled)})"


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("tcp", ctypes.c_uint64), ("scopes", ctypes.c_uint64))


class _Rule(ctypes.Structure):
    # The kernel's structure is packed. Python 3.14 wants to know the layout of such a structure.
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32))


def _landlock(libc: ctypes.CDLL, version: int, readable: Iterable[Path]) -> None:
    """Forbid all access to files except reading ``readable``; also TCP and signals to others."""
    if sys.platform != "linux":
        raise OSError(f"{sys.platform} has no Landlock")
    rights = (1 << _N_FILE_RIGHTS[min(version, max(_N_FILE_RIGHTS))]) - 1
    # 3: both rights for TCP (bind and connect), and both scopes (abstract sockets and signals).
    ruleset = _Ruleset(
        rights, 3 if version >= _TCP_FROM else 0, 3 if version >= _SCOPES_FROM else 0
    )
    # Pass only the fields that this kernel's version knows.
    size = 8 * (1 + (version >= _TCP_FROM) + (version >= _SCOPES_FROM))
    handle = libc.syscall(_CREATE_RULESET, ctypes.byref(ruleset), size, 0)
    for path in readable:
        with suppress(OSError):
            opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
            allowed = _READING if path.is_dir() else _READ_FILE
            libc.syscall(_ADD_RULE, handle, _PATH_BENEATH, ctypes.byref(_Rule(allowed, opened)), 0)
            os.close(opened)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)  # Landlock demands this of ordinary users
    libc.syscall(_RESTRICT_SELF, handle, 0)
    os.close(handle)


def readable_paths(package: Path, libraries: Iterable[str]) -> tuple[Path, ...]:
    """Return the paths that Python, torch and gpulab read while they run; no course is in them.

    Parameters
    ----------
    package
        The folder of the package gpulab. The clone around it contains the keys and is not given.
    libraries
        Folders of Python and of torch.
    """
    system = ("/usr", "/lib", "/lib64", "/proc", "/sys", "/dev/null", "/dev/urandom")
    return (package, *(Path(each).resolve() for each in libraries), *map(Path, system))


# Beginnings of audit events that no honest answer causes. Each is refused and reported by name.
_REFUSED = (
    *("socket.", "subprocess.", "ctypes.", "shutil.", "gc.", "ftplib.", "urllib."),
    *("os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.kill"),
    *("os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate"),
    *("os.chmod", "os.chown", "os.chdir", "os.listdir", "os.scandir", "os.putenv", "os.killpg"),
    *("sys.settrace", "sys.setprofile", "sys._current_frames", "sys.addaudithook"),
    *("cpython.run_", "pty.", "signal.", "resource.", "code.__new__", "webbrowser."),
)
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def refuse_misuse(readable: Iterable[Path], closed: Path, report: Callable[[str], object]) -> None:
    """Refuse and report actions that no honest answer needs, by an audit hook.

    Python cannot remove an audit hook.

    Parameters
    ----------
    readable
        Files and folders that may be read.
    closed
        A folder inside them that may not be read.
    report
        Called with the name of each action that was refused.
    """
    beneath = tuple(f"{path}" for path in readable)

    def look(event: str, arguments: tuple[object, ...]) -> None:
        tried = ""
        if event == "open":
            tried = _misused_file(arguments, beneath, f"{closed}{os.sep}")
        elif event.startswith(_REFUSED):
            tried = event
        if tried:
            report(tried)  # before the raise: the answer may catch the error and go on
            raise PermissionError(f"{tried}: an answer may not do this")

    sys.addaudithook(look)


def _misused_file(arguments: tuple[object, ...], beneath: tuple[str, ...], closed: str) -> str:
    """Return what a refused ``open`` tried, or an empty text if it is allowed.

    Refused are every writing, and reading outside ``beneath`` or inside ``closed``.
    """
    path, mode, flags = arguments
    if isinstance(path, int):
        return ""
    name = os.path.realpath(os.fsdecode(path))  # type: ignore[arg-type]  # what open() takes
    writes = isinstance(mode, str) and not mode.startswith("r")
    if writes or (isinstance(flags, int) and flags & _WRITING):
        return f"write {Path(name).name}"
    inside = any(name == each or name.startswith(f"{each}{os.sep}") for each in beneath)
    return "" if inside and not name.startswith(closed) else f"read {Path(name).name}"
