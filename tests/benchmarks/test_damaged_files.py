"""Files of every kind, damaged in every way, are refused with our own error or read safely."""

import random
from pathlib import Path

import pytest

from benchmarks.damaged_files import BOMB, FAILURES, MUTATIONS, READ, damaged, kinds, outcome, run

KINDS = kinds()
# Tried on every run of the tests; the slow test tries all.
FEW = (
    "truncated",
    "deep list",
    "10**5000",
    "nan",
    "lone surrogate",
    "line separator",
    "key twice",
)


@pytest.mark.parametrize("name", KINDS)
def test_an_undamaged_file_is_read(name: str, tmp_path: Path) -> None:
    """Before it is damaged, gpulab can read each file."""
    kind = KINDS[name]
    assert outcome(kind, kind.finished(kind.text.encode()), tmp_path) == (READ, "")


@pytest.mark.parametrize("name", ["recording, sealed again", "sweep", "measurement", "timeline"])
@pytest.mark.parametrize("mutation", FEW)
def test_a_damaged_file_is_refused_or_harmless(name: str, mutation: str, tmp_path: Path) -> None:
    """A damaged file gives our own error with the file's name, or is read without nonsense."""
    content = damaged(KINDS[name], mutation, random.Random(mutation))
    assert content is not None
    found, error = outcome(KINDS[name], content, tmp_path)
    assert found not in FAILURES, error


@pytest.mark.slow
@pytest.mark.usefixtures("no_pixels")
@pytest.mark.parametrize("name", KINDS)
def test_every_damage_of_every_kind(name: str, tmp_path: Path) -> None:
    """Each damage is tried, and a file of 1 MiB needs at most 160 MiB of memory."""
    tallies, failures = run(len(MUTATIONS), 7, [name], tmp_path)
    assert failures == []
    assert tallies[name].peak_bytes < 160 << 20
    assert BOMB in MUTATIONS
