"""No wrong index reaches a CPU kernel that trusts it: such a kernel writes to other memory."""

import subprocess

import pytest

# Positions of numbers that choose no element, or of indices that the operator itself leaves out.
_HARMLESS = {
    *(
        "_embedding_bag_backward 4",
        "_embedding_bag_backward 5",
    ),  # sizes; indices of the mode "max"
    *("_unsafe_masked_index 2", "_unsafe_masked_index 3"),  # a mask excludes them
    *("_unsafe_masked_index_put_accumulate 2", "_unsafe_masked_index_put_accumulate 3"),
}


@pytest.mark.slow
def test_what_the_cpu_does_not_check_is_checked_before(warm_database: list[str]) -> None:
    """PyTorch's database of operators: no value is computed from an index out of range."""
    command = [*warm_database, "-m", "tests.support.trusted_indices"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    ends = {call: end for call, _, end in (x.rsplit(" ", 2) for x in shown.splitlines())}
    assert len(ends) > 10
    assert {call for call, end in ends.items() if end != "raises"} == _HARMLESS
