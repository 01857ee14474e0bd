"""The figures of lesson 11b: titles say what the readings show, and no panel gives an answer."""

import dataclasses

import gpulab
from gpulab.device.clocks import Reading
from gpulab.exercises import lesson_11 as lab


def test_the_bars_say_which_of_util_and_power_is_equal() -> None:
    """The title says so of GPU-Util, and gives the power in percent of its limit."""
    reading = Reading(
        at_s=0.0,
        sm_mhz=1980,
        memory_mhz=3201,
        power_w=140.0,
        power_limit_w=700.0,
        temperature_c=40,
        utilization=100,
        reasons=(),
        max_sm_mhz=1980,
    )
    busy = dataclasses.replace(reading, power_w=686.0)
    half = dataclasses.replace(reading, utilization=50)
    with gpulab.virtual_gpu("H200", first_use=False):
        same = lab.util_and_power({"a": [half, reading], "b": [busy]})
        other = lab.util_and_power({"a": [reading, half], "b": [busy]})
    assert same.title == (
        "GPU-Util is 100 % for both. They draw 20 and 98 % of the power limit "
        "(virtual NVIDIA H200)"
    )
    assert other.title.startswith("GPU-Util is 50 % and 100 %. They draw 20 and 98 % of")
    widths = [bar.get_width() for bar in same.picture.peek().axes[0].patches]
    assert widths == [100, 100, 20, 98]


def test_each_program_has_a_panel_for_each_column() -> None:
    """The panels of a row have the same scale; the title does not say what is wrong."""
    shown = lab.monitors()
    figure = lab.monitor_panels(shown)
    panels = figure.picture.peek().axes[0].child_axes
    assert len(panels) == 4 * shown["program"].nunique()
    assert [panel.get_title() for panel in panels[:6]] == list("abcdef")
    for row in range(4):
        assert len({panel.get_ylim() for panel in panels[6 * row : 6 * row + 6]}) == 1
    leak = shown.query("program == 'd'")["fb_mib"].to_numpy() / 1024
    assert (panels[2 * 6 + 3].lines[0].get_ydata() == leak).all()
    assert figure.title == "6 programs, second by second (NVIDIA H200, recorded)"
