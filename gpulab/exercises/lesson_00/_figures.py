"""The figure of lesson 00: what several methods read, beside a recording of another GPU."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpulab.core.units import format_percent, format_ratio, format_time
from gpulab.device.measurement import Measurement
from gpulab.figures import Figure

if TYPE_CHECKING:
    import pandas as pd

_ALIKE = 1.1  # times; readings that differ by less are called nearly the same


def beside_recorded(methods: Sequence[Measurement], recorded: "pd.DataFrame", *, n: int) -> Figure:
    """Draw what methods read for one size, beside the recorded times of all sizes.

    The columns of the recording are ``size``, ``median_s``, ``source`` and ``device_name``. The
    title says which method is farthest from the recorded time, and which is nearest.
    """
    import pandas as pd

    from gpulab.views import plots

    columns = ["size", "duration_s", "source", "device_name"]
    rows = recorded.rename(columns={"median_s": "duration_s"}).drop_duplicates("size")[columns]
    here = pd.DataFrame(
        [(n, m.median_s, m.source, m.conditions.device_name, m.method) for m in methods],
        columns=[*columns, "series"],
    )
    recorded_s = float(rows.loc[rows["size"] == n, "duration_s"].iloc[0])
    ratios = sorted(((m.median_s / recorded_s, m.method) for m in methods), key=_distance)
    findings = [f"{name} reads {_in_words(ratio)}" for ratio, name in (ratios[-1], ratios[0])]
    gpu = rows["device_name"].iloc[0]
    return plots.scaling(
        pd.concat([rows.assign(series="recorded"), here], ignore_index=True),
        size_label="n (matrices are n by n)",
        title=f"A recorded {gpu} took {format_time(recorded_s)}: {findings[0]},\n{findings[1]}",
    )


def _distance(reading: tuple[float, str]) -> float:
    ratio, _ = reading
    return max(ratio, 1 / ratio)


def _in_words(ratio: float) -> str:
    if 1 / _ALIKE < ratio < _ALIKE:
        return "nearly the same"
    if ratio < 1:
        return f"{format_percent(ratio)} of that"
    return f"{format_ratio(ratio, 2)} times as much"
