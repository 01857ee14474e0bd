"""``crossover``: find the smallest size for which the GPU is faster than the CPU."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gpulab.core.errors import InvalidOptionError
from gpulab.core.foreign_text import one_line, visible
from gpulab.core.requirements import (
    COUNT,
    FLAG,
    NAME,
    SECONDS,
    SHARE,
    NameOf,
    check_fields,
    instance_of,
    items_of,
)
from gpulab.core.units import counted
from gpulab.device.measurement import Finding
from gpulab.gpus import gpu as find_gpu
from gpulab.gpus.provenance import device_label
from gpulab.roofline.scaling._cpu_contention import ContentionWatch, contention_findings
from gpulab.roofline.scaling._curve import Curve, amounts, curve_of
from gpulab.roofline.scaling._curve_points import (
    CurveRequest,
    PointSource,
    collect_points,
)
from gpulab.roofline.scaling._intersection import Crossing, find_crossing
from gpulab.roofline.scaling._links import find_link, link_of, over_link
from gpulab.timing import METHODS
from gpulab.workloads import workload as find_workload
from gpulab.workloads.sweeps import TRANSFERS, Task, take

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Crossover", "crossover"]


_N_ON_GRID = 400
# The lines are extended this many times beyond the smallest and the largest size.
_BEYOND = 256
_WAYS = {"in": "with transfers in", "out": "with transfers out", "both": "with transfers"}


@dataclass(frozen=True, slots=True)
class Crossover:
    """The curves of CPU and GPU for one workload, and the size from which the GPU is faster.

    Attributes
    ----------
    workload, dtype
        Name of the workload, and its type.
    transfers
        Which copies the GPU's times include: ``"none"``, ``"in"``, ``"out"`` or ``"both"``.
    cpu, gpu
        The two curves that are compared.
    bare
        The GPU's curve without transfers; the same as ``gpu`` if ``transfers`` is ``"none"``.

    Examples
    --------
    >>> import gpulab
    >>> result = gpulab.crossover("matmul", source="h200-sxm-2026-11")
    >>> result.workload, result.crossing is not None
    ('matmul', True)
    """

    workload: str
    dtype: str
    transfers: str
    cpu: Curve
    gpu: Curve
    bare: Curve

    def __post_init__(self) -> None:
        NAME.check(workload=self.workload, dtype=self.dtype)
        NameOf("kind of transfers", TRANSFERS).check(transfers=self.transfers)
        check_fields(self)

    @property
    def crossing(self) -> Crossing:
        """Where the measured curves cross."""
        return _measured_crossing(self.cpu, self.gpu)

    @property
    def bare_crossing(self) -> Crossing:
        """Where the measured curves cross without the copies."""
        return _measured_crossing(self.cpu, self.bare)

    @property
    def predicted(self) -> Crossing | None:
        """Where the fitted lines cross, also far outside the measured sizes; None without lines.

        It is a prediction from two fixed costs and two slopes. If it is far from ``crossing``,
        at least one of the curves is not a straight line.
        """
        if self.cpu.fit is None or self.gpu.fit is None:
            return None
        # The grid is so fine that interpolation between its sizes follows the lines closely.
        sizes = _grid(self.cpu.sizes + self.gpu.sizes)
        cpu, gpu = (self.line(curve, sizes) for curve in (self.cpu, self.gpu))
        reach = np.hypot(cpu[1], gpu[1])
        # The band of a line is symmetric in logarithms, so the reach is the same to both sides.
        crossing = find_crossing(sizes, np.log(gpu[0] / cpu[0]), np.stack([reach, reach]))
        return replace(crossing, of="of the lines")

    def line(self, curve: Curve, sizes: Sequence[int]) -> tuple[Any, Any]:
        """Return a curve's line at some sizes: its seconds, and half the width of its band.

        The half width is a difference of natural logarithms of the times.

        Raises
        ------
        InvalidOptionError
            If the curve has too few points for a line.
        """
        instance_of(Curve, "a curve of this crossover").check(curve=curve)
        sizes = items_of("sizes", sizes, COUNT)
        if curve.fit is None:
            raise InvalidOptionError(
                f"{curve.name} has {counted(len(curve.sizes), 'point')}, which gives no line; "
                "take two or more sizes"
            )
        x = amounts(self.workload, sizes, self.dtype, curve.fit.unit)
        return curve.fit.time_s(x), curve.fit.spread(x)

    @property
    def origin(self) -> str:
        """Where the times of both sides come from, in one line."""
        cpu, gpu = (
            device_label(curve.device_name, curve.source) for curve in (self.cpu, self.gpu)
        )
        return f"CPU {cpu}; GPU {gpu}"

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Reasons to doubt the measured times; often none."""
        return contention_findings(self.cpu)

    def to_frame(self) -> "pd.DataFrame":
        """Return a table with one row for each size of each curve.

        Columns are ``on``, ``size``, ``median_s``, ``low_s``, ``high_s``, ``line_s`` (the fitted
        line), ``transfers``, ``how``, ``source`` and ``device_name``.
        """
        import pandas as pd

        bare = [] if self.transfers == "none" else [(self.bare, "none")]
        curves = [(self.cpu, "none"), *bare, (self.gpu, self.transfers)]
        return pd.concat([self._part(*pair) for pair in curves], ignore_index=True)

    def _part(self, curve: Curve, transfers: str) -> "pd.DataFrame":
        import pandas as pd

        line = None if curve.fit is None else self.line(curve, curve.sizes)[0]
        return pd.DataFrame(
            {
                "on": curve.on,
                "size": curve.sizes,
                "median_s": curve.median_s,
                "low_s": curve.low_s,
                "high_s": curve.high_s,
                "line_s": line,
                "transfers": transfers,
                "how": curve.how,
                "source": curve.source,
                "device_name": visible(curve.device_name),
            }
        )

    def __str__(self) -> str:
        if self.transfers == "none":
            return str(self.crossing)
        return f"{self.bare_crossing}; {_WAYS[self.transfers]}: {self.crossing}"

    __repr__ = __str__

    @property
    def details(self) -> str:
        """Several lines of text: the crossing, both fits, their prediction, and the findings."""
        return "\n  ".join(map(one_line, self._lines()))

    def _repr_pretty_(self, printer: Any, _cycle: object) -> None:  # noqa: ANN401 # IPython's
        printer.text(self.details)

    def _lines(self) -> Iterator[str]:
        yield f"{self.workload} {self.dtype}: {self}"
        yield str(self.cpu)
        if self.transfers != "none":
            yield str(self.bare)
        yield str(self.gpu)
        if self.predicted is not None:
            yield f"from these lines: {self.predicted}"
        if self.cpu.source != self.gpu.source:
            yield f"the sides have different sources, {self.cpu.source} and {self.gpu.source}"
        yield from map(str, self.findings)
        for curve in (self.cpu, self.gpu):
            yield from (f"{curve.on.upper()}, n = {n}: {why}" for n, why in curve.missing)


def crossover(  # noqa: PLR0913 # every option is keyword-only and has a default
    workload: str,
    sizes: Sequence[int] | None = None,
    *,
    dtype: str = "float32",
    transfers: str = "none",
    source: PointSource = None,
    gpu: str | None = None,
    n_threads: int | None = None,
    link: str | float | None = None,
    method: str = "synchronized",
    cache: str = "hot",
    precision: float = 0.01,
    max_time_s: float = 0.3,
    progress: bool = True,
) -> Crossover:
    """Return the smallest size for which the GPU is faster than the CPU, with both curves.

    It compares how long a program waits for one call. On the GPU this is by default the time from
    an idle device until it is idle again, including launch and wake-up. A program that keeps the
    queue full waits less for each call, so its curves cross at a smaller size.

    Parameters
    ----------
    workload
        A name from :data:`gpulab.workloads.WORKLOADS`.
    sizes
        Sizes in the unit of the workload. None: all sizes of the source. If there is no source,
        the sizes of the catalogue, on the CPU only up to the first slow one.
    dtype
        A type of the workload.
    transfers
        Copies that the GPU's times include: ``"none"``, ``"in"``, ``"out"`` or ``"both"``.
    source
        Times that were measured before: a recording, its name or file, a sweep, or points. None:
        measure both sides now, on the GPU in use and on the CPU of this machine.
    gpu
        A name from :func:`gpulab.gpus.names`. If the source has no times of this GPU, its virtual
        GPU computes them. None: the source's GPU, or the GPU in use.
    n_threads
        Number of CPU threads. None: PyTorch's setting, or the most that the source has.
    link
        A name from ``LINKS``, or a rate in bytes per second: compute the time of the copies over
        this link, from their bytes.
        None: measure the copies, or compute them for the GPU's own link if the source has no
        such times.
    method, cache
        How to time the GPU, see :func:`gpulab.measure`.
    precision, max_time_s
        When to stop measuring a size, see :func:`gpulab.sweep`.
    progress
        Whether to show a bar (in text) after one second.

    Returns
    -------
    Crossover
        Both curves, each with its device and how it was timed.

    Raises
    ------
    UnknownNameError
        If there is no such workload, GPU, recording or link.
    InvalidOptionError
        If the source has not all the times that are needed, or no size could be timed.

    Examples
    --------
    >>> from gpulab.workloads.sweeps._tasks import Point, Task
    >>> cpu = [Point(Task("add", n, on="cpu"), median_s=n * 1e-9, low_s=n * 1e-9,
    ...     high_s=n * 1e-9, n_samples=9, device_name="a CPU") for n in (1024, 65536)]
    >>> gpu = [Point(Task("add", n, method="synchronized", cache="hot"), median_s=8e-6,
    ...     low_s=8e-6, high_s=8e-6, n_samples=9, device_name="a GPU") for n in (1024, 65536)]
    >>> print(crossover("add", source=[*cpu, *gpu]))
    n = 8,000 [8,000, 8,000]
    """
    FLAG.check(progress=progress)
    SHARE.check(precision=precision)
    SECONDS.check(max_time_s=max_time_s)
    NameOf("timing method", METHODS).check(method=method)
    NameOf("kind of transfers", TRANSFERS).check(transfers=transfers)
    if gpu is not None:
        # Only for its error, which must come before minutes of measuring on the CPU.
        find_gpu(gpu)
    find_workload(workload).bytes(1, dtype)  # raises for a type that the workload does not offer
    over = None if link is None else find_link(link)
    chosen_sizes = None if sizes is None else _ascending(sizes)
    # The sizes of the tasks are replaced later.
    on_cpu = Task(workload, 1, dtype, on="cpu", n_threads=n_threads)
    bare = Task(workload, 1, dtype, cache=cache, method=method)
    # For a given link, the copies are computed from their bytes and not measured.
    is_measured = transfers != "none" and over is None
    transferring = [replace(bare, transfers=transfers)] if is_measured else []
    watch = ContentionWatch(partial(take, precision=precision, max_time_s=max_time_s))
    cpu_points, bare_points, *moving_points = collect_points(
        [CurveRequest(task, chosen_sizes) for task in (on_cpu, bare, *transferring)],
        source,
        gpu,
        watch,
        progress=progress,
    )
    # No waits if the points come from a source: then the watch has measured nothing.
    cpu, without = replace(curve_of(cpu_points), waits=watch.waits), curve_of(bare_points)
    if transfers == "none":
        return Crossover(workload, dtype, transfers, cpu, without, without)
    if any(moving_points):
        curve = curve_of(moving_points[0])
    else:
        over = over or link_of(without.device_name)
        curve = over_link(without, workload, dtype, transfers, over)
    return Crossover(workload, dtype, transfers, cpu, curve, without)


def _measured_crossing(cpu: Curve, gpu: Curve) -> Crossing:
    sizes = sorted(set(cpu.sizes) & set(gpu.sizes))
    if not sizes:
        raise InvalidOptionError(
            f"no size has a time on both sides: the CPU has {_listed(cpu)}, the GPU "
            f"{_listed(gpu)}; take the same sizes on both"
        )
    cpu_log, cpu_reach = cpu.at(sizes)
    gpu_log, gpu_reach = gpu.at(sizes)
    # The errors of the two sides are independent, so they add as squares. The low end of the
    # ratio needs the low end of the GPU and the high end of the CPU, hence the reversed rows.
    return find_crossing(sizes, gpu_log - cpu_log, np.hypot(gpu_reach, cpu_reach[::-1]))


def _ascending(sizes: Sequence[int]) -> tuple[int, ...]:
    sizes = items_of("sizes", sizes, COUNT)
    if not sizes:
        raise InvalidOptionError(
            "sizes=() is empty; give at least one, or None for the usual ones"
        )
    return tuple(sorted(set(sizes)))


def _listed(curve: Curve) -> str:
    return ", ".join(map(str, curve.sizes))


def _grid(sizes: Sequence[int]) -> list[int]:
    ends = max(1, min(sizes) // _BEYOND), max(sizes) * _BEYOND
    # A set, because small sizes round to the same number.
    return sorted({round(size) for size in np.geomspace(*ends, _N_ON_GRID)})
