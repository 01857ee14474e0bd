"""A card judges a benchmark by hidden works, and lists the situations it cannot handle."""

import datetime as dt
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest
import torch

import gpulab
from gpulab.core.errors import InvalidOptionError, SchemaVersionError
from gpulab.core.units import format_percent
from gpulab.timing.cards import Card, _run
from gpulab.timing.cards._problems import problem_of
from gpulab.timing.cards._works import spinning, works
from gpulab.tracing.trials import WatchedWork, tried
from tests.support.benchmarks import BENCHMARKS

pytestmark = pytest.mark.usefixtures("gpu")


Work = Callable[[], object]
SITUATIONS = {
    "a GPU that is still busy",
    "slow first calls",
    "work on another stream",
    "work that waits",
    "work that raises",
}


@pytest.fixture(scope="module", autouse=True)
def _few_works() -> Iterator[None]:
    """Leave out most of the hidden works, which take most of a card's time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_run, "works", lambda seed: works(seed)[:4])
        yield


@pytest.fixture(scope="module")
def good(_few_works: None) -> Card:
    """Return the card of the last lesson's benchmark."""
    with gpulab.virtual_gpu("H200", first_use=False):
        return gpulab.card(BENCHMARKS["measure"], seed=7, progress=False)


class Tuned:
    """A benchmark that times its first three works correctly and returns a constant for others."""

    def __init__(self) -> None:
        self.n_calls = 0

    def __call__(self, fn: Work) -> float:
        """Return a correct time for the first nine calls, and 1 s afterwards."""
        self.n_calls += 1
        if self.n_calls <= 9:
            return gpulab.measure(fn, n_samples=10).median_s
        fn()
        return 1.0


@pytest.mark.slow
def test_a_good_benchmark_has_a_good_card(good: Card) -> None:
    """A good benchmark has small errors for cold works and one situation that it cannot handle."""
    assert (good.cache, good.source, good.seed) == ("cold", "virtual", 7)
    assert good.median_error < 0.1
    assert not good.is_tuned
    assert {each.situation for each in good.checks} == SITUATIONS
    assert [each.situation for each in good.checks if each.problem] == ["work on another stream"]
    assert all(abs(entry.measured_error or 0) < 0.02 for entry in good.entries)
    assert all(entry.spread is not None and entry.spread < 0.02 for entry in good.entries)
    text = str(good)
    assert "Benchmark card of _sleep (virtual NVIDIA H200, cold cache)" in text
    assert "Judged by the virtual GPU's own records." in text
    assert "seed 7" in text


@pytest.mark.slow
def test_a_card_is_saved_as_a_page_or_as_json(good: Card, tmp_path: Path) -> None:
    """The JSON is read back unchanged; the page is complete and escapes the benchmark's name."""
    assert Card.from_json(good.save(tmp_path / "card.json").read_text("utf-8")) == good
    named = replace(good, benchmark="<b>mine</b>")
    page = named.save(tmp_path / "card.HTML").read_text("utf-8")
    assert page.startswith('<!doctype html><html lang="en">')
    assert "&lt;b&gt;mine&lt;/b&gt;" in page
    assert "<b>" not in page
    assert page.count("<tr>") == 1 + len(good.entries)
    with pytest.raises(InvalidOptionError, match=r"card\.pdf'; its name must end in \.html or"):
        good.save(tmp_path / "card.pdf")
    with pytest.raises(SchemaVersionError, match=r"gpulab\.card/1"):
        Card.from_json("{}")
    first, frame = good.entries[0], good.to_frame()
    assert list(frame["work"]) == [entry.work for entry in good.entries]
    assert frame["median_s"][0] == median(first.readings_s)
    assert format_percent(first.error or math.nan, 1, sign="+") in str(good).splitlines()[2]


@pytest.mark.slow
def test_a_benchmark_tuned_to_the_lessons_is_recognised() -> None:
    """A benchmark that is right for the lessons' works and wrong for hidden ones is "tuned"."""
    found = gpulab.card(Tuned(), seed=1, progress=False)
    assert found.is_tuned
    assert "it is tuned to the works that it has seen." in str(found)
    assert found.benchmark == "Tuned"


@pytest.mark.slow
def test_a_benchmark_that_raises_has_a_card() -> None:
    """The card of a failing benchmark has gpulab's own readings, and one sentence on the error."""

    def broken(_fn: Work) -> float:
        raise ZeroDivisionError("division by zero")

    found = gpulab.card(broken, seed=1, progress=False)
    said = found.verdict()
    assert said[0].startswith("It gave no reading of the hidden works. gpulab.measure: median")
    assert said[1].endswith(": it raised ZeroDivisionError: division by zero.")
    assert all(entry.measured_s for entry in found.entries)
    assert sum(bool(check.problem) for check in found.checks) == len(SITUATIONS)
    assert Card.from_json(found.to_json()) == found
    unread = replace(found, entries=tuple(replace(one, measured_s=None) for one in found.entries))
    assert unread.verdict()[0].endswith("gpulab.measure: no reading.")


@pytest.mark.parametrize(
    ("benchmark", "problem"),
    [
        (lambda fn: (fn(), "fast")[1], "returned 'fast' of type str, which is no seconds"),
        (lambda fn: fn(), "returned None of type NoneType, which is no seconds"),
        (lambda fn: (fn(), -1.0)[1], "returned -1, and a time is above 0 and finite"),
        (lambda fn: (fn(), float("nan"))[1], "returned nan, and a time is above 0 and finite"),
        (lambda _fn: 1.0, "never called fn, so it timed nothing"),
        (lambda fn: fn(1), "raised TypeError: "),
        (lambda fn: (fn(), (2.0, 1980.0))[1], ""),
    ],
)
def test_an_unusable_reading_has_a_reason(
    benchmark: Callable[[Work], object], problem: str
) -> None:
    """Each unusable result has its reason; a number, or a pair of time and clock, is usable."""
    found = problem_of(tried(benchmark, WatchedWork(spinning(10))))
    assert found.startswith(problem)
    assert bool(found) == bool(problem)


def test_a_clock_that_shows_real_time_is_a_problem() -> None:
    """A benchmark that times with the date gives no reading on the virtual GPU."""

    def by_date(fn: Work) -> float:
        began = dt.datetime.now(tz=dt.UTC)
        fn()
        torch.cuda.synchronize()
        return (dt.datetime.now(tz=dt.UTC) - began).total_seconds()

    assert problem_of(tried(BENCHMARKS["wait"], WatchedWork(spinning(10)), clocks=True)) == ""
    assert problem_of(tried(by_date, WatchedWork(spinning(10)), clocks=True)) == (
        "read datetime.now(), which shows the real time of this machine and not that of the "
        "virtual GPU (read time.perf_counter())"
    )
