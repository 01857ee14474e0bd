"""Recordings: found by name, read from files, refused with a reason, compared by task."""

import gzip
import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import gpulab
from gpulab.core.errors import (
    GpulabError,
    InvalidOptionError,
    NotComparableError,
    RecordingError,
    SchemaVersionError,
    UnknownNameError,
)
from gpulab.workloads.recordings import Recording, _recording
from gpulab.workloads.sweeps import Point, Sweep, Task

PACKED = Path(gpulab.__file__).parent / "data" / "recordings"
MOST_BYTES = 2_000_000
ABOUT = {
    "gpu": "NVIDIA H200",
    "cpu": "A CPU",
    "driver": "580.1",
    "torch": "2.11.0",
    "source": "measured",
    "taken_at": "2026-11-20T10:00:00+00:00",
}
AGAIN = "take the original again, or make a new one: gpulab record --out FILE"


def point(median_s: float = 2e-6, *, half_s: float = 0.0, **task: object) -> Point:
    """Return a point of an addition, unless `task` says otherwise."""
    return Point(
        Task(**{"workload": "add", "size": 1024, **task}),
        median_s=median_s,
        low_s=median_s - half_s,
        high_s=median_s + half_s,
        n_samples=10,
        device_name="NVIDIA H200",
    )


def recording(*points: Point, source: str = "measured", name: str = "mine") -> Recording:
    """Return a recording with one section."""
    about = {**ABOUT, "source": source}
    return Recording(name, about, points, {"ceilings": ({"quantity": "memory", "value": 4.3e12},)})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the file of a recording with two points."""
    return _recording.save(recording(point(), point(3e-6, size=4096)), tmp_path / "mine.jsonl")


def lines_of(path: Path) -> list[str]:
    """Return the lines of a file."""
    return path.read_text("utf-8").splitlines()


@pytest.mark.slow
def test_all_that_is_shipped_loads_and_is_small() -> None:
    """All shipped files load as recordings of real GPUs and are below 2 MB together."""
    packed = sorted(PACKED.glob("*")) if PACKED.is_dir() else []
    names = tuple(file.name.removesuffix(".jsonl.gz") for file in packed)
    assert _recording.list() == names
    assert sum(file.stat().st_size for file in packed) < MOST_BYTES
    for name in names:
        assert _recording.load(name).name == name
        assert _recording.load(name).provenance["source"] == "recorded"


@pytest.mark.parametrize("name", ["mine.jsonl", "mine.jsonl.gz"])
def test_what_was_saved_is_loaded(tmp_path: Path, name: str) -> None:
    """Points and sections survive saving, and measured points become recorded."""
    saved = recording(point(), point(3e-6, on="cpu", n_threads=2))
    path = _recording.save(saved, tmp_path / name)
    loaded = _recording.load(path)
    assert loaded.points == tuple(replace(point, source="recorded") for point in saved.points)
    assert loaded.sections == saved.sections
    assert dict(loaded.provenance) == {**ABOUT, "source": "recorded"}
    assert loaded.name == str(path)
    assert _recording.load(str(path)).points == loaded.points


def test_virtual_stays_virtual(tmp_path: Path) -> None:
    """A virtual GPU's times are never called recorded."""
    computed = recording(replace(point(), source="virtual"), source="virtual")
    loaded = _recording.load(_recording.save(computed, tmp_path / "v.jsonl"))
    assert loaded.is_virtual
    assert loaded.points[0].source == "virtual"


def test_digits_are_thinned(tmp_path: Path) -> None:
    """Times are rounded to the given digits, and whole numbers are not."""
    long = replace(
        recording(point(1.23456789e-6, size=123_456_789)),
        sections={"x": ({"value": 9.87654321, "count": 987_654_321, "parts": [1.23456789]},)},
    )
    loaded = _recording.load(_recording.save(long, tmp_path / "a.jsonl", digits=3))
    assert loaded.points[0].median_s == 1.23e-6
    assert loaded.points[0].task.size == 123_456_789
    assert loaded.sections["x"] == ({"value": 9.88, "count": 987_654_321, "parts": [1.23]},)
    with pytest.raises(InvalidOptionError) as error:
        _recording.save(long, tmp_path / "a.jsonl", digits=0)
    assert str(error.value) == (
        "digits=0; it must be a whole number from 1 to 17, as many digits as a float has, or None"
    )


def test_what_json_does_not_know_is_not_written(tmp_path: Path) -> None:
    """A NaN is refused when writing, because other JSON readers would fail."""
    bad = replace(recording(point()), sections={"x": ({"value": float("nan")},)})
    with pytest.raises(ValueError, match="not JSON compliant"):
        _recording.save(bad, tmp_path / "a.jsonl")
    assert not list(tmp_path.iterdir())


def test_tables() -> None:
    """Points and sections are tables, and a missing section is refused with the names."""
    mine = recording(point(), point(3e-6, size=4096))
    assert list(mine.frame()["median_s"]) == [2e-6, 3e-6]
    assert mine.section("ceilings").to_dict("records") == [{"quantity": "memory", "value": 4.3e12}]
    with pytest.raises(UnknownNameError) as error:
        mine.section("ceiling")
    assert str(error.value) == (
        "unknown section of mine 'ceiling'; did you mean 'ceilings'? Known: ceilings"
    )


def test_a_recording_says_what_it_is() -> None:
    """The text is one line with machine, date, versions and content."""
    failed = Point(Task("sort", 4), error="out of memory")
    assert str(recording(point(), failed)) == (
        "mine: NVIDIA H200 and A CPU; recorded 2026-11-20 with torch 2.11.0, driver 580.1; "
        "1 points of 1 workloads, 1 failed; sections ceilings"
    )
    virtual = replace(recording(point(), source="virtual"), sections={})
    assert str(virtual) == (
        "mine: virtual NVIDIA H200 and A CPU; recorded 2026-11-20 with torch 2.11.0, "
        "driver 580.1; 1 points of 1 workloads"
    )


def test_the_later_of_two_points_of_a_task_counts(path: Path) -> None:
    """Of two points of one task, as after a failure, the later one counts."""
    lines = [*lines_of(path)[:-1], json.dumps(point(9e-6).to_dict())]
    path.write_text("\n".join([*lines, ""]), "utf-8")
    loaded = _recording.load(path, unfinished=True)
    assert [(p.task.size, p.median_s) for p in loaded.points] == [(1024, 9e-6), (4096, 3e-6)]


def test_the_checksum_is_over_all_bytes_before_it(path: Path) -> None:
    """The checksum is the SHA-256 of all bytes before it, which any tool can compute."""
    *lines, last = path.read_bytes().splitlines(keepends=True)
    digest = hashlib.sha256(b"".join(lines)).hexdigest()
    assert json.loads(last) == {"checksum": f"sha256:{digest}", "n_lines": 4}


def _drop_last_line(text: str) -> str:
    return text[: text.rstrip("\n").rfind("\n") + 1]


def _drop_second_line(text: str) -> str:
    first, _, rest = text.split("\n", 2)
    return f"{first}\n{rest}"


UNFINISHED = "has no checksum in its last line: the recording was not finished"
# What happens to the text of a file, the error, and a part of its message.
REFUSED: dict[str, tuple[Callable[[str], str], type[GpulabError], str]] = {
    "empty": (lambda _text: "", RecordingError, "is not a recording: it is empty; make one: "),
    "another text": (lambda _text: "size,time\n1,2\n", RecordingError, "is not a recording: "),
    "a measurement": (
        lambda _text: '{"schema": "gpulab.measurement/1"}\n',
        RecordingError,
        "is not a recording: it has the schema 'gpulab.measurement/1'",
    ),
    "newer": (
        lambda text: text.replace("gpulab.sweep/1", "gpulab.sweep/2"),
        SchemaVersionError,
        "has the schema 'gpulab.sweep/2' and this version of gpulab reads 'gpulab.sweep/1'",
    ),
    "without provenance": (
        lambda text: text.replace('"provenance"', '"origin"'),
        RecordingError,
        "is damaged: its header has no provenance; " + AGAIN,
    ),
    "another source": (
        lambda text: text.replace('"source": "measured"', '"source": "virtuam"', 1),
        RecordingError,
        "its header has the source 'virtuam', and it must be one of measured, recorded, virtual",
    ),
    "edited": (
        lambda text: text.replace('"median_s": 2e-06', '"median_s": 1e-06'),
        RecordingError,
        "was edited or damaged: its content does not fit its checksum; " + AGAIN,
    ),
    "lines missing": (
        _drop_second_line,
        RecordingError,
        "was edited or damaged: it has 3 lines, and its checksum counts 4; " + AGAIN,
    ),
    "added to": (
        lambda text: text + '{"section": "more", "rows": []}\n',
        RecordingError,
        "was edited: something stands behind its checksum; " + AGAIN,
    ),
    "unfinished": (_drop_last_line, RecordingError, UNFINISHED),
    "cut off": (lambda text: text[:-40], RecordingError, UNFINISHED),
}


@pytest.mark.parametrize("how", REFUSED)
def test_what_is_not_as_it_was_made_is_refused(path: Path, how: str) -> None:
    """Each kind of damaged file is refused with its reason and what to do."""
    change, kind, message = REFUSED[how]
    path.write_text(change(path.read_text("utf-8")), "utf-8")
    with pytest.raises(kind) as error:
        _recording.load(path)
    assert str(error.value).startswith(f"{path} ")
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "it is not JSON (Expecting property name enclosed in double quotes: line 1"),
        ("[1]", "it is not a JSON object"),
        ('{"a": 1}', "it is neither a point nor a section"),
        ('{"section": "clocks", "rows": [1]}', "it is a section without rows"),
        ('{"task": 1e400}', "it has the number 1e400, which is not finite or beyond 64 bits"),
    ],
)
def test_a_bad_line_is_named(path: Path, line: str, reason: str) -> None:
    """Without a checksum, the error names the line that cannot be read, and why."""
    path.write_text("\n".join([lines_of(path)[0], line, ""]), "utf-8")
    with pytest.raises(RecordingError) as error:
        _recording.load(path, unfinished=True)
    assert str(error.value).startswith(f"{path}, line 2, is damaged: {reason}")
    assert str(error.value).endswith(AGAIN)


def test_an_unfinished_file_is_read_up_to_its_last_whole_line(path: Path) -> None:
    """An unfinished file loses only the line that was being written."""
    header, first, second, *_ = lines_of(path)
    path.write_text("\n".join([header, first, second[:50]]), "utf-8")
    loaded = _recording.load(path, unfinished=True)
    assert [point.task.size for point in loaded.points] == [1024]


def test_damaged_archives_are_refused(tmp_path: Path) -> None:
    """A truncated gzip file and one with other content are refused."""
    path = _recording.save(recording(point()), tmp_path / "a.jsonl.gz")
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(RecordingError) as error:
        _recording.load(path)
    assert str(error.value).startswith(f"{path} cannot be read: it does not unpack (")
    assert str(error.value).endswith(AGAIN)
    path.write_bytes(gzip.compress(b"\xff\xfe\xfa"))
    with pytest.raises(RecordingError) as error:
        _recording.load(path)
    assert (
        str(error.value) == f"{path} cannot be read: it is UTF-16 text, and must be UTF-8; {AGAIN}"
    )


def test_ratios_have_intervals() -> None:
    """The ratio is second over first, and relative errors add in squares."""
    a = recording(point(2e-6, half_s=0.0), point(4e-6, size=4096), point(1e-6, size=16))
    b = recording(point(4e-6, half_s=1e-7), point(4e-6, size=4096), point(1e-6, size=64))
    table = _recording.compare(a, b)
    assert list(table["size"]) == [1024, 4096]
    assert list(table["ratio"]) == [2.0, 1.0]
    assert table["low"][0] == pytest.approx(3.9 / 2, rel=1e-12)
    assert table["high"][0] == pytest.approx(4.1 / 2, rel=1e-12)
    assert list(table["verdict"]) == ["b longer", "no difference seen"]
    assert table.attrs == {"a": "mine", "b": "mine", "only_in_a": 1, "only_in_b": 1}


def test_an_interval_down_to_zero_leaves_the_ratio_open() -> None:
    """An interval that reaches 0 leaves the ratio unbounded and raises no error."""
    a = recording(Point(Task("add", 8), median_s=1.0, low_s=0.0, high_s=2.0, n_samples=9))
    b = recording(point(3.0, size=8), point(0.0, size=9), name="b")
    row = _recording.compare(a, b).iloc[0]
    assert (row["ratio"], row["low"], row["high"]) == (3.0, 1.5, float("inf"))
    row = _recording.compare(b, a).iloc[0]
    assert row["low"] == 0
    assert row["verdict"] == "b less" if row["high"] < 1 else "no difference seen"


def test_files_and_sweeps_are_compared_alike(path: Path) -> None:
    """`compare` takes a name, a file or a sweep."""
    swept = Sweep(points=(point(4e-6),), provenance=ABOUT)
    table = _recording.compare(str(path), swept)
    assert list(table["ratio"]) == [2.0]
    assert (table.attrs["a"], table.attrs["b"]) == (str(path), "b")


def test_virtual_and_measured_are_not_compared_unless_asked() -> None:
    """Comparing virtual with measured times is refused unless `virtual=True`."""
    real = recording(point(), name="real")
    model = recording(replace(point(), source="virtual"), source="virtual", name="model")
    message = (
        "model was computed by the model of a virtual GPU and real was measured on a real one, so "
        "their ratio judges the model and no GPU; if that is what you want: "
        "compare(a, b, virtual=True)"
    )
    for pair in ((real, model), (model, real)):
        with pytest.raises(NotComparableError) as error:
            _recording.compare(*pair)
        assert str(error.value) == message
    assert list(_recording.compare(real, model, virtual=True)["ratio"]) == [1.0]
    assert list(_recording.compare(model, model)["ratio"]) == [1.0]


SAME_WAY = "; record both in the same way: gpulab record --out FILE"
BOTH_WAYS = (
    "add n=1,024 float32 is timed in both, but GPU, cold, calibrated, transfers none in the first "
    "and {} in the second, which are answers to different questions"
)
OTHER: dict[str, tuple[dict[str, object], str]] = {
    "cache": ({"cache": "hot"}, BOTH_WAYS.format("GPU, hot, calibrated, transfers none")),
    "threads": (
        {"on": "cpu", "n_threads": 2},
        BOTH_WAYS.format("CPU, hot, wall, transfers none, threads 2"),
    ),
    "size": (
        {"size": 4096},
        "no workload has the same size and type in both (add among others and add among others)",
    ),
}


@pytest.mark.parametrize("what", OTHER)
def test_different_questions_are_not_compared(what: str) -> None:
    """Without a common task, the error says how the tasks differ."""
    task, reason = OTHER[what]
    with pytest.raises(NotComparableError) as error:
        _recording.compare(recording(point(), name="a"), recording(point(**task), name="b"))
    assert str(error.value) == f"a and b have no task in common: {reason}{SAME_WAY}"


@pytest.mark.slow
def test_the_shipped_recording_is_of_an_h200() -> None:
    """The shipped recording is of an H200, with every workload on both sides."""
    frame = _recording.load("h200-sxm-2026-11").frame()
    assert set(frame["device_name"]) == {"NVIDIA H200", "Intel(R) Xeon(R) Processor"}
    assert frame.groupby("on")["workload"].nunique().to_dict() == {"cpu": 29, "gpu": 29}
    assert set(frame["source"]) == {"recorded"}
    assert (frame["error"] == "").all()
