"""On hardware: the warm-up sees whether work enqueues anything, and Ctrl-C keeps the samples.

Run it alone by ``python -m pytest -n0 -q -m gpu tests/gpu/test_measure.py``.
"""

import itertools

import pytest
import torch

from gpulab.timing import METHODS, measure
from gpulab.timing._warmup import warm_up

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.slow,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU"),
]

LEAST = {
    "a negation": lambda x: x.neg(),
    "a fill": lambda x: x.zero_(),
    "a copy": lambda x: x.clone(),
    "a copy to the host": lambda x: x.to("cpu", non_blocking=True),
    "a sum": lambda x: x.sum(),
    "a short sleep": lambda _: torch.cuda._sleep(1),
}


@pytest.mark.parametrize("name", LEAST)
def test_the_least_work_is_not_taken_for_none(name: str) -> None:
    """Twenty warm-ups of one small kernel or copy each see that something was enqueued."""
    x = torch.ones(1, device="cuda")
    seen = [
        warm_up(lambda: LEAST[name](x), n_calls=None, max_time_s=1.0).is_empty for _ in range(20)
    ]
    assert not any(seen)


def test_work_on_the_host_is_seen_to_enqueue_nothing() -> None:
    """Twenty warm-ups of work on the host each see that nothing was enqueued."""
    x = torch.ones(64, 64)
    assert all(warm_up(lambda: x @ x, n_calls=None, max_time_s=1.0).is_empty for _ in range(20))


@pytest.mark.parametrize("method", METHODS)
def test_every_method_says_that_there_is_nothing_to_time(method: str) -> None:
    """Work on the host has the finding, whatever the method."""
    x = torch.ones(64, 64)
    codes = [finding.code for finding in measure(lambda: x @ x, method=method).findings]
    assert "nothing-launched" in codes


@pytest.mark.parametrize("method", [name for name in METHODS if name != "graph"])
def test_an_interrupt_keeps_the_samples_of_a_given_number(method: str) -> None:
    """Ctrl-C in call 700 of 5,000 keeps most of the samples before it, in one batch or several."""
    x, calls = torch.ones(1 << 20, device="cuda"), itertools.count(1)

    def work() -> None:
        if next(calls) == 700:
            raise KeyboardInterrupt
        x.add(1)

    found = measure(work, method=method, n_samples=5_000, n_warmup=5, progress=False)
    assert found.stopped_by == "interrupt"
    assert 500 <= found.n_samples < 700
