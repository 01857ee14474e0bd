"""Fit the surfaces of efficiencies to the dense recording, and write them where gpulab reads them.

``python benchmarks/fidelity_fit.py`` runs every recorded workload on the virtual H200 to learn
what the roofline alone says, which takes about ten minutes, then fits one surface for each kind of
call and prints how well each meets a fifth of the workloads when fitted to the other four fifths.
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import fidelity_dense
import fidelity_layers
import fidelity_operators
import numpy as np
import torch
from fidelity_sampler import samples
from fidelity_workload import Workload
from numpy.typing import NDArray

import gpulab
from gpulab.virtual.core import costs
from gpulab.virtual.core.cache import Traffic
from gpulab.virtual.core.costs import Work
from gpulab.virtual.core.surfaces import Place, nearness

RECORDING = Path(__file__).with_name("recordings") / "h200-dense.json"
SURFACES = Path(gpulab.__file__).with_name("data") / "efficiencies.json"
FLUSH_ELEMENTS = 1 << 26
_LEAST_POINTS = 10
_N_FOLDS = 5
_MOST_SEARCHED = 400  # points by which the scales are chosen
_STEPS = (4.0, 2.0, 1.5)
_LARGE_ERROR = 0.6  # beyond it an error counts as this
_LEAST_GAIN = 1e-4
_NOISES = (1e-4, 1.0)

Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Point:
    """A measured call: its place, what it took, and what the roofline says, hot and cold."""

    place: Place
    measured_us: tuple[float, float]
    roofline_us: tuple[float, float]

    @property
    def logarithms(self) -> tuple[float, float]:
        """Measured over roofline, hot and cold."""
        return (
            float(np.log(self.measured_us[0] / self.roofline_us[0])),
            float(np.log(self.measured_us[1] / self.roofline_us[1])),
        )


def points(path: Path) -> Iterator[Point]:
    """Run the recorded workloads on the virtual GPU, and compare."""
    for name, dtype, parameters, hot_us, cold_us in samples(path):
        make = next(
            getattr(module, name)
            for module in (fidelity_dense, fidelity_layers, fidelity_operators)
            if hasattr(module, name)
        )
        workload = Workload(fidelity_dense.DENSE, "", make, dtype, parameters)
        try:
            kernels = launched(workload)
        except RuntimeError as error:
            print(f"{workload.name}: {error}")
            continue
        places = {work.place for work, _, _ in kernels}
        place = places.pop() if len(places) == 1 else None
        if place is not None:
            hot_ns = sum(roofline_ns(work, traffic) for work, traffic, _ in kernels)
            cold_ns = sum(roofline_ns(work, traffic) for work, _, traffic in kernels)
            yield Point(place, (hot_us, cold_us), (hot_ns / 1e3, cold_ns / 1e3))


def roofline_ns(work: Work, traffic: Traffic) -> int:
    """Return the duration of a kernel without a correction."""
    return costs.duration_ns(replace(work, place=None), traffic, gpulab.gpus.gpu("H200"))


def launched(workload: Workload) -> list[tuple[Work, Traffic, Traffic]]:
    """Return the kernels of one call with what they find in the cache, hot and cold."""
    seen: list[tuple[Work, Traffic]] = []
    duration_ns = costs.duration_ns

    def noted(work: Work, traffic: Traffic, *rest: Any) -> int:  # noqa: ANN401 # as given
        seen.append((work, traffic))
        return duration_ns(work, traffic, *rest)

    costs.duration_ns = noted  # type: ignore[assignment] # the device looks it up there
    try:
        with gpulab.virtual_gpu("H200", first_use=False), workload.precision():
            work = workload.build()
            for _ in range(2):
                work()
            hot = _seen(work, seen)
            torch.zeros(FLUSH_ELEMENTS, device="cuda").sum()
            cold = _seen(work, seen)
    finally:
        costs.duration_ns = duration_ns
    return [(one, a, b) for (one, a), (_, b) in zip(hot, cold, strict=True)]


def _seen(work: Any, seen: list[tuple[Work, Traffic]]) -> list[tuple[Work, Traffic]]:  # noqa: ANN401
    torch.cuda.synchronize()
    seen.clear()
    work()
    torch.cuda.synchronize()
    return list(seen)


@dataclass(frozen=True, slots=True)
class Fit:
    """What a surface is made of: scales of the coordinates, and the noise of a point."""

    scales: Numbers
    noise: float

    def weights(self, x: Numbers, y: Numbers, is_word: NDArray[np.bool_]) -> Numbers:
        """Return what each point counts."""
        kernel = gram(x, x, self.scales, is_word) + self.noise * np.eye(len(x))
        found: Numbers = np.linalg.solve(kernel, y - np.median(y, axis=0)).astype(np.float64)
        return found


def gram(x: Numbers, z: Numbers, scales: Numbers, is_word: NDArray[np.bool_]) -> Numbers:
    """Return the nearness of every row of ``x`` to every row of ``z``."""
    return nearness(x[:, None, :], z[None, :, :], scales, is_word)


def encoded(found: list[Point]) -> tuple[Numbers, list[list[str] | None]]:
    """Return coordinates as numbers, and the words behind those that are words."""
    columns = list(zip(*(point.place.coordinates for point in found), strict=True))
    words: list[list[str] | None] = [
        sorted({str(value) for value in column}) if isinstance(column[0], str) else None
        for column in columns
    ]
    numbers = [
        [float(value) if known is None else known.index(str(value)) for value in column]
        for column, known in zip(columns, words, strict=True)
    ]
    return np.array(numbers, dtype=np.float64).T, words


def fitted(x: Numbers, y: Numbers, is_word: NDArray[np.bool_]) -> Fit:
    """Choose scales and noise by the errors of each point when it is left out."""
    chosen = np.random.default_rng(0).permutation(len(x))[:_MOST_SEARCHED]
    x, y = x[chosen], y[chosen]
    gaps = np.abs(x[:, None, :] - x[None, :, :])
    squares: Numbers = np.where(is_word, gaps != 0, gaps) ** 2
    spread = np.maximum(1.0, x.std(axis=0) / 2)
    starts = (np.where(is_word, 0.5, 0.25 / spread), np.where(is_word, 1.0, 0.1))
    tried = [_descended(squares, y - np.median(y, axis=0), start) for start in starts]
    return min(tried, key=lambda item: item[0])[1]


def _descended(gaps: Numbers, y: Numbers, start: Numbers) -> tuple[float, Fit]:
    """Change one scale after another, or all, or the noise, as long as it helps."""
    best, least = Fit(start, 0.01), _left_out(gaps, y, Fit(start, 0.01))
    for step in _STEPS:
        for which in (*range(len(start)), "noise", "all"):
            for factor in (step, 1 / step, 0.0):
                while (changed := _changed(best, which, factor)) is not None:
                    error = _left_out(gaps, y, changed)
                    if error > least - _LEAST_GAIN:
                        break
                    best, least = changed, error
    return least, best


def _changed(fit: Fit, which: int | str, factor: float) -> Fit | None:
    if isinstance(which, int):
        if not factor and not fit.scales[which]:
            return None
        scales = fit.scales.copy()
        scales[which] = scales[which] * factor if scales[which] else 0.1
        return Fit(scales, fit.noise)
    if not factor:
        return None
    if which == "all":
        return Fit(fit.scales * factor, fit.noise)
    noise = fit.noise * factor
    return Fit(fit.scales, noise) if _NOISES[0] <= noise <= _NOISES[1] else None


def _left_out(gaps: Numbers, y: Numbers, fit: Fit) -> float:
    distance = np.sqrt(gaps @ fit.scales**2)
    kernel = (1 + distance) * np.exp(-distance) + fit.noise * np.eye(len(y))
    inverse = np.linalg.inv(kernel)
    errors = np.abs(inverse @ y / np.diag(inverse)[:, None])
    bounded = np.minimum(errors, _LARGE_ERROR)
    return float(np.mean(bounded + np.sqrt(bounded)))


def crossed(x: Numbers, y: Numbers, is_word: NDArray[np.bool_], fit: Fit) -> Numbers:
    """Return the logarithm of what each point is predicted when its fifth is left out."""
    fold = np.random.default_rng(1).integers(0, _N_FOLDS, len(x))
    found = np.zeros_like(y)
    for i in range(_N_FOLDS):
        known, asked = fold != i, fold == i
        weights = fit.weights(x[known], y[known], is_word)
        near = gram(x[asked], x[known], fit.scales, is_word)
        found[asked] = np.median(y[known], axis=0) + near @ weights
    return np.clip(found, y.min(axis=0), y.max(axis=0))


def surface(found: list[Point]) -> tuple[dict[str, Any], Numbers]:
    """Return a surface as it is written, and the errors of its points when left out."""
    x, words = encoded(found)
    is_word = np.array([item is not None for item in words])
    y = np.array([point.logarithms for point in found])
    fit = fitted(x, y, is_word)
    errors = np.abs(np.exp(crossed(x, y, is_word, fit) - y) - 1)
    used = np.flatnonzero(fit.scales > 0)
    weights = fit.weights(x, y, is_word)
    units = np.where(is_word[used], 1, 100)
    table = np.hstack([np.round(x[:, used] * units), np.round(weights * 1000)]).astype(int)
    return {
        "used": used.tolist(),
        "words": [words[i] for i in used],
        "scales": [float(f"{scale:.4g}") for scale in fit.scales[used]],
        "middle": np.median(y, axis=0).round(4).tolist(),
        "least": y.min(axis=0).round(4).tolist(),
        "most": y.max(axis=0).round(4).tolist(),
        "rows": table.tolist(),
    }, errors


def write(path: Path, surfaces: dict[str, dict[str, Any]], about: dict[str, Any]) -> None:
    """Write the surfaces, a line each."""
    lines = ",\n".join(
        f" {json.dumps(name)}: {json.dumps(item, separators=(',', ':'))}"
        for name, item in surfaces.items()
    )
    text = f'{{"recorded": {json.dumps(about)},\n"surfaces": {{\n{lines}\n}}}}\n'
    path.write_text(text, "utf-8")


def fit_all(found: list[Point], about: dict[str, Any], out: Path) -> None:
    """Fit a surface for each kind of call, print how good they are, and write them."""
    kinds: dict[str, list[Point]] = {}
    for point in found:
        kinds.setdefault(point.place.surface, []).append(point)
    surfaces, everything = {}, []
    for name, members in sorted(kinds.items()):
        if len(members) < _LEAST_POINTS:
            continue
        surfaces[name], errors = surface(members)
        everything.append(errors)
        print(f"{name:24s} {len(members):5d}  {scores(errors)}", flush=True)
    print("all", scores(np.vstack(everything)))
    write(out, surfaces, about)


def scores(errors: Numbers) -> str:
    """Return median and p90 of some errors."""
    return f"median {np.median(errors):6.1%}  p90 {np.quantile(errors, 0.9):6.1%}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--recording", type=Path, default=RECORDING)
    parser.add_argument("--out", type=Path, default=SURFACES)
    given = parser.parse_args()
    about = json.loads(given.recording.read_text("utf-8"))["provenance"]
    fit_all(list(points(given.recording)), about, given.out)
