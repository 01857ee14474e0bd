"""Lesson 11: each typical mistake gets its diagnosis; profiles and monitors fit the keys."""

from pathlib import Path

import pandas as pd
import pytest
from torch.profiler import profile

import gpulab
from gpulab import exercises
from gpulab.errors import UnknownNameError
from gpulab.exercises import lesson_11 as lab
from gpulab.exercises.lesson_11._exercises import overlap_readings
from gpulab.exercises.lesson_11._monitors import monitors, worlds
from gpulab.tracing import read_trace

COLUMNS = {"a": "fb", "b": "pviol", "c": "sm", "d": "rxpci", "e": "tviol"}
WRONG = {
    "a": "nothing",
    "b": "starved",
    "c": "one thread",
    "d": "leak",
    "e": "copies",
    "f": "pauses",
}
RIGHT = {"a": "launch", "b": "allocation", "c": "compute", "d": "copy"}


@pytest.mark.parametrize(
    ("name", "answer", "code"),
    [
        ("columns", "c", ""),
        ("columns", "a", "host-is-not-device"),
        ("columns", "b", "self-zero-is-not-idle"),
        ("columns", "d", "one-call"),
        ("bound", RIGHT, ""),
        ("bound", {**RIGHT, "a": "compute"}, "many-calls-are-not-much-work"),
        ("bound", {**RIGHT, "b": "launch"}, "look-at-the-calls"),
        ("bound", {**RIGHT, "b": "compute"}, "no-kernels"),
        ("bound", {**RIGHT, "d": "compute"}, "copies-are-not-kernels"),
        ("bound", {**RIGHT, "d": "launch"}, "a-call-that-copies"),
        ("bound", {**RIGHT, "c": "launch"}, "the-host-is-done"),
        ("bound", {**RIGHT, "c": "copy"}, "wrong-limit"),
        ("overlap", {"overlap_us": 35, "saved_us": 35}, ""),
        ("overlap", {"overlap_us": 30, "saved_us": 35}, "partly"),
        ("overlap", {"overlap_us": 45, "saved_us": 45}, "whole-kernels"),
        ("overlap", {"overlap_us": 80, "saved_us": 35}, "whole-copies"),
        ("overlap", {"overlap_us": 35, "saved_us": 30}, "to-the-end"),
        ("overlap", {"overlap_us": 3, "saved_us": 3}, "intersect"),
        ("schedule", "2367", ""),
        ("schedule", {"1", "2", "3", "6", "7"}, "warm-up-is-dropped"),
        ("schedule", {"2", "3", "5", "6", "7"}, "each-cycle-warms-up"),
        ("schedule", {"2", "3", "6", "7", "8"}, "repeat"),
        ("schedule", {"0", "2", "3", "6", "7"}, "wait-first"),
        ("schedule", {"2", "6"}, "two-active"),
        ("schedule", {"3", "7"}, "first-active"),
        ("schedule", {"2", "3"}, "second-cycle"),
        ("schedule", "0123456789", "no-schedule"),
        ("schedule", [], "nothing"),
        ("which-column", COLUMNS, ""),
        ("which-column", {**COLUMNS, "a": "mem"}, "mem-is-time"),
        ("which-column", {**COLUMNS, "b": "tviol"}, "heat-or-power"),
        ("which-column", {**COLUMNS, "d": "txpci"}, "whose-view"),
        ("which-column", {**COLUMNS, "e": "gtemp"}, "hot-is-not-slowed"),
        ("which-column", {**COLUMNS, "e": "pviol"}, "power-or-heat"),
        ("which-column", {**COLUMNS, "c": "fb"}, "another-column"),
        ("monitors", WRONG, ""),
        ("monitors", {**WRONG, "c": "nothing"}, "util-is-not-use"),
        ("monitors", {**WRONG, "a": "one thread"}, "power-says-it"),
        ("monitors", {**WRONG, "d": "nothing"}, "look-at-fb"),
        ("monitors", {**WRONG, "b": "copies"}, "no-traffic"),
        ("monitors", {**WRONG, "b": "pauses"}, "every-second-alike"),
        ("monitors", {**WRONG, "e": "starved"}, "look-at-the-bus"),
        ("monitors", {**WRONG, "f": "starved"}, "whole-seconds"),
        ("monitors", {**WRONG, "f": "nothing"}, "only-the-busy-seconds"),
        ("monitors", {**WRONG, "a": "leak"}, "other-columns"),
    ],
)
def test_each_answer_has_its_verdict(name: str, answer: object, code: str) -> None:
    """A right answer gets no code, and a wrong one gets the code of its mistake."""
    verdict = exercises.check(f"11.{name}", answer)
    assert (bool(verdict), verdict.diagnosis_code) == (not code, code)


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


@pytest.mark.parametrize("world", worlds())
def test_each_monitor_shows_what_the_key_says(world: str) -> None:
    """The numbers of each monitor lead to the key, on the virtual and on the recorded GPU."""
    shown = monitors(world)
    found = {letter: fault_of(rows) for letter, rows in shown.groupby("program")}
    assert found == WRONG
    assert shown["source"].str.contains(world).all()


def limit_of(letter: str) -> str:
    """Return the limit of a program, from the longest row of its profile."""
    program = lab.program(letter)
    with gpulab.virtual_gpu("H200", first_use=False):
        program()
        with profile() as seen:
            program()
    rows = [row for row in seen.key_averages() if not row.key.startswith("aten::")]
    on_device = {row.key: row.self_device_time_total for row in rows}
    on_host = {row.key: row.self_cpu_time_total for row in rows}
    ranges = [event.time_range for event in seen.events()]
    length_us = max(each.end for each in ranges) - min(each.start for each in ranges)
    busiest = max(on_device, key=on_device.__getitem__)
    if on_device[busiest] > length_us / 2:
        return "copy" if busiest.startswith("Memcpy") else "compute"
    # The lesson says that this row is the profiler's own.
    del on_host["Activity Buffer Request"]
    longest = max(on_host, key=on_host.__getitem__)
    return "launch" if longest == "cudaLaunchKernel" else "allocation"


@pytest.mark.parametrize("letter", RIGHT)
def test_each_program_is_limited_by_what_the_key_says(letter: str) -> None:
    """The profile of each program leads to the right answer."""
    assert limit_of(letter) == RIGHT[letter]


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
