"""The style of figures: ticks of logarithmic axes, and dark paper."""

from matplotlib.figure import Figure

from gpulab.figures import finish, log_axis
from gpulab.figures._style import short_number, short_sizes


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


def test_ticks_of_a_linear_axis_have_grouped_digits() -> None:
    """They are 1,000 as in captions and tables, and small ticks stay as matplotlib writes them."""
    ax = Figure().add_subplot()
    ax.plot([0, 2000], [-0.5, 1.5])
    ax.set_xticks([0, 1000, 2000])
    finish(ax, "Line chart", "n", "time (µs)")
    shown = [text.get_text() for text in ax.get_xticklabels()]
    assert shown == ["0", "1,000", "2,000"]
    assert "0.50" in [text.get_text() for text in ax.get_yticklabels()]


def test_ticks_of_a_logarithmic_axis_are_short() -> None:
    """Numbers from 100,000 on have k, M or G, so that labels do not collide."""
    assert [short_number(value) for value in (0.1, 1.0, 8192.0)] == ["0.1", "1", "8,192"]
    assert [short_number(value) for value in (1e5, 2e7, 1e9)] == ["100 k", "20 M", "1 G"]


def test_ticks_at_sizes_are_powers_of_two() -> None:
    """Large powers of two have Ki, Mi or Gi, and then all multiples of 1,024 on the axis."""
    sizes = (512, 8192, 2**16, 2**22, 3 * 2**30, 20_000)
    assert short_sizes(sizes) == ["512", "8 Ki", "64 Ki", "4 Mi", "3 Gi", "20 k"]
    assert short_sizes((512, 1024, 8192)) == ["512", "1,024", "8,192"]
