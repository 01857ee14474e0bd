"""Copies over another link, computed from bytes, launches and the link's rate."""

import pytest

from gpulab.core.errors import InvalidOptionError
from gpulab.roofline.scaling import LINKS
from gpulab.roofline.scaling._links import copies_s, link_of, payload
from gpulab.workloads import names, workload

PCIE_5 = LINKS["PCIe 5"]


@pytest.mark.parametrize(
    ("name", "gb_per_s"), [("PCIe 3", 15.754), ("PCIe 4", 31.508), ("PCIe 5", 63.015)]
)
def test_pcie_rates_are_lanes_times_transfers(name: str, gb_per_s: float) -> None:
    """PCIe rates are 16 lanes at 8, 16 or 32 GT/s, with 128 of 130 bits as data."""
    assert LINKS[name].bytes_per_s / 1e9 == pytest.approx(gb_per_s, abs=1e-3)


def test_the_link_of_a_gpu_is_its_data_sheets() -> None:
    """A GPU's link is its data sheet's, and an unknown GPU has none."""
    assert link_of("NVIDIA H200").bytes_per_s == pytest.approx(63e9, rel=0.01)
    with pytest.raises(InvalidOptionError, match="the link of 'Mystery' is not known"):
        link_of("Mystery")


def test_a_copy_takes_its_bytes_at_the_share_that_is_reached() -> None:
    """A copy takes 1.7 µs plus its bytes at 88 % of the rate."""
    assert PCIE_5.copy_s(0) == pytest.approx(1.7e-6)
    assert PCIE_5.copy_s(10**9) == pytest.approx(1.7e-6 + 1e9 / (0.88 * PCIE_5.bytes_per_s))


def test_large_copies_cost_their_bytes() -> None:
    """Large copies take the time of their bytes, as their launches overlap with copies."""
    size = 2**24
    alone_s = PCIE_5.copy_s(4 * size)
    assert copies_s("add", size, "float32", "in", PCIE_5) == pytest.approx(2 * alone_s)
    assert copies_s("add", size, "float32", "both", PCIE_5) == pytest.approx(3 * alone_s)


@pytest.mark.slow
@pytest.mark.parametrize("name", names())
def test_the_payload_is_the_size_of_the_tensors(name: str) -> None:
    """The bytes of inputs and results are those of real tensors on the CPU."""
    offered = workload(name)
    size = min(offered.sizes[0], 64)
    inputs = offered.setup(size, "float32", "cpu")
    result = offered.problem(size).work(inputs)()
    results = [result] if hasattr(result, "nbytes") else list(result)
    expected = tuple(t.nbytes for t in inputs), tuple(t.nbytes for t in results)
    assert payload(name, size, "float32") == expected
