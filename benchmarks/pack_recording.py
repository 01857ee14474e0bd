"""Pack a recording into the package.

    python -m benchmarks.pack_recording RAW.jsonl NAME

RAW.jsonl is the file that gpulab record --out RAW.jsonl wrote. NAME is the name for
gpulab.recordings.load, such as h200-sxm-2026-11. Numbers are rounded to six digits, more than any
interval supports.
"""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.common.command_line import parser_of
from benchmarks.common.folders import ROOT
from gpulab import recordings

FOLDER = ROOT / "gpulab" / "data" / "recordings"
DIGITS = 6
# The wheel may have 5 MB (tests/release/test_packages.py), and the lessons need some of that.
MOST_BYTES = 2_000_000  # of all recordings together, in the wheel


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the packed file and print its size."""
    made = parser_of("benchmarks.pack_recording", __doc__)
    made.add_argument("raw", type=Path, help="file of gpulab record")
    made.add_argument("name", help="name to load it by")
    made.add_argument("--folder", type=Path, default=FOLDER, help="folder for the packed file")
    options = made.parse_args(arguments)
    pack(options.raw, options.name, options.folder)


def pack(raw: Path, name: str, folder: Path) -> None:
    """Write the packed file; exit with an error if the recordings are too large for the wheel."""
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        sys.exit(f"{name!r} is no name for a recording; use a name like 'h200-sxm-2026-11'")
    recording = recordings.load(raw)
    # A user would take the times of a model for measured ones.
    if recording.is_virtual:
        sys.exit(f"{raw} was recorded on a virtual GPU; only real ones are shipped")
    folder.mkdir(exist_ok=True)
    packed = recordings.save(recording, folder / f"{name}.jsonl.gz", digits=DIGITS)
    total_bytes = sum(path.stat().st_size for path in folder.iterdir())
    print(recordings.load(packed))
    print(f"{packed.stat().st_size:,} bytes; all recordings {total_bytes:,} of {MOST_BYTES:,}")
    if total_bytes > MOST_BYTES:
        sys.exit("that is too much for the wheel; remove an older recording")


if __name__ == "__main__":
    main()
