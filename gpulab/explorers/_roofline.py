"""The roofline explorer as functions of its state: what to choose, what to draw, what to say."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gpulab import gpus
from gpulab.errors import InvalidOptionError, UnknownNameError
from gpulab.explorers._scene import (
    CeilingsStep,
    Marker,
    Measured,
    Scene,
    Selector,
    Spot,
    Step,
    as_options,
    nearest,
)
from gpulab.explorers._sources import (
    COMPUTED,
    HERE,
    computed_options,
    here_of,
    points_among,
    recorded_options,
    recording_of,
    too_long,
)
from gpulab.figures import unit_of
from gpulab.plots import predicted_against_measured, roofline
from gpulab.provenance import device_label
from gpulab.roofline import MODELS, Ceilings, Chart, ceilings, ceilings_of, errors, predict, table
from gpulab.sweeps import CACHES, Point, Task
from gpulab.units import format_bytes, format_time
from gpulab.workloads import WORKLOADS, names, workload

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


Places = NDArray[np.float64]

PREDICTION, ROOFLINE = "prediction against measurement", "roofline"
_METHOD = "calibrated"
_TERA = 1e12
_SPANS = tuple(4**k for k in range(6, 17))  # 4 KiB to 4 GiB
_N_NAMED = 6  # of the points farthest from their prediction
_NAMED_FROM = np.log(1.25)
_MEASURE = "Press “Measure here”, or choose another GPU, type or cache above."
FAMILIES = (
    ("matrices", ("matmul", "matmul_odd", "bmm", "linear", "attention")),
    ("convolutions", ("conv1x1", "conv3x3", "conv_depthwise")),
    ("elementwise", ("add", "exp", "copy", "transposed_copy", "gelu", "dropout", "adam")),
    ("reductions", ("sum", "mean", "argmax", "cumsum")),
    ("rows", ("softmax", "layer_norm", "rms_norm", "cross_entropy", "fft")),
    ("sort, look up", ("sort", "topk", "embedding", "gather", "scatter_add")),
)
_FAR = 4.0  # times: a size that moves so much more or less is another one


@dataclass(frozen=True, slots=True)
class RooflineState:
    """What is chosen in a roofline explorer.

    Attributes
    ----------
    view
        ``"prediction against measurement"`` or ``"roofline"``.
    gpu
        Whose times: ``"recorded:NAME"``, ``"here"``, or ``"computed:NAME"``, of which there are
        predictions only.
    dtype, cache
        Type of the data, and ``"cold"`` or ``"hot"``.
    model
        Which prediction is compared: ``"refined"`` or ``"plain"``.
    operations
        Names of the workloads that are shown.
    span
        The sizes that move about so many bytes are marked and measured; None: all sizes.
    """

    view: str = PREDICTION
    gpu: str = ""
    dtype: str = "float32"
    cache: str = "cold"
    model: str = "refined"
    operations: tuple[str, ...] = names()
    span: int | None = None


class RooflineModel:
    """Functions of the state; see :class:`gpulab.explorers._scene.Model`."""

    name = "roofline"
    right = 0.97

    def __init__(self, mine: Iterable[str] = ()) -> None:
        self._mine = tuple(mine)
        self._listed = lru_cache(maxsize=50)(_listed)
        self._choices = lru_cache(maxsize=20)(self._offered)
        # Ceilings have no hash, so that no cache but this one can hold what is drawn of them.
        self._still: tuple[object, Scene, pd.DataFrame, Places] | None = None
        self._scenes: dict[int | None, Scene] = {}

    def choices(self, state: RooflineState) -> tuple[Selector, ...]:
        """Return what can be chosen; the first of each is the default."""
        return self._choices(state.dtype)

    def _offered(self, dtype: str) -> tuple[Selector, ...]:
        gpus = (*recorded_options(self._mine), ("measured here", HERE), *computed_options())
        dtypes = dict.fromkeys(name for work in WORKLOADS.values() for name in work.dtypes)
        spans = (("all sizes", None), *((format_bytes(span), span) for span in _SPANS))
        offered = [work.name for work in WORKLOADS.values() if dtype in work.dtypes]
        return (
            Selector("view", "Picture", "menu", as_options((PREDICTION, ROOFLINE))),
            Selector("gpu", "GPU", "menu", gpus),
            Selector("dtype", "Type", "menu", as_options(dtypes)),
            Selector("cache", "Cache", "menu", as_options(CACHES)),
            Selector("model", "Model", "menu", as_options(MODELS)),
            Selector("operations", "Operations", "several", as_options(offered), FAMILIES),
            Selector("span", "Bytes moved", "slider", spans),
        )

    def settled(self, state: RooflineState) -> RooflineState:
        """Return the nearest state of which everything is offered."""
        for choice in self.choices(state):
            # Operations without the type stay chosen, for when it is another one again.
            if choice.kind != "several":
                value: Any = nearest(choice.offered, getattr(state, choice.name))
                state = replace(state, **{choice.name: value})
        return state

    def steps(self, state: RooflineState) -> tuple[Step, ...]:
        """Return the roofs, and then the operations that are shown at the sizes shown."""
        tasks = (
            Task(name, size, state.dtype, cache=state.cache, method=_METHOD)
            for name in state.operations
            for size in _sizes_near(name, state.dtype, state.span)
        )
        return (CeilingsStep(), *tasks)

    def skips(self, step: Step, found: Sequence[Measured]) -> bool:
        """Tell whether the size before took so long that this one would block the notebook."""
        return too_long(step, found)

    def scene(self, state: RooflineState, found: Sequence[Measured]) -> Scene:
        """Return all sizes of the operations that are chosen, with those of one span marked."""
        key = (replace(state, span=None), points_among(found), len(found))
        if self._still is None or self._still[0] != key:
            self._still = (key, *self._drawn(key[0], found))
            self._scenes = {}
        _, still, rows, places = self._still
        if state.span not in self._scenes:
            self._scenes[state.span] = replace(still, key=key, **_near(state, rows, places))
        return self._scenes[state.span]

    def _drawn(
        self, state: RooflineState, found: Sequence[Measured]
    ) -> "tuple[Scene, pd.DataFrame, Places]":
        """Return the picture of a state, its rows, and where each is on the axes."""
        rows = self._rows(state, found)
        title = f"{state.view.capitalize()}, {state.dtype}, cache {state.cache}"
        if state.view == ROOFLINE:
            chart = Chart(_ceilings_for(state.gpu, found), rows)
            plot: Callable[[Axes], object] = partial(_plot_roofline, chart)
            places = np.array([rows["intensity"], _reached(rows)]).T
            alt = "Work reached over arithmetic intensity, below the roofs of the GPU."
        else:
            pairs = _pairs(rows, state.model)
            plot = partial(_plot_prediction, pairs)
            scale = _scale(pairs)
            places = np.array([pairs["predicted_s"], pairs["measured_s"]]).T / scale
            alt = "Measured over predicted time of a call; on the diagonal both agree."
        hints = map(_hint, _records(rows))
        scene = Scene(
            plot=plot,
            title=f"{title}\n({_origin(rows)})",
            alt=alt,
            spots=tuple(Spot(x, y, hint) for (x, y), hint in zip(places, hints, strict=True)),
        )
        return scene, rows, places

    def _rows(self, state: RooflineState, found: Sequence[Measured]) -> "pd.DataFrame":
        if not state.operations:
            raise InvalidOptionError(
                "No operation is chosen. Press one or more names, or the name of a family."
            )
        points: tuple[Point, ...] = points_among(found) if state.gpu == HERE else ()
        listed = self._listed(state.gpu, state.dtype, state.cache, points)
        kept = listed[listed["workload"].isin(state.operations)]
        if state.view == ROOFLINE:
            kept = kept[(kept["flops"] > 0) & ~np.isnan(_reached(kept))]
        else:
            kept = kept.dropna(subset=["measured_s", f"{state.model}_s"])
        if kept.empty:
            raise InvalidOptionError(_why_empty(state, listed))
        return kept.reset_index(drop=True)


def _near(state: RooflineState, rows: "pd.DataFrame", places: Places) -> dict[str, Any]:
    """Return what of a scene follows the slider."""
    near = _is_near(rows, state.span)
    markers = (Marker(x, y) for x, y in places[near]) if state.span is not None else ()
    return {
        "markers": tuple(markers),
        "words": tuple(_words(state, rows[near])),
        "frame": partial(_readable, rows[near], state.model),
    }


def _why_empty(state: RooflineState, listed: "pd.DataFrame") -> str:
    if listed.empty or listed["measured_s"].notna().any():
        where = "measured here" if state.gpu == HERE else "in this recording"
        return f"Nothing of {state.dtype}, cache {state.cache}, is {where}. {_MEASURE}"
    return (
        f"Of this GPU there are predictions only, nothing measured. Choose the picture "
        f"“{ROOFLINE}”, or a GPU that was recorded."
    )


def _origin(rows: "pd.DataFrame") -> str:
    first = rows.iloc[0]
    if not first["source"]:
        return f"{first['device_name']}: predicted, nothing measured"
    return device_label(first["device_name"], first["source"])


def _pairs(rows: "pd.DataFrame", model: str) -> "pd.DataFrame":
    """Return the columns of the picture; the farthest points have names if they are far."""
    off = np.abs(np.log(rows[f"{model}_ratio"]))
    farthest = off.groupby(rows["workload"]).transform("max") == off  # each name stands once
    ranks = off.where(farthest).rank(ascending=False, method="first")
    is_named = (ranks <= _N_NAMED) & (off > _NAMED_FROM)
    return rows.assign(predicted_s=rows[f"{model}_s"], label=rows["workload"].where(is_named, ""))


def _plot_prediction(pairs: "pd.DataFrame", ax: "Axes") -> None:
    predicted_against_measured(pairs, ax)
    times_s = pairs[["measured_s", "predicted_s"]].to_numpy() / _scale(pairs)
    ends = times_s.min() / 2, times_s.max() * 2
    ax.set(xlim=ends, ylim=ends)


def _plot_roofline(chart: Chart, ax: "Axes") -> None:
    roofline(chart, ax, names=False)
    reached = _reached(chart.table)
    peaks = (
        roof.peak(name) / _TERA
        for roof in chart.ceilings.roofs
        for name in chart.arithmetics
        if name in roof.peak_flops_per_s
    )
    ax.set_ylim(reached.min() / 3, 3 * max(reached.max(), *peaks, 0.0))


def _reached(rows: "pd.DataFrame") -> Places:
    """Return what was reached in TFLOP/s, or would be by the refined model."""
    predicted = rows["flops"] / rows["refined_s"]
    reached: Places = rows["flops_per_s"].fillna(predicted).to_numpy(dtype=float) / _TERA
    return reached


def _scale(pairs: "pd.DataFrame") -> float:
    """Return the length in seconds of the unit that the picture writes times in."""
    return unit_of([*pairs["predicted_s"], *pairs["measured_s"]])[0]


def _words(state: RooflineState, rows: "pd.DataFrame") -> Iterable[str]:
    if rows.empty:
        yield f"No operation moves about {format_bytes(state.span or 0)} at any of its sizes."
        return
    compared = rows.dropna(subset=["measured_s", f"{state.model}_s"])
    marked = "" if state.span is None else f"Ringed, about {format_bytes(state.span)} moved: "
    points = f"{marked}{len(rows)} points of {rows['workload'].nunique()} operations"
    if compared.empty:
        yield f"{points}; predictions only."
        return
    found = errors(compared)
    row = found[found["model"] == state.model].iloc[0]
    yield (
        f"{points}; the {state.model} model is {row['median']:.0%} off in the median, "
        f"{row['p90']:.0%} in the worst tenth."
    )
    far = np.abs(np.log(compared[f"{state.model}_ratio"])).idxmax()
    worst = compared.loc[far]
    yield (
        f"Farthest: {worst['workload']} n = {worst['size']:,}, predicted "
        f"{format_time(worst[f'{state.model}_s'])}, measured {format_time(worst['measured_s'])}: "
        f"{worst[f'{state.model}_ratio']:.3g} times as long."
    )


def _listed(gpu: str, dtype: str, cache: str, here: Sequence[Point]) -> "pd.DataFrame":
    """Return one row a point, as :func:`gpulab.roofline.table` has them.

    Of a GPU without measurements the catalogue is predicted; its measured times are missing.

    Parameters
    ----------
    gpu
        As in the state of the explorer.
    dtype, cache
        What is chosen.
    here
        What was measured here.
    """
    if gpu.startswith(COMPUTED):
        return _predicted(gpu.removeprefix(COMPUTED), dtype, cache)
    known = recording_of(gpu).points if gpu != HERE else here
    points = [
        point
        for point in (here_of(known, "gpu") if gpu == HERE else known)
        if (point.task.dtype, point.task.cache) == (dtype, cache)
    ]
    return table(points)


def _predicted(gpu: str, dtype: str, cache: str) -> "pd.DataFrame":
    import pandas as pd

    columns = table([]).columns
    rows = [
        row
        for work in WORKLOADS.values()
        if dtype in work.dtypes
        for size in work.sizes
        for row in _prediction(work.name, size, dtype, gpu, cache)
    ]
    return pd.DataFrame(rows).reindex(columns=columns)


def _prediction(
    name: str, size: int, dtype: str, gpu: str, cache: str
) -> Sequence[dict[str, Any]]:
    """Return the row of a size, none if it does not fit into the memory."""
    try:
        plain, refined = (
            predict(name, size, dtype, gpu, model=model, cache=cache)
            for model in ("plain", "refined")
        )
    except InvalidOptionError:
        return ()
    row = {
        "workload": name,
        "size": size,
        "dtype": dtype,
        "cache": cache,
        "source": "",
        "device_name": refined.device_name,
        "plain_s": plain.duration_s,
        "refined_s": refined.duration_s,
        "bound": refined.bound,
        "arithmetic": refined.arithmetic,
        "intensity": refined.intensity,
        "flops": refined.flops,
        "size_bytes": refined.size_bytes,
    }
    return (row,)


def _ceilings_for(gpu: str, found: Sequence[Measured]) -> Ceilings:
    """Return the roofs of a GPU: recorded, or the last that were measured, or its data sheet."""
    if gpu.startswith(COMPUTED):
        return ceilings(gpu.removeprefix(COMPUTED))
    if gpu == HERE:
        name = here_of(points_among(found), "gpu")[-1].device_name
        mine = [each for each in found if isinstance(each, Ceilings) and each.device_name == name]
        return mine[-1] if mine else _data_sheet(name)
    recording = recording_of(gpu)
    try:
        return ceilings_of(recording)
    except UnknownNameError:  # it has no such section
        return _data_sheet(str(recording.provenance["gpu"]))


def _data_sheet(device_name: str) -> Ceilings:
    known = gpus.by_driver_name(device_name)
    return Ceilings(device_name, "", ()) if known is None else ceilings(known)


def _sizes_near(name: str, dtype: str, span: int | None) -> tuple[int, ...]:
    """Return the catalogue's sizes of a workload, or the one that moves about so many bytes."""
    work = workload(name)
    if span is None or dtype not in work.dtypes:
        return work.sizes if dtype in work.dtypes else ()
    off = {size: abs(math.log(work.bytes(size, dtype) / span)) for size in work.sizes}
    best = min(off, key=lambda size: off[size])
    return (best,) if off[best] <= math.log(_FAR) else ()


def _is_near(rows: "pd.DataFrame", span: int | None) -> NDArray[np.bool_]:
    """Tell of each row whether it is the one of its workload that moves about so many bytes."""
    off = (rows["size_bytes"].astype(float) / (span or 1)).map(math.log).abs()
    best = off.groupby(rows["workload"]).idxmin()
    near = rows.index.isin(best) & (off <= math.log(_FAR)).to_numpy()
    return np.asarray(near) | (span is None)


def _records(rows: "pd.DataFrame") -> Iterator[dict[str, Any]]:
    """Yield each row by the names of its columns."""
    for row in rows.to_dict("records"):
        yield {str(name): value for name, value in row.items()}


def _hint(row: Mapping[str, Any]) -> str:
    """Return what is told of a point."""
    lines = [f"{row['workload']}, n = {row['size']:,}, {row['dtype']}, {row['cache']}"]
    for model in ("refined", "plain"):
        if not math.isnan(row[f"{model}_s"]):
            ratio = row[f"{model}_ratio"]
            times = "" if math.isnan(ratio) else f"; measured is {ratio:.3g} times that"
            lines.append(f"predicted, {model}: {format_time(row[f'{model}_s'])}{times}")
    if math.isnan(row["measured_s"]):
        lines.append("not measured")
    else:
        lines.append(f"measured: {format_time(row['measured_s'])}")
    return "\n".join([*lines, f"bound by {row['bound']}"])


def _readable(rows: "pd.DataFrame", model: str) -> "pd.DataFrame":
    """Return the columns of the table beside the picture, farthest from the prediction first."""
    columns = ["workload", "size", "dtype", "cache", "measured_s", "plain_s", "refined_s"]
    columns += ["plain_ratio", "refined_ratio", "bound", "intensity", "source", "device_name"]
    far = rows[f"{model}_ratio"].map(math.log).abs().sort_values(ascending=False)
    table: pd.DataFrame = rows.loc[far.index, columns].reset_index(drop=True)
    return table
