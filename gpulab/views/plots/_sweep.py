"""Draw a sweep over one's own function: throughput over a parameter, below the GPU's limits."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np

from gpulab.core.errors import InvalidOptionError
from gpulab.core.foreign_text import one_line
from gpulab.core.requirements import NAME, instance_of
from gpulab.core.units import format_rate, format_time
from gpulab.device.measurement import Measurement
from gpulab.figures import (
    INK,
    Figure,
    FigureOptions,
    Plot,
    finish,
    log_axis,
    looks,
    marks,
    size_ticks,
    unit_of,
    write_beside,
)
from gpulab.views.plots._draw import show, typed
from gpulab.workloads.sweeps import FunctionPoint, Sweep

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SWEEP = instance_of(Sweep, "a sweep, such as gpulab.sweep(make, n=[...]) returns")
_PALE = 0.2
_TERA, _GIGA = 1e12, 1e9


class _Dot(NamedTuple):
    """One point of a series: where it is, and its value with its interval."""

    x: float
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class _Sweep(Plot):
    record: Sweep
    x: str | None

    def __post_init__(self) -> None:
        _SWEEP.check(record=self.record)
        NAME.or_none.check(x=self.x)
        if not self._points:
            raise InvalidOptionError(
                "the sweep has no times of a function of your own; for workloads of the catalogue "
                "see gpulab.plots.roofline and gpulab.plots.scaling"
            )
        if self.axis not in self._numeric:
            choices = ", ".join(self._numeric) or "none"
            raise InvalidOptionError(
                f"x={self.axis!r}; it must be a parameter whose values are numbers: {choices}"
            )

    @property
    def _points(self) -> list[FunctionPoint]:
        return [
            point for point in self.record.points if isinstance(point, FunctionPoint) and point.ok
        ]

    @property
    def _numeric(self) -> list[str]:
        """The parameters with numbers, those with most different values first."""
        values: dict[str, set[Any]] = {}
        for point in self._points:
            for name, value in point.task.arguments.items():
                values.setdefault(name, set()).add(str(value))
        first = self._points[0].task.arguments
        names = [name for name, value in first.items() if isinstance(value, int | float)]
        return sorted(names, key=lambda name: -len(values[name]))

    @property
    def axis(self) -> str:
        """The parameter on the horizontal axis."""
        return self.x or next(iter(self._numeric), "")

    @property
    def unit(self) -> str:
        """``"FLOP"`` or ``"B"`` per second, or ``"s"`` if neither is known for all points."""
        units = [
            {rate.unit for rate in measurement.rates}
            for point in self._points
            for measurement in point.measurements
        ]
        common = set.intersection(*units)
        binding = self._points[-1].measurements[0].binding
        if binding is not None and binding.unit in common:
            return binding.unit
        return next(iter(sorted(common, reverse=True)), "s")

    @property
    def series(self) -> dict[str, list[_Dot]]:
        """The points of each line, by its name, sorted by the parameter."""
        dots_by_line: dict[str, list[_Dot]] = {}
        for point in self._points:
            others = {
                name: value for name, value in point.task.arguments.items() if name != self.axis
            }
            for measurement in point.measurements:
                name = ", ".join(filter(None, [measurement.label, *self._varying(others)]))
                dot = _Dot(float(point.task.arguments[self.axis]), *self._value(measurement))
                dots_by_line.setdefault(one_line(name or point.task.function), []).append(dot)
        return {name: sorted(dots) for name, dots in dots_by_line.items()}

    def _varying(self, others: dict[str, Any]) -> Iterator[str]:
        for name, value in others.items():
            if any(point.task.arguments[name] != value for point in self._points):
                yield f"{name}={value}"

    def _value(self, measurement: Measurement) -> tuple[float, float, float]:
        for rate in measurement.rates:
            if rate.unit == self.unit:
                return rate.per_s, rate.low_per_s, rate.high_per_s
        return (measurement.median_s, *measurement.interval_s)

    @property
    def limits(self) -> dict[str, float]:
        """The data sheet's limits in the unit of the picture, by name."""
        return {
            rate.limit_name: rate.limit_per_s
            for point in self._points
            for measurement in point.measurements
            for rate in measurement.rates
            if rate.unit == self.unit and rate.limit_per_s is not None
        }

    def _text(self, value: float) -> str:
        return format_time(value) if self.unit == "s" else format_rate(value, self.unit)

    @property
    def title(self) -> str:
        function = one_line(self._points[0].task.function)
        if self.unit == "s":
            return f"{function}: time per call over {one_line(self.axis)}"
        best = max((dot.value, name, dot.x) for name, dots in self.series.items() for dot in dots)
        value, name, x = best
        line = f"{function}, {name}," if len(self.series) > 1 else function
        return f"{line} reaches {self._text(value)} at {one_line(self.axis)}={x:,.15g}"

    @property
    def words(self) -> str:
        sentences = []
        for name, dots in self.series.items():
            first, last = (
                f"{self._text(dot.value)} at {one_line(self.axis)}={dot.x:,.15g}"
                for dot in (dots[0], dots[-1])
            )
            sentences.append(f"{name}: from {first} to {last}.")
        sentences += [
            f"Dashed: the {name} of the data sheet, {self._text(limit)}."
            for name, limit in self.limits.items()
        ]
        return "\n".join(sentences)

    def draw(self, ax: "Axes") -> "Axes":
        series, limits = self.series, self.limits
        values = [dot.value for dots in series.values() for dot in dots]
        scale, unit = self._scale(values)
        for (name, dots), look in zip(series.items(), looks(series), strict=False):
            x = [dot.x for dot in dots]
            ax.plot(
                x,
                np.array([dot.value for dot in dots]) / scale,
                label=name,
                **marks(look, self._points[0].source),
            )
            low, high = (
                np.array([getattr(dot, end) for dot in dots]) / scale for end in ("low", "high")
            )
            ax.fill_between(x, low, high, color=look.colour, alpha=_PALE, linewidth=0)
        for name, limit in limits.items():
            ax.axhline(limit / scale, color=INK, linestyle="dashed", linewidth=1)
            inside: Any = {"xycoords": ("axes fraction", "data"), "parse_math": False}
            write_beside(ax, name, (1, limit / scale), (-4, -4), **inside)
        self._log(ax, values)
        ax.grid(visible=True)
        label = f"time per call ({unit})" if self.unit == "s" else f"throughput ({unit})"
        return finish(ax, "Line chart", one_line(self.axis), label)

    def _scale(self, values: list[float]) -> tuple[float, str]:
        if self.unit == "s":
            return unit_of(values)
        return (
            (_TERA, f"T{self.unit}/s") if max(values) >= _TERA / 10 else (_GIGA, f"G{self.unit}/s")
        )

    def _log(self, ax: "Axes", values: list[float]) -> None:
        """Draw sizes that grow by factors at equal distances, and times too; rates from zero."""
        x = sorted({dot.x for dots in self.series.values() for dot in dots})
        if len(x) > 1 and x[0] > 0 and x[-1] / x[0] >= len(x):
            log_axis(ax, "x")
            size_ticks(ax, x)
        if self.unit == "s" and min(values) > 0:
            log_axis(ax, "y")
        else:
            ax.set_ylim(0, None)


@typed
def sweep(
    record: Sweep,
    ax: "Axes | None" = None,
    *,
    x: str | None = None,
    **figure: Unpack[FigureOptions],
) -> "Axes | Figure":
    """Draw a sweep over a function of your own: throughput over a parameter, below the limits.

    There is a line for each work and each value of the other parameters, with its 95 % interval as
    a band. Without ``flops=`` and ``size_bytes=`` the times are drawn. Limits are those of the
    data sheet.

    Parameters
    ----------
    record
        What ``gpulab.sweep(make, n=[...])`` returned.
    x
        The parameter on the horizontal axis. None: the one with most numbers.

    Examples
    --------
    >>> import torch, gpulab
    >>> from gpulab import plots
    >>> def add(n):
    ...     x = torch.ones(n, device="cuda")
    ...     return lambda: x + x
    >>> with gpulab.virtual_gpu("H200"):
    ...     found = gpulab.sweep(add, n=[2**20, 2**28], size_bytes=lambda n: 8 * n)
    >>> plots.sweep(found).title.partition(" reaches ")[0]
    'add'
    """
    return show(_Sweep(record, x), ax, figure)
