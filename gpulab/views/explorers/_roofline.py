"""The model of the roofline explorer: its choices, its picture and its words for a state."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gpulab.core.errors import InvalidOptionError
from gpulab.core.units import counted, format_bytes, format_rate, format_ratio, format_time
from gpulab.figures import unit_of
from gpulab.gpus.provenance import device_label
from gpulab.roofline import MODELS, Chart, errors
from gpulab.views.explorers._roofline_picture import (
    TERA,
    Places,
    Side,
    pairs_of,
    peaks_of,
    plot_prediction,
    plot_roofline,
    short_name,
)
from gpulab.views.explorers._roofline_points import ceilings_for, listed
from gpulab.views.explorers._scene import (
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
from gpulab.views.explorers._sources import (
    HERE,
    computed_options,
    points_among,
    recorded_options,
    too_long,
)
from gpulab.workloads import WORKLOADS, names, workload
from gpulab.workloads.sweeps import CACHES, Point, Task

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


PREDICTION, ROOFLINE = "prediction against measurement", "roofline"
_METHOD = "calibrated"
_SPANS = tuple(4**k for k in range(6, 17))  # 4 KiB to 4 GiB
_MEASURE = "Press “Measure here”, or choose another GPU, type or cache above."
FAMILIES = (
    ("matrices", ("matmul", "matmul_odd", "bmm", "linear", "attention")),
    ("convolutions", ("conv1x1", "conv3x3", "conv_depthwise")),
    ("elementwise", ("add", "exp", "copy", "transposed_copy", "gelu", "dropout", "adam")),
    ("reductions", ("sum", "mean", "argmax", "cumsum")),
    ("rows", ("softmax", "layer_norm", "rms_norm", "cross_entropy", "fft")),
    ("sort, look up", ("sort", "topk", "embedding", "gather", "scatter_add")),
)
# Right end of the axes, as a share of the picture; names of roofs are beside it.
_RIGHT = {PREDICTION: 0.97, ROOFLINE: 0.79}
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


class RooflineModel:
    """The model of the roofline explorer; see :class:`gpulab.views.explorers._scene.Model`."""

    name = "roofline"

    def __init__(self, mine: Iterable[str] = ()) -> None:
        self.mine = tuple(mine)
        self._listed = lru_cache(maxsize=50)(listed)
        self._choices = lru_cache(maxsize=20)(self._offered)
        # Not lru_cache, because Ceilings have no hash. These hold the last picture, and its scenes
        # by span, so that each step of that slider changes only markers and words.
        self._still: tuple[object, Scene, tuple[Side, ...], str] | None = None
        self._scenes: dict[int | None, Scene] = {}

    def choices(self, state: RooflineState) -> tuple[Selector, ...]:
        """Return the choices with their options; the first option of each is the default."""
        return self._choices(state.dtype)

    def _offered(self, dtype: str) -> tuple[Selector, ...]:
        recorded, computed = recorded_options(self.mine), computed_options()
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
    ) -> tuple[Scene, tuple[Side, ...], str]:
        """Return the picture of a state, its GPUs, and why the second GPU is not drawn."""
        rows = self._rows(state, found)
        scale = 1.0 if state.view == ROOFLINE else _scale(pairs_of(rows, state.model))
        first = Side(rows, _places(state, rows, scale), ceilings_for(state.gpu, found))
        second, missing = self._second(state, found, scale)
        if state.view == ROOFLINE:
            plot: Callable[[Axes], object] = partial(plot_roofline, first, second)
            alt = "Work reached over arithmetic intensity, below the roofs of the GPU."
        else:
            plot = partial(plot_prediction, first, second, state.model)
            alt = "Measured over predicted time of a call; on the diagonal both agree."
        sides = (first, second) if second else (first,)
        source = (
            _origin(rows)
            if second is None
            else f"{short_name(first)}; second GPU: {short_name(second)}"
        )
        title = f"{state.view.capitalize()}, {state.dtype}, cache {state.cache}\n({source})"
        spots = (spot for side in sides for spot in _spots(side, is_second=side is second))
        right = _RIGHT[state.view]
        scene = Scene(plot=plot, title=title, alt=alt, spots=tuple(spots), right=right)
        return scene, sides, missing

    def _second(
        self, state: RooflineState, found: Sequence[Measured], scale: float
    ) -> tuple[Side | None, str]:
        """Return the second GPU, or None and the reason if it has nothing to draw."""
        if state.beside in {"", state.gpu}:
            return None, ""
        try:
            rows = self._rows(replace(state, gpu=state.beside), found)
        except InvalidOptionError as error:  # the first one is drawn all the same
            return None, f"The second GPU is not drawn. {error}"
        roofs = ceilings_for(state.beside, found)
        return Side(rows, _places(state, rows, scale), roofs), ""

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


def _spots(side: Side, *, is_second: bool) -> Iterator[Spot]:
    whose = f"\nsecond GPU: {short_name(side)}" if is_second else ""
    for (x, y), row in zip(side.places, _records(side.rows), strict=True):
        name, rest = _hint(row).split("\n", 1)
        yield Spot(x, y, f"{name}{whose}\n{rest}")


def _near(state: RooflineState, sides: Sequence[Side], missing: str) -> dict[str, Any]:
    """Return the fields of a scene that change with the slider: markers, words and table."""
    import pandas as pd

    near = [_is_near(side.rows, state.span) for side in sides]
    rows = [side.rows[kept] for side, kept in zip(sides, near, strict=True)]
    places = np.concatenate([side.places[kept] for side, kept in zip(sides, near, strict=True)])
    markers = (Marker(x, y) for x, y in places) if state.span is not None else ()
    words = [*_words(state, rows[0]), *([missing] if missing else [])]
    if state.view == ROOFLINE:
        evidence = Chart(sides[0].ceilings, sides[0].rows).evidence
        words.append(f"Roofs: {', '.join(evidence) or 'unknown'}.")
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


def _reached(rows: "pd.DataFrame") -> Places:
    """Return the measured rate in TFLOP/s, or the refined model's if nothing was measured."""
    predicted = rows["flops"] / rows["refined_s"]
    reached: Places = rows["flops_per_s"].fillna(predicted).to_numpy(dtype=float) / TERA
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
    operations = counted(rows["workload"].nunique(), "operation")
    points = f"{marked}{counted(len(rows), 'point')} of {operations}"
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
        f"{format_ratio(worst[f'{state.model}_ratio'])} times as long."
    )


def _compared(
    state: RooflineState, sides: Sequence[Side], rows: Sequence["pd.DataFrame"]
) -> Iterator[str]:
    """Yield sentences that compare both GPUs: times at the points of both, and roofs."""
    name = f"Second GPU: {short_name(sides[1])}"
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
            f"{format_ratio(ratios.loc[at])} times "
            f"({pairs['workload'][at]} n = {pairs['size'][at]:,})"
            for at in (ratios.index[0], ratios.index[-1])
        )
        what = "measured times" if measured else f"the {state.model} predictions"
        yield (
            f"{name}. By {what} of both at {len(ratios)} points, it takes "
            f"{format_ratio(ratios.median())} times as long in the median, from {least} to {most}."
        )
    if state.view == ROOFLINE:
        yield from _compared_roofs(*sides)


def _compared_roofs(first: Side, second: Side) -> Iterator[str]:
    """Yield a sentence with the heights of both GPUs' roofs."""
    one, other = peaks_of(first), peaks_of(second)
    said = [
        f"{name} {format_rate(one[name] * TERA, 'FLOP')} and "
        f"{format_rate(other[name] * TERA, 'FLOP')}"
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
            times = "" if math.isnan(ratio) else f"; measured is {format_ratio(ratio)} times that"
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
