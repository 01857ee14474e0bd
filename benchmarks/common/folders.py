"""Folders that the benchmarks read and write, independent of the working directory."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
RECORDINGS = ROOT / "benchmarks" / "recordings"
IMAGES = ROOT / "docs" / "images"
