"""The model of the roofline explorer: its choices, its picture and its words for a state."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gpulab.errors import InvalidOptionError
from gpulab.explorers._roofline_points import ceilings_for, listed
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
    HERE,
    computed_options,
    points_among,
    recorded_options,
    too_long,
)
from gpulab.figures import INK, legend_below, look_of, marks, name_roof, unit_of
from gpulab.plots import predicted_against_measured, roofline
from gpulab.provenance import device_label
from gpulab.roofline import MODELS, Ceilings, Chart, errors
from gpulab.sweeps import CACHES, Point, Task
from gpulab.units import format_bytes, format_rate, format_time
from gpulab.workloads import WORKLOADS, names, workload

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


Places: TypeAlias = NDArray[np.float64]

PREDICTION, ROOFLINE = "prediction against measurement", "roofline"
_METHOD = "calibrated"
_TERA = 1e12
_SPANS = tuple(4**k for k in range(6, 17))  # 4 KiB to 4 GiB
_N_NAMED = 6  # of the points farthest from their prediction
_NAMED_FROM = np.log(1.25)  # a point within 25 % of its prediction gets no name
_MEASURE = "Press “Measure here”, or choose another GPU, type or cache above."
FAMILIES = (
    ("matrices", ("matmul", "matmul_odd", "bmm", "linear", "attention")),
    ("convolutions", ("conv1x1", "conv3x3", "conv_depthwise")),
    ("elementwise", ("add", "exp", "copy", "transposed_copy", "gelu", "dropout", "adam")),
    ("reductions", ("sum", "mean", "argmax", "cumsum")),
    ("rows", ("softmax", "layer_norm", "rms_norm", "cross_entropy", "fft")),
    ("sort, look up", ("sort", "topk", "embedding", "gather", "scatter_add")),
)
_SECOND = "v"  # marker of the second GPU; the first has one for each bound
_SECOND_ROOF = "-."
_N_PLACES = 60  # along a roof of the second GPU
_FAR = 4.0  # a size that moves 4 times more or fewer bytes does not belong to the span


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
        Only sizes that move about this many bytes are marked and measured; None: all sizes.
    beside
        A second GPU to compare with, recorded or computed; empty for none.
    """

    view: str = PREDICTION
    gpu: str = ""
    dtype: str = "float32"
    cache: str = "cold"
    model: str = "refined"
    operations: tuple[str, ...] = names()
    span: int | None = None
    beside: str = ""


class _Side(NamedTuple):
    """One GPU of the picture.

    Attributes
    ----------
    rows
        Its points, in the form of :func:`gpulab.roofline.table`.
    places
        Position of each point on the axes.
    ceilings
        Its roofs.
    """

    rows: "pd.DataFrame"
    places: Places
    ceilings: Ceilings


class RooflineModel:
    """The model of the roofline explorer; see :class:`gpulab.explorers._scene.Model`."""

    name = "roofline"
    right = 0.97

    def __init__(self, mine: Iterable[str] = ()) -> None:
        self._mine = tuple(mine)
        self._listed = lru_cache(maxsize=50)(listed)
        self._choices = lru_cache(maxsize=20)(self._offered)
        # Not lru_cache, because Ceilings have no hash. These hold the last picture, and its scenes
        # by span, so that each step of that slider changes only markers and words.
        self._still: tuple[object, Scene, tuple[_Side, ...], str] | None = None
        self._scenes: dict[int | None, Scene] = {}

    def choices(self, state: RooflineState) -> tuple[Selector, ...]:
        """Return the choices with their options; the first option of each is the default."""
        return self._choices(state.dtype)

    def _offered(self, dtype: str) -> tuple[Selector, ...]:
        recorded, computed = recorded_options(self._mine), computed_options()
        gpus = (*recorded, ("measured here", HERE), *computed)
        dtypes = dict.fromkeys(name for work in WORKLOADS.values() for name in work.dtypes)
        spans = (("all sizes", None), *((format_bytes(span), span) for span in _SPANS))
        offered = [work.name for work in WORKLOADS.values() if dtype in work.dtypes]
        return (
            Selector("view", "Picture", "menu", as_options((PREDICTION, ROOFLINE))),
            Selector("gpu", "GPU", "menu", gpus),
            Selector("beside", "Second GPU", "menu", (("none", ""), *recorded, *computed)),
            Selector("dtype", "Type", "menu", as_options(dtypes)),
            Selector("cache", "Cache", "menu", as_options(CACHES)),
            Selector("model", "Model", "menu", as_options(MODELS)),
            Selector("operations", "Operations", "several", as_options(offered), FAMILIES),
            Selector("span", "Bytes moved", "slider", spans),
        )

    def settled(self, state: RooflineState) -> RooflineState:
        """Return the nearest state in which every choice is one of its options."""
        for choice in self.choices(state):
            # Operations that lack this type stay chosen, and come back with another type.
            if choice.kind != "several":
                value: Any = nearest(choice.offered, getattr(state, choice.name))
                state = replace(state, **{choice.name: value})
        return state

    def steps(self, state: RooflineState) -> tuple[Step, ...]:
        """Return the roofs, and then the chosen operations at the chosen sizes."""
        tasks = (
            Task(name, size, state.dtype, cache=state.cache, method=_METHOD)
            for name in state.operations
            for size in _sizes_near(name, state.dtype, state.span)
        )
        return (CeilingsStep(), *tasks)

    def skips(self, step: Step, found: Sequence[Measured]) -> bool:
        """Return whether a smaller size took so long that this one would block the notebook."""
        return too_long(step, found)

    def scene(self, state: RooflineState, found: Sequence[Measured]) -> Scene:
        """Return all sizes of the chosen operations, with markers at those of the chosen span."""
        # The length stands for measured ceilings, which are not among the points and have no hash.
        key = (replace(state, span=None), points_among(found), len(found))
        if self._still is None or self._still[0] != key:
            self._still = (key, *self._drawn(key[0], found))
            self._scenes = {}
        _, still, sides, missing = self._still
        if state.span not in self._scenes:
            self._scenes[state.span] = replace(still, key=key, **_near(state, sides, missing))
        return self._scenes[state.span]

    def _drawn(
        self, state: RooflineState, found: Sequence[Measured]
    ) -> tuple[Scene, tuple[_Side, ...], str]:
        """Return the picture of a state, its GPUs, and why the second GPU is not drawn."""
        rows = self._rows(state, found)
        scale = 1.0 if state.view == ROOFLINE else _scale(_pairs(rows, state.model))
        first = _Side(rows, _places(state, rows, scale), ceilings_for(state.gpu, found))
        second, missing = self._second(state, found, scale)
        if state.view == ROOFLINE:
            plot: Callable[[Axes], object] = partial(_plot_roofline, first, second)
            alt = "Work reached over arithmetic intensity, below the roofs of the GPU."
        else:
            plot = partial(_plot_prediction, first, second, state.model)
            alt = "Measured over predicted time of a call; on the diagonal both agree."
        title = f"{state.view.capitalize()}, {state.dtype}, cache {state.cache}"
        sides = (first, second) if second else (first,)
        spots = (spot for side in sides for spot in _spots(side, is_second=side is second))
        scene = Scene(plot=plot, title=f"{title}\n({_origin(rows)})", alt=alt, spots=tuple(spots))
        return scene, sides, missing

    def _second(
        self, state: RooflineState, found: Sequence[Measured], scale: float
    ) -> tuple[_Side | None, str]:
        """Return the second GPU, or None and the reason if it has nothing to draw."""
        if state.beside in {"", state.gpu}:
            return None, ""
        try:
            rows = self._rows(replace(state, gpu=state.beside), found)
        except InvalidOptionError as error:  # the first one is drawn all the same
            return None, f"The second GPU is not drawn. {error}"
        roofs = ceilings_for(state.beside, found)
        return _Side(rows, _places(state, rows, scale), roofs), ""

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


def _places(state: RooflineState, rows: "pd.DataFrame", scale: float) -> Places:
    """Return the position of each row on the axes; ``scale`` is the unit of times in seconds."""
    if state.view == ROOFLINE:
        return np.array([rows["intensity"], _reached(rows)]).T
    return np.array([rows[f"{state.model}_s"], rows["measured_s"]]).T / scale


def _spots(side: _Side, *, is_second: bool) -> Iterator[Spot]:
    whose = f"\nsecond GPU: {_short(side)}" if is_second else ""
    for (x, y), row in zip(side.places, _records(side.rows), strict=True):
        name, rest = _hint(row).split("\n", 1)
        yield Spot(x, y, f"{name}{whose}\n{rest}")


def _near(state: RooflineState, sides: Sequence[_Side], missing: str) -> dict[str, Any]:
    """Return the fields of a scene that change with the slider: markers, words and table."""
    import pandas as pd

    near = [_is_near(side.rows, state.span) for side in sides]
    rows = [side.rows[kept] for side, kept in zip(sides, near, strict=True)]
    places = np.concatenate([side.places[kept] for side, kept in zip(sides, near, strict=True)])
    markers = (Marker(x, y) for x, y in places) if state.span is not None else ()
    words = [*_words(state, rows[0]), *([missing] if missing else [])]
    if len(sides) > 1:
        words += _compared(state, sides, rows)
    return {
        "markers": tuple(markers),
        "words": tuple(words),
        "frame": lambda: _readable(pd.concat(rows, ignore_index=True), state.model),
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


def _short(side: _Side) -> str:
    """Return the name of a GPU with the source of its points, in few words."""
    first = side.rows.iloc[0]
    known = first["source"]
    return (
        device_label(first["device_name"], known)
        if known
        else f"{first['device_name']}, predicted"
    )


def _pairs(rows: "pd.DataFrame", model: str) -> "pd.DataFrame":
    """Return the columns of the picture; the points farthest from their prediction get names."""
    off = np.abs(np.log(rows[f"{model}_ratio"]))
    farthest = off.groupby(rows["workload"]).transform("max") == off  # each name stands once
    # method="first" gives equal points different ranks; otherwise more than six could get names.
    ranks = off.where(farthest).rank(ascending=False, method="first")
    is_named = (ranks <= _N_NAMED) & (off > _NAMED_FROM)
    return rows.assign(predicted_s=rows[f"{model}_s"], label=rows["workload"].where(is_named, ""))


def _plot_prediction(first: _Side, second: _Side | None, model: str, ax: "Axes") -> None:
    pairs = _pairs(first.rows, model)
    predicted_against_measured(pairs, ax)
    times = first.places if second is None else np.concatenate([first.places, second.places])
    ends = times.min() / 2, times.max() * 2
    # Equal limits, so that the diagonal goes from corner to corner.
    ax.set(xlim=ends, ylim=ends)
    if second is not None:
        _plot_points(second, ax)


def _plot_roofline(first: _Side, second: _Side | None, ax: "Axes") -> None:
    chart = Chart(first.ceilings, first.rows)
    roofline(chart, ax, names=False)
    sides = (first,) if second is None else (first, second)
    reached = np.concatenate([side.places[:, 1] for side in sides])
    peaks = [peak for side in sides for peak in _peaks(side).values()]
    ax.set_ylim(reached.min() / 3, 3 * max(reached.max(), *peaks, 0.0))
    if second is not None:
        _plot_roofs(second, ax)
        _plot_points(second, ax)


def _plot_points(second: _Side, ax: "Axes") -> None:
    """Draw the points of the second GPU, with a marker of its own."""
    look = look_of("GPU")._replace(marker=_SECOND)
    source = second.rows["source"].iloc[0] or "virtual"  # predictions are computed
    signs = marks(look, source) | {"linestyle": "none"}
    ax.plot(*second.places.T, label=f"second GPU: {_short(second)}", **signs)
    legend_below(ax)


def _plot_roofs(second: _Side, ax: "Axes") -> None:
    """Draw the roofs of the second GPU as dash-dotted lines; the words have their heights."""
    x = np.geomspace(*ax.get_xlim(), _N_PLACES)
    ends: dict[float, list[str]] = {}
    for name in _peaks(second):
        roofs = [roof for roof in second.ceilings.roofs if name in roof.peak_flops_per_s]
        heights = np.max([[roof.attainable(at, name) for at in x] for roof in roofs], axis=0)
        look: Any = {"color": INK, "linestyle": _SECOND_ROOF, "linewidth": 1.2}
        # Below the names of the first GPU's roofs.
        ax.plot(x, heights / _TERA, zorder=1.8, **look)
        ends.setdefault(float(heights[-1] / _TERA), []).append(name)
    # Named at the lines, because a legend of eight entries cannot be read from far away.
    for height, same in ends.items():
        name_roof(ax, f"second GPU, {', '.join(same)}", (x[-1], height))


def _peaks(side: _Side) -> dict[str, float]:
    """Return the highest peak of each type of arithmetic that the points use, in TFLOP/s."""
    return {
        name: max(peaks) / _TERA
        for name in Chart(side.ceilings, side.rows).arithmetics
        if (peaks := [r.peak(name) for r in side.ceilings.roofs if name in r.peak_flops_per_s])
    }


def _reached(rows: "pd.DataFrame") -> Places:
    """Return the measured rate in TFLOP/s, or the refined model's if nothing was measured."""
    predicted = rows["flops"] / rows["refined_s"]
    reached: Places = rows["flops_per_s"].fillna(predicted).to_numpy(dtype=float) / _TERA
    return reached


def _scale(pairs: "pd.DataFrame") -> float:
    """Return the unit in which the picture writes times, in seconds."""
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


def _compared(
    state: RooflineState, sides: Sequence[_Side], rows: Sequence["pd.DataFrame"]
) -> Iterator[str]:
    """Yield sentences that compare both GPUs: times at the points of both, and roofs."""
    name = f"Second GPU: {_short(sides[1])}"
    pairs = rows[0].merge(rows[1], on=["workload", "size"], suffixes=("", "_second"))
    measured = pairs[["measured_s", "measured_s_second"]].notna().to_numpy().all()
    # Predictions of both, unless all times are measured: a ratio of a measured and a predicted
    # time would be wrong by the model's error.
    column = "measured_s" if measured else f"{state.model}_s"
    ratios = (pairs[f"{column}_second"] / pairs[column]).dropna().sort_values()
    if ratios.empty:
        yield f"{name}; it has no point in common with the first one."
    else:
        least, most = (
            f"{ratios.loc[at]:.3g} times ({pairs['workload'][at]} n = {pairs['size'][at]:,})"
            for at in (ratios.index[0], ratios.index[-1])
        )
        what = "measured times" if measured else f"the {state.model} predictions"
        yield (
            f"{name}. By {what} of both at {len(ratios)} points, it takes {ratios.median():.3g} "
            f"times as long in the median, from {least} to {most}."
        )
    if state.view == ROOFLINE:
        yield from _compared_roofs(*sides)


def _compared_roofs(first: _Side, second: _Side) -> Iterator[str]:
    """Yield a sentence with the heights of both GPUs' roofs."""
    one, other = _peaks(first), _peaks(second)
    said = [
        f"{name} {format_rate(one[name] * _TERA, 'FLOP')} and "
        f"{format_rate(other[name] * _TERA, 'FLOP')}"
        for name in one
        if name in other
    ]
    if first.ceilings.roofs and second.ceilings.roofs:
        one_s, other_s = (
            format_rate(max(roof.bandwidth_bytes_per_s for roof in side.ceilings.roofs), "B")
            for side in (first, second)
        )
        said.append(f"memory {one_s} and {other_s}")
    if said:
        yield f"Roofs of the first and the second GPU: {', '.join(said)}."


def _sizes_near(name: str, dtype: str, span: int | None) -> tuple[int, ...]:
    """Return the catalogue's sizes of a workload, or the one that moves about ``span`` bytes."""
    work = workload(name)
    if span is None or dtype not in work.dtypes:
        return work.sizes if dtype in work.dtypes else ()
    off = {size: abs(math.log(work.bytes(size, dtype) / span)) for size in work.sizes}
    best = min(off, key=lambda size: off[size])
    return (best,) if off[best] <= math.log(_FAR) else ()


def _is_near(rows: "pd.DataFrame", span: int | None) -> NDArray[np.bool_]:
    """Return for each row whether it is its workload's nearest one to ``span`` bytes."""
    # Without a span every row is near, as the last line says, and 1 only avoids dividing by None.
    off = (rows["size_bytes"].astype(float) / (span or 1)).map(math.log).abs()
    best = off.groupby(rows["workload"]).idxmin()
    near = rows.index.isin(best) & (off <= math.log(_FAR)).to_numpy()
    return np.asarray(near) | (span is None)


def _records(rows: "pd.DataFrame") -> Iterator[dict[str, Any]]:
    """Yield each row as a dict."""
    for row in rows.to_dict("records"):
        yield {str(name): value for name, value in row.items()}


def _hint(row: Mapping[str, Any]) -> str:
    """Return the tooltip of a point."""
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
