"""Profiles and captures on the virtual GPU have the structure that they had on an H100."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import torch

import gpulab
from benchmarks.common.folders import RECORDINGS
from tests.support.captures import PROGRAMS as CAPTURES
from tests.support.captures import answer_of
from tests.support.profiled_programs import PROGRAMS, nesting, profiled

RECORDED = json.loads((RECORDINGS / "h100-structure.json").read_text("utf-8"))

# What differs: each name, inside which other event (None: any), and why.
DIFFERENCES = {
    ("Activity Buffer Request", None): "CUPTI takes it at different moments",
    ("cudaEventQuery", None): "queries have no row here",
    ("[memory]", None): "an H100 shows each free twice",
    ("aten::to", "Optimizer.step#Adam.step"): "torch 2.13 converts once more than 2.11",
    ("cudaStreamIsCapturing", "Optimizer.step#Adam.step"): "PyTorch's question has no row here",
    # Which kernels cuBLAS runs, and how.
    **{
        (name, inside): "a choice of cuBLAS"
        for inside in ("aten::mm", "aten::addmm", "(nothing)")
        for name in (
            *("cuLaunchKernel", "cudaLaunchKernel", "cudaLaunchKernelExC", "cudaMemsetAsync"),
            "cudaDeviceGetAttribute",
        )
    },
}


def compared(counts: dict[tuple[str, str], int]) -> dict[tuple[str, str], int]:
    """Return the counts without the known differences."""
    return {
        (name, inside): count
        for (name, inside), count in counts.items()
        if not DIFFERENCES.keys() & {(name, inside), (name, None)}
        # Without operators in the profile all calls are inside nothing.
        and not (name == "cudaStreamIsCapturing" and inside == "(nothing)")
    }


@pytest.mark.parametrize("name", RECORDED["tables"])
def test_a_profile_has_the_rows_and_calls_of_an_h100(name: str) -> None:
    """Names, call counts and nesting of all events of the host are those of an H100."""
    with gpulab.virtual_gpu("H200", first_use=False):
        answer = profiled(PROGRAMS[name])
    recorded = {(event, inside): count for event, inside, count in RECORDED["tables"][name]}
    assert compared(nesting(answer)) == compared(recorded)


@pytest.mark.parametrize("name", CAPTURES)
def test_a_capture_ends_as_on_an_h100(name: str) -> None:
    """A program that an H100 captures gives the same values, and another one the same errors."""
    with gpulab.virtual_gpu("H200", first_use=False):
        answer = answer_of(CAPTURES[name])
    recorded = RECORDED["captures"][name]
    answer.pop("warnings")
    assert (answer.get("errors") or answer) == recorded


def summed(rows: list[dict[str, Any]], column: str, wanted: Callable[[Any], bool]) -> float:
    """Return the sum of a column over some rows."""
    return sum(row[column] for row in rows if wanted(row))


@pytest.mark.parametrize("name", PROGRAMS)
def test_tables_of_the_programs_add_up(name: str) -> None:
    """Annotations have no device time of their own, and operators have that of all kernels."""
    with gpulab.virtual_gpu("H200", first_use=False):
        answer = profiled(PROGRAMS[name])
    rows = answer["rows"]
    of_kernels = summed(
        rows,
        "self_device_us",
        lambda row: row["device"] == "device" and not row["is_user_annotation"],
    )
    of_host = summed(rows, "self_device_us", lambda row: row["device"] == "host")
    of_annotations = summed(
        rows, "self_device_us", lambda row: row["device"] == "host" and row["is_user_annotation"]
    )
    assert of_annotations == pytest.approx(0, abs=1e-3)
    if name in {"late kernels", "graph"}:  # a spin and a graph belong to no operator
        assert of_host < of_kernels
    elif any(row["name"].startswith("aten::") for row in rows):
        assert of_host == pytest.approx(of_kernels, abs=0.01) or not of_kernels


def test_the_recording_is_of_hardware() -> None:
    """The recording names its GPU; all its programs still exist."""
    assert RECORDED["gpu"].startswith("NVIDIA H100")
    assert set(RECORDED["tables"]) <= set(PROGRAMS)
    assert set(RECORDED["captures"]) == set(CAPTURES)
    assert torch.__version__
