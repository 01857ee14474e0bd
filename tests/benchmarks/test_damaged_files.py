"""Files of every kind, damaged in every way, are refused with our own error or read safely."""

from pathlib import Path

import pytest

from benchmarks.damaged_files import BOMB, MUTATIONS, kinds, run

KINDS = kinds()


@pytest.mark.slow
@pytest.mark.usefixtures("no_pixels")
@pytest.mark.parametrize("name", KINDS)
def test_every_damage_of_every_kind(name: str, tmp_path: Path) -> None:
    """It is read undamaged; each damage is tried, and 1 MiB needs at most 160 MiB of memory."""
    tallies, failures = run(len(MUTATIONS), 7, [name], tmp_path)
    assert failures == []
    assert tallies[name].peak_bytes < 160 << 20
    assert BOMB in MUTATIONS
