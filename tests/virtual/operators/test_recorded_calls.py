"""Calls take about as long as an H200 recorded, and launch as many kernels.

The surfaces of efficiencies were fitted to these calls, so a wrong coordinate, tile or constant
makes them miss. The rules for kernels follow the driver's records of the same calls.
"""

import json
from collections import defaultdict
from collections.abc import Iterator
from statistics import median
from typing import Any

import pytest

import gpulab
from benchmarks.common.device_records import busy_us, profiled
from benchmarks.common.folders import RECORDINGS
from benchmarks.fidelity.recorded import makers
from benchmarks.fidelity.workload import SAMPLED, Workload

# About so many calls of each kind and recording, evenly spaced. Convolutions have the most rules.
N_OF_A_KIND = 8
N_OF_OTHER_KINDS = {"conv": 80, "conv_gradient": 80}
# Their results depend on values; the others are quicker without.
NEED_VALUES = {"counted", "selected"}
# How many of the calls launch another number of kernels than the H200 did. Lower it if a rule gets
# better.
N_OTHERS = {
    "compared_backward": 2,
    "conv": 15,
    "conv_gradient": 40,
    "drawn_rows": 1,
    "factored": 3,
    "indexed_places": 1,
    "normalized_gradient": 3,
    "ordered": 2,
    "ordered_rows": 2,
    "other_conv": 6,
    "pairs": 2,
    "resized_gradient": 2,
    "turned_matmul": 1,
}

Answer = tuple[float, bool | None]


@pytest.fixture(scope="module")
def answers() -> dict[str, list[Answer]]:
    """Return for each kind of call its times by the recorded ones, and if the kernels are right.

    None means that the recording has no kernels.
    """
    by_kind = defaultdict(list)
    for name in ("h200-wide", "h200-dense", "h200-focused"):
        recording = json.loads((RECORDINGS / f"{name}.json").read_text("utf-8"))
        for kind in recording["calls"]:
            by_kind[kind] += answers_of(kind, recording)
    return by_kind


def answers_of(kind: str, recording: dict[str, Any]) -> Iterator[Answer]:
    """Run some recorded calls of a kind on the virtual GPU, and compare them."""
    (make,) = (make for make in makers() if make.__name__ == kind)
    columns, rows = recording["calls"][kind]["columns"], recording["calls"][kind]["rows"]
    n_parameters = columns.index("dtype")
    limit = 1 << 27 if kind in NEED_VALUES else 0
    with gpulab.virtual_gpu("H200", first_use=False, max_value_elements=limit):
        for values in rows[:: len(rows) // N_OF_OTHER_KINDS.get(kind, N_OF_A_KIND)]:
            row = dict(zip(columns, values, strict=True))
            parameters = dict(zip(columns[:n_parameters], values, strict=False))
            workload = Workload(SAMPLED, "", make, row["dtype"], parameters)
            with workload.precision():
                work = workload.build()
                work()
                records = profiled(work)
            is_right = None
            if "sequence" in row:
                kernels = recording["sequences"][row["sequence"]]
                n_kernels = sum(n for n, at in kernels if "Mem" not in recording["kernels"][at])
                is_right = n_kernels == sum("Mem" not in record.name for record in records)
            yield busy_us(records) / row["hot_us"], is_right


@pytest.mark.slow  # runs 1,100 calls
def test_calls_take_as_long_as_recorded(answers: dict[str, list[Answer]]) -> None:
    """In the median most kinds of calls miss by at most 3 %, and each by at most 10 %."""
    errors = {
        kind: median(abs(ratio - 1) for ratio, _ in of_kind) for kind, of_kind in answers.items()
    }
    assert median(errors.values()) < 0.03
    assert {kind for kind, error in errors.items() if error > 0.1} <= {"counted"}


@pytest.mark.slow  # as above
def test_calls_launch_as_many_kernels_as_recorded(answers: dict[str, list[Answer]]) -> None:
    """Only where a library chooses by rules that it does not publish, some numbers differ."""
    n_wrong = {kind: sum(is_right is False for _, is_right in answers[kind]) for kind in answers}
    assert {kind: n for kind, n in n_wrong.items() if n > N_OTHERS.get(kind, 0)} == {}
