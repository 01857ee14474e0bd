"""The counts of a call: kernels, copies, waits and memory, the same on every machine."""

import pytest
import torch

from gpulab.core.errors import NotCallableError
from gpulab.tracing import CallCounts, call_counts

pytestmark = pytest.mark.usefixtures("gpu")


def test_a_call_is_counted_without_the_wait_that_ends_the_recording() -> None:
    """Two kernels that nobody waits for, and the memory of the first result and the second."""
    x = torch.ones(1 << 20, device="cuda")
    _ = torch.empty(1 << 26, device="cuda") is None  # a larger peak before
    assert call_counts(lambda: (x + x) * x) == CallCounts(2, 0, 0, 0, 2 * 4 * 2**20)


def test_waits_and_copies_are_counted() -> None:
    """Reading one number copies it and waits; a copy from pageable memory waits, too."""
    x, host = torch.ones(8, device="cuda"), torch.ones(1024)
    read = call_counts(lambda: x.max().item())
    assert (read.n_copies, read.copied_bytes, read.n_waits) == (1, 4, 1)
    sent = call_counts(lambda: host.to("cuda"))
    assert (sent.n_kernels, sent.copied_bytes, sent.n_waits) == (0, 4096, 1)


def test_a_first_call_is_not_counted() -> None:
    """What only the first call does, such as filling a table, is left out."""
    x = torch.ones(8, device="cuda")
    table: list[torch.Tensor] = []

    def work() -> torch.Tensor:
        if not table:
            table.append(torch.zeros(1 << 20, device="cuda"))
        return x + x

    assert call_counts(work) == CallCounts(1, 0, 0, 0, 512)


def test_nothing_counts_nothing() -> None:
    """Work that enqueues nothing has zeros, and only a function can be counted."""
    assert call_counts(lambda: None) == CallCounts(0, 0, 0, 0, 0)
    with pytest.raises(NotCallableError, match=r"pass a function: call_counts\(lambda: a @ b\)"):
        call_counts(torch.ones(1))  # type: ignore[arg-type]  # a mistake
