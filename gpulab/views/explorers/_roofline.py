"""The model of the roofline explorer: its choices, its numbers and its words for a state."""

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gpulab.core.errors import InvalidOptionError
from gpulab.core.units import (
    counted,
    format_bytes,
    format_percent,
)
from gpulab.figures import Figure
from gpulab.gpus.provenance import device_label
from gpulab.roofline import MODELS, Ceilings, Chart, errors
from gpulab.views import plots
from gpulab.views.explorers._prediction_plot import PredictionPlot
from gpulab.views.explorers._roofline_points import (
    ceilings_for,
    listed,
    roof_numbers,
    table_numbers,
)
from gpulab.views.explorers._scene import (
    CeilingsStep,
    Measured,
    Selector,
    Step,
    nearest,
)
from gpulab.views.explorers._sources import (
    COMPUTED,
    FAMILIES,
    HERE,
    computed_choices,
    gpu_facts,
    points_among,
    recorded_choices,
)
from gpulab.workloads import WORKLOADS, workload
from gpulab.workloads.sweeps import CACHES, Point, Task

if TYPE_CHECKING:
    import pandas as pd


Numbers: TypeAlias = NDArray[np.float64]

PREDICTION, ROOFLINE = "prediction against measurement", "roofline"
_METHOD = "calibrated"
_SPANS = tuple(4**k for k in range(6, 17))  # 4 KiB to 4 GiB
_MEASURE = "Press “Measure here”, or choose another GPU, type or cache above."
# One of each family that has arithmetic, so that the picture is understood before it is full.
_FIRST = ("matmul", "conv3x3", "add", "sum", "softmax")
_N_NAMED = 6  # in a figure
_NAMED_FROM = np.log(1.25)  # a point within 25 % of its prediction gets no name
_FAR = 4.0  # a size that moves 4 times more or fewer bytes does not belong to the span


class Side(NamedTuple):
    """One GPU: its points, in the form of :func:`gpulab.roofline.table`, and its roofs."""

    rows: "pd.DataFrame"
    ceilings: Ceilings


@dataclass(frozen=True, slots=True)
class RooflineState:
    """The choices of a roofline explorer.

    Attributes
    ----------
    view
        ``"prediction against measurement"`` or ``"roofline"``.
    gpu
        Source of the times: ``"recorded:NAME"``, ``"here"``, or ``"computed:NAME"``, which has
        predictions only.
    dtype, cache
        Type of the data, and ``"cold"`` or ``"hot"``.
    model
        The model whose prediction is compared: ``"refined"`` or ``"plain"``.
    operations
        Names of the workloads that are shown.
    span
        Only sizes that move about this many bytes are shown and measured; None: all sizes.
    beside
        A second GPU to compare with, recorded or computed; empty for none.
    """

    view: str = PREDICTION
    gpu: str = ""
    dtype: str = "float32"
    cache: str = "cold"
    model: str = "plain"
    operations: tuple[str, ...] = _FIRST
    span: int | None = None
    beside: str = ""


class RooflineModel:
    """The model of the roofline explorer; see :class:`gpulab.views.explorers._scene.Model`."""

    name = "roofline"

    def __init__(self, own_files: Iterable[str] = ()) -> None:
        self.own_files = tuple(own_files)
        self._listed = lru_cache(maxsize=50)(listed)

    def choices(self, state: RooflineState) -> tuple[Selector, ...]:
        recorded, computed = recorded_choices(self.own_files), computed_choices()
        with_type = [work.name for work in WORKLOADS.values() if state.dtype in work.dtypes]
        return (
            Selector("view", "menu", (PREDICTION, ROOFLINE)),
            Selector("gpu", "menu", (*recorded, HERE, *computed)),
            Selector("beside", "menu", ("", *recorded, *computed)),
            Selector("dtype", "menu", self._dtypes()),
            Selector("cache", "menu", CACHES),
            Selector("model", "menu", MODELS),
            Selector("operations", "several", tuple(with_type)),
            Selector("span", "slider", (None, *_SPANS)),
        )

    def settled(self, state: RooflineState) -> RooflineState:
        for choice in self.choices(state):
            # Operations that lack this type stay chosen, and come back with another type.
            if choice.kind != "several":
                value: Any = nearest(choice.offered, getattr(state, choice.name))
                state = replace(state, **{choice.name: value})
        known = tuple(name for name in state.operations if name in WORKLOADS)
        return replace(state, operations=known)

    def steps(self, state: RooflineState) -> tuple[Step, ...]:
        """Return the roofs, and then the chosen operations at the chosen sizes."""
        tasks = (
            Task(name, size, state.dtype, cache=state.cache, method=_METHOD)
            for name in state.operations
            for size in _sizes_near(name, state.dtype, state.span)
        )
        return (CeilingsStep(), *tasks)

    def words(self, state: RooflineState, measured: Sequence[Measured]) -> tuple[str, ...]:
        side = self._side(state, measured)
        title = f"{state.view.capitalize()}, {state.dtype}, cache {state.cache}"
        words = [f"{title} ({_short_name(side)})", *_words(state, _near(side.rows, state.span))]
        if state.view == ROOFLINE:
            evidence = Chart(side.ceilings, side.rows).evidence
            words.append(f"Roofs: {', '.join(evidence) or 'unknown'}.")
        return tuple(words)

    def frame(self, state: RooflineState, measured: Sequence[Measured]) -> "pd.DataFrame":
        import pandas as pd

        sides = [self._rows(state, measured)]
        if state.beside not in {"", state.gpu}:
            with suppress(InvalidOptionError):  # without a point of the second GPU
                sides.append(self._rows(replace(state, gpu=state.beside), measured))
        rows = [_near(side, state.span) for side in sides]
        return _readable(pd.concat(rows, ignore_index=True), state.model)

    def figure(self, state: RooflineState, measured: Sequence[Measured]) -> Figure:
        side = self._side(state, measured)
        rows = _near(side.rows, state.span)
        if rows["measured_s"].isna().all():
            raise InvalidOptionError(
                "There is nothing measured to draw in a figure; the page shows the predictions."
            )
        source = _short_name(side)
        if state.view == ROOFLINE:
            return plots.roofline(Chart(side.ceilings, rows), source=source)
        return PredictionPlot(_named(rows, state.model)).figure(source=source)

    def base_numbers(self) -> dict[str, Any]:
        """Return names and units, and the recorded points and roofs."""
        recorded = recorded_choices(self.own_files)
        gpus = {
            choice: gpu_facts(choice) | {"roofs": [], "tables": {}}
            for choice in (*recorded, *computed_choices(), HERE)
        }
        for choice in recorded:
            gpus[choice] |= self._points_and_roofs(choice, ())
        return {
            "families": FAMILIES,
            "dtypes": self._dtypes(),
            "spans": (None, *_SPANS),
            "gpus": gpus,
        }

    def state_numbers(self, state: RooflineState) -> dict[str, Any]:
        """Return the predictions for the virtual GPUs that a state shows, and their roofs."""
        tables = [(state.dtype, state.cache)]
        gpus = {
            choice: self._points_and_roofs(choice, (), tables)
            for choice in (state.gpu, state.beside)
            if choice.startswith(COMPUTED)
        }
        return {"gpus": gpus}

    def own_numbers(self, measured: Sequence[Measured]) -> dict[str, Any]:
        own = [point for point in points_among(measured) if point.task.on == "gpu"]
        if not own:
            return {"gpus": {}}
        numbers = gpu_facts(HERE, own) | self._points_and_roofs(HERE, measured)
        return {"gpus": {HERE: numbers}}

    def _points_and_roofs(
        self,
        choice: str,
        measured: Sequence[Measured],
        tables: Iterable[tuple[str, str]] = (),
    ) -> dict[str, Any]:
        """Return the points of a GPU by type and cache, all if none is named, and its roofs."""
        points = points_among(measured)
        wanted = tables or [(dtype, cache) for dtype in self._dtypes() for cache in CACHES]
        rows = {
            f"{dtype} {cache}": self._listed(choice, dtype, cache, points)
            for dtype, cache in wanted
        }
        return {
            "tables": {name: table_numbers(table) for name, table in rows.items() if len(table)},
            "roofs": roof_numbers(ceilings_for(choice, measured)),
        }

    def _dtypes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for work in WORKLOADS.values() for name in work.dtypes))

    def _side(self, state: RooflineState, measured: Sequence[Measured]) -> Side:
        return Side(self._rows(state, measured), ceilings_for(state.gpu, measured))

    def _rows(self, state: RooflineState, measured: Sequence[Measured]) -> "pd.DataFrame":
        if not state.operations:
            raise InvalidOptionError(
                "No operation is chosen. Press one or more names, or the name of a family."
            )
        points: tuple[Point, ...] = points_among(measured) if state.gpu == HERE else ()
        listed = self._listed(state.gpu, state.dtype, state.cache, points)
        rows = listed[listed["workload"].isin(state.operations)]
        if state.view == ROOFLINE:
            rows = rows[(rows["flops"] > 0) & ~np.isnan(_reached(rows))]
        else:
            rows = rows.dropna(subset=["measured_s", f"{state.model}_s"])
        if rows.empty:
            raise InvalidOptionError(_why_empty(state, listed))
        return rows.reset_index(drop=True)


def _why_empty(state: RooflineState, listed: "pd.DataFrame") -> str:
    if listed.empty or listed["measured_s"].notna().any():
        where = "measured here" if state.gpu == HERE else "in this recording"
        return f"Nothing of {state.dtype}, cache {state.cache}, is {where}. {_MEASURE}"
    return (
        f"Of this GPU there are predictions only, nothing measured. Choose the picture "
        f"“{ROOFLINE}”, or a GPU that was recorded."
    )


def _short_name(side: Side) -> str:
    """Return the name of a GPU with the source of its points."""
    first = side.rows.iloc[0]
    if not first["source"]:
        return f"{first['device_name']}, predicted"
    return device_label(first["device_name"], first["source"])


def _reached(rows: "pd.DataFrame") -> Numbers:
    """Return the measured rate in FLOP/s, or the refined model's if nothing was measured."""
    predicted = rows["flops"] / rows["refined_s"]
    reached: Numbers = rows["flops_per_s"].fillna(predicted).to_numpy(dtype=float)
    return reached


def _words(state: RooflineState, rows: "pd.DataFrame") -> Iterable[str]:
    if rows.empty:
        yield f"No operation moves about {format_bytes(state.span or 0)} at any of its sizes."
        return
    marked = "" if state.span is None else f"About {format_bytes(state.span)} moved: "
    operations = counted(rows["workload"].nunique(), "operation")
    yield f"{marked}{counted(len(rows), 'point')} of {operations}."
    for _, error in errors(rows).iterrows():
        near, far = (format_percent(error[name]) for name in ("median", "p90"))
        within = f"half of them are within {near}, nine of ten within {far}"
        yield f"The {error['model']} model: {within}."


def _named(rows: "pd.DataFrame", model: str) -> "pd.DataFrame":
    """Return the columns of the figure; the points farthest from their prediction get names."""
    off = np.abs(np.log(rows[f"{model}_ratio"]))
    farthest = off.groupby(rows["workload"]).transform("max") == off  # each name stands once
    # method="first" gives equal points different ranks; otherwise more than six could get names.
    ranks = off.where(farthest).rank(ascending=False, method="first")
    is_named = (ranks <= _N_NAMED) & (off > _NAMED_FROM)
    return rows.assign(predicted_s=rows[f"{model}_s"], label=rows["workload"].where(is_named, ""))


def _sizes_near(name: str, dtype: str, span: int | None) -> tuple[int, ...]:
    """Return the catalogue's sizes of a workload, or the one that moves about ``span`` bytes."""
    work = workload(name)
    if span is None or dtype not in work.dtypes:
        return work.sizes if dtype in work.dtypes else ()
    off = {size: abs(math.log(work.bytes(size, dtype) / span)) for size in work.sizes}
    best = min(off, key=lambda size: off[size])
    return (best,) if off[best] <= math.log(_FAR) else ()


def _near(rows: "pd.DataFrame", span: int | None) -> "pd.DataFrame":
    """Return the row of each workload that moves about ``span`` bytes; all rows without a span."""
    if span is None:
        return rows
    off = (rows["size_bytes"].astype(float) / span).map(math.log).abs()
    best = off.groupby(rows["workload"]).idxmin()
    near: pd.DataFrame = rows[rows.index.isin(best) & (off <= math.log(_FAR)).to_numpy()]
    return near


def _readable(rows: "pd.DataFrame", model: str) -> "pd.DataFrame":
    """Return the columns of the table beside the picture, farthest from the prediction first."""
    columns = ["workload", "size", "dtype", "cache", "measured_s", "plain_s", "refined_s"]
    columns += ["plain_ratio", "refined_ratio", "bound", "intensity", "source", "device_name"]
    far = rows[f"{model}_ratio"].map(math.log).abs().sort_values(ascending=False)
    table: pd.DataFrame = rows.loc[far.index, columns].reset_index(drop=True)
    return table
