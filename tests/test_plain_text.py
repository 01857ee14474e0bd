"""What a terminal and IPython show of a result is its text, and not the fields of a dataclass."""

from typing import Any

import pytest
from IPython.lib.pretty import pretty

import gpulab
from gpulab.timing import Comparison
from gpulab.workloads.sweeps import FunctionPoint
from gpulab.workloads.sweeps._functions import Setting
from tests.support.right_values import record

RESULTS = ("Measurement", "Ladder", "Sweep", "Timeline", "Summary", "Card", "Crossover")


def results() -> dict[str, Any]:
    """Return what the functions return that users call in a terminal."""
    found = {name: record(name) for name in RESULTS}
    measurement = found["Measurement"]
    found["Comparison"] = Comparison(measurement, measurement)
    found["Report"] = gpulab.doctor()
    found["FunctionPoint"] = FunctionPoint(Setting("add", "{}"), measurements=(measurement,) * 2)
    return found


@pytest.mark.parametrize("name", [*RESULTS, "Comparison", "Report", "FunctionPoint"])
def test_a_result_is_shown_as_text(name: str) -> None:
    """Neither print nor repr nor IPython's printer shows names of fields."""
    result = results()[name]
    for text in (str(result), repr(result), pretty(result)):
        assert f"{name}(" not in text
        assert "samples_s=" not in text
        assert "rows=" not in text
    assert repr(result).splitlines()[0] == str(result).splitlines()[0]


def test_print_shows_the_findings() -> None:
    """Each finding of a measurement has a line below it."""
    with gpulab.virtual_gpu("H200", first_use=False):
        taken = gpulab.measure(lambda: None, n_samples=3)
    notes = [line for line in str(taken).splitlines() if line.startswith("  note: ")]
    assert [note.split(": ")[1] for note in notes] == [each.code for each in taken.findings]
    assert notes
