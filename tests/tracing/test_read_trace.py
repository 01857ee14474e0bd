"""A trace of PyTorch's profiler becomes a timeline; other files are refused with the cure."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.profiler import profile

import gpulab
from gpulab.core.errors import DamagedDataError, GpulabError, NotReadError
from gpulab.tracing import read_trace


def event(category: str, name: str, ts: float, **args: object) -> dict[str, Any]:
    """Return an event as Kineto writes it."""
    return {"ph": "X", "cat": category, "name": name, "ts": ts, "dur": 2.5, "tid": 7, "args": args}


# Copies the form of a trace from an H200: large times, and numbers that link launch and kernel.
KINETO = {
    "deviceProperties": [{"id": 0, "name": "NVIDIA H200"}],
    "traceEvents": [
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}},
        event("cpu_op", "aten::exp", 4491094090290.5),
        event("cuda_runtime", "cudaLaunchKernel", 4491094090291.25, correlation=11),
        event(
            "kernel", "void at::native::exp<4>(int)", 4491094090296.001, correlation=11, stream=7
        ),
        event(
            "gpu_memcpy",
            "Memcpy DtoH",
            4491094090300.0,
            correlation=12,
            stream=7,
            bytes=4096,
            device=1,
        ),
    ],
}


def written(tmp_path: Path, content: object) -> Path:
    """Write text as it is and other content as JSON, and return the path."""
    path = tmp_path / "trace.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return path


def test_a_trace_of_a_real_gpu(tmp_path: Path) -> None:
    """Names, lanes, bytes and times are read, and launch and kernel are linked."""
    found = read_trace(written(tmp_path, KINETO))
    launch, kernel, copy = found.spans
    assert (found.source, found.device_name) == ("recorded", "NVIDIA H200")
    assert (launch.kind, launch.start_s) == ("launch", 0.0)
    assert (kernel.name, kernel.correlation) == ("exp<4>", launch.correlation)
    assert kernel.start_s == pytest.approx(4.751e-6, abs=1e-9)
    assert (copy.kind, copy.engine, copy.size_bytes) == ("copy", "copy out", 4096)
    assert (kernel.device, copy.device) == (0, 1)


def test_packed_and_without_a_name(tmp_path: Path) -> None:
    """A gzipped file can be read, and a missing device name can be given."""
    path = tmp_path / "trace.json.gz"
    events = KINETO["traceEvents"]
    path.write_bytes(gzip.compress(json.dumps({"traceEvents": events}).encode()))
    assert read_trace(path, device_name="NVIDIA T4").device_name == "NVIDIA T4"


def test_what_the_virtual_gpu_wrote_stays_virtual(tmp_path: Path) -> None:
    """A trace of the virtual GPU is read as virtual, with the same durations."""
    path = tmp_path / "trace.json"
    # torch 2.11 warns unless acc_events is given, and warnings are errors here.
    with gpulab.virtual_gpu("H200", first_use=False), profile(acc_events=True) as found:
        torch.ones(1 << 20, device="cuda").exp()
    found.export_chrome_trace(str(path))
    shown = read_trace(path)
    kernels = [span for span in shown.spans if span.kind == "kernel"]
    expected = [each for each in found.events() if each.name in {"ones", "exp"}]
    assert shown.source == "virtual"
    assert [span.duration_s * 1e6 for span in kernels] == pytest.approx(
        [each.time_range.elapsed_us() for each in expected]
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (" \n", "it is empty"),
        ("hello", "it is not JSON"),
        ({}, "it has no list of trace events"),
        ({"traceEvents": [1, None, "x"]}, "has no kernel and no copy"),
        ({"traceEvents": [event("cpu_op", "aten::exp", 1.0)]}, "has no kernel and no copy"),
        ({"traceEvents": [{**event("kernel", "k", 1.0), "dur": "long"}]}, "dur='long'"),
        ({"traceEvents": [{**event("kernel", "k", 1.0), "dur": -1}]}, "dur=-1"),
        ({"traceEvents": [event("kernel", "k", 1e300)]}, "ts=1e+300"),
        ({"otherData": {"place": "virtual"}, "traceEvents": []}, "Timeline.from_json"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: object, said: str) -> None:
    """The error names the file, the reason and the file to give instead."""
    with pytest.raises(DamagedDataError, match="export_chrome_trace") as caught:
        read_trace(written(tmp_path, content))
    assert said in str(caught.value)
    assert "trace.json" in str(caught.value)


def test_what_cannot_be_opened_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what the path is, where it was looked for and what to do."""
    monkeypatch.chdir(tmp_path)
    said = {
        "step.json": f"there is no file step.json in {tmp_path}; check the name, or give ",
        tmp_path / "step.json": f"there is no file {tmp_path / 'step.json'}; check the name, or ",
        tmp_path: f"{tmp_path} is a folder; name the file in it: give read_trace() a file that ",
        "nul\0": "nul\\x00 cannot be read: Invalid argument; give read_trace() a file that ",
    }
    for path, words in said.items():
        with pytest.raises(NotReadError, match="export_chrome_trace") as caught:
            read_trace(path)
        assert isinstance(caught.value, OSError)
        assert str(caught.value).startswith(words)


def test_a_trace_without_times_is_refused(tmp_path: Path) -> None:
    """A file without times, as torch writes if another profile followed, is refused."""
    stopped = {**event("kernel", "k", 0.0, correlation=1), "dur": 0.0}
    with pytest.raises(DamagedDataError, match="before that"):
        read_trace(written(tmp_path, {"traceEvents": [stopped]}))


@pytest.mark.parametrize("cut", range(0, 700, 61))
def test_a_cut_file_is_refused(tmp_path: Path, cut: int) -> None:
    """A truncated file raises an error of gpulab, never one of Python's."""
    text = json.dumps(KINETO)
    with pytest.raises(GpulabError):
        read_trace(written(tmp_path, text[: min(cut, len(text) - 1)]))
