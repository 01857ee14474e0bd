"""A short form of the campaign of interrupts: some random calls."""

import time

import pytest
import torch

from benchmarks.interrupts import injection
from benchmarks.interrupts.campaign import Campaign
from benchmarks.interrupts.injection import KINDS

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for a handler as long as it needs: on a busy machine a late one is no fault."""
    monkeypatch.setattr(injection, "_PATIENCE_S", 3600)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore::UserWarning")  # findings are of no interest here
def test_nothing_is_left_behind(kind: str) -> None:
    """After interrupts, contexts are closed and the GPU computes as an undisturbed one does."""
    campaign = Campaign(kind=kind)
    outcomes = [campaign.points(name, 4, seed=1) for name in ("streams", "graphs", "measure")]
    assert {outcome.name: dict(outcome.faults) for outcome in outcomes if outcome.faults} == {}
    assert all(outcome.n >= 3 for outcome in outcomes)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_a_strike_has_left_is_its_last_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names and settings that a program leaves are faults, and no interrupt follows."""
    n_runs = 0

    def leave_much() -> None:
        nonlocal n_runs
        n_runs += 1
        if n_runs == 3:  # after two that count the calls
            monkeypatch.setattr(torch, "sinc", torch.ones)
            torch.set_num_threads(n_threads + 1)
        torch.ones(3, device="cuda").add_(1)

    monkeypatch.setattr("benchmarks.interrupts.campaign.programs", lambda: {"leaves": leave_much})
    n_threads = torch.get_num_threads()
    outcome = Campaign(kind="interrupt").points("leaves", 4, seed=1)
    torch.set_num_threads(n_threads)
    assert (outcome.n, outcome.n_failed) == (1, 1)
    text = "; ".join(outcome.faults)
    assert "torch.sinc is replaced" in text
    assert f"threads: {n_threads + 1}, not {n_threads}" in text


def test_no_interrupt_begins_after_the_end() -> None:
    """The time that a campaign may take bounds its interrupts."""
    campaign = Campaign(kind="interrupt")
    campaign.end_s = time.monotonic()
    assert campaign.points("streams", 4, seed=1).n == 0
