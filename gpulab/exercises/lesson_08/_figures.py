"""The figure of lesson 08: time that overlap saved, and time that it could save."""

from typing import TYPE_CHECKING

from gpulab.figures import INK, PAPER, WIDTH_IN, Figure, finish, legend_below, looks, need, unit_of
from gpulab.views import plots

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd
    from matplotlib.axes import Axes

    from gpulab.exercises.lesson_08.pipelines import PipelineRun


_BAR = 0.6
_WRONG_HATCH = "//"


def overlap(record: "pd.DataFrame", ax: "Axes") -> "Axes":
    """Plot for each program the time that overlap saved, and the most that it could save.

    Programs that computed on wrong data are hatched: a full bar does not mean right values.

    Parameters
    ----------
    record
        Table with columns ``program``, ``hidden_s``, ``possible_s`` and ``n_wrong``.
    ax
        The axes to plot on.

    Raises
    ------
    InvalidOptionError
        If a column is missing.

    Examples
    --------
    >>> import pandas as pd
    >>> from gpulab import plots
    >>> from gpulab.exercises import lesson_08 as lab
    >>> columns = ["program", "hidden_s", "possible_s", "n_wrong"]
    >>> rows = pd.DataFrame([("mine", 3e-3, 5e-3, 0)], columns=columns)
    >>> figure = plots.draw(lab.overlap, rows, title="Overlap", alt="A bar.", source="made up")
    """
    need(record, ("program", "hidden_s", "possible_s", "n_wrong"))
    scale, unit = unit_of(record["possible_s"])
    possible, hidden = record["possible_s"] / scale, record["hidden_s"] / scale
    rows = range(len(record))
    colour = [look.colour for look, _ in zip(looks(), (False, True), strict=False)]
    for wrong in (False, True):
        places = [row for row in rows if (record["n_wrong"].iloc[row] > 0) == wrong]
        if places:
            ax.barh(
                places,
                hidden.iloc[places],
                _BAR,
                color=colour[wrong],
                hatch=_WRONG_HATCH if wrong else None,
                edgecolor=PAPER,
                label="saved, on wrong data" if wrong else "saved, values right",
            )
    ax.barh(rows, possible, _BAR, fill=False, edgecolor=INK, label="possible")
    for row, share in enumerate(hidden / possible):
        end = (possible.iloc[row], row)
        ax.annotate(f"{100 * share:.0f} %", end, (6, 0), textcoords="offset points", va="center")
    ax.set_yticks(rows, record["program"])
    ax.set_ylim(len(record) - 0.5, -0.5)
    ax.set_xlim(0, 1.25 * possible.max())
    finish(ax, "Bar chart", f"time saved by overlap ({unit})", "", legend=False)
    legend_below(ax)
    return ax


def draw_overlap(runs: "Mapping[str, PipelineRun]") -> Figure:
    """Return a figure of the time that overlap saved in some programs.

    Parameters
    ----------
    runs
        What ``pipelines.run`` returned, by the name of the program.

    Examples
    --------
    >>> import gpulab
    >>> from gpulab.exercises import lesson_08 as lab
    >>> def pipeline(slots, copying, fill, compute, n_steps):
    ...     for step in range(n_steps):
    ...         fill(slots[0].pinned, step)
    ...         slots[0].on_device.copy_(slots[0].pinned)
    ...         compute(slots[0].on_device, step)
    >>> with gpulab.virtual_gpu("H200"):
    ...     figure = lab.draw_overlap({"mine": lab.pipelines.run(pipeline, n_steps=2)})
    >>> figure.caption.partition(";")[0]
    'mine: 0 of 2 steps computed on wrong data'
    """
    import pandas as pd

    columns = ["hidden_s", "possible_s", "n_wrong"]
    rows = [(name, *(getattr(run, column) for column in columns)) for name, run in runs.items()]
    # Without the place, which is in the title.
    said = (f"{name}: {run.words}." for name, run in runs.items())
    return plots.draw(
        overlap,
        pd.DataFrame(rows, columns=["program", *columns]),
        title="Time saved by overlap, and what is possible",
        alt="\n".join(said),
        ax_size=(WIDTH_IN, 1.5 + 0.5 * len(runs)),
        source=next(iter(runs.values())).place,
    )
