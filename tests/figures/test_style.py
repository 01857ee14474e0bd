"""The style of figures: ticks of logarithmic axes."""

from matplotlib.figure import Figure

from gpulab.figures import log_axis


def test_a_short_logarithmic_axis_has_ticks() -> None:
    """An axis that contains no power of ten and few multiples still gets ticks."""
    ax = Figure().add_subplot()
    ax.plot([10.1, 12.7], [0, 1], "o")
    log_axis(ax, "x")
    low, high = ax.get_xlim()
    assert [tick for tick in ax.get_xticks() if low < tick < high] == [
        10,
        10.5,
        11,
        11.5,
        12,
        12.5,
    ]
