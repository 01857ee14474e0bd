"""The table of GPUs."""

import pytest

from gpulab.errors import UnknownNameError
from gpulab.gpus import gpu, is_known, names

UNRECORDED = [name for name in names() if not gpu(name).recorded]


@pytest.mark.parametrize("name", ["h200", "H 200", "h-200", "H_200"])
def test_names_are_found_however_they_are_typed(name: str) -> None:
    """Case, spaces, dashes and underscores do not matter."""
    assert is_known(name)
    assert gpu(name) is gpu("H200")


def test_variants_of_a_gpu_are_told_apart() -> None:
    """The short name is the SXM board with most memory."""
    assert gpu("A100").driver_name == "NVIDIA A100-SXM4-80GB"
    assert gpu("a100 40gb").driver_name == "NVIDIA A100-SXM4-40GB"
    assert gpu("a100-pcie").driver_name == "NVIDIA A100 80GB PCIe"
    assert gpu("rtx 4090").driver_name == "NVIDIA GeForce RTX 4090"


@pytest.mark.parametrize("name", names())
def test_every_gpu_is_complete(name: str) -> None:
    """Every figure is positive and every GPU names the document it comes from."""
    spec = gpu(name)
    assert spec.name == name
    figures = (spec.n_sms, spec.memory_bytes, spec.l2_bytes, spec.copy_engines)
    assert min(*figures, spec.bandwidth_bytes_per_s, spec.link_bytes_per_s) > 0
    assert min(spec.boost_clock_mhz, spec.memory_clock_mhz, spec.tdp_w, spec.idle_w) > 0
    types = {"float16", "bfloat16", "tf32", "float32", "float64"}
    assert set(spec.peak_flops_per_s) == types
    assert "data sheet" in spec.reference
    assert spec.reference[-4:].isdigit() or spec.recorded


@pytest.mark.parametrize("name", names())
def test_figures_of_a_gpu_agree_with_each_other(name: str) -> None:
    """The float32 peak is that of its units at the boost clock, and the bus is a whole one."""
    spec = gpu(name)
    n_units = {(7, 0): 64, (7, 5): 64, (8, 0): 64}.get(spec.compute_capability, 128)
    peak = spec.n_sms * n_units * 2 * spec.boost_clock_mhz * 1e6
    assert spec.peak_flops_per_s["float32"] == pytest.approx(peak, rel=0.01)
    n_bits = spec.bandwidth_bytes_per_s / (2 * spec.memory_clock_mhz * 1e6) * 8
    assert round(n_bits / 64) * 64 == pytest.approx(n_bits, rel=0.025)
    assert spec.boost_clock_mhz % 15 == 0
    assert spec.idle_w < spec.tdp_w / 4


@pytest.mark.parametrize("name", ["T4", "V100"])
def test_types_without_units_take_those_of_float32(name: str) -> None:
    """Before compute capability 8.0 there is neither TF32 nor bfloat16."""
    peaks = gpu(name).peak_flops_per_s
    assert peaks["tf32"] == peaks["bfloat16"] == peaks["float32"]


def test_what_figures_rest_on_is_said() -> None:
    """One GPU was recorded; what is computed for another is an extrapolation and says so."""
    assert gpu("H200").basis == "recorded on one"
    assert len(UNRECORDED) == len(names()) - 1
    assert {gpu(name).basis for name in UNRECORDED} == {"extrapolated from its data sheet"}


@pytest.mark.parametrize("name", UNRECORDED)
def test_power_at_rest_is_the_share_of_the_recorded_gpu(name: str) -> None:
    """No data sheet states it, so it is the H200's 125 of 700 W scaled to the power limit."""
    assert gpu(name).idle_w == pytest.approx(gpu(name).tdp_w * 125 / 700, abs=0.6)


def test_the_nearest_name_is_proposed() -> None:
    """The message holds what was given, the nearest name and all of them."""
    with pytest.raises(UnknownNameError) as error:
        gpu("H20")
    assert str(error.value) == (
        "unknown GPU 'H20'; did you mean 'H200'? Known: A100, A100-40GB, A100-PCIE, B200, "
        "H100, H100-PCIE, H200, L4, RTX4090, T4, V100"
    )


def test_what_is_no_text_is_no_name() -> None:
    """A number, for instance, is refused like an unknown name."""
    assert not is_known(4090)
    with pytest.raises(UnknownNameError):
        gpu(4090)  # type: ignore[arg-type] # a mistake on purpose
