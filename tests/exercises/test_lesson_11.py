"""Lessons 11 and 11b: profiles, monitors and figures show what the keys of the exercises say."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from torch.profiler import profile

import gpulab
from gpulab import exercises
from gpulab.core.errors import UnknownNameError
from gpulab.device.clocks import Reading
from gpulab.exercises import lesson_11 as lab
from gpulab.exercises.lesson_11._exercises import overlap_readings
from gpulab.tracing import read_trace
from tests.support.judging import right_of

FAULTS = right_of("11.monitors")
LIMITS = right_of("11.bound")


def test_the_overlap_follows_from_the_shown_times() -> None:
    """The key is the sum of the intersections of copies and kernels in the table."""
    table = overlap_readings()
    copies = table[table["kind"] == "copy"][["start_us", "end_us"]].to_numpy()
    kernels = table[table["kind"] == "kernel"][["start_us", "end_us"]].to_numpy()
    overlap_us = sum(max(0.0, min(c[1], k[1]) - max(c[0], k[0])) for c in copies for k in kernels)
    assert exercises.check("11.overlap", {"overlap_us": overlap_us, "saved_us": overlap_us})


def fault_of(shown: pd.DataFrame) -> str:
    """Return the fault that the numbers of one monitor show."""
    if shown["fb_mib"].diff().iloc[1:].gt(1024).all():
        return "leak"
    if shown["rxpci_mbps"].min() > 1000:
        return "copies"
    if shown["sm_percent"].max() - shown["sm_percent"].min() > 50:
        return "pauses"
    if shown["sm_percent"].max() < 90:
        return "starved"
    return "one thread" if shown["pwr_w"].max() < 300 else "nothing"


def test_each_monitor_shows_what_the_key_says() -> None:
    """The numbers of each monitor lead to the key."""
    faults = {letter: fault_of(rows) for letter, rows in lab.monitors().groupby("program")}
    assert faults == FAULTS


def limit_of(letter: str) -> str:
    """Return the limit of a program, from the longest row of its profile."""
    program = lab.program(letter)
    with gpulab.virtual_gpu("H200", first_use=False):
        program()
        with profile() as profiled:
            program()
    rows = [row for row in profiled.key_averages() if not row.key.startswith("aten::")]
    on_device = {row.key: row.self_device_time_total for row in rows}
    on_host = {row.key: row.self_cpu_time_total for row in rows}
    ranges = [event.time_range for event in profiled.events()]
    length_us = max(each.end for each in ranges) - min(each.start for each in ranges)
    busiest = max(on_device, key=on_device.__getitem__)
    if on_device[busiest] > length_us / 2:
        return "copy" if busiest.startswith("Memcpy") else "compute"
    # The lesson says that this row is the profiler's own.
    del on_host["Activity Buffer Request"]
    longest = max(on_host, key=on_host.__getitem__)
    return "launch" if longest == "cudaLaunchKernel" else "allocation"


@pytest.mark.parametrize("letter", LIMITS)
def test_each_program_is_limited_by_what_the_key_says(letter: str) -> None:
    """The profile of each program leads to the right answer."""
    assert limit_of(letter) == LIMITS[letter]


def test_an_unknown_program_is_refused() -> None:
    """The error for an unknown letter lists the four known ones."""
    with pytest.raises(UnknownNameError, match="a, b, c, d"):
        lab.program("e")


def test_the_recorded_trace_is_complete(tmp_path: Path) -> None:
    """The trace is labelled as recorded on an H200, and has its kernels and both copies."""
    trace = lab.h200_trace()
    assert (trace.source, trace.device_name) == ("recorded", "NVIDIA H200")
    assert sum(span.kind == "copy" for span in trace.spans) == 2
    assert sum(span.kind == "kernel" for span in trace.spans) == 41
    saved = lab.save_h200_trace(tmp_path / "step.json.gz")
    assert read_trace(saved) == trace


# The figures of lesson 11b


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
    busy = replace(reading, power_w=686.0)
    half = replace(reading, utilization=50)
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
    assert [line[:15] for line in figure.caption.splitlines()[:6]] == [
        f"{letter}: GPU-Util (%)" for letter in "abcdef"
    ]
