"""The build of torch that fits a machine, for its driver and GPUs."""

import os
import re
from pathlib import Path

import pytest

from gpulab.device import _builds
from gpulab.device._builds import InstalledGpu, choose, cure

ROOT = Path(__file__).parents[2]
V100, T4, A100, H100, RTX_5090, K80 = (7, 0), (7, 5), (8, 0), (9, 0), (12, 0), (3, 7)
ON_580 = "driver 580.1 and compute capability"


@pytest.mark.parametrize(
    ("driver", "capability", "build"),
    [
        *(("470.82.01", each, "cpu") for each in (None, V100, T4, A100, H100)),
        *(("525.60.13", each, "cu126") for each in (V100, T4, A100, H100)),
        *(("535.183.01", each, "cu126") for each in (V100, T4, A100, H100)),
        *(("550.54.15", each, "cu126") for each in (V100, T4, A100, H100)),
        *(("535.183.01", each, "cpu") for each in (RTX_5090, K80)),
        ("570.86.10", RTX_5090, "cu128"),
        *(("570.86.10", each, "cu126") for each in (V100, H100)),
        *(("580.65.06", each, "default") for each in (T4, A100, H100, RTX_5090)),
        ("580.65.06", V100, "cu126"),
        ("590.1", A100, "default"),
        *(("580.65.06", None, "default"), ("550.54.15", None, "cu126")),
    ],
)
def test_the_build_of_one_gpu(driver: str, capability: tuple[int, int] | None, build: str) -> None:
    """The first build whose CUDA the driver runs, and which has kernels for the GPU."""
    assert choose([InstalledGpu(driver, capability)])[0] == build


@pytest.mark.parametrize(
    ("capabilities", "build", "reason"),
    [
        ([A100, A100], "default", f"it serves {ON_580} 8.0"),
        (
            [V100, T4],
            "cu126",
            f"it serves {ON_580} 7.0, {ON_580} 7.5",
        ),
        (
            [V100, RTX_5090],
            "default",
            f"it serves {ON_580} 12.0, but not {ON_580} 7.0",
        ),
    ],
)
def test_the_build_of_several_gpus(
    capabilities: list[tuple[int, int]], build: str, reason: str
) -> None:
    """The build that serves most GPUs is taken, and those that it does not serve are named."""
    assert choose([InstalledGpu("580.1", each) for each in capabilities]) == (build, reason)


@pytest.mark.parametrize(
    ("gpu", "advice"),
    [
        (InstalledGpu("470.82.01", None), "update the NVIDIA driver to 580 or newer"),
        (InstalledGpu("550.54.15", RTX_5090), "update the NVIDIA driver to 580 or newer"),
        (InstalledGpu("470.82.01", K80), "only a newer GPU can be timed"),
    ],
)
def test_where_no_build_fits_the_cure_is_no_build(gpu: InstalledGpu, advice: str) -> None:
    """If no build can use the GPU, the cure is the driver or another GPU."""
    assert cure([gpu], torch="torch").endswith(f"; {advice}")


def test_the_table_of_the_readme_is_the_rule() -> None:
    """Both ends of each row give the build in its last column, and the set-up guide agrees."""
    readme, setup = (
        (ROOT / name).read_text("utf-8") for name in ("README.md", "docs/instructor/setup.md")
    )
    rows = re.findall(
        r"^\| (\d+) (?:or newer|to (\d+)) \| .*?(\d+\.\d) (?:and above|to (\d+\.\d)) \| "
        r".*TORCH=(\w+)",
        readme,
        re.MULTILINE,
    )
    assert len(rows) == 5
    for oldest, newest, first, last, build in rows:
        for driver in filter(None, (oldest, newest)):
            for capability in filter(None, (first, last)):
                major, minor = capability.split(".")
                gpu = InstalledGpu(f"{driver}.1", (int(major), int(minor)))
                assert choose([gpu])[0] == build, gpu
    without_last = re.compile(r"^\| (?:\d{3} |older |none ).*(?=\|[^|]+\|$)", re.MULTILINE)
    assert without_last.findall(readme) == without_last.findall(setup)


def test_the_cure_can_be_pasted() -> None:
    """The cure is one line for a shell, and replaces a build of the same version."""
    assert cure([InstalledGpu("550.54.15", A100)], torch="torch>=2.11,<2.16") == (
        'pip install --force-reinstall "torch>=2.11,<2.16" '
        "--index-url https://download.pytorch.org/whl/cu126"
    )


@pytest.mark.skipif(os.name == "nt", reason="writes a program for a Unix shell")
@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("echo 580.65.06, 9.0; echo 580.65.06, 7.5", [("580.65.06", H100), ("580.65.06", T4)]),
        ('case "$1" in *cap*) exit 2;; *) echo 470.82.01;; esac', [("470.82.01", None)]),
        # A GPU in MIG mode is one row, however many slices it has; in a container with a slice
        # alone the answer is one of the other two.
        ("echo 550.54.15, 8.0; echo 550.54.15, 9.0", [("550.54.15", A100), ("550.54.15", H100)]),
        ("echo 580.65.06, [N/A]", [("580.65.06", None)]),
        ("echo '580.65.06, [Insufficient Permissions]'", [("580.65.06", None)]),
        ("echo No devices were found", []),
        ("exit 9", []),
        (None, []),
    ],
)
def test_gpus_are_read_from_nvidia_smi(
    script: str | None,
    expected: list[tuple[str, tuple[int, int] | None]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each line is a GPU; an old driver knows no capability, and without one there is nothing."""
    if script is not None:
        program = tmp_path / "nvidia-smi"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert _builds.installed_gpus() == [InstalledGpu(*each) for each in expected]
