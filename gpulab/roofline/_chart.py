"""The data of a roofline chart: the roofs of a GPU, and measured points under them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpulab.core.errors import InvalidOptionError
from gpulab.core.foreign_text import visible
from gpulab.core.requirements import NAME
from gpulab.gpus import MEASURED
from gpulab.roofline._ceilings import CEILINGS, Ceilings
from gpulab.roofline._table import check_table, is_comparable, table
from gpulab.workloads.sweeps import HasPoints, Point, points_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Chart", "chart"]


@dataclass(frozen=True, slots=True)
class Chart:
    """The data of one roofline figure: the roofs of a GPU, and the points below them.

    Attributes
    ----------
    ceilings
        Roofs of the GPU that the points were measured on.
    table
        A table from :func:`table`, with points of one type of data.

    Examples
    --------
    >>> import gpulab
    >>> from gpulab.workloads.sweeps import Point, Task
    >>> point = Point(Task("add", 2**20, dtype="float16"), median_s=2e-6, low_s=2e-6,
    ...     high_s=2e-6, n_samples=9, device_name="NVIDIA H200")
    >>> roofs = gpulab.roofline.ceilings("H200")
    >>> gpulab.roofline.chart([point], roofs, dtype="float16").arithmetics
    ('float16',)
    """

    ceilings: Ceilings
    table: "pd.DataFrame"

    def __post_init__(self) -> None:
        CEILINGS.check(ceilings=self.ceilings)
        check_table(self.table)

    @property
    def arithmetics(self) -> tuple[str, ...]:
        """The types in which the points compute; their peaks are drawn."""
        return tuple(dict.fromkeys(self.table["arithmetic"]))

    @property
    def evidence(self) -> tuple[str, ...]:
        """The kinds of evidence of the roofs that are drawn, such as "data sheet"."""
        names = set(self.arithmetics)
        is_model = self.ceilings.source == "virtual"
        return tuple(
            dict.fromkeys(
                "measured on the virtual GPU"
                if is_model and roof.basis == MEASURED
                else roof.basis
                for roof in self.ceilings.roofs
                if names & set(roof.peak_flops_per_s)
            )
        )

    def to_frame(self) -> "pd.DataFrame":
        """Return the table of points, with the predictions of both models."""
        return self.table

    @property
    def source(self) -> str:
        """Where the points come from; empty if there are only predictions."""
        sources = set(self.table["source"]) - {""}
        return str(sources.pop()) if len(sources) == 1 else self.ceilings.source

    @property
    def device_name(self) -> str:
        """The GPU, as its driver reports it."""
        return self.ceilings.device_name


def chart(
    points: Iterable[Point] | HasPoints, ceilings: Ceilings, *, dtype: str = "float32"
) -> Chart:
    """Return the data of a roofline figure: the points of one type below the roofs of their GPU.

    Parameters
    ----------
    points
        As for :func:`table`.
    ceilings
        Roofs of the same GPU, from :func:`ceilings`, :func:`measure_ceilings` or
        :func:`ceilings_of`.
    dtype
        The type of the points and of the peaks.

    Raises
    ------
    InvalidOptionError
        If no point has that type, or a point comes from another GPU or another source.

    Examples
    --------
    >>> import gpulab
    >>> recorded = gpulab.recordings.load("h200-sxm-2026-11")
    >>> chart = gpulab.roofline.chart(recorded, gpulab.roofline.ceilings("H200"))
    >>> chart.device_name
    'NVIDIA H200'
    """
    CEILINGS.check(ceilings=ceilings)
    NAME.check(dtype=dtype)
    every_point = points_of(points)
    # Only the points of this type: each prediction for another one would take as long.
    of_dtype = table([point for point in every_point if point.task.dtype == dtype])
    if of_dtype.empty:
        known = sorted({point.task.dtype for point in every_point if is_comparable(point)})
        raise InvalidOptionError(
            f"dtype={dtype!r}, and no point of it can be compared; there are {', '.join(known)}"
            if known
            else "no point can be compared: they must be measured on a GPU, without transfers"
        )
    device = (ceilings.source, visible(ceilings.device_name))  # as the table has it
    for pair in set(zip(of_dtype["source"], of_dtype["device_name"], strict=True)):
        # Without a source there is only a data sheet, which fits measured and virtual points
        # alike.
        if pair != device and ceilings.source:
            raise InvalidOptionError(
                f"the points are {' on '.join(pair)} and the ceilings {' on '.join(device)}; "
                "use points and ceilings of the same GPU"
            )
    return Chart(ceilings, of_dtype)
