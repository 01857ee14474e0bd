"""A short form of the campaign of interrupts: every so many bytecodes, and some random calls."""

import pytest

from benchmarks.interrupts.campaign import Campaign
from benchmarks.interrupts.injection import KINDS

pytestmark = pytest.mark.slow


# A MemoryError can leave more behind; the campaign counts it, and docs/trust.md says so.
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "memory"])
@pytest.mark.filterwarnings("ignore::UserWarning")  # findings are of no interest here
def test_nothing_is_left_behind(kind: str) -> None:
    """Contexts are whole, and the same GPU gives what one gives that nothing has struck."""
    campaign = Campaign(kind=kind)
    outcomes = [
        campaign.boundaries("virtual_gpu", step=401),
        campaign.boundaries("left_as_found", step=199),
        campaign.boundaries("hazards", step=307),
        campaign.points("streams", 4, seed=1),
        campaign.points("graphs", 4, seed=1),
    ]
    assert {outcome.name: dict(outcome.faults) for outcome in outcomes if outcome.faults} == {}
    assert all(outcome.n >= 4 for outcome in outcomes)
