"""Lesson 05: right answers pass, mistakes get a diagnosis, and readings become words."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pandas as pd
import pytest

import gpulab
from gpulab import clocks
from gpulab.device.clocks import Reading
from gpulab.exercises.lesson_05 import _exercises as lesson
from gpulab.exercises.lesson_05 import (
    asked_for,
    cause_of,
    draw_orders,
    lock_virtual_gpu,
    plot_over_time,
)

Keep = Callable[[list[float], list[Reading | None]], object]


# The two traces


def test_traces_say_where_they_come_from() -> None:
    """The frame is labelled as virtual, and its times are in seconds."""
    frame = lesson.TWO_TRACES.readings()  # type: ignore[misc]  # this one has readings
    assert set(zip(frame["source"], frame["device_name"], strict=True)) == {
        ("virtual", "NVIDIA H200")
    }
    assert frame["duration_s"].between(1.4e-3, 1.8e-3).all()


def test_only_one_of_the_traces_follows_the_clock() -> None:
    """In a, times rise as the clock falls; in b, times vary as much at a constant clock."""
    frame = lesson.TWO_TRACES.readings()  # type: ignore[misc]  # this one has readings
    a, b = (part for _, part in frame.groupby("series"))
    for part in (a, b):
        assert part["duration_s"].max() > 1.15 * part["duration_s"].min()
    assert a["duration_s"].is_monotonic_increasing
    assert a["sm_mhz"].is_monotonic_decreasing
    assert set(a["reasons"]) == {"", "power cap"}
    assert set(b["sm_mhz"]) == {1980}
    assert set(b["reasons"]) == {""}
    assert a["temperature_c"].max() == 56


# Which samples to discard


def keeping(is_kept: Callable[[float, Reading], bool]) -> Keep:
    """Return an answer that decides about each sample with its reading."""

    def keep(samples_s: list[float], readings: list[Reading | None]) -> list[float]:
        pairs = zip(samples_s, readings, strict=True)
        return [s for s, reading in pairs if reading is None or is_kept(s, reading)]

    return keep


def usual(reading: Reading) -> bool:
    """Return whether the clock is near the most frequent one."""
    return 1400 < (reading.sm_mhz or 0) < 1500


KEEPS: list[tuple[Keep, str]] = [
    (lambda samples_s, _: [*samples_s[1:8], samples_s[9]], "kept-all"),
    (keeping(lambda _, reading: reading.sm_mhz == 1980), "kept-burst"),
    (keeping(lambda _, reading: not usual(reading)), "inverted"),
    (keeping(lambda s, reading: usual(reading) and s < 1.9e-3), "by-duration"),
    (keeping(lambda _, reading: reading.sm_mhz == 1440), "one-step"),
    (keeping(lambda _, reading: (reading.sm_mhz or 0) < 1900), "dip-kept"),
    (lambda samples_s, _: samples_s[2:7], "left-out"),
    (
        lambda samples_s, readings: [
            s for s, reading in zip(samples_s, readings, strict=True) if reading and usual(reading)
        ],
        "no-reading",
    ),
    (
        lambda samples_s, readings: [
            s for s, reading in zip(samples_s, readings, strict=True) if usual(reading)
        ],
        "no-reading",
    ),
    (lambda *_: None, "nothing-returned"),
    (lambda _, readings: clocks.flag(readings), "not-samples"),
    (lambda *_: 1.65e-3, "not-samples"),
    (lambda *_: [], "not-samples"),
    (lambda samples_s, _: [samples_s[2]] * 2, "not-samples"),
    (lambda samples_s, _: samples_s["x"], "raised"),
]


@pytest.mark.parametrize(("keep", "code"), KEEPS)
def test_filters_are_diagnosed(keep: Keep, code: str) -> None:
    """The samples that a filter keeps or drops wrongly decide its diagnosis."""
    verdict = lesson.WHICH_TO_DISCARD.judge(keep, None)
    assert (verdict.ok, verdict.diagnosis_code) == (False, code)


# What the lesson draws


def drawn(frame: pd.DataFrame, column: str = "sm_mhz", label: str = "clock (MHz)") -> Any:  # noqa: ANN401  # axes
    """Return the axes of a figure over time."""
    with gpulab.virtual_gpu("H200", first_use=False):
        (ax,) = plot_over_time(frame, column, label, title="A title").canvas.axes
    return ax


ORDERS = {"A first": ([1.0] * 4, [1.1] * 4), "B first": ([1.2] * 4, [0.9] * 4)}


def test_both_orders_have_a_panel_each_and_a_ratio() -> None:
    """A panel shows the calls in the order made, and the title has B / A of both orders."""
    with gpulab.virtual_gpu("H200", first_use=False):
        figure = draw_orders(ORDERS)
        same = draw_orders({"A first": ([1.0], [0.9]), "B first": ([1.0], [0.9])})
    (ax,) = figure.canvas.axes
    first, second = ax.child_axes
    assert (first.get_title(), second.get_title()) == ("A first", "B first")
    a, b = first.lines
    assert (list(a.get_xdata()), list(b.get_xdata())) == ([1, 2, 3, 4], [5, 6, 7, 8])
    a, b = second.lines
    assert (list(a.get_xdata()), list(b.get_xdata())) == ([5, 6, 7, 8], [1, 2, 3, 4])
    assert figure.title.startswith("Whichever runs second takes longer: B / A is 1.1, then 0.75 (")
    assert figure.caption.splitlines()[1] == (
        "B first: B from 900 µs to 900 µs, then A from 1.20 ms to 1.20 ms."
    )
    assert "The y axis shows time per call (ms), from 0.9 to 1.2." in figure.description
    assert same.title.startswith("Both orders: B / A is 0.9, then 0.9 (")


def test_the_power_limit_wins_over_a_locked_clock() -> None:
    """The GPU stays at a locked clock only if that is below the settled clock."""
    frame = asked_for([1980, 1695, 1200])
    clocks_mhz = frame.groupby("asked_mhz")["sm_mhz"]
    assert clocks_mhz.first().to_dict() == {1200: 1200, 1695: 1695, 1980: 1980}
    assert clocks_mhz.last().to_dict() == {1200: 1200, 1695: 1440, 1980: 1440}
    assert frame["time_s"].max() == 0.6
    assert frame["series"].iloc[0] == "asked for 1980 MHz"
    assert set(zip(frame["source"], frame["device_name"], strict=True)) == {
        ("virtual", "NVIDIA H200")
    }


def test_a_figure_over_time_says_where_each_line_begins_and_ends() -> None:
    """The text alternative has each line's first and last value, and the title is the caller's."""
    shown = str(plot_over_time(asked_for([1980, 1200]), "sm_mhz", "clock (MHz)", title="Clocks"))
    assert "Clocks (virtual NVIDIA H200)" in shown
    assert "asked for 1980 MHz: from 1,980 at first to 1,440 at last." in shown
    assert "asked for 1200 MHz: from 1,200 at first to 1,200 at last." in shown


# What readings say in words


@pytest.mark.parametrize(
    ("reasons", "cause"),
    [
        (("power cap",), "power"),
        (("thermal slowdown (software)", "power cap"), "power"),
        (("thermal slowdown (hardware)",), "heat"),
        (("applications clocks",), "a setting"),
        (("idle",), "nothing does"),
        ((), "nothing does"),
    ],
)
def test_reasons_become_choices_of_the_prediction(reasons: tuple[str, ...], cause: str) -> None:
    """The driver's reason decides the choice; without a reason nothing lowers the clock."""
    assert cause_of(clocks.Regime("settled", "", reasons=reasons)) == cause


@pytest.mark.parametrize("is_entered", [True, False])
def test_a_virtual_gpu_refuses_a_lock(is_entered: bool) -> None:  # noqa: FBT001  # a case
    """The lock is refused as for a user without sudo, inside a virtual GPU and without one."""
    with gpulab.virtual_gpu("H200") if is_entered else nullcontext():
        asked = lock_virtual_gpu(1410)
    assert asked.outcome == "refused"
    assert "sudo nvidia-smi -i 0 -lgc 1410,1410" in asked.message
