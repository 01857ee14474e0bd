"""What saves a file saves it whole: on an error the old file stays, and a sentence says why."""

import ast
import errno
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import gpulab
from gpulab import explorers, recordings
from gpulab.core.errors import NotReadError, NotSavedError, SchemaVersionError
from tests.support.refusing import refusal
from tests.support.right_values import record
from tests.support.trees import nodes_of

PACKAGE = Path(gpulab.__file__).parent

SAVERS: dict[str, Callable[[Path], object]] = {
    "explorer.png": lambda path: explorers.roofline_explorer().save(path),
    "explorer.csv": lambda path: explorers.roofline_explorer().save(path),
    "machine.json": lambda path: explorers.machine_explorer().save(path),
    "measurement.json": lambda path: record("Measurement").save(path),
    "card.html": lambda path: record("Card").save(path),
    "card.json": lambda path: record("Card").save(path),
    "recording.jsonl": lambda path: recordings.save(record("Recording"), path),
    "recording.jsonl.gz": lambda path: recordings.save(record("Recording"), path),
    "timeline.json": lambda path: record("Timeline").to_chrome_trace(path),
}


def missing_folder(path: Path) -> Path:
    """Return a path in a folder that does not exist."""
    return path.parent / "none" / path.name


def folder_of_that_name(path: Path) -> Path:
    """Make a folder where the file should be."""
    path.mkdir()
    return path


def broken_link(path: Path) -> Path:
    """Make a link to a file in a folder that does not exist."""
    path.symlink_to(path.parent / "none" / path.name)
    return path


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        *((name, missing_folder) for name in SAVERS),
        ("measurement.json", folder_of_that_name),
        ("measurement.json", broken_link),
    ],
)
def test_a_place_that_takes_no_file_is_one_sentence(
    name: str, fault: Callable[[Path], Path], tmp_path: Path
) -> None:
    """A missing folder, a folder of that name or a broken link is our error; nothing is left."""
    path = fault(tmp_path / name)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(NotSavedError) as error:
        SAVERS[name](path)
    assert str(error.value).startswith(f"{path} cannot be written: ")
    assert "\n" not in str(error.value)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("name", SAVERS)
def test_a_full_disk_leaves_the_old_file(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that is full leaves the old file as it was, and no other file."""
    path = tmp_path / name
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", refusal(errno.ENOSPC))
    with pytest.raises(NotSavedError, match="No space left on device; make room on the disk"):
        SAVERS[name](path)
    assert path.read_bytes() == b"old"
    assert [*tmp_path.iterdir()] == [path]


def test_a_record_comes_back_from_its_file(tmp_path: Path) -> None:
    """What was saved is loaded, equal, from a file with the name as a text or a path."""
    saved = record("Measurement")
    path = saved.save(str(tmp_path / "base.json"))
    assert gpulab.Measurement.load(path) == gpulab.Measurement.load(str(path)) == saved


@pytest.mark.parametrize(
    ("content", "kind", "message"),
    [
        (None, NotReadError, "there is no file {path}; check the name, or save one first"),
        (
            "folder",
            NotReadError,
            "{path} is a folder; name the file in it: save one first: record.save('base.json')",
        ),
        ('{"schema": "gpulab.measurement/0"}', SchemaVersionError, "{path}: the saved data have"),
        ("{", SchemaVersionError, "{path}: the saved data are not a whole 'gpulab.measurement/1'"),
        ("\udcff", SchemaVersionError, "{path}: it is not text"),
    ],
)
def test_files_that_cannot_be_loaded_are_told_apart(
    content: str | None, kind: type[Exception], message: str, tmp_path: Path
) -> None:
    """A lost file, a folder, an older schema and a damaged file each have their sentence."""
    path = tmp_path / "base.json"
    if content == "folder":
        path.mkdir()
    elif content is not None:
        path.write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(kind) as error:
        gpulab.Measurement.load(path)
    assert str(error.value).startswith(message.format(path=path))
    assert "\n" not in str(error.value)


def test_a_trace_of_the_profiler_is_written_whole(tmp_path: Path) -> None:
    """The virtual GPU's profiler saves as everything else does."""
    import torch

    with gpulab.virtual_gpu("H200", first_use=False), torch.profiler.profile() as profiler:
        torch.ones(4, device="cuda").sum()
    with pytest.raises(NotSavedError, match="cannot be written: No such file"):
        profiler.export_chrome_trace(str(tmp_path / "none" / "trace.json"))
    profiler.export_chrome_trace(str(tmp_path / "trace.json"))
    assert json.loads((tmp_path / "trace.json").read_text("utf-8"))["traceEvents"]


def test_only_the_module_disk_opens_files_to_write() -> None:
    """No other module opens a file to write, or lets a library do it by the file's name."""
    modules = [path for path in PACKAGE.rglob("*.py") if path.name != "disk.py"]
    writers = [
        f"{path.relative_to(PACKAGE)}:{call.lineno}: {ast.unparse(call)}"
        for path in modules
        for call in calls_that_write(path)
    ]
    assert not writers, "\n".join(writers)


def calls_that_write(path: Path) -> Iterator[ast.Call]:
    """Yield the calls in a module that would write to a file by its name."""
    text = path.read_text("utf-8")
    for node in nodes_of(path):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
        target = ast.unparse(node.args[0]) if node.args else ""
        if (
            name in {"write_text", "write_bytes"}
            or (
                name in {"savefig", "to_csv"} and target and f"{target} = io.BytesIO()" not in text
            )
            or (name == "open" and any(map(is_mode_to_write, ast.walk(node))))
        ):
            yield node


def is_mode_to_write(node: ast.AST) -> bool:
    """Return whether a part of a call is a mode such as "wb"."""
    mode = node.value if isinstance(node, ast.Constant) else None
    return isinstance(mode, str) and set(mode) <= set("rwaxbt+") and bool(set(mode) & set("wax+"))
