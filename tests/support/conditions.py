"""Conditions (GPU, versions, date) for the made-up measurements of the tests."""

from gpulab.device.measurement import Conditions

HERE = Conditions(
    "NVIDIA H200",
    torch_version="2.13.0",
    python_version="3.11.9",
    gpulab_version="0.1.0",
    cuda_version="13.0",
    driver_version=None,
    cache="hot",
    taken_at="2026-11-20T12:00:00+00:00",
)
