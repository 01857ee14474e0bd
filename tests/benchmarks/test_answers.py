"""The benchmark that tries answers finds every exercise, and its wrong answers are wrong."""

import pytest
import torch

import gpulab
from benchmarks.lessons.answers import SOURCES, Judged, checks
from benchmarks.lessons.attempts import attempts_at
from gpulab import device
from gpulab.exercises._api import exercise_ids


@pytest.mark.slow
def test_every_exercise_is_found() -> None:
    """No exercise is left out because its cell is written in another way."""
    found = {check.exercise_id for source in SOURCES for check in checks(source)}
    assert found == {*exercise_ids()}


def test_wrong_answers_are_wrong() -> None:
    """No wrong attempt equals the right answer, for each form of answer."""
    with device.outside(), gpulab.virtual_gpu("H200", first_use=False):
        for right in ("b", {"a", "c"}, {"a": "hot", "b": "cold"}, 12.5e-6, {"n": 3}):
            *tried, last = [given for _, given in attempts_at(right)]
            assert last is right
            tensors = [each for each in tried if isinstance(each, torch.Tensor)]
            assert len(tensors) == 1
            assert right not in [each for each in tried if not isinstance(each, torch.Tensor)]


def test_a_verdict_that_does_not_fit_is_a_fault() -> None:
    """A verdict is a fault if it is wrong, empty or a traceback, and all faults are listed."""
    verdicts = (
        ("right", "✗ Not yet. No."),
        ("wrong: a", "✓ Right. Yes."),
        ("wrong: b", ""),
        ("nonsense: nan", "Traceback (most recent call last)"),
        ("wrong: c", "✗ Not yet. No."),
    )
    found = Judged("01.hidden-sync", verdicts, ("Traceback\nNameError: x",)).faults
    kinds = [fault.partition(":")[0] for fault in found]
    assert kinds == ["error", "right", "wrong", "wrong", "nonsense"]
