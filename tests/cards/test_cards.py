"""A card judges a benchmark by the records of hidden works, and lists what it cannot handle."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import gpulab
from gpulab.cards import Card
from gpulab.cards._trial import trial
from gpulab.cards._works import HIDDEN, LESSONS, spinning, works
from gpulab.errors import InvalidOptionError, NotCallableError, SchemaVersionError
from tests.support.benchmarks import BENCHMARKS

Work = Callable[[], object]
SITUATIONS = {
    "a GPU that is still busy",
    "slow first calls",
    "work on another stream",
    "work that waits",
    "work that raises",
}


@pytest.fixture(autouse=True)
def _gpu() -> Iterator[None]:
    """Use the virtual H200."""
    with gpulab.virtual_gpu("H200", first_use=False):
        yield


@pytest.fixture(scope="module")
def good() -> Card:
    """Return the card of the last lesson's benchmark."""
    with gpulab.virtual_gpu("H200", first_use=False):
        return gpulab.card(BENCHMARKS["measure"], seed=7, progress=False)


class Tuned:
    """Reads the first three works well, and the others by a guess."""

    def __init__(self) -> None:
        self.n_calls = 0

    def __call__(self, fn: Work) -> float:
        """Return a reading of what the lessons show, and a constant else."""
        self.n_calls += 1
        if self.n_calls <= 9:
            return gpulab.measure(fn, n_samples=10).median_s
        fn()
        return 1.0


@pytest.mark.slow
def test_a_good_benchmark_has_a_good_card(good: Card) -> None:
    """Its errors are small, it has been compared with the cold records, and one thing is left."""
    assert (good.cache, good.source, good.seed) == ("cold", "virtual", 7)
    assert good.median_error < 0.1
    assert not good.is_tuned
    assert {each.situation for each in good.checks} == SITUATIONS
    assert [each.situation for each in good.unhandled] == ["work on another stream"]
    assert all(abs(entry.measured_error or 0) < 0.02 for entry in good.entries)
    assert all(entry.spread is not None and entry.spread < 0.02 for entry in good.entries)
    text = str(good)
    assert "Benchmark card of _sleep (virtual NVIDIA H200, cold cache)" in text
    assert "Judged by the virtual GPU's own records." in text
    assert "seed 7" in text


@pytest.mark.slow
def test_it_is_handed_in_as_a_page_or_as_json(good: Card, tmp_path: Path) -> None:
    """JSON comes back equal; the page is whole, and escapes what is foreign."""
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
    assert list(good.to_frame()["work"]) == [entry.work for entry in good.entries]


@pytest.mark.slow
def test_a_benchmark_that_is_tuned_to_the_lessons_is_found_out() -> None:
    """The works that it has seen agree, and the hidden ones do not."""
    found = gpulab.card(Tuned(), seed=1, progress=False)
    assert found.is_tuned
    assert "it is tuned to the works that it has seen." in str(found)
    assert found.benchmark == "Tuned"


@pytest.mark.slow
def test_a_benchmark_that_raises_has_a_card() -> None:
    """The other readings are on the card, and the problem is one sentence."""

    def broken(_fn: Work) -> float:
        raise ZeroDivisionError("division by zero")

    found = gpulab.card(broken, seed=1, progress=False)
    said = found.verdict()
    assert said[0].startswith("It gave no reading of the hidden works. gpulab.measure is off by")
    assert said[1].endswith("ms: it raised ZeroDivisionError: division by zero.")
    assert all(entry.measured_s for entry in found.entries)
    assert len(found.unhandled) == len(SITUATIONS)
    assert Card.from_json(found.to_json()) == found


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
def test_what_is_no_reading_says_why(benchmark: Callable[[Work], object], problem: str) -> None:
    """One clear end of a sentence; a pair of seconds and clock is a reading."""
    found = trial(benchmark, spinning(10))
    assert found.problem.startswith(problem)
    assert bool(found.problem) == bool(problem)
    assert (found.seconds is None) == bool(problem)


def test_an_interrupt_comes_through_and_leaves_nothing_queued() -> None:
    """Ctrl-C is no problem of the benchmark."""

    def interrupted(fn: Work) -> float:
        fn()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trial(interrupted, spinning(1000))
    assert torch.cuda.current_stream().query()


def test_hidden_works_follow_from_the_seed() -> None:
    """The same seed has the same works; another one has other sizes, but the same lessons."""
    names = [[(each.name, each.group) for each in works(seed)] for seed in (1, 1, 2)]
    assert names[0] == names[1]
    shown = [{name for name, group in each if group == LESSONS} for each in names]
    hidden = [{name for name, group in each if group == HIDDEN} for each in names]
    assert shown[0] == shown[2]
    assert not hidden[0] & hidden[2]


@pytest.mark.parametrize(
    ("benchmark", "options", "error", "message"),
    [
        (3, {}, NotCallableError, "benchmark is of type int and cannot be called; pass your"),
        (len, {"seed": -1}, InvalidOptionError, "seed=-1; it must be"),
        (len, {"progress": "yes"}, InvalidOptionError, "progress='yes'; it must be"),
    ],
)
def test_wrong_arguments_are_refused(
    benchmark: object, options: dict[str, object], error: type[Exception], message: str
) -> None:
    """Before anything runs, with the value and what it may be."""
    with pytest.raises(error, match=message):
        gpulab.card(benchmark, **options)  # type: ignore[arg-type]  # wrong on purpose
