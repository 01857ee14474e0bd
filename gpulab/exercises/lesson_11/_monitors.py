"""Readings of a GPU monitor during six programs, for the exercise on monitors."""

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from gpulab.provenance import device_label
from gpulab.serialization import parse_json

if TYPE_CHECKING:
    import pandas as pd

MONITORS = "monitors.json"
MONITORS_SCHEMA = "gpulab.monitors/1"


def monitors(world: str | None = None) -> "pd.DataFrame":
    """Return the six monitors of the quiz: one row for each second of each program.

    The columns have the names of ``nvidia-smi dmon``, with the unit after each. The column
    ``source`` says where the numbers come from: recorded on a named GPU, or the monitor of the
    virtual one.

    Parameters
    ----------
    world
        ``"recorded"`` or ``"virtual"``, one of :func:`worlds`; by default the recorded one if
        there is one.

    Examples
    --------
    >>> from gpulab.exercises import lesson_11 as lab
    >>> sorted(set(lab.monitors()["program"]))
    ['a', 'b', 'c', 'd', 'e', 'f']
    """
    import pandas as pd

    shown_world = worlds()[0] if world is None else world
    content = _content()[shown_world]
    label = device_label(content["device_name"], shown_world)
    rows = [
        {"program": letter, "second": second, **row, "source": label}
        for letter, shown in content["rows"].items()
        for second, row in enumerate(shown, start=1)
    ]
    return pd.DataFrame(rows)


def worlds() -> tuple[str, ...]:
    """Return the kinds of GPU that were monitored: "recorded" (if any), then "virtual"."""
    return tuple(sorted(_content()))


@cache
def _content() -> Any:  # noqa: ANN401  # JSON
    text = resources.files("gpulab").joinpath("data", MONITORS).read_text("utf-8")
    content: Any = parse_json(text)
    return content["worlds"]
