"""A short form of the campaign of interrupts: every n-th bytecode, and some random calls."""

import pytest
import torch

from benchmarks.interrupts.campaign import Campaign
from benchmarks.interrupts.injection import KINDS
from gpulab import interrupts

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore::UserWarning")  # findings are of no interest here
def test_nothing_is_left_behind(kind: str) -> None:
    """After interrupts, contexts are closed and the GPU computes as an undisturbed one does."""
    campaign = Campaign(kind=kind)
    outcomes = [
        campaign.boundaries("virtual_gpu", step=401),
        campaign.boundaries("left_as_found", step=199),
        campaign.boundaries("hazards", step=307),
        campaign.boundaries("records", step=307),
        campaign.points("streams", 4, seed=1),
        campaign.points("graphs", 4, seed=1),
    ]
    assert {outcome.name: dict(outcome.faults) for outcome in outcomes if outcome.faults} == {}
    assert all(outcome.n >= 4 for outcome in outcomes)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_a_strike_has_left_is_put_back_before_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A fault that leaves names, settings, handlers or a stream does not fail the next trial."""
    n_runs = 0

    def leave_much() -> None:
        nonlocal n_runs
        n_runs += 1
        if n_runs == 3:  # after two that count the calls
            torch.zeros = torch.ones
            torch.set_num_threads(torch.get_num_threads() + 1)
            interrupts.hold(campaign)
            torch.cuda.set_stream(torch.cuda.Stream())
        torch.ones(3, device="cuda").add_(1)

    monkeypatch.setattr("benchmarks.interrupts.campaign.programs", lambda: {"leaves": leave_much})
    campaign = Campaign(kind="interrupt")
    outcome = campaign.points("leaves", 4, seed=1)
    assert (outcome.n, outcome.n_failed) == (4, 1)
