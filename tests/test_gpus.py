"""The table of GPUs."""

import pytest

from gpulab.errors import UnknownNameError
from gpulab.gpus import gpu, names


def test_names_are_found_in_any_case() -> None:
    """A learner types h200."""
    assert gpu("h200") is gpu("H200")


@pytest.mark.parametrize("name", names())
def test_every_gpu_is_complete(name: str) -> None:
    """Every figure is positive and every GPU names the document it comes from."""
    spec = gpu(name)
    figures = (spec.n_sms, spec.memory_bytes, spec.l2_bytes, spec.boost_clock_mhz)
    assert min(*figures, spec.bandwidth_bytes_per_s, spec.link_bytes_per_s) > 0
    types = {"float16", "bfloat16", "tf32", "float32", "float64"}
    assert set(spec.peak_flops_per_s) == types
    assert "data sheet" in spec.reference


def test_the_nearest_name_is_proposed() -> None:
    """The message holds what was given, the nearest name and all of them."""
    with pytest.raises(UnknownNameError) as error:
        gpu("H20")
    assert str(error.value) == (
        "unknown GPU 'H20'; did you mean 'H200'? Known: A100, H100, H200, T4"
    )
