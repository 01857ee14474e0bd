"""A claim shows a virtual, a recorded and the learner's value, and judges the last one."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

import gpulab
from benchmarks import lesson_claims
from gpulab import device
from gpulab.core.errors import InvalidOptionError, UnknownNameError
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
    differs="The drivers differ.",
)
SHARE = Claim("03.share", "It reads a small share", holds=lambda share: share < 0.1)
ABOUT = Claim("03.about", "It is about eight times", holds=lambda ratio: 6 <= ratio <= 10)
WORD = Claim("03.word", "It raises a RuntimeError", holds=lambda word: word == "RuntimeError")
SAVED = {"03.pair": (World("virtual", "H200", 2.6e-6), World("recorded", "H100", 3.1e-6))}


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """State four claims, one with a virtual and a recorded value, on the virtual H200."""
    stated = {each.claim_id: each for each in (PAIR, WORD, SHARE, ABOUT)}
    monkeypatch.setattr(_claims, "_claims_of", lambda lesson: stated if lesson == "03" else {})
    monkeypatch.setattr(_claims, "_saved", lambda: SAVED)
    monkeypatch.setattr(_claims, "_GIVEN", {})
    with gpulab.virtual_gpu("H200", first_use=False):
        yield


def test_three_values_and_a_verdict_in_one_line() -> None:
    """A time is written with its unit, and the verdict follows from the learner's value."""
    assert str(claim("03.pair", here=2.9e-6)) == (
        "A pair reads more than the kernel. virtual 2.60 µs ✓ | recorded (H100) 3.10 µs ✓ | "
        "yours 2.90 µs (virtual NVIDIA H200). Holds here."
    )


def test_a_missing_recording_is_named() -> None:
    """A claim without recorded values shows only yours; its value may be a word."""
    assert str(claim("03.word", here="RuntimeError")) == (
        "It raises a RuntimeError. yours RuntimeError (virtual NVIDIA H200). Holds here."
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


def test_unknown_claims_name_the_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    """A misspelt id raises an error that names the nearest one, of all if the lesson has none."""
    with pytest.raises(
        UnknownNameError, match=r"unknown claim '03\.pear'; did you mean '03\.pair'"
    ):
        claim("03.pear", here=1)
    monkeypatch.undo()
    with pytest.raises(UnknownNameError, match=r"did you mean '06\.rotation-pays'"):
        claim("66.rotation-pays", here=1)


def test_a_claim_is_announced_and_escaped() -> None:
    """A sign and a word repeat what the colour says, and a value is escaped."""
    page = claim("03.word", here="<b>")._repr_html_()
    assert page.startswith('<div role="status"')
    assert "✗</span> Does not hold here." in page
    assert "&lt;b&gt;" in page
    assert "<em>yours</em>" in page


# Claim, its value here, whether that is measured, the saved values, and what the card says.
WHY = [
    # The GPUs disagree: the claim's own words, and on a GPU where it fails a possible reason.
    ("03.pair", 1e-6, False, {"virtual": -1e-6, "H100": 1e-6}, "The drivers differ."),
    ("03.pair", -1e-6, False, {"virtual": -1e-6, "H100": 1e-6}, "The drivers differ."),
    (
        "03.pair",
        0.0,
        True,
        {"virtual": 1e-6, "H100": 1e-6},
        "A possible reason: the driver takes the floor off.",
    ),
    # On the virtual GPU a saved value that is true shows that something in the notebook differs.
    (
        "03.pair",
        -1e-6,
        False,
        {"virtual": 1e-6},
        (
            "The virtual GPU gave 1.00 µs when this lesson was made, so something differs in "
            "this notebook. Restart the kernel and run all cells in order."
        ),
    ),
    # More is a stronger effect for PAIR, and a weaker one for SHARE.
    (
        "03.pair",
        1e-6,
        False,
        {"virtual": 4e-6, "H200": 3e-6, "H100": 1e-6},
        "The virtual GPU exaggerates this, compared with the H100.",
    ),
    (
        "03.pair",
        1e-6,
        False,
        {"virtual": 1e-6, "H200": 3e-6, "H100": 2e-6},
        "The virtual GPU shows too little of this, compared with the H200 and the H100.",
    ),
    (
        "03.share",
        0.01,
        False,
        {"virtual": 0.01, "H100": 0.04},
        "The virtual GPU exaggerates this, compared with the H100.",
    ),
    (
        "03.about",
        7.0,
        False,
        {"virtual": 6.0, "H100": 9.5},
        "The virtual GPU reads less, compared with the H100.",
    ),
    ("03.about", 7.0, False, {"virtual": 7.0, "H100": 8.0}, ""),
    ("03.about", 7.0, False, {"virtual": 9.0, "H100": 7.0}, ""),
]


@pytest.mark.parametrize(("name", "value", "is_measured", "saved", "why"), WHY)
def test_the_card_says_where_the_gpus_disagree(  # noqa: PLR0913, PLR0917  # a row of the table
    name: str,
    value: float,
    is_measured: bool,  # noqa: FBT001  # a column of the table
    saved: dict[str, float],
    why: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The rule is applied to each GPU, and a reason is given only where it can be the reason."""
    worlds = tuple(
        World("virtual", "H200", number) if gpu == "virtual" else World("recorded", gpu, number)
        for gpu, number in saved.items()
    )
    monkeypatch.setattr(_claims, "_saved", lambda: {name: worlds})
    here = (
        Measurement((value,) * 9, "events", "measured", replace(HERE, device_name="T4"))
        if is_measured
        else value
    )
    assert claim(name, here=here).why == why


def test_another_virtual_gpu_may_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only on the virtual H200 a false value means that the notebook was run in another way."""
    monkeypatch.setattr(_claims, "_saved", lambda: {"03.pair": SAVED["03.pair"]})
    assert "Restart the kernel" in claim("03.pair", here=-1e-6).why
    with device.outside(), gpulab.virtual_gpu("T4", first_use=False):
        why = claim("03.pair", here=-1e-6).why
    assert why == "A possible reason: the driver takes the floor off."


def test_a_word_for_a_number_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """A claim about a number refuses a word, says what it takes, and saves nothing."""
    with pytest.raises(InvalidOptionError, match=r"here='fast'; this claim is about a number\."):
        claim("03.pair", here="fast")
    assert _claims.given() == {}
    monkeypatch.undo()
    refused = []
    for name, fact in lesson_claims.stated().items():
        try:
            claim(name, here="fast")
        except InvalidOptionError:
            refused.append(name)
        else:
            assert all(isinstance(world.value, str) for world in _claims._saved()[name]), fact
    assert len(refused) > 30


def test_each_claim_can_fail_and_has_a_value_for_three_gpus(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A rule that is true for every value would say nothing; GPUs that disagree need words."""
    monkeypatch.undo()
    stated, shipped = lesson_claims.stated(), _claims._saved()
    assert set(shipped) <= stated.keys()  # a renamed claim needs a new run
    for name, fact in stated.items():
        saved = shipped[name]
        places = {(world.source, world.gpu) for world in saved}
        assert places == {("virtual", "H200"), ("recorded", "H200"), ("recorded", "H100")}
        value = saved[0].value
        others = ("another", "-2 and -2") if isinstance(value, str) else (-1e9, 0.0, 1.0, 1e9)
        assert not all(map(fact.holds, others)), name
        if len({_claims._truth(fact, world.value) for world in saved}) > 1:
            assert fact.differs, name
        virtual, *recorded = (world.value for world in saved)
        numbers = [each for each in recorded if not isinstance(each, str) and each > 0]
        factors = [virtual / each for each in numbers if virtual > 0]
        if any(factor > 1.5 or factor < 1 / 1.5 for factor in factors):
            assert _claims._disagreement(fact, saved), name


def test_values_of_a_gpu_are_taken_into_the_saved_ones() -> None:
    """A recording adds a GPU and replaces its older values; virtual values stay."""
    content = {
        "schema": lesson_claims.GPU_SCHEMA,
        "name": "NVIDIA H200",
        "torch": "2.11.0",
        "date": "2026-11-26",
        "lessons": {"06": {"values": {"06.rotation-pays": 1.3, "06.gone": 2}}},
    }
    gpus: dict[str, object] = {}
    saved = {"06.rotation-pays": {"virtual": 1.2, "recorded": {"NVIDIA H200": 9.9, "T4": 1.1}}}
    lesson_claims.take(gpus, saved, content)
    assert gpus == {"NVIDIA H200": {"torch": "2.11.0", "date": "2026-11-26"}}
    values = {"virtual": 1.2, "recorded": {"NVIDIA H200": 1.3, "T4": 1.1}}
    assert saved == {"06.rotation-pays": values}
    run = {"source": "virtual", "name": "NVIDIA H200", "values": {"06.rotation-pays": 1.25}}
    lesson_claims.merge(saved, run)
    assert saved["06.rotation-pays"]["virtual"] == 1.25
    assert lesson_claims.rows(run)[0].split() == [
        *("06.rotation-pays", "1.25", "NVIDIA", "H200,", "virtual"),
    ]
    with pytest.raises(SystemExit, match="no recording of claims"):
        lesson_claims.take(gpus, saved, {"schema": "other"})


def test_a_changed_value_is_named() -> None:
    """A value of another size or another word is named, and one that times the CPU is not."""

    def saved(value: float | str, **more: bool) -> dict[str, object]:
        return {"virtual": value, **more}

    kept = {"03.pair": saved(2e-6), "03.word": saved("none"), "09.cpu": saved(1, times_cpu=True)}
    near = {"03.pair": 2.1e-6, "03.word": "none", "09.cpu": 7}
    assert lesson_claims.changed(near, kept) == []
    far = {"03.pair": 1.7e-6, "03.word": "raised", "03.new": 1.0}
    assert lesson_claims.changed(far, kept) == [
        "03.pair: 1.7e-06 now, 2e-06 saved",
        "03.word: raised now, none saved",
        "03.new: 1.0 now, None saved",
    ]
