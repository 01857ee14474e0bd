"""A ladder times work by each method, next to profiler records, and says why a method failed."""

from collections.abc import Iterator

import pytest
import torch

import gpulab
from gpulab.core.errors import InvalidOptionError
from gpulab.timing import N_RUNGS, Ladder, Rung, ladder, run_ladder
from gpulab.views import plots

pytestmark = pytest.mark.usefixtures("no_pixels")

RUNGS = [
    "naive",
    "synchronized",
    "events",
    "+ warm-up",
    "+ cache flush",
    "+ sleep",
    "calibrated",
    "calibrated, hot",
    "graph",
    "graph, cold",
    "driver's records, hot",
    "driver's records, cold",
]


@pytest.fixture(autouse=True)
def h200() -> Iterator[None]:
    """Enter a virtual H200 whose context exists already."""
    with gpulab.virtual_gpu("H200", first_use=False):
        yield


@pytest.fixture(scope="module")
def addition() -> Ladder:
    """Return the ladder of an addition, made once for all tests that only read it."""
    with gpulab.virtual_gpu("H200", first_use=False):
        a = torch.ones(1 << 20, device="cuda")
        return ladder(lambda: a + a, label="addition")


def by_name(climbed: Ladder) -> dict[str, Rung]:
    """Return a dictionary from names to rungs."""
    return {rung.name: rung for rung in climbed.rungs}


def test_table_and_frame_have_a_row_a_rung(addition: Ladder) -> None:
    """Text, frame and HTML have one row per rung, and name the source."""
    head, *rows, source = str(addition).splitlines()
    assert source == "(virtual NVIDIA H200)"
    assert head.split("  ")[0] == "rung"
    assert [row.split("  ")[0] for row in rows] == RUNGS
    frame = addition.to_frame()
    assert list(frame["rung"]) == RUNGS
    assert set(frame["source"]) == {"virtual"}
    assert frame["median_s"].gt(0).all()
    assert addition._repr_html_().count("<tr>") == len(RUNGS) + 1


@pytest.mark.slow
def test_a_ladder_of_nothing_says_so_once() -> None:
    """Work on the host gives one note below the table, in text and HTML, and others give none."""
    a = torch.ones(8)
    found = ladder(lambda: a @ a, max_time_s=0.01, progress=False)
    kernel = ladder(lambda: torch.ones(1, device="cuda"), max_time_s=0.01, progress=False)
    assert str(found).splitlines()[-1] == (
        "  note: nothing-launched: check that it runs on the GPU, in this thread and on the "
        "current stream"
    )
    assert found._repr_html_().count("<li>") == 1
    assert kernel.findings == ()
    assert "<ul>" not in kernel._repr_html_()


@pytest.mark.slow
def test_rung_that_cannot_be_climbed_says_why() -> None:
    """A method that fails has its reason instead of a time, and the others have times."""
    x = torch.ones(4, device="cuda")
    climbed = ladder(lambda: x.sum().item(), max_time_s=0.1)
    rung = by_name(climbed)["graph"]
    assert rung.record is None
    assert rung.error is None
    assert rung.obstacle.startswith("the work cannot be captured into a CUDA graph")
    assert "not timed" in str(climbed)
    assert by_name(climbed)["naive"].record is not None


def test_figure_of_nothing_is_refused() -> None:
    """A ladder without a timed rung cannot be drawn."""
    empty = Ladder((Rung("naive", "", obstacle="no"),), "virtual", "NVIDIA H200")
    with pytest.raises(InvalidOptionError) as error:
        plots.ladder(empty)
    assert str(error.value) == "no rung was timed; there is nothing to draw"


@pytest.mark.slow
def test_a_ladder_grows_by_a_rung_a_time() -> None:
    """`run_ladder` yields after each rung, and every rung has its referee at once."""
    a = torch.ones(1 << 20, device="cuda")
    grown = list(run_ladder(lambda: a + a, max_time_s=0.01))
    assert [len(climbed.rungs) for climbed in grown] == list(range(1, N_RUNGS + 1))
    assert all(rung.referee_s is not None for climbed in grown for rung in climbed.rungs)
    assert [rung.name for rung in grown[-1].rungs][-1] == "driver's records, cold"
