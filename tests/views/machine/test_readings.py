"""What each timing method reads for a program, the true time, and why they differ."""

from dataclasses import replace

import pytest

from gpulab.views.machine import _readings
from gpulab.views.machine._playback import play
from gpulab.views.machine._program import MachineProgram, ProgramOperation
from gpulab.views.machine._readings import own_readings, readings
from gpulab.views.machine._runner import Runner
from gpulab.views.machine._starts import start

O = ProgramOperation  # noqa: E741 # short, because every line of a program needs it

# Stream 1 joins the capture through the event and is never joined back, which CUDA refuses.
FORKED = MachineProgram(
    (
        O("record", event="a"),
        O("wait", stream=1, event="a"),
        O("kernel", stream=1),
        O("kernel", buffer="y"),
    ),
    n_streams=2,
)


def said(program: MachineProgram) -> dict[str, tuple[float | None, str]]:
    """Return value and reason of each method."""
    return {
        reading.name: (reading.value_us and round(reading.value_us, 3), reading.reason)
        for reading in readings(program)
    }


def test_readings_of_one_short_kernel() -> None:
    """For a short kernel, each method has the reason for its error, and two are right."""
    assert said(start("small kernels")) == {
        "naive": (5.05, "includes the launches"),
        "synchronized": (13.05, "launch, wake-up included"),
        "events": (8.35, "GPU waits for launches"),
        "batch / n": (5.805, "launches set pace"),
        "after a sleep": (4.6, "events cost time"),
        "graph": (2.0, ""),
        "calibrated": (2.0, ""),
    }


@pytest.mark.parametrize(
    ("program", "name", "reason"),
    [
        (MachineProgram((O("kernel", stream=1),), n_streams=2), "events", "misses other streams"),
        (MachineProgram((O("kernel", stream=1),), n_streams=2), "graph", "cannot be captured"),
        (MachineProgram((O("kernel"),) * 80, queue_depth=8), "calibrated", ""),
        (
            MachineProgram((O("kernel", duration_us=1.0),) * 80, queue_depth=8),
            "calibrated",
            "host not ahead",
        ),
        (
            MachineProgram((O("kernel"), O("synchronize"), O("kernel"))),
            "graph",
            "cannot be captured",
        ),
        (MachineProgram((O("kernel"),)), "batch / n", "n is 1"),
        (MachineProgram((O("graph"),)), "graph", "cannot be captured"),
        (MachineProgram((O("copy in", is_pinned=False),)), "graph", "cannot be captured"),
        (
            MachineProgram((O("copy in", is_pinned=False, duration_us=4.0),)),
            "graph",
            "cannot be captured",
        ),
        (FORKED, "graph", "cannot be captured"),
        (MachineProgram((O("kernel", duration_us=200.0),)), "naive", "launches, not work"),
    ],
)
def test_the_reason_fits_the_cause(program: MachineProgram, name: str, reason: str) -> None:
    """The reason names the actual cause: a missed stream, a small queue or no capture."""
    assert said(program)[name][1] == reason


def test_no_method_is_right_without_being_near() -> None:
    """A method counts as right exactly if it is within 10 % of the truth."""
    for name in ("stopwatch", "streams", "queue", "two kernels"):
        for reading in readings(start(name)):
            off = abs((reading.value_us or 0.0) - reading.truth_us)
            assert reading.is_right == (off <= 0.1 * reading.truth_us)
            assert bool(reading.reason) != reading.is_right


def test_the_programs_own_stopwatch_and_events_are_read_for_one_repetition() -> None:
    """The program's own readings are divided by its repetitions and judged like methods."""
    (events,) = own_readings(play(start("small kernels")))
    assert events.name == "your events"
    assert events.value_us == pytest.approx(5.335, abs=0.01)
    assert events.reason == "too long"
    (stopwatch,) = own_readings(play(start("stopwatch")))
    assert (stopwatch.value_us, stopwatch.reason) == (pytest.approx(5.05), "too short")


def test_no_run_is_made_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Methods that need the same run share it, also with the program's own readings."""
    runs: list[MachineProgram] = []

    class Counted(Runner):
        """A runner that counts its instances."""

        def __init__(self, program: MachineProgram) -> None:
            super().__init__(program)
            runs.append(program)

    monkeypatch.setattr(_readings, "Runner", Counted)
    program = replace(start("stopwatch"), launch_us=3.25)  # a program that is not in the cache
    found = (*own_readings(play(program)), *readings(program))
    # Runs: the truth, naive (also the host's time for the launches), synchronized (also batch of
    # one), events, after a sleep (also calibrated), and graph.
    assert (len(found), len(runs)) == (8, 6)
