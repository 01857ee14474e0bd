"""A claim shows three worlds side by side, and its verdict follows from the value given."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

import gpulab
from benchmarks import lesson_claims
from gpulab.errors import UnknownNameError
from gpulab.exercises import _claims
from gpulab.exercises._claims import Claim, World, claim
from gpulab.measurement import Measurement
from tests.support.conditions import HERE

PAIR = Claim(
    "03.pair",
    "A pair reads more than the kernel",
    unit="µs",
    holds=lambda value: value > 0,
    because="the driver takes the floor off",
)
WORD = Claim("03.word", "It raises a RuntimeError", holds=lambda word: word == "RuntimeError")
SAVED = {
    "03.pair": {
        "virtual": World("virtual", "NVIDIA H200", 2.6e-6),
        "recorded": World("recorded", "NVIDIA H200", 3.1e-6),
    }
}


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two claims, one with values of both worlds, on the virtual H200."""
    stated = {each.claim_id: each for each in (PAIR, WORD)}
    monkeypatch.setattr(_claims, "_claims_of", lambda lesson: stated if lesson == "03" else {})
    monkeypatch.setattr(_claims, "_saved", lambda: SAVED)
    monkeypatch.setattr(_claims, "_GIVEN", {})
    with gpulab.virtual_gpu("H200", first_use=False):
        yield


def test_three_values_and_a_verdict_in_one_line() -> None:
    """A time is written in its unit; the verdict follows from the value."""
    assert str(claim("03.pair", here=2.9e-6)) == (
        "A pair reads more than the kernel. virtual 2.60 µs | recorded (H200) 3.10 µs | "
        "yours 2.90 µs (virtual NVIDIA H200). Holds here."
    )
    assert str(claim("03.pair", here=-1e-7)).endswith(
        "yours -100 ns (virtual NVIDIA H200). "
        "Does not hold here, because the driver takes the floor off."
    )


def test_without_a_recording_it_says_so() -> None:
    """A word may be the value as well."""
    assert str(claim("03.word", here="RuntimeError")) == (
        "It raises a RuntimeError. virtual not recorded | recorded not recorded | "
        "yours RuntimeError (virtual NVIDIA H200). Holds here."
    )


def test_a_measurement_brings_its_own_place() -> None:
    """Its median is the value."""
    measured = Measurement((3e-6,) * 9, "events", "measured", replace(HERE, device_name="T4"))
    assert "yours 3.00 µs (T4, measured)" in str(claim("03.pair", here=measured))


@pytest.mark.parametrize("blank", [..., None])
def test_nothing_measured_is_no_error(blank: object) -> None:
    """The cell above was not run; nothing is kept."""
    review = claim("03.pair", here=blank)
    assert review.holds is None
    assert str(review).endswith("yours not measured. Measure first: run the cells above.")
    assert _claims.given() == {}


def test_values_given_are_kept_for_the_benchmark() -> None:
    """The last value counts; what is true is one."""
    claim("03.pair", here=1e-6)
    claim("03.pair", here=2e-6)
    claim("03.word", here="none")
    assert _claims.given() == {"03.pair": 2e-6, "03.word": "none"}


def test_unknown_claims_name_the_nearest() -> None:
    """A slip in an id is an error of the notebook."""
    with pytest.raises(
        UnknownNameError, match=r"unknown claim '03\.pear'; did you mean '03\.pair'"
    ):
        claim("03.pear", here=1)


def test_it_is_announced_and_escaped() -> None:
    """Sign and word say what the colour does; a value is text."""
    page = claim("03.word", here="<b>")._repr_html_()
    assert page.startswith('<div role="status"')
    assert "✗</span> Does not hold here." in page
    assert "&lt;b&gt;" in page
    assert "<em>recorded</em>" in page


def test_a_run_replaces_its_own_world_only() -> None:
    """What is measured on a GPU becomes recorded; the virtual value stays."""
    claims = {"03.pair": {"virtual": {"value": 1e-6, "device_name": "NVIDIA H200"}}}
    found = {"source": "measured", "name": "NVIDIA H200", "values": {"03.pair": 3e-6}}
    lesson_claims.merge(claims, found)
    assert claims["03.pair"]["virtual"]["value"] == 1e-6
    assert claims["03.pair"]["recorded"] == {"value": 3e-6, "device_name": "NVIDIA H200"}
    assert lesson_claims.rows(found)[0].split() == [
        "03.pair",
        "3e-06",
        "NVIDIA",
        "H200,",
        "measured",
    ]


def test_the_file_shipped_has_only_claims_that_are_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    """A claim that was renamed must be taken again."""
    monkeypatch.undo()
    assert set(_claims._saved()) <= lesson_claims.stated().keys()


def test_both_worlds_stand_side_by_side() -> None:
    """One line for each claim that was asked for, and a line for an exercise that is not right."""
    claims = {
        "case-02.not-faster": {"virtual": {"value": 1.388, "device_name": "NVIDIA H200"}},
        "case-04.wrong-results": {"recorded": {"value": 0, "device_name": "NVIDIA H200"}},
    }
    head, first = lesson_claims.both_worlds(claims, ("case-02",))
    assert head.split() == ["claim", "virtual", "recorded"]
    assert first.split() == ["case-02.not-faster", "1.388", "times:", "holds", "-"]
    *_, last = lesson_claims.both_worlds(claims, ())
    assert last.split() == ["case-04.wrong-results", "-", "0", "wrong", "steps:", "FAILS"]
    found = {"source": "measured", "name": "a", "values": {}, "not_right": ["case-02.mend"]}
    assert lesson_claims.rows(found)[0].split() == ["case-02.mend", "NOT", "RIGHT"]
