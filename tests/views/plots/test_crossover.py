"""The figure of a crossover draws curves, crossing and fits, read back from its artists."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from gpulab.roofline.scaling import crossover
from gpulab.views.plots import crossover as plot
from gpulab.workloads.sweeps import Point
from tests.roofline.scaling.test_crossover import ALL, ON_CPU, ON_GPU, SIZES

pytestmark = pytest.mark.usefixtures("no_pixels")


@pytest.fixture
def ax() -> Axes:
    """Return axes of a new figure."""
    return Canvas().add_subplot()


def wider(point: Point) -> Point:
    """Return the point with an interval of 10 % on both sides."""
    return replace(point, low_s=0.9 * point.median_s, high_s=1.1 * point.median_s)


def test_both_curves_are_drawn_with_their_sources(ax: Axes) -> None:
    """Both curves are in one unit, and their labels name side, device and source."""
    plot(crossover("add", source=ALL), ax, lines=False)
    cpu, gpu, *_ = ax.lines
    assert cpu.get_label() == "CPU: Some CPU, recorded"
    assert gpu.get_label() == "GPU: NVIDIA H200, recorded"
    assert tuple(cpu.get_xdata()) == SIZES
    times_us = [point.median_s * 1e6 for point in ON_CPU]
    assert np.asarray(cpu.get_ydata()) == pytest.approx(times_us)
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert ax.get_xlabel() == "size (elements)"
    assert ax.get_ylabel() == "time per call (µs)"
    assert cpu.get_color() != gpu.get_color()
    assert cpu.get_marker() != gpu.get_marker()


def test_the_crossing_is_marked_with_its_interval(ax: Axes) -> None:
    """The crossing has a ring, and its interval a band."""
    wide = [*ON_CPU, *(wider(point) for point in ON_GPU)]
    record = crossover("add", source=wide)
    plot(record, ax)
    ring = ax.lines[-1]
    assert ring.get_label() == f"crossing: {record.crossing}"
    assert ring.get_xdata()[0] == record.crossing.size
    assert [text.get_text() for text in ax.texts if text.get_text().startswith("n = ")] == [
        str(record.crossing).partition(" [")[0]
    ]
    (band,) = ax.patches
    assert band.get_x() == pytest.approx(record.crossing.low)
    assert band.get_x() + band.get_width() == pytest.approx(record.crossing.high)


def test_an_open_interval_ends_where_the_sizes_do(ax: Axes) -> None:
    """The band of an interval from 0 begins at the smallest size, since the axis is log."""
    above = [point for point in ALL if point.task.size >= 2**14]
    record = crossover("add", source=[wider(point) for point in above])
    assert record.crossing.low == 0.0
    plot(record, ax)
    assert ax.patches[0].get_x() == pytest.approx(2**14)


def test_nothing_is_marked_where_nothing_crosses(ax: Axes) -> None:
    """Without a crossing only curves and fits are drawn."""
    above = [point for point in ALL if point.task.size >= 2**18]
    plot(crossover("add", source=above), ax)
    assert not ax.patches
    assert len(ax.lines) == 4


def test_transfers_add_a_curve(ax: Axes) -> None:
    """With transfers, the GPU's curve without them is drawn too."""
    plot(crossover("add", source=ALL, transfers="both"), ax, lines=False)
    assert [line.get_label() for line in ax.lines[:3]] == [
        "CPU: Some CPU, recorded",
        "GPU: NVIDIA H200, recorded, transfers both",
        "GPU: NVIDIA H200, recorded",
    ]


def test_fits_are_dotted_and_follow_their_curves(ax: Axes) -> None:
    """A fit is dotted, has the colour of its curve, and follows its points."""
    plot(crossover("add", source=ALL), ax)
    curve, fit = ax.lines[:2]
    assert fit.get_linestyle() == ":"
    assert fit.get_color() == curve.get_color()
    assert fit.get_ydata()[0] == pytest.approx(curve.get_ydata()[0], rel=1e-4)
    assert fit.get_ydata()[-1] == pytest.approx(curve.get_ydata()[-1], rel=1e-4)


def test_the_figure_reads_as_text() -> None:
    """The title has the finding and both sources, and the caption has the crossing."""
    shown = plot(crossover("add", source=ALL))
    finding, devices = shown.title.split(" (")
    assert finding == "add float32: from n = 16,700 on the GPU is faster"
    assert devices == "CPU Some CPU, recorded; GPU NVIDIA H200, recorded)"
    assert shown.caption == (
        "Where the GPU gets ahead of the CPU: n = 16,700 [16,700, 16,700].\n"
        "Dotted lines are the fits of a fixed cost and a slope."
    )
    assert len(shown.frame) == 16


@pytest.mark.parametrize(
    ("gpu_s", "finding"),
    [
        (1e-9, "the GPU is faster at every size"),
        (1.0, "the CPU is faster at every size"),
    ],
)
def test_the_title_says_which_side_is_always_ahead(gpu_s: float, finding: str) -> None:
    """Without a crossing, the title names the side that is faster at every size."""
    record = crossover("add", source=ALL)
    times = (gpu_s,) * len(record.gpu.sizes)
    gpu = replace(record.gpu, median_s=times, low_s=times, high_s=times)
    found = plot(replace(record, gpu=gpu, bare=gpu))
    assert found.title.startswith(f"add float32: {finding} (")


def test_the_caption_contains_doubts() -> None:
    """The caption contains the doubts, because a figure may be copied without its record."""
    record = crossover("add", source=ALL)
    waited = replace(record, cpu=replace(record.cpu, waits=((2**10, 8.1e-3),)))
    assert plot(waited).caption == (
        "Where the GPU gets ahead of the CPU: n = 16,700 [16,700, 16,700].\n"
        "Dotted lines are the fits of a fixed cost and a slope.\n"
        "Doubtful: the host had too few free cores: waits for a core are part of 1 of 8 CPU times "
        "(n = 1,024; up to 8.10 ms per wait), which are too long; close other programs or ask for "
        "fewer threads (n_threads=1), then run again."
    )
