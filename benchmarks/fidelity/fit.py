"""Fit the surfaces of efficiencies to recordings, and write them where gpulab reads them.

Every recorded workload runs on the virtual H200, which computes the roofline's time without a
correction. Then one surface is fitted for each kind of call. The command prints how well each
surface predicts a fifth of the workloads after a fit to the other four fifths.
"""

import json
import zlib
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

import gpulab
from benchmarks.fidelity import operators as op
from benchmarks.fidelity.kriging import (
    DIGITS,
    UNITS,
    Fit,
    Numbers,
    Points,
    crossed,
    encoded,
    fitted,
    folds_of,
    with_scales,
)
from benchmarks.fidelity.recorded import Row, calls
from benchmarks.fidelity.workload import EARLIER, FIT, HELD_OUT, Workload
from gpulab.core.errors import NoValuesError
from gpulab.device.work import Work
from gpulab.gpus import gpu
from gpulab.virtual import KernelWork, Traffic
from gpulab.virtual.simulator import _device
from gpulab.virtual.simulator.costs import SurfacePoint, _kernel_cost, duration_ns
from gpulab.virtual.simulator.costs._efficiency_surfaces import NO_CORRECTION, correction

SURFACES = Path(gpulab.__file__).with_name("data") / "efficiencies.json"
FLUSH_ELEMENTS = 1 << 26
_LEAST_POINTS = 10
# A tenth of the noise, so that surfaces fit the listed workloads and square matmuls more closely
# than the others (docs/fidelity.md).
_USUAL = 0.1


@dataclass(frozen=True, slots=True)
class Point:
    """A measured call: its coordinates, its measured time and the roofline's, hot and cold."""

    surface_point: SurfacePoint
    measured_us: tuple[float, float]
    roofline_us: tuple[float, float]
    role: str
    looseness: float

    @property
    def logarithms(self) -> tuple[float, float]:
        """Logarithms of measured over roofline, hot and cold."""
        return (
            float(np.log(self.measured_us[0] / self.roofline_us[0])),
            float(np.log(self.measured_us[1] / self.roofline_us[1])),
        )


def points(rows: Iterator[Row]) -> Iterator[Point]:
    """Run the workloads on the virtual GPU, and yield a point for each that is one call."""
    for workload, hot_us, cold_us in rows:
        try:
            kernels = launched(workload)
        except RuntimeError as error:
            print(f"{workload.name}: {error}")
            continue
        # A correction belongs to a whole call, so a workload of several calls cannot be fitted.
        surface_points = {work.surface_point for work, _, _ in kernels}
        surface_point = surface_points.pop() if len(surface_points) == 1 else None
        if surface_point is not None:
            hot_ns = sum(roofline_ns(work, traffic) for work, traffic, _ in kernels)
            cold_ns = sum(roofline_ns(work, traffic) for work, _, traffic in kernels)
            measured_us, roofline_us = (hot_us, cold_us), (hot_ns / 1e3, cold_ns / 1e3)
            yield Point(
                surface_point, measured_us, roofline_us, workload.role, looseness(workload)
            )


def looseness(workload: Workload) -> float:
    """Return how far a surface may miss this workload: less for usual ones (listed, squares)."""
    p = workload.parameters
    is_square = workload.make is op.matmul and p["m"] == p["k"] == p["n"]
    return _USUAL if is_square or workload.role in {FIT, HELD_OUT} else 1.0


def roofline_ns(work: KernelWork, traffic: Traffic) -> int:
    """Return the duration of a kernel by the roofline, without the correction.

    A kernel that shares its call's time may be short here: the correction is that of the call.
    """
    parts = tuple(replace(part, surface_point=None) for part in work.whole)
    least_ns, _kernel_cost._LEAST_NS = _kernel_cost._LEAST_NS, 0
    try:
        return duration_ns(replace(work, surface_point=None, whole=parts), traffic, gpu("H200"))
    finally:
        _kernel_cost._LEAST_NS = least_ns


def launched(workload: Workload) -> list[tuple[KernelWork, Traffic, Traffic]]:
    """Return the kernels of one call with their memory traffic, hot and cold."""
    # Values take most of the time, and few operators need them.
    try:
        return _launched(workload, max_value_elements=0)
    except NoValuesError:
        return _launched(workload)


def _launched(workload: Workload, **limits: int) -> list[tuple[KernelWork, Traffic, Traffic]]:
    launches: list[tuple[KernelWork, Traffic]] = []

    def noted(work: KernelWork, traffic: Traffic, *rest: Any) -> int:  # noqa: ANN401 # as given
        if len(rest) == 1:  # a device at a lower clock asks again, with a factor
            launches.append((work, traffic))
        return duration_ns(work, traffic, *rest)

    _device.duration_ns = noted  # type: ignore[assignment] # the device looks it up there
    # Without corrections: the file's surfaces may be those of other coordinates.
    _kernel_cost.correction = lambda _: NO_CORRECTION  # type: ignore[assignment]
    try:
        with gpulab.virtual_gpu("H200", first_use=False, **limits), workload.precision():
            work = workload.build()
            # Twice, so that the third call finds its data in the cache.
            for _ in range(2):
                work()
            hot = _seen(work, launches)
            torch.zeros(FLUSH_ELEMENTS, device="cuda").sum()
            cold = _seen(work, launches)
    finally:
        _device.duration_ns = duration_ns
        _kernel_cost.correction = correction
    return [(kernel, a, b) for (kernel, a), (_, b) in zip(hot, cold, strict=True)]


def _seen(
    work: Work, launches: list[tuple[KernelWork, Traffic]]
) -> list[tuple[KernelWork, Traffic]]:
    torch.cuda.synchronize()
    launches.clear()
    work()
    torch.cuda.synchronize()
    return list(launches)


def written(points: Points, fit: Fit) -> dict[str, Any]:
    """Return a surface as gpulab stores it, with weights in thousandths."""
    used = np.flatnonzero(fit.scales.any(axis=0))
    units = np.where(points.is_word[used], 1, UNITS)
    table = np.hstack([np.round(points.x[:, used] * units), np.round(fit.weights(points) * 1000)])
    return {
        "used": used.tolist(),
        "words": [points.words[i] for i in used],
        "scales": fit.scales[:, used].tolist(),
        "shares": fit.shares.tolist(),
        "middle": np.median(points.y, axis=0).round(DIGITS).tolist(),
        "least": points.y.min(axis=0).round(DIGITS).tolist(),
        "most": points.y.max(axis=0).round(DIGITS).tolist(),
        "rows": packed(table),
    }


def packed(table: Numbers) -> str:
    """Return a table of whole numbers as a compressed text, for the file of surfaces."""
    # By columns: neighbours in a column are similar, so they compress better.
    columns = np.ascontiguousarray(table.T.astype("<i4"))
    return b64encode(zlib.compress(columns.tobytes(), 9)).decode()


def write(path: Path, surfaces: dict[str, dict[str, Any]], about: dict[str, Any]) -> None:
    """Write the surfaces to a file, one line for each."""
    lines = ",\n".join(
        f" {json.dumps(name)}: {json.dumps(item, separators=(',', ':'))}"
        for name, item in surfaces.items()
    )
    text = f'{{"recorded": {json.dumps(about)},\n"surfaces": {{\n{lines}\n}}}}\n'
    path.write_text(text, "utf-8")


def fit_all(measured: list[Point], known: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Fit a surface for each kind of call, and print the errors of left-out calls.

    Those that are ``known`` keep their scales, and only their weights are computed again.
    """
    kinds: dict[str, list[Point]] = {}
    for point in measured:
        kinds.setdefault(point.surface_point.surface, []).append(point)
    surfaces, everything = {}, []
    for name, members in sorted(kinds.items()):
        if len(members) < _LEAST_POINTS:
            continue
        scattered = _scattered(members)
        if name in known:
            fit = _with_scales_of(known[name], scattered)
        else:
            # The earlier draws test the scales, so the scales are chosen without them.
            fit = fitted(_scattered([point for point in members if point.role != EARLIER]))
        surfaces[name] = written(scattered, fit)
        predicted = crossed(scattered, folds_of(scattered), fit)
        errors = np.abs(np.exp(predicted - scattered.y) - 1)
        everything.append(errors)
        print(f"{name:24s} {len(members):5d}  {scores(errors)}", flush=True)
    print("all", scores(np.vstack(everything)))
    return surfaces


def _with_scales_of(surface: dict[str, Any], points: Points) -> Fit:
    scales = np.zeros((len(surface["scales"]), points.x.shape[1]))
    scales[:, surface["used"]] = surface["scales"]
    return with_scales(points, scales, np.array(surface["shares"]))


def _scattered(members: list[Point]) -> Points:
    return encoded(
        [point.surface_point.coordinates for point in members],
        [point.logarithms for point in members],
        [point.looseness for point in members],
    )


def scores(errors: Numbers) -> str:
    """Return median and p90 of some errors."""
    return f"median {np.median(errors):6.1%}  p90 {np.quantile(errors, 0.9):6.1%}"


def run(recording: Sequence[Path], out: Path | None, *, keep_scales: bool) -> None:
    """Fit to some recordings and write the surfaces, with the provenance of the first."""
    known = json.loads(SURFACES.read_text("utf-8"))["surfaces"] if keep_scales else {}
    measured = [point for path in recording for point in points(calls(path))]
    about = json.loads(recording[0].read_text("utf-8"))["provenance"]
    write(out or SURFACES, fit_all(measured, known), about)
