"""Pack a recording into the package: ``python benchmarks/pack_recording.py RAW.jsonl NAME``.

RAW is what ``gpulab record --out RAW.jsonl`` wrote; NAME is what ``gpulab.recordings.load`` will
take, e.g. ``h200-sxm-2026-11``. Digits that no interval supports are left out.
"""

import re
import sys
from pathlib import Path

from gpulab.recordings import _recording

FOLDER = Path(_recording.__file__).parent / "data" / "recordings"
DIGITS = 6
MOST_BYTES = 2_000_000  # of all recordings together, in the wheel


def main(raw: str, name: str) -> None:
    """Write the packed file and say how large it is."""
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        sys.exit(f"{name!r} is no name of a recording; it is like 'h200-sxm-2026-11'")
    recording = _recording.load(Path(raw))
    if recording.is_virtual:
        sys.exit(f"{raw} was recorded on a virtual GPU; only real ones are shipped")
    FOLDER.mkdir(exist_ok=True)
    packed = _recording.save(recording, FOLDER / f"{name}.jsonl.gz", digits=DIGITS)
    total_bytes = sum(path.stat().st_size for path in FOLDER.iterdir())
    print(_recording.load(packed))
    print(f"{packed.stat().st_size:,} bytes; all recordings {total_bytes:,} of {MOST_BYTES:,}")
    if total_bytes > MOST_BYTES:
        sys.exit("that is too much for the wheel; take an older recording out")


if __name__ == "__main__":
    main(*sys.argv[1:])
