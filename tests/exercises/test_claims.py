"""A claim shows a virtual, a recorded and the learner's value, and judges the last one."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

import gpulab
from benchmarks import lesson_claims
from gpulab.core.errors import UnknownNameError
from gpulab.device.measurement import Measurement
from gpulab.exercises import _claims
from gpulab.exercises._claims import Claim, World, claim
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
    """State two claims, one with a virtual and a recorded value, on the virtual H200."""
    stated = {each.claim_id: each for each in (PAIR, WORD)}
    monkeypatch.setattr(_claims, "_claims_of", lambda lesson: stated if lesson == "03" else {})
    monkeypatch.setattr(_claims, "_saved", lambda: SAVED)
    monkeypatch.setattr(_claims, "_GIVEN", {})
    with gpulab.virtual_gpu("H200", first_use=False):
        yield


def test_three_values_and_a_verdict_in_one_line() -> None:
    """A time is written with its unit, and the verdict follows from the learner's value."""
    assert str(claim("03.pair", here=2.9e-6)) == (
        "A pair reads more than the kernel. virtual 2.60 µs | recorded (H200) 3.10 µs | "
        "yours 2.90 µs (virtual NVIDIA H200). Holds here."
    )
    assert str(claim("03.pair", here=-1e-7)).endswith(
        "yours -100 ns (virtual NVIDIA H200). "
        "Does not hold here, because the driver takes the floor off."
    )


def test_a_missing_recording_is_named() -> None:
    """A claim without recorded values says so; its value may be a word."""
    assert str(claim("03.word", here="RuntimeError")) == (
        "It raises a RuntimeError. virtual not recorded | recorded not recorded | "
        "yours RuntimeError (virtual NVIDIA H200). Holds here."
    )


def test_a_measurement_brings_its_own_place() -> None:
    """The value of a measurement is its median, and the place is its own device."""
    measured = Measurement((3e-6,) * 9, "events", "measured", replace(HERE, device_name="T4"))
    assert "yours 3.00 µs (T4, measured)" in str(claim("03.pair", here=measured))


@pytest.mark.parametrize("blank", [..., None])
def test_a_missing_value_is_not_an_error(blank: object) -> None:
    """A claim about a cell that was not run asks for the measurement and saves nothing."""
    review = claim("03.pair", here=blank)
    assert review.holds is None
    assert str(review).endswith("yours not measured. Measure first: run the cells above.")
    assert _claims.given() == {}


def test_given_values_are_saved_for_the_benchmark() -> None:
    """Each claim's last value is saved, a number or a word."""
    claim("03.pair", here=1e-6)
    claim("03.pair", here=2e-6)
    claim("03.word", here="none")
    assert _claims.given() == {"03.pair": 2e-6, "03.word": "none"}


def test_unknown_claims_name_the_nearest() -> None:
    """A misspelt id raises an error that names the nearest one."""
    with pytest.raises(
        UnknownNameError, match=r"unknown claim '03\.pear'; did you mean '03\.pair'"
    ):
        claim("03.pear", here=1)


def test_a_claim_is_announced_and_escaped() -> None:
    """A sign and a word repeat what the colour says, and a value is escaped."""
    page = claim("03.word", here="<b>")._repr_html_()
    assert page.startswith('<div role="status"')
    assert "✗</span> Does not hold here." in page
    assert "&lt;b&gt;" in page
    assert "<em>recorded</em>" in page


def test_a_run_replaces_only_values_of_its_kind() -> None:
    """Values measured on a GPU replace the recorded ones; virtual values stay."""
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


def test_a_changed_value_is_named() -> None:
    """A value of another size or another word is named, and one that times the CPU is not."""

    def saved(value: float | str, **more: bool) -> dict[str, object]:
        return {"virtual": {"value": value, "device_name": "NVIDIA H200"}, **more}

    kept = {"03.pair": saved(2e-6), "03.word": saved("none"), "09.cpu": saved(1, times_cpu=True)}
    near = {"03.pair": 2.1e-6, "03.word": "none", "09.cpu": 7}
    assert lesson_claims.changed(near, kept) == []
    far = {"03.pair": 1.7e-6, "03.word": "raised", "03.new": 1.0}
    assert lesson_claims.changed(far, kept) == [
        "03.pair: 1.7e-06 now, 2e-06 saved",
        "03.word: raised now, none saved",
        "03.new: 1.0 now, None saved",
    ]


def test_the_shipped_file_has_only_stated_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every recorded value belongs to a claim of a lesson, so a renamed claim needs a new run."""
    monkeypatch.undo()
    assert set(_claims._saved()) <= lesson_claims.stated().keys()


def test_virtual_and_recorded_values_are_listed() -> None:
    """Each claim gets a line with both values, and so does each exercise that is not right."""
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
