"""Where the benchmarks find their files, wherever they are started."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
RECORDINGS = ROOT / "benchmarks" / "recordings"
IMAGES = ROOT / "docs" / "images"
