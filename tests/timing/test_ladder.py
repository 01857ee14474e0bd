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


@pytest.mark.slow
def test_rungs_come_in_the_order_of_what_they_repair(addition: Ladder) -> None:
    """Each rung repairs one fault of the rung before, from naive timing to profiler records."""
    assert [rung.name for rung in addition.rungs] == RUNGS
    records = [rung.record for rung in addition.rungs if rung.record is not None]
    assert len(records) == len(RUNGS)
    assert [record.n_warmup > 0 for record in records] == [False] * 3 + [True] * 9


@pytest.mark.slow
def test_calibrated_rungs_agree_with_the_records(addition: Ladder) -> None:
    """Calibrated times match the records within a tick of the events; simpler ones do not."""
    rungs = by_name(addition)
    for name in ("calibrated", "calibrated, hot"):
        record, referee_s = rungs[name].record, rungs[name].referee_s
        assert record is not None
        # A reading and the floor that is taken from it are each rounded by up to half a tick.
        assert record.median_s == pytest.approx(referee_s, abs=32e-9)
    assert abs(rungs["events"].error or 0) > 0.2
    assert abs(rungs["+ sleep"].error or 0) > 0.2


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


def test_a_ladder_of_several_kernels_says_how_long_they_take_alone() -> None:
    """The pauses between kernels are in the readings; a single kernel has none."""
    a = torch.ones(64, device="cuda")

    def several() -> None:
        for _ in range(4):
            a.add(1)

    one, four = (gpulab.ladder(work, progress=False) for work in (lambda: a.add(1), several))
    assert one.kernels_s is None
    assert "kernels alone" not in str(one)
    whole_s = four.rungs[-1].referee_s
    assert four.kernels_s is not None
    assert whole_s is not None
    assert 2e-6 < whole_s - four.kernels_s < 4e-6  # three pauses of about 1 µs
    assert "the kernels alone take" in str(four)
    assert "the kernels alone take" in four._repr_html_()
