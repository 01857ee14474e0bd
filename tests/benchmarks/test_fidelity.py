"""The recordings that the virtual GPU was fitted to can be fitted to again."""

import pytest

from benchmarks.common.folders import RECORDINGS
from benchmarks.fidelity import recorded

FITTED_TO = sorted({*RECORDINGS.glob("h200*.json")} - {RECORDINGS / "h200-host-time.json"})


def test_each_recorded_call_has_its_function() -> None:
    """Every call of every recording can be set up, by a function that takes its parameters."""
    n_calls = sum(len([*recorded.calls(path)]) for path in FITTED_TO)
    assert n_calls > 32_000


def test_a_call_without_a_function_is_named() -> None:
    """A recorded call that nothing can set up is refused by its name."""
    entry = {"family": "matmul", "role": "fit", "dtype": "float32", "parameters": {"m": 8}}
    with pytest.raises(LookupError, match="makes 'no such call'"):
        recorded.workload_of("no such call", entry)
