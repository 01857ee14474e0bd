"""Files are written whole, only one process appends to a file, and disk errors say why."""

import errno
import io
import os
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import platformdirs
import pytest

from gpulab.core import disk
from gpulab.core.errors import FileInUseError, InvalidOptionError, NotSavedError
from tests.support.refusing import halting, refusal

ROOT = Path(__file__).parents[2]
posix = pytest.mark.skipif(os.name == "nt", reason="Windows has neither modes nor pipes as files")


@pytest.fixture(autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Replace the user's own folder by a temporary one."""
    folder = tmp_path_factory.mktemp("home") / "state" / "gpulab"
    monkeypatch.setattr(platformdirs, "user_state_path", lambda *_, **__: folder)
    return folder


@pytest.fixture
def _umask() -> Iterator[None]:
    """Create new files so that only their owner can read them."""
    before = os.umask(0o077)
    yield
    os.umask(before)


# Whole files


def mode_of(path: Path) -> int:
    """Return the permissions of a file."""
    return stat.S_IMODE(path.stat().st_mode)


@posix
@pytest.mark.usefixtures("_umask")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o755])
def test_a_file_keeps_its_mode(tmp_path: Path, mode: int) -> None:
    """The new file can be read and written by the same users as the old one."""
    path = tmp_path / "found.json"
    path.write_text("old")
    path.chmod(mode)
    disk.write_whole(path, b"new")
    assert (path.read_text(), mode_of(path)) == ("new", mode)


@posix
@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_and_its_target_is_written(tmp_path: Path, *, there: bool) -> None:
    """If the path is a symbolic link, its target is written, whether it exists yet or not."""
    (tmp_path / "elsewhere").mkdir()
    target, link = tmp_path / "elsewhere" / "found.json", tmp_path / "link.json"
    link.symlink_to(Path("elsewhere") / "found.json")
    if there:
        target.write_text("old")
    disk.write_whole(link, b"new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert len(list(tmp_path.rglob("*"))) == 3


class Refusing(io.FileIO):
    """A file with one method that fails."""

    def __init__(self, handle: int, at: str, error: OSError) -> None:
        super().__init__(handle, "wb")
        self.at, self.error = at, error

    def write(self, content: Any) -> int:  # noqa: ANN401  # as the original
        """Write half, or fail."""
        super().write(content[: len(content) // 2])
        if self.at == "write":
            raise self.error
        return len(content)

    def close(self) -> None:
        """Close, and fail."""
        was_open = not self.closed
        super().close()
        if was_open and self.at == "close":
            raise self.error


REASONS = [errno.ENOSPC, errno.EROFS, errno.EDQUOT, errno.EIO]
CURES = {
    errno.ENOSPC: "make room on the disk, or give a file on another one",
    errno.EROFS: "give a file in a folder that you may write to",
    errno.EDQUOT: "make room in your quota, or give a file on another disk",
    errno.EIO: "give another file",
}


@pytest.mark.parametrize("number", REASONS)
@pytest.mark.parametrize("at", ["open", "write", "fsync", "close", "replace"])
@pytest.mark.parametrize("there", [True, False])
def test_a_refused_file_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, at: str, *, there: bool
) -> None:
    """Wherever the disk fails, the old file is unchanged and the error has reason and cure."""
    path = tmp_path / "found.json"
    if there:
        path.write_text("old")
    before = sorted(tmp_path.iterdir())
    if at in {"write", "close"}:
        error = OSError(number, os.strerror(number))
        monkeypatch.setattr(
            disk, "open", lambda handle, _mode: Refusing(handle, at, error), raising=False
        )
    else:
        owner = Path if at == "replace" else os
        monkeypatch.setattr(owner, at, refusal(number))
    with pytest.raises(NotSavedError) as caught:
        disk.write_whole(path, b"new content")
    monkeypatch.undo()
    assert str(caught.value) == (
        f"{path} cannot be written: {os.strerror(number)}; {CURES[number]}"
    )
    assert caught.value.errno == number
    assert sorted(tmp_path.iterdir()) == before
    assert not there or path.read_text() == "old"


@posix
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "it is a folder; give another file"),
        ("pipe", "it is not an ordinary file; give another file"),
        ("none/x.json", "No such file or directory; give another file"),
    ],
)
def test_what_cannot_be_replaced_is_told(tmp_path: Path, name: str, reason: str) -> None:
    """A folder or a pipe is not replaced, no folder is created, and the error says why."""
    os.mkfifo(tmp_path / "pipe")
    path = tmp_path / name
    with pytest.raises(NotSavedError) as error:
        disk.write_whole(path, b"new")
    assert str(error.value) == f"{path} cannot be written: {reason}"
    assert [entry.name for entry in tmp_path.iterdir()] == ["pipe"]


# Files that grow


def held_by(code: str, path: Path) -> subprocess.Popen[str]:
    """Start a process that opens the file and runs the code; return when the file is open."""
    program = f"""
import os, sys, time
import platformdirs
from pathlib import Path
platformdirs.user_state_path = lambda *_, **__: Path({str(disk.state_folder())!r})
from gpulab.core.disk import growing
with growing(sys.argv[1]) as file:
    file.append("first\\n")
    {code}
"""
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert process.stdout is not None
    process.stdout.readline()
    return process


HOLD = "print(flush=True); sys.stdin.read()"


@pytest.mark.parametrize("by", ["name", "link"])
def test_a_second_process_is_refused_by_name(tmp_path: Path, by: str) -> None:
    """The error names the file, the process that has it and what to do; nothing changes."""
    path = tmp_path / "sweep.jsonl"
    asked = path
    if by == "link":
        asked = tmp_path / "link.jsonl"
        asked.symlink_to(path)
    with held_by(HOLD, path) as holder:
        with pytest.raises(FileInUseError) as error, disk.growing(asked):
            pass
        assert path.read_text() == "first\n"
        holder.communicate()
    assert str(error.value) == (
        f"{asked} is being written by process {holder.pid}; wait until it ends, stop it, or give "
        "another file"
    )
    with disk.growing(asked) as file:
        assert file.read() == b"first\n"


@posix
def test_a_fork_does_not_keep_the_lock(tmp_path: Path) -> None:
    """A forked worker that outlives its killed parent does not keep the lock of a file."""
    path, pid = tmp_path / "sweep.jsonl", tmp_path / "pid"
    fork = f"""
    pid = os.fork()
    if not pid:
        Path({str(pid)!r}).write_text(str(os.getpid()))
        print(flush=True); time.sleep(600)
    time.sleep(600)"""
    with held_by(fork, path) as holder:
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        try:
            with disk.growing(path):
                os.kill(int(pid.read_text()), 0)  # it is there
        finally:
            os.kill(int(pid.read_text()), signal.SIGKILL)


@posix
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "out=''; name a file, e.g. out='sweep.jsonl'"),
        (
            "{folder}",
            "out='{folder}' is a folder; name a file in it, e.g. out='{folder}/sweep.jsonl'",
        ),
        ("{folder}/pipe", "out='{folder}/pipe' is not an ordinary file; name another one"),
        (os.devnull, f"out='{os.devnull}' is not an ordinary file; name another one"),
        (
            "{folder}/none/x",
            "out='{folder}/none/x', and the folder '{folder}/none' does not exist; make it",
        ),
        (
            "{folder}/file/x",
            "out='{folder}/file/x', and the folder '{folder}/file' is not a folder",
        ),
    ],
)
def test_what_is_no_file_to_add_to_is_refused(tmp_path: Path, name: str, message: str) -> None:
    """A path that is no ordinary file is refused at once, with the value and what to give."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_text("text")
    name, message = (text.replace("{folder}", str(tmp_path)) for text in (name, message))
    with pytest.raises(InvalidOptionError) as error:
        disk.growing(name).__enter__()
    assert str(error.value) == message
    assert (tmp_path / "file").read_text() == "text"


@pytest.mark.parametrize("n_bytes", [0, 3, 6])
def test_half_a_line_is_taken_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_bytes: int
) -> None:
    """If a write fails in the middle of a line, that line is removed."""
    path = tmp_path / "sweep.jsonl"
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with disk.growing(path) as file:
        file.append("first\n")
        monkeypatch.setattr(os, "write", halting(n_bytes, full))
        with pytest.raises(NotSavedError):
            file.append("second\n")
        monkeypatch.undo()
        assert path.read_text() == "first\n"
        file.append("third\n")
    assert path.read_text() == "first\nthird\n"


@posix
def test_a_disk_without_locks_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sweep runs, and a warning says that the file is not locked."""
    path = tmp_path / "sweep.jsonl"
    monkeypatch.setattr(disk.fcntl, "flock", refusal(errno.ENOLCK))
    with (
        pytest.warns(UserWarning, match=r"cannot be locked here \(No locks available\): do not"),
        disk.growing(path) as file,
    ):
        file.append("first\n")
    assert path.read_text() == "first\n"


# The user's own folder


@posix
def test_the_users_own_folder_is_made_once(own_state: Path) -> None:
    """The usual folder is made with those around it, for this user alone, and used again."""
    assert [disk.state_folder() for _ in range(2)] == [own_state] * 2
    assert mode_of(own_state) == 0o700


@posix
@pytest.mark.parametrize("what", ["file", "link", "open to others", "not absolute"])
def test_a_folder_of_somebody_else_is_not_used(
    own_state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """If the usual folder cannot be private, a private one among the temporary files is used."""
    own_state.parent.mkdir()
    if what == "file":
        own_state.write_text("")
    elif what == "link":
        own_state.symlink_to(tmp_path)
    elif what == "open to others":
        own_state.mkdir()
        own_state.chmod(0o777)
    else:
        monkeypatch.setattr(platformdirs, "user_state_path", lambda *_, **__: Path("~/state"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = disk.state_folder()
    assert folder == tmp_path / f"gpulab-{os.getuid()}"
    assert mode_of(folder) == 0o700
