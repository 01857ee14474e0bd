"""The figure of docs/cold-cache.md: what the usual flush costs, and which sizes stay hot."""

from pathlib import Path
from typing import Any

from gpulab.core.palette import MUTED, ROLES, SERIES

_READ, _FIRST, _SECOND = (SERIES[place].light for place in (0, 2, 3))
_HOT, _MUTED = ROLES["hot"].colour.light, MUTED.light
_MB = 1e6
_SIZE = "30"


def draw(found: dict[str, Any], path: Path) -> None:
    """Draw both panels into a file; the same results give the same bytes."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot as plt

    # matplotlib draws random ids and writes the date; without both, equal results give an equal
    # file.
    with mpl.rc_context({"svg.hashsalt": "cold-cache", "font.size": 9}):
        figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
        _draw_costs(found, left)
        _draw_hot(found, right)
        origin = found["origin"]
        figure.suptitle(f"Cold caches, measured on {origin['gpu']} ({origin['date']})")
        path.parent.mkdir(exist_ok=True)
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)


def _draw_costs(found: dict[str, Any], axes: Any) -> None:  # noqa: ANN401 # of matplotlib
    times = {work: entry["times_us"][_SIZE] for work, entry in found["works"].items()}
    works = sorted(times, key=lambda work: _more(times[work], "write 256 MiB"))
    series = (
        ("write 256 MiB", "after the usual write flush", "o", _FIRST),
        ("rotate 2x", "inputs and outputs rotated", "^", _SECOND),
        ("write 256 MiB, discard", "write flush, then discarded", "x", _READ),
    )
    axes.axvline(0, color=_MUTED, linewidth=1)
    for way, label, mark, color in series:
        values = [_more(times[work], way) for work in works]
        axes.plot(values, range(len(works)), mark, color=color, label=label)
    axes.set_yticks(range(len(works)), works)
    axes.set_xlabel("longer than after a read flush of twice the L2, %")
    axes.set_title(f"Working set of {_SIZE} MiB, half of the L2")
    axes.legend(loc="lower right")


def _more(ways: dict[str, list[float]], way: str) -> float:
    return 100 * (ways[way][0] / ways["read 2x"][0] - 1)


def _draw_hot(found: dict[str, Any], axes: Any) -> None:  # noqa: ANN401 # of matplotlib
    moved = found["bytes"]["sum"]
    sizes = sorted(moved, key=int)
    l2_mib = found["origin"]["l2_bytes"] / 2**20
    series = (
        ("hot", 0, "read from memory, hot", "s", _HOT),
        ("read 2x", 0, "read from memory, read flush", "x", _READ),
        ("write 256 MiB", 1, "written to memory, write flush", "o", _FIRST),
        ("read 2x", 1, "written to memory, read flush", "+", _SECOND),
    )
    for way, place, label, mark, color in series:
        values = [moved[size][way][place] / _MB for size in sizes]
        axes.plot([int(size) for size in sizes], values, f"{mark}-", color=color, label=label)
    # A hot sum reads next to nothing from memory up to 36 MiB, and everything from 52 MiB on.
    for share, name in ((2 / 3, "2/3 of the L2"), (1.0, "L2")):
        axes.axvline(share * l2_mib, color=_MUTED, linewidth=1, linestyle=":")
        axes.text(share * l2_mib + 1, 84, name, color=_MUTED, rotation="vertical", va="top")
    axes.set_xlabel("working set, MiB")
    axes.set_ylabel("moved while the kernel runs, MB")
    axes.set_title("A sum, which writes nothing itself")
    axes.legend(loc="upper left")
