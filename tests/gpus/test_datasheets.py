"""The table of GPUs is complete, consistent, and names the source of each figure."""

import re

import pytest
import torch

import gpulab
from gpulab.core.errors import UnknownNameError
from gpulab.gpus import by_driver_name, gpu, is_known, names, why_unknown
from gpulab.gpus._datasheets import is_extrapolated
from gpulab.tracing.profiling import capture

TYPES = {"float16", "bfloat16", "tf32", "float32", "float64"}
FIGURES = {
    *("n_sms", "memory_bytes", "l2_bytes", "bandwidth_bytes_per_s", "link_bytes_per_s"),
    *(
        "peer_bytes_per_s",
        "boost_clock_mhz",
        "memory_clock_mhz",
        "compute_capability",
        "copy_engines",
    ),
    *("tdp_w", "idle_w", "peak_clock_mhz"),
}
# The B200's data sheet rounds the peak, and no document names the clock at which it was stated.
ROUNDED = {"B200"}
HALF_RATE = {"A10G", "RTX3090", "RTX4090", "RTX5090"}  # half the rate when sums are in float32


@pytest.mark.parametrize("name", ["h200", "H 200", "h-200", "H_200"])
def test_names_are_found_however_they_are_typed(name: str) -> None:
    """A name is found regardless of case, spaces, dashes and underscores."""
    assert is_known(name)
    assert gpu(name) is gpu("H200")


def test_the_nearest_name_is_proposed() -> None:
    """An unknown name is refused with the nearest."""
    with pytest.raises(UnknownNameError, match="unknown GPU 'H20'; did you mean 'H200'"):
        gpu("H20")


@pytest.mark.parametrize("name", names())
def test_every_gpu_is_complete(name: str) -> None:
    """Every figure of a GPU is positive and has a reference."""
    spec = gpu(name)
    assert spec.name == name
    figures = (spec.n_sms, spec.memory_bytes, spec.l2_bytes, spec.copy_engines)
    assert min(*figures, spec.bandwidth_bytes_per_s, spec.link_bytes_per_s) > 0
    assert spec.link_bytes_per_s <= spec.peer_bytes_per_s < spec.bandwidth_bytes_per_s
    assert min(spec.boost_clock_mhz, spec.memory_clock_mhz, spec.tdp_w, spec.idle_w) > 0
    assert set(spec.peak_flops_per_s) == set(spec.peak_clock_mhz) == TYPES
    assert set(spec.references) == FIGURES | {f"peak_flops_per_s.{name}" for name in TYPES}
    assert spec.basis.startswith("recorded" if name == "H200" else "extrapolated")


@pytest.mark.parametrize("name", names())
def test_bandwidth_and_power_come_from_a_data_sheet_with_its_year(name: str) -> None:
    """Bandwidth, power and half-precision peak have a vendor's document with its year."""
    spec = gpu(name)
    for figure in ("bandwidth_bytes_per_s", "tdp_w", "peak_flops_per_s.float16"):
        assert re.search(
            r"(data sheet|white paper|product brief).*, 20[12]\d", spec.references[figure]
        )
    assert spec.reference == spec.references["bandwidth_bytes_per_s"]


@pytest.mark.parametrize("name", names())
def test_figures_of_a_gpu_agree_with_each_other(name: str) -> None:
    """The float32 peak follows from units and clock, and the bus has a whole width."""
    spec = gpu(name)
    n_units = {(7, 0): 64, (7, 5): 64, (8, 0): 64}.get(spec.compute_capability, 128)
    peak = spec.n_sms * n_units * 2 * spec.boost_clock_mhz * 1e6
    assert spec.peak_flops_per_s["float32"] == pytest.approx(peak, rel=0.01)
    n_bits = spec.bandwidth_bytes_per_s / (2 * spec.memory_clock_mhz * 1e6) * 8
    assert round(n_bits / 64) * 64 == pytest.approx(n_bits, rel=0.025)
    assert spec.idle_w < spec.tdp_w / 4


@pytest.mark.parametrize("name", [name for name in names() if name not in ROUNDED])
def test_the_peak_of_half_precision_is_that_of_the_tensor_cores(name: str) -> None:
    """The half-precision peak is that of the tensor cores: dense, with sums in float32."""
    spec = gpu(name)
    per_clock = {(8, 0): 2048, (9, 0): 4096}.get(spec.compute_capability, 1024)
    if name in HALF_RATE:
        per_clock //= 2
    peak = spec.n_sms * per_clock * spec.peak_clock_mhz["float16"] * 1e6
    assert spec.peak_flops_per_s["float16"] == pytest.approx(peak, rel=0.015)


@pytest.mark.parametrize("name", names())
def test_a_driver_name_leads_back_to_its_gpu(name: str) -> None:
    """A driver name is found, with and without the vendor's name in front."""
    spec = gpu(name)
    assert by_driver_name(spec.driver_name) is spec
    # Drivers before 2021 leave the vendor's name out.
    assert by_driver_name(spec.driver_name.removeprefix("NVIDIA ")) is spec
    assert is_extrapolated(spec.driver_name) is not spec.recorded
    assert why_unknown(spec.driver_name) == ""


def test_boards_that_differ_little_take_the_figures_of_their_kind() -> None:
    """A board with less memory or power takes the other figures of its kind."""
    board = by_driver_name("NVIDIA A100-PCIE-40GB")
    assert board is not None
    assert (board.name, board.driver_name, board.tdp_w) == (
        *("A100-40GB", "NVIDIA A100-PCIE-40GB", 250),
    )
    small = by_driver_name("Tesla V100-SXM2-16GB")
    assert small is not None
    assert (small.name, small.memory_bytes) == ("V100", 16_945_512_448)
    assert gpu("V100").memory_bytes == 34_089_926_656


ONLY_MEASURED = "there is no data sheet to compare with, only roofs that are measured on it"
WHY = {
    "NVIDIA H100 80GB HBM3 MIG 1g.10gb": "is a part of a GPU (MIG 1g.10gb), for which the figures "
    "of the H100 do not hold",
    "NVIDIA Nonesuch MIG 1g.5gb": "is a part of a GPU (MIG 1g.5gb), for which the figures of the "
    "whole do not hold",
    "GRID A100-10C": "is a virtual GPU, which has a share of a real one",
    "GRID T4-16Q": "is a virtual GPU, which has a share of a real one",
    "NVIDIA A10-24Q": "is a virtual GPU, which has a share of a real one",
    "NVIDIA GeForce RTX 4090 Laptop GPU": "is not in the table of GPUs",
    "NVIDIA GeForce RTX 3090 Ti": "is not in the table of GPUs",
    "": "is not in the table of GPUs",
}


@pytest.mark.parametrize("driver_name", WHY)
def test_a_gpu_without_a_data_sheet_is_unknown_with_a_reason(driver_name: str) -> None:
    """Parts, shares and relatives of a known GPU are unknown, with the reason."""
    assert by_driver_name(driver_name) is None
    assert not is_extrapolated(driver_name)
    assert why_unknown(driver_name) == f"{driver_name} {WHY[driver_name]}: {ONLY_MEASURED}"


@pytest.mark.parametrize("name", names())
def test_every_gpu_can_be_a_virtual_one(name: str) -> None:
    """Every GPU of the table runs as a virtual one with its name and size."""
    with gpulab.virtual_gpu(name):
        x = torch.ones(64, 64, device="cuda")
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        y = x @ x
        end.record()
        torch.cuda.synchronize()
        assert torch.cuda.get_device_name() == gpu(name).driver_name
        assert torch.cuda.get_device_properties(0).multi_processor_count == gpu(name).n_sms
        assert start.elapsed_time(end) > 0
        assert y[0, 0].item() == 64


@pytest.mark.parametrize(("name", "bytes_per_s"), [("H200", 450e9), ("A100-PCIE", 31.5e9)])
def test_copies_between_gpus_take_their_links(name: str, bytes_per_s: float) -> None:
    """A copy between GPUs takes 17 µs and its bytes at 0.885 of NVLink's or PCIe's rate."""
    size = 1 << 28
    with gpulab.virtual_gpu(name, count=2, first_use=False):
        source = torch.empty(size, dtype=torch.uint8, device="cuda:0")
        target = torch.empty(size, dtype=torch.uint8, device="cuda:1")
        (copy,) = capture(lambda: target.copy_(source)).records
    assert copy.duration_ns == pytest.approx(17_000 + size / (0.885 * bytes_per_s) * 1e9, abs=1)
