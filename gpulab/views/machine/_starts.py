"""The ready-made programs that ``machine_explorer`` can open with, by name."""

from collections.abc import Mapping
from types import MappingProxyType

from gpulab.core.requirements import NameOf
from gpulab.views.machine._program import MachineProgram, ProgramOperation
from gpulab.views.machine._readings import READING_NAMES

_O = ProgramOperation  # short, so that a program fits on a line

STARTS: Mapping[str, MachineProgram] = MappingProxyType(
    {
        "stopwatch": MachineProgram((_O("clock"), _O("kernel", duration_us=200.0), _O("clock"))),
        "synchronize": MachineProgram(
            (
                _O("synchronize"),
                _O("clock"),
                _O("kernel", duration_us=40.0),
                _O("synchronize"),
                _O("clock"),
            ),
        ),
        "events": MachineProgram(
            (
                _O("record", event="start"),
                _O("kernel", duration_us=20.0),
                _O("record", event="end"),
                _O("synchronize"),
            ),
        ),
        "small kernels": MachineProgram(
            (
                _O("record", event="start"),
                _O("kernel", duration_us=2.0),
                _O("record", event="end"),
                _O("synchronize"),
            ),
            repetitions=10,
        ),
        "streams": MachineProgram(
            (
                _O("copy in", duration_us=60.0, is_pinned=False, buffer="y"),
                _O("kernel", duration_us=100.0, buffer="x"),
                _O("kernel", duration_us=40.0, buffer="y"),
            ),
            n_streams=2,
        ),
        "copy and kernel": MachineProgram(
            (
                _O("kernel", duration_us=100.0, buffer="x"),
                _O("copy in", duration_us=60.0, is_pinned=False, buffer="y"),
            ),
            n_streams=2,
        ),
        "two kernels": MachineProgram(
            (_O("kernel", duration_us=40.0), _O("kernel", duration_us=40.0)), n_streams=2
        ),
        "queue": MachineProgram(
            (_O("clock"), _O("kernel", duration_us=20.0), _O("clock")), queue_depth=16
        ),
        "empty": MachineProgram(),
    }
)
# The lesson of a program knows these methods; the others join in later lessons.
_METHODS_SO_FAR: Mapping[str, tuple[str, ...]] = {
    "stopwatch": (),
    "queue": (),
    "synchronize": ("naive", "synchronized"),
    "events": ("naive", "synchronized", "events"),
}
_START = NameOf("program to begin with", STARTS)


def methods_of(name: str) -> tuple[str, ...]:
    """Return the timing methods beside which a program is shown at first."""
    return _METHODS_SO_FAR.get(name, READING_NAMES)


def start(name: str) -> MachineProgram:
    """Return a program to begin with, by name."""
    _START.check(start=name)
    return STARTS[name]
