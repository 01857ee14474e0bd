"""The picture of a sweep: its lines, its limits, its title, and what it refuses."""

from typing import TYPE_CHECKING

import pytest
import torch

import gpulab
from gpulab import plots
from gpulab.core.errors import InvalidOptionError
from gpulab.device.work import Work
from gpulab.workloads.sweeps import Sweep, Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes

pytestmark = pytest.mark.usefixtures("no_pixels")


def make(n: int, dtype: torch.dtype = torch.float32) -> dict[str, Work]:
    """Return a sum in one kernel and in two."""
    x = torch.ones(n, dtype=dtype, device="cuda")
    return {"one": lambda: x + x, "two": lambda: (x * 1) + x}


def swept(**options: object) -> Sweep:
    """Run the sweep of the tests."""
    with gpulab.virtual_gpu("H200", first_use=False):
        return gpulab.sweep(make, progress=False, **options)  # type: ignore[arg-type]  # its options


def axes_of(found: Sweep, **options: object) -> "Axes":
    """Return the axes of the picture."""
    (ax,) = plots.sweep(found, **options).canvas.axes
    return ax  # type: ignore[no-any-return]  # matplotlib's own


def test_throughput_is_drawn_below_the_limit() -> None:
    """One line for each work, in terabytes per second, and the data sheet's bandwidth."""
    found = swept(n=[2**20, 2**24, 2**26], size_bytes=lambda n: 8 * n)
    ax, table = axes_of(found), found.to_frame()
    lines = {str(line.get_label()): line for line in ax.lines}
    one = table[table["work"] == "one"]
    assert list(lines["one"].get_ydata()) == [rate / 1e12 for rate in one["bytes_per_s"]]
    assert list(lines["one"].get_xdata()) == [2**20, 2**24, 2**26]
    assert ax.get_ylabel() == "throughput (TB/s)"
    assert "memory bandwidth" in [text.get_text() for text in ax.texts]
    assert [4.8, 4.8] in [list(line.get_ydata()) for line in ax.lines]
    assert ax.get_xscale() == "log"
    best = one["bytes_per_s"].max()
    assert plots.sweep(found).title.startswith(f"make, one, reaches {best / 1e12:.2f} TB/s at n=")


def test_without_counts_the_times_are_drawn() -> None:
    """The title says so, and the words have both ends of each line."""
    found = swept(n=[64, 128])
    assert axes_of(found).get_ylabel().startswith("time per call (")
    figure = plots.sweep(found)
    assert figure.title == "make: time per call over n (virtual NVIDIA H200)"
    assert "at n=128." in figure.description
    assert axes_of(swept(n=[0, 64])).get_xscale() == "linear"  # 0 has no place on another axis


def test_other_parameters_are_in_the_names_if_they_vary() -> None:
    """A type that is the same for all points is not repeated in each name."""
    found = swept(n=[64, 128], dtype=[torch.float16, torch.float32])
    labels = {str(line.get_label()) for line in axes_of(found).lines}
    assert {"one, dtype=float16", "two, dtype=float32"} <= labels
    same = swept(n=[64, 128], dtype=[torch.float16])
    assert "one" in {str(line.get_label()) for line in axes_of(same).lines}


def test_the_binding_limit_decides_what_is_drawn() -> None:
    """With both counts, the picture has the rate that is nearest to its limit."""
    bytes_bind = swept(n=[2**24, 2**26], flops=lambda n: n, size_bytes=lambda n: 8 * n)
    assert axes_of(bytes_bind).get_ylabel() == "throughput (TB/s)"
    flops_bind = swept(n=[2**24, 2**26], flops=lambda n: 10_000 * n, size_bytes=lambda n: 8 * n)
    assert axes_of(flops_bind).get_ylabel() == "throughput (TFLOP/s)"


def test_what_cannot_be_drawn_is_one_sentence() -> None:
    """A sweep of the catalogue, a parameter of texts and an unknown one are refused."""
    with gpulab.virtual_gpu("H200", first_use=False):
        catalogue = gpulab.sweep([Task("add", 64)], progress=False)
    with pytest.raises(InvalidOptionError, match="no times of a function of your own"):
        plots.sweep(catalogue)
    with pytest.raises(InvalidOptionError, match=r"x='m'; it must be .* values are numbers: n$"):
        plots.sweep(swept(n=[64]), x="m")
    with pytest.raises(InvalidOptionError, match="record="):
        plots.sweep([1.0])
