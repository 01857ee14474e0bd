"""Bars on lanes: each row has its name, errors are marked, and labels stay inside their bars."""

import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure as Canvas

from gpulab.core.palette import ROLES
from gpulab.figures import Lanes, Level, Strip

US = 1e-6


def drawn(*strips: Strip, levels: tuple[Level, ...] = ()) -> Axes:
    """Return axes with three lanes of 100 microseconds."""
    lanes = Lanes.in_rows(("host", "GPU", "level"), strips, 100 * US, levels)
    return lanes.draw(Canvas().add_subplot())


def test_lanes_are_rows_from_top_to_bottom() -> None:
    """The first name is at the top, and time is in microseconds."""
    ax = drawn(Strip(0, "host", "call", 0.0, 50 * US), Strip(1, "kernel", "add", 20 * US, 90 * US))
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["host", "GPU", "level"]
    assert ax.get_ylim() == (2.5, -0.5)
    boxes = [bars.get_paths()[0].get_extents() for bars in ax.collections]
    assert [(box.x0, box.x1) for box in boxes] == [pytest.approx((0, 50)), pytest.approx((20, 90))]
    colours = [to_hex(bars.get_facecolor()[0]) for bars in ax.collections]
    assert colours == [ROLES[role].colour.light for role in ("host", "kernel")]


def test_errors_are_hatched_and_only_roles_are_in_the_legend() -> None:
    """A bar that is wrong has a hatch of its own; ink and muted are no roles."""
    ax = drawn(
        Strip(1, "kernel", "read", 0.0, 60 * US),
        Strip(1, "ink", "both at once", 40 * US, 60 * US, is_wrong=True),
        Strip(0, "muted", "sleep", 0.0, 10 * US),
    )
    assert [bars.get_hatch() for bars in ax.collections].count("///") == 1
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["kernel"]


def test_a_moment_is_seen_and_a_narrow_mark_has_its_name_beside_it() -> None:
    """A moment has an edge in its own colour; the name of a late mark is to its left."""
    ax = drawn(
        Strip(0, "event", "", 40 * US, 40 * US),
        Strip(0, "kernel", "", 50 * US, 50.5 * US),
        Strip(1, "ink", "early", 10 * US, 11 * US),
        Strip(1, "ink", "late", 90 * US, 91 * US),
    )
    moment, narrow, *_ = ax.collections
    assert to_hex(moment.get_edgecolor()[0]) == ROLES["event"].colour.light
    assert (moment.get_linewidth()[0] > 0, narrow.get_linewidth()[0]) == (True, 0)
    sides = {text.get_text(): text.get_horizontalalignment() for text in ax.texts}
    assert sides == {"early": "left", "late": "right"}


def test_a_label_is_cut_or_left_out_where_it_has_no_room() -> None:
    """A label that does not fit is cut; in a narrow bar it is left out."""
    name = "vectorized_elementwise_kernel"
    ax = drawn(Strip(0, "kernel", name, 0.0, 100 * US), Strip(1, "kernel", name, 0.0, 11 * US))
    assert [text.get_text() for text in ax.texts] == [name, "vectori…"]
    assert [text.get_position() for text in ax.texts] == [(pytest.approx(50), 0), (5.5, 1)]
    assert [text.get_text() for text in drawn(Strip(1, "kernel", name, 0.0, 6 * US)).texts] == []


def test_what_the_host_does_has_its_plain_name_where_its_own_has_no_room() -> None:
    """A call's name of CUDA is never cut: the bar says wait or launch, or nothing."""
    name = "cudaDeviceSynchronize"
    for role in ("wait", "launch", "host"):
        (text,) = drawn(Strip(0, role, name, 0.0, 11 * US)).texts
        assert text.get_text() == role
    assert [text.get_text() for text in drawn(Strip(0, "wait", name, 0.0, 50 * US)).texts] == [
        name
    ]
    assert not drawn(Strip(0, "launch", name, 0.0, 6 * US)).texts


def test_a_level_reaches_the_top_of_its_row_at_its_greatest_value() -> None:
    """An area joins the points of a level by straight lines."""
    ax = drawn(Strip(0, "host", "", 0.0, US), levels=(Level(2, ((0.0, 0.0), (50 * US, 1.0))),))
    box = ax.collections[-1].get_paths()[0].get_extents()
    assert (box.y0, box.y1) == pytest.approx((1.6, 2.4))
    assert (box.x0, box.x1) == pytest.approx((0, 50))
