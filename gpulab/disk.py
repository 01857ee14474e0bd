"""Write files whole or not at all, or line by line under a lock, and say what a disk refuses."""

import errno
import json
import os
import secrets
import socket
import stat
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import platformdirs
import psutil  # type: ignore[import-untyped]  # psutil ships no types

from gpulab.errors import FileInUseError, InvalidOptionError, NotSavedError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

__all__ = ["GrowingFile", "growing", "not_saved", "state_folder", "write_whole"]

FilePath = str | os.PathLike[str]

_ELSEWHERE = "give a file in a folder that you may write to"
_CURES = {
    errno.ENOSPC: "make room on the disk, or give a file on another one",
    errno.EDQUOT: "make room in your quota, or give a file on another disk",
    errno.EROFS: _ELSEWHERE,
    errno.EACCES: _ELSEWHERE,
    errno.EPERM: _ELSEWHERE,
}
# Windows has none of the first, and only Windows has the second.
_OPEN_FLAGS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_LOCK_BYTE = 2**40  # behind every file: Windows keeps others from reading what is locked
# A process locks first and writes its note then, and the note of one that was killed stays.
_N_READS, _READ_EVERY_S = 10, 0.02
_TAKEN = {errno.EACCES, errno.EAGAIN, errno.EDEADLK}


def not_saved(path: FilePath, error: OSError) -> NotSavedError:
    """Return the error that says what the disk refused, and what to do."""
    name = os.fspath(path) or "''"
    cure = _CURES.get(error.errno or 0, "give another file")
    return NotSavedError(f"{name} cannot be written: {error.strerror or error}; {cure}", error)


def write_whole(path: FilePath, content: bytes) -> None:
    """Write a file whole or not at all.

    Readers, and a crash at any moment, meet the old file or the new one and never half of one.
    The new file keeps mode and owner of the old one. A symbolic link stays, and the file that it
    leads to is replaced. Other names of that file (hard links) keep the old content.

    Raises
    ------
    NotSavedError
        If it cannot be written; the old file is as it was, and nothing is left beside it.
    """
    target = Path(os.path.realpath(path))
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
    if not os.access(target, os.W_OK):  # replacing would ask for no right to write to it
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return status


def _replace(target: Path, content: bytes, old: os.stat_result | None) -> None:
    # In the same folder, because only there a file can take the place of another at once.
    part = target.with_name(f".gpulab-{secrets.token_hex(8)}.part")
    mode = 0o666 if old is None else stat.S_IMODE(old.st_mode)
    try:
        # A file or a link that somebody put there makes this fail, so nothing else is written to.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _OPEN_FLAGS
        with open(os.open(part, flags, mode), "wb") as stream:  # noqa: PTH123  # a descriptor has no path
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())  # a full disk or quota is told here or at the end
        if old is not None:
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
    """A file that only this process writes to, line by line; see :func:`growing`."""

    def __init__(self, path: FilePath, handle: int) -> None:
        self.path = Path(path)
        self._handle = handle
        self._n_bytes = os.fstat(handle).st_size

    def read(self) -> bytes:
        """Return what the file contains."""
        os.lseek(self._handle, 0, os.SEEK_SET)
        with open(self._handle, "rb", closefd=False) as stream:
            return stream.read()

    def cut(self, n_bytes: int) -> None:
        """Keep the first bytes, and drop all others."""
        if n_bytes < self._n_bytes:
            with _refusals_of(self.path):
                os.ftruncate(self._handle, n_bytes)
            self._n_bytes = n_bytes

    def append(self, text: str) -> None:
        """Write a text behind all others, whole or not at all.

        When this returns, the text survives the end of this process.

        Raises
        ------
        NotSavedError
            If the disk refuses it.
        """
        content = text.encode()
        try:
            with _refusals_of(self.path):
                rest = memoryview(content)
                while rest:  # a disk takes what fits, and refuses the rest in the next call
                    rest = rest[os.write(self._handle, rest) :]
        finally:
            # Half a line would spoil the next one: after an interrupt points still come.
            self._keep_whole(len(content))

    def _keep_whole(self, n_bytes: int) -> None:
        """Count the bytes of an append, or take away those of one that was not finished."""
        if os.fstat(self._handle).st_size == self._n_bytes + n_bytes:
            self._n_bytes += n_bytes
            return
        with suppress(OSError):
            os.ftruncate(self._handle, self._n_bytes)

    def sync(self) -> None:
        """Wait until the disk has everything; some tell only now that they are full.

        Raises
        ------
        NotSavedError
            If the disk refuses.
        """
        with _refusals_of(self.path):
            os.fsync(self._handle)

    def close(self) -> None:
        """Close the file; what the disk has to say about it is told by :meth:`sync`."""
        handle, self._handle = self._handle, -1
        with suppress(OSError):
            os.close(handle)


@contextmanager
def _refusals_of(path: Path) -> Iterator[None]:
    """Turn what the system refuses into a sentence."""
    try:
        yield
    except OSError as error:
        raise not_saved(path, error) from error


# A fork has copies of all open files, and a lock lasts until the last copy is closed: workers
# that outlive a killed process would keep its lock.
_open_files: set[GrowingFile] = set()


def _close_all() -> None:
    while _open_files:
        _open_files.pop().close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_all)


@contextmanager
def growing(out: FilePath) -> Iterator[GrowingFile]:
    """Open a file to add lines to it, for this process alone.

    The lock is on the file itself, so that it holds by whatever name and for whichever user the
    second process opens it, leaves no other file behind, and ends with its process, however that
    dies. On a network file system the lock is as good as its server: one that knows no locks is
    told of in a warning, and one that keeps them on each machine alone cannot be recognised.

    Parameters
    ----------
    out
        The file, which is made if there is none. A symbolic link is followed.

    Raises
    ------
    FileInUseError
        If another process, or another block of this one, has it open; the message names it.
    InvalidOptionError
        If ``out`` cannot be such a file: a folder, a device, in a folder that does not exist.
    NotSavedError
        If the system does not let it be opened.
    """
    path = Path(out)
    try:
        _check_out(out)
        exists = path.exists()
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | _OPEN_FLAGS, 0o666)
    except OSError as error:
        raise not_saved(out, error) from error
    try:
        locked = _lock(path, handle)
        file = GrowingFile(path, handle)
    except BaseException:
        os.close(handle)
        raise
    _open_files.add(file)
    note = _note_of(handle)
    _write_note(note)
    try:
        yield file
    finally:
        _open_files.discard(file)
        _remove_note(note)
        _remove_if_new_and_empty(file, exists=exists)
        if locked:
            _unlock(handle)
        file.close()


def _check_out(out: FilePath) -> None:
    text, path = os.fspath(out), Path(out)
    if not text:
        raise InvalidOptionError("out=''; name a file, e.g. out='sweep.jsonl'")
    if path.is_dir():
        example = str(path / "sweep.jsonl")
        raise InvalidOptionError(
            f"out={text!r} is a folder; name a file in it, e.g. out={example!r}"
        )
    # Opening a pipe would wait for its other end.
    if path.exists() and not path.is_file():
        raise InvalidOptionError(f"out={text!r} is not an ordinary file; name another one")
    if not path.parent.is_dir():
        wrong = "is not a folder" if path.parent.exists() else "does not exist; make it"
        raise InvalidOptionError(f"out={text!r}, and the folder {str(path.parent)!r} {wrong}")


def _lock(path: Path, handle: int) -> bool:
    """Lock an open file for this process; return False where the file system knows no locks.

    Raises
    ------
    FileInUseError
        If another process has it.
    """
    try:
        if sys.platform == "win32":
            os.lseek(handle, _LOCK_BYTE, os.SEEK_SET)
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _TAKEN:
            raise FileInUseError(
                f"{path} is being written by {_holder(_note_of(handle))}; wait until it ends, "
                "stop it, or give another file"
            ) from error
        warnings.warn(
            f"{path} cannot be locked here ({error.strerror}): let no second process write to it",
            stacklevel=4,
        )
        return False
    return True


def _unlock(handle: int) -> None:
    if sys.platform == "win32":
        os.lseek(handle, _LOCK_BYTE, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)
    else:
        fcntl.flock(handle, fcntl.LOCK_UN)


def _note_of(handle: int) -> Path | None:
    """Return the file that names the process which has an open file; None without a place."""
    status = os.fstat(handle)
    with suppress(NotSavedError):
        return state_folder() / f"writer-{status.st_dev:x}-{status.st_ino:x}.json"
    return None


def _write_note(note: Path | None) -> None:
    # It serves a message only: the lock does without, and no disk is waited for.
    if note is not None:
        with suppress(OSError):
            note.write_text(json.dumps([socket.gethostname(), os.getpid()]))


def _remove_note(note: Path | None) -> None:
    if note is not None:
        with suppress(OSError):
            note.unlink()


def _holder(note: Path | None) -> str:
    """Return who has the file, in words."""
    for _ in range(_N_READS):
        host, pid = _read_note(note)
        if host == socket.gethostname() and psutil.pid_exists(pid):
            return f"process {pid}" + (", which is this one" if pid == os.getpid() else "")
        if host and host != socket.gethostname():
            return f"a process of {host}"
        time.sleep(_READ_EVERY_S)
    # Another user's, another machine's, or it was not quick enough.
    return "another process"


def _read_note(note: Path | None) -> tuple[str, int]:
    try:
        host, pid = json.loads(note.read_bytes()) if note else ("", 0)
        return str(host), int(pid)
    except (OSError, ValueError, TypeError):
        return "", 0


def _remove_if_new_and_empty(file: GrowingFile, *, exists: bool) -> None:
    """Leave no empty file behind where nothing could be written or was measured."""
    if not exists and not file.read():
        with suppress(OSError):
            file.path.unlink()


def state_folder() -> Path:
    """Return the folder for locks and notes, which only this user can write to.

    Raises
    ------
    NotSavedError
        If there can be none.
    """
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
    """Make the folder if it is missing, and return whether only this user can write to it."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.lstat()  # a link would lead to what somebody else chose
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
