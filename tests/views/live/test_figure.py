"""The picture of a load has two panels with units, names gaps, and has a text alternative."""

from dataclasses import replace

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from gpulab import live
from gpulab.core.errors import InvalidOptionError
from gpulab.device.clocks import Reading
from gpulab.views.live import _figure

TRACE = live.Trace(
    (
        Reading(5.0, 1980, 3201, 125.0, 700.0, 37, 0, (), 1980),
        Reading(5.1, 1455, 3201, 280.0, 700.0, 55, 60, ("power cap",), 1980),
        Reading(5.2, 1440, 3201, 690.0, 700.0, 59, 100, ("power cap",), 1980),
    ),
    "measured",
    "NVIDIA H200",
    asked_s=2.0,
)
BLIND = live.Trace((Reading(1.0), Reading(1.1)), "measured", "NVIDIA H200", 1.0, missing="no NVML")


def panels(record: live.Trace) -> list[Axes]:
    """Draw a trace and return its axes from top to bottom."""
    canvas = Canvas(layout="constrained")
    ax = canvas.add_subplot()
    assert _figure.live(record, ax) is ax
    assert canvas.axes[0] is ax
    canvas.draw_without_rendering()
    heights = [axes.get_position().y0 for axes in canvas.axes]
    assert heights == sorted(heights, reverse=True)
    return canvas.axes


@pytest.mark.slow
def test_panels() -> None:
    """Clock and power share one axis of time, each with its unit and its limit as a line."""
    axes = panels(TRACE)
    assert [ax.get_ylabel() for ax in axes] == ["clock (MHz)", "power (W)"]
    drawn = [list(ax.lines[0].get_ydata()) for ax in axes]
    assert drawn == [[1980, 1455, 1440], [125, 280, 690]]
    assert all(ax.lines[0].get_xdata() == pytest.approx([0, 0.1, 0.2]) for ax in axes)
    assert [ax.xaxis.get_label().get_visible() for ax in axes] == [False, True]
    assert {ax.get_xlabel() for ax in axes} == {"time since the first reading (s)"}
    clock, power = axes
    assert [set(ax.lines[1].get_ydata()) for ax in (clock, power)] == [{1980.0}, {700.0}]
    # Beside the axes, where no reading is.
    assert [text.xyann[0] > 0 for text in (*clock.texts, *power.texts)] == [True, True]
    assert [text.get_text() for text in (*clock.texts, *power.texts)] == ["highest", "limit"]
    (shade,) = clock.collections
    assert shade.get_label() == "the driver names: power cap"


@pytest.mark.slow
def test_a_panel_without_readings_says_why() -> None:
    """A panel without readings says so; without a reason of the driver nothing is shaded."""
    mute = replace(TRACE, readings=tuple(replace(r, power_w=None) for r in TRACE.readings[:1]))
    clock, power = panels(mute)
    assert not clock.collections
    said = [[text.get_text() for text in ax.texts] for ax in (clock, power)]
    assert said == [["highest"], ["this GPU or its driver reports no value"]]
    assert [ax.texts[0].get_text() for ax in panels(BLIND)] == ["nothing can be read"] * 2


@pytest.mark.usefixtures("no_pixels")
def test_words() -> None:
    """The description has the title, the axes, and the range of every quantity."""
    figure = live.draw(TRACE, title="Products")
    assert figure.description == (
        "Line charts: Products (measured on NVIDIA H200). The x axis shows time since the first "
        "reading (s), from 0 to 0.2. The y axis shows clock (MHz), from 1,440 to 1,980. Series: "
        "the driver names: power cap. Clock from 1980 to 1440 MHz, power from 125 to 690 W, "
        "temperature from 37 to 59 °C, utilization from 0 to 100 %; settled: the clock was "
        "between 1440 and 1980 of 1980 MHz, limited by the power cap."
    )
    assert len(figure.frame) == 3
    assert live.draw(BLIND).caption == "No NVML."


@pytest.mark.usefixtures("no_pixels")
def test_words_for_a_part() -> None:
    """The title of a stopped load says by what and when it was stopped."""
    stopped = replace(TRACE, stopped_by="stop")
    assert live.draw(stopped).title == (
        "Under load the clock falls from 1,980 to 1,440 MHz, stopped by the Stop button after "
        "0.2 of 2 s (measured on NVIDIA H200)"
    )
    idle = replace(TRACE.readings[0], sm_mhz=345)
    woken = replace(TRACE, readings=(idle, *TRACE.readings[1:]))
    assert live.draw(woken).title.startswith("Under load the clock rises from 345 to 1,440 MHz")
    assert live.draw(BLIND).title.startswith("The GPU under load")
    mute = replace(TRACE, readings=tuple(replace(r, power_w=None) for r in TRACE.readings))
    assert "power not reported, " in live.draw(mute).caption


def test_axes_outside_a_grid_are_refused() -> None:
    """Axes outside a grid cannot be split into panels, and the message says what to use."""
    with pytest.raises(InvalidOptionError) as error:
        _figure.live(TRACE, Canvas().add_axes((0, 0, 1, 1)))
    assert str(error.value) == (
        "the axes are in no grid, which their two panels share; make them with add_subplot()"
    )


def test_an_empty_trace_and_an_unknown_reason_are_refused() -> None:
    """A trace needs at least one reading, and ``stopped_by`` must be a known reason."""
    with pytest.raises(InvalidOptionError) as empty:
        replace(TRACE, readings=())
    assert str(empty.value) == "readings=(); give at least one"
    with pytest.raises(InvalidOptionError) as unknown:
        replace(TRACE, stopped_by="bored")
    assert (
        str(unknown.value) == "stopped_by='bored'; it must be '' or one of interrupt, stop, error"
    )
    with pytest.raises(InvalidOptionError, match=r"^stopped_by='bored'"):
        live.Series((1.0,), stopped_by="bored")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"asked_s": -1.0},
            "asked_s=-1.0; it must be a finite number of seconds above 0",
        ),
        (
            {"readings": (Reading(2.0), Reading(1.0))},
            "readings go from 2.0 s to 1.0 s; give them in the order in which they were taken",
        ),
    ],
)
def test_a_trace_of_impossible_numbers_is_refused(
    changed: dict[str, object], message: str
) -> None:
    """The message names the impossible number."""
    with pytest.raises(InvalidOptionError) as error:
        replace(TRACE, **changed)  # type: ignore[arg-type] # of several types
    assert str(error.value) == message
