"""The recordings that the virtual GPU was fitted to can be fitted to again."""

import pandas as pd
import pytest

from benchmarks.common.folders import RECORDINGS
from benchmarks.fidelity import recorded
from benchmarks.fidelity.table import paced

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


def test_errors_of_host_times_do_not_depend_on_the_hosts_pace() -> None:
    """A virtual host that is four times as fast has the same errors after their median ratio."""
    times = ((8.0, 8.0), (8.0, 10.0), (8.0, 4.0))
    said = [
        paced(pd.Series([there * pace / here - 1 for here, there in times])) for pace in (1, 0.25)
    ]
    after = [text.split("Divided")[1] for text in said]
    assert after[0] == after[1]
    assert "25.0 % in the median and by 45.0 % in the p90" in after[0]
