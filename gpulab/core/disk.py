"""Write files completely or not at all, or line by line under a lock, with errors that say why."""

import errno
import os
import secrets
import stat
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import platformdirs
import psutil  # type: ignore[import-untyped]  # psutil ships no types

from gpulab.core import interrupts
from gpulab.core.errors import FileInUseError, InvalidOptionError, NotReadError, NotSavedError
from gpulab.core.foreign_text import one_line

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

__all__ = ["GrowingFile", "growing", "not_read", "not_saved", "state_folder", "write_whole"]

FilePath = str | os.PathLike[str]

_ELSEWHERE = "give a file in a folder that you may write to"
_CURES = {
    errno.ENOSPC: "make room on the disk, or give a file on another one",
    errno.EDQUOT: "make room in your quota, or give a file on another disk",
    errno.EROFS: _ELSEWHERE,
    errno.EACCES: _ELSEWHERE,
    errno.EPERM: _ELSEWHERE,
}
# O_CLOEXEC exists everywhere but on Windows, O_BINARY on Windows only.
_OPEN_FLAGS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
# On Windows a locked byte cannot be read by others, so the lock is on a byte after every file's
# end.
_LOCK_BYTE = 2**40
_TAKEN = {errno.EACCES, errno.EAGAIN, errno.EDEADLK}


def not_saved(path: FilePath, error: OSError) -> NotSavedError:
    """Return an error that says what the disk refused, and what to do."""
    name = os.fspath(path) or "''"
    cure = _CURES.get(error.errno or 0, "give another file")
    return NotSavedError(f"{name} cannot be written: {error.strerror or error}; {cure}", error)


def not_read(path: FilePath, error: OSError, cure: str) -> NotReadError:
    """Return an error that says why a file cannot be read; ``cure`` says what to do."""
    name, folder = one_line(os.fspath(path)), one_line(str(Path.cwd()))
    if isinstance(error, FileNotFoundError):
        where = "" if Path(path).is_absolute() else f" in {folder}"
        return NotReadError(f"there is no file {name}{where}; check the name, or {cure}")
    # Windows refuses to open a folder without saying that it is one.
    if isinstance(error, IsADirectoryError | PermissionError) and Path(path).is_dir():
        return NotReadError(f"{name} is a folder; name the file in it: {cure}")
    return NotReadError(f"{name} cannot be read: {error.strerror or error}; {cure}")


def write_whole(path: FilePath, content: bytes) -> None:
    """Write a file completely or not at all.

    At any moment, even after a crash, the file has its old content or its new one, and never a
    part. The new file gets the mode and the owner of the old one. If ``path`` is a symbolic link,
    the link stays and the file that it points to is replaced. Hard links keep the old content.

    Raises `NotSavedError` if it cannot be written; the old file is then unchanged, and no other
    file is left.
    """
    # A rename onto a link would replace the link, and not the file that it points to.
    target = Path(os.path.realpath(path))
    with interrupts.ExitStack():  # so that Ctrl-C leaves neither a part nor an open file
        try:
            _replace(target, content, _status_to_keep(target))
        except OSError as error:
            raise not_saved(path, error) from error


def _status_to_keep(target: Path) -> os.stat_result | None:
    """Return the status of the file that will be replaced; None if there is none."""
    try:
        status = target.stat()
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder")
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is not an ordinary file")
    if not os.access(target, os.W_OK):  # a rename would replace even a read-only file
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return status


@interrupts.step
def _replace(target: Path, content: bytes, old: os.stat_result | None) -> None:
    # In the same folder: a rename is atomic only within one file system.
    part = target.with_name(f".gpulab-{secrets.token_hex(8)}.part")
    mode = 0o666 if old is None else stat.S_IMODE(old.st_mode)
    try:
        # O_EXCL fails if somebody put a file or a link there, so we never write through it.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _OPEN_FLAGS
        with open(os.open(part, flags, mode), "wb") as stream:  # noqa: PTH123  # a descriptor has no path
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())  # some file systems report a full disk or quota only here
        if old is not None:
            # Before the rename, so that the file never has its name with the wrong owner or mode.
            _keep_owner_and_mode(part, old)
        part.replace(target)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise


def _keep_owner_and_mode(part: Path, old: os.stat_result) -> None:
    if hasattr(os, "chown"):
        with suppress(PermissionError):  # only an administrator may give files away
            os.chown(part, old.st_uid, old.st_gid)
    part.chmod(stat.S_IMODE(old.st_mode))


class GrowingFile:
    """A file that only this process writes to, line by line; :func:`growing` opens one."""

    def __init__(self, path: FilePath, handle: int) -> None:
        self.path = Path(path)
        self.handle = handle
        self._n_bytes = os.fstat(handle).st_size
        _open_files.add(self)

    def read(self) -> bytes:
        """Return what the file contains."""
        os.lseek(self.handle, 0, os.SEEK_SET)
        with open(self.handle, "rb", closefd=False) as stream:
            return stream.read()

    def cut(self, n_bytes: int) -> None:
        """Keep the first ``n_bytes`` and drop the rest."""
        if n_bytes < self._n_bytes:
            try:
                os.ftruncate(self.handle, n_bytes)
            except OSError as error:
                raise not_saved(self.path, error) from error
            self._n_bytes = n_bytes

    @interrupts.step
    def append(self, text: str) -> None:
        """Add a text at the end, completely or not at all.

        When this returns, the text survives the end of this process.

        Raises `NotSavedError` if the disk refuses it.
        """
        content = text.encode()
        rest = memoryview(content)
        try:
            while rest:  # a full disk writes a part, and fails at the next call
                rest = rest[os.write(self.handle, rest) :]
        except OSError as error:
            with suppress(OSError):  # half a line would spoil the next one
                os.ftruncate(self.handle, self._n_bytes)
            raise not_saved(self.path, error) from error
        self._n_bytes += len(content)

    def sync(self) -> None:
        """Wait until everything is on the disk; some disks say only now that they are full."""
        try:
            os.fsync(self.handle)
        except OSError as error:
            raise not_saved(self.path, error) from error

    def close(self) -> None:
        """Close the file; call :meth:`sync` before, because errors are ignored here."""
        _open_files.discard(self)
        handle, self.handle = self.handle, -1
        with suppress(OSError):
            os.close(handle)

    def is_same_as(self, other: "GrowingFile") -> bool:
        """Return whether both have the same file open, under whatever names."""
        return os.path.samestat(os.fstat(self.handle), os.fstat(other.handle))


# A forked process has copies of all open files, and a lock lasts until the last copy is closed.
# Without this, workers that outlive a killed process would still have its lock.
_open_files: set[GrowingFile] = set()


def _close_all() -> None:
    while _open_files:
        _open_files.pop().close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_all)


@interrupts.contextmanager
def growing(out: FilePath) -> Iterator[GrowingFile]:
    r"""Open a file to add lines to it, locked against every other process.

    The lock is on the file itself. So it works whichever name or user a second process opens the
    file by, it leaves no other file behind, and it ends with this process even if that is killed.
    On a network file system the lock depends on the server. A warning says if the server has no
    locks; a server whose locks hold on one machine only cannot be recognised.

    The file is created if it does not exist, and a symbolic link is followed. Raises
    `FileInUseError`, which names the process, if it is open elsewhere, also in another ``with``
    block of this process; `InvalidOptionError` for a folder, a device or a missing folder; and
    `NotSavedError` if the system refuses to open it.
    """
    path = Path(out)
    try:
        _check_out(out)
        exists = path.exists()
        # O_APPEND: read() moves the position of the handle, and each write must still go to the
        # end.
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | _OPEN_FLAGS, 0o666)
    except OSError as error:
        raise not_saved(out, error) from error
    with closing(GrowingFile(path, handle)) as file:
        locked = _lock(file)
        try:
            yield file
        finally:
            if not exists and not file.read():
                with suppress(OSError):
                    path.unlink()
            if locked:  # to close it is not enough while a program that is starting has a copy
                _unlock(file)


def _check_out(out: FilePath) -> None:
    text, path = os.fspath(out), Path(out)
    if not text:
        raise InvalidOptionError("out=''; name a file, e.g. out='sweep.jsonl'")
    if path.is_dir():
        example = str(path / "sweep.jsonl")
        raise InvalidOptionError(
            f"out={text!r} is a folder; name a file in it, e.g. out={example!r}"
        )
    # Checked before opening: to open a named pipe would wait for its other end.
    if path.exists() and not path.is_file():
        raise InvalidOptionError(f"out={text!r} is not an ordinary file; name another one")
    if not path.parent.is_dir():
        wrong = "is not a folder" if path.parent.exists() else "does not exist; make it"
        raise InvalidOptionError(f"out={text!r}, and the folder {str(path.parent)!r} {wrong}")


def _lock(file: GrowingFile) -> bool:
    """Lock an open file, or raise `FileInUseError`; return False if its disk has no locks."""
    try:
        if sys.platform == "win32":
            os.lseek(file.handle, _LOCK_BYTE, os.SEEK_SET)
            msvcrt.locking(file.handle, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(file.handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _TAKEN:
            raise FileInUseError(
                f"{file.path} is being written by {_writer_of(file)}; wait until it ends, stop "
                "it, or give another file"
            ) from error
        warnings.warn(
            f"{file.path} cannot be locked here ({error.strerror}): "
            "do not write to it from a second process",
            stacklevel=4,
        )
        return False
    return True


def _unlock(file: GrowingFile) -> None:
    if sys.platform == "win32":
        os.lseek(file.handle, _LOCK_BYTE, os.SEEK_SET)
        msvcrt.locking(file.handle, msvcrt.LK_UNLCK, 1)
    else:
        fcntl.flock(file.handle, fcntl.LOCK_UN)


def _writer_of(file: GrowingFile) -> str:
    """Return a description of the process that has locked a file, for a message."""
    if any(other is not file and other.is_same_as(file) for other in list(_open_files)):
        return f"process {os.getpid()}, which is this one"
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):  # a process of another user, or one that has ended
            # Only Linux says how a file was opened; elsewhere a reader of it may be named.
            paths = [opened.path for opened in process.open_files() if _adds_to(opened)]
            if process.pid != os.getpid() and any(map(file.path.samefile, paths)):
                return f"process {process.pid}"
    return "another process"


def _adds_to(opened: object) -> bool:
    return getattr(opened, "mode", "a+") == "a+"


def state_folder() -> Path:
    """Return the folder for locks and notes, which only this user can write to."""
    user = os.getuid() if hasattr(os, "getuid") else "user"
    usual = platformdirs.user_state_path("gpulab", appauthor=False)
    # In a container the user may have no home, or one that is read-only.
    for folder in (usual, Path(tempfile.gettempdir()) / f"gpulab-{user}"):
        if folder.is_absolute() and _is_own(folder):
            return folder
    raise NotSavedError(
        f"there is no folder for locks: neither {usual} nor one in {tempfile.gettempdir()} can "
        "be made for this user alone; name a home that you may write to: HOME=..."
    )


def _is_own(folder: Path) -> bool:
    """Create the folder if it is missing, and return whether only this user can write to it."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.lstat()  # lstat: a link could point to a folder of somebody else
    except OSError:
        return False
    if not hasattr(os, "getuid"):  # Windows gives each user a folder of his own
        return True
    others = stat.S_IWGRP | stat.S_IWOTH
    return (
        stat.S_ISDIR(status.st_mode)
        and status.st_uid == os.getuid()
        and not status.st_mode & others
        and os.access(folder, os.W_OK)
    )
