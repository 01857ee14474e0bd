"""Correct the roofline's durations by measured efficiencies, which depend on a call's sizes.

There is one surface for each kind of call. Its values are logarithms of the measured duration
divided by the roofline's, at some thousand random sizes. Between these it is interpolated by
kriging: regression by a Gaussian process with a sum of Matérn kernels. Near a measured size it
repeats the measurement, and far from all of them it falls back to their median.
``python -m benchmarks.fidelity fit`` writes the file that is read here.
"""

import json
import zlib
from base64 import b64decode
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Coordinate = float | str
FloatArray: TypeAlias = NDArray[np.float64]

_FILE = "data/efficiencies.json"
# The file has whole numbers, so that it is small: hundredths of a coordinate, thousandths of a
# weight.
_COORDINATE_UNIT, _WEIGHT_UNIT = 0.01, 0.001
_N_KEPT = 1_000
# The number of a word that no measured call has. It differs from all of them.
_UNKNOWN = -1


class SurfacePoint(NamedTuple):
    """The place of a call on a surface.

    Attributes
    ----------
    surface
        Name of the surface.
    coordinates
        Numbers and words. Calls that run alike have similar numbers and the same words.
    """

    surface: str
    coordinates: tuple[Coordinate, ...]


class Correction(NamedTuple):
    """The factors for the roofline's duration.

    Attributes
    ----------
    hot
        The factor if the L2 cache serves all accesses of the kernel.
    cold
        The factor if memory serves all of them.
    """

    hot: float
    cold: float


NO_CORRECTION = Correction(1.0, 1.0)


@dataclass(frozen=True, slots=True)
class EfficiencySurface:
    """Measured points, and the fitted function through them.

    Attributes
    ----------
    used
        Positions of the coordinates that matter.
    words
        For each of these a number for each of its words, or None if the coordinate is a number.
    scales
        How much a difference of one in each coordinate counts. There is a row for each kernel of
        the sum, because calls may be alike in some coordinates only.
    shares
        The share of each kernel in the sum.
    points
        The coordinates of the measured calls, a row for each.
    weights
        How much each point adds to the logarithms, hot and cold, times its nearness.
    middle
        The medians of the logarithms, hot and cold.
    least, most
        The ranges of the measured logarithms; a prediction is always inside them.
    """

    used: tuple[int, ...]
    words: tuple[dict[str, int] | None, ...]
    scales: FloatArray
    shares: FloatArray
    points: FloatArray
    weights: FloatArray
    middle: FloatArray
    least: FloatArray
    most: FloatArray

    def logarithms(self, coordinates: tuple[Coordinate, ...]) -> FloatArray:
        """Return the logarithms of the correction at a point, hot and cold.

        A number outside the measured range counts as the nearest end of the range.
        """
        used = [coordinates[i] for i in self.used]
        point = np.array(
            [
                value if words is None else words.get(str(value), _UNKNOWN)
                for value, words in zip(used, self.words, strict=True)
            ],
            dtype=np.float64,
        )
        # Outside the measured sizes the surface keeps its value at the edge (docs/fidelity.md).
        # Words have no order, so they are not clipped.
        is_word = np.array([words is not None for words in self.words])
        inside = np.clip(point, self.points.min(axis=0), self.points.max(axis=0))
        differences = difference(np.where(is_word, point, inside), self.points, is_word)
        near = nearness(differences, self.scales, self.shares)
        # Between its points a fitted function may overshoot, so it is kept to what was measured.
        return np.clip(self.middle + near @ self.weights, self.least, self.most)


def difference(point: FloatArray, points: FloatArray, is_word: NDArray[np.bool_]) -> FloatArray:
    """Return the differences between one point and others, for each coordinate.

    ``points`` has a row for each other. The difference of two words is 1, or 0 if they are equal.
    """
    apart: FloatArray = np.abs(points - point)
    return np.where(is_word, apart != 0, apart)


def nearness(differences: FloatArray, scales: FloatArray, shares: FloatArray) -> FloatArray:
    """Return a sum of Matérn kernels of order 3/2: 1 at the same point, 0 far away.

    ``differences`` has a row for each pair of points and a column for each coordinate. ``scales``
    say how much a difference of one counts, a row for each kernel; the ``shares`` add up to 1.
    """
    # One matrix product gives the squared distances for all kernels of the sum at once.
    distances = np.sqrt(differences**2 @ scales.T**2)
    sums: FloatArray = ((1 + distances) * np.exp(-distances)) @ shares
    return sums


# Cached, because all kernels of a call have the same point, and a loop repeats its calls.
@lru_cache(maxsize=_N_KEPT)
def correction(point: SurfacePoint | None) -> Correction:
    """Return the correction at a point; both factors are 1 if nothing like it was measured.

    It was measured on an H200 and is used for all GPUs.
    """
    if point is None:
        return NO_CORRECTION
    surface = _surface(point.surface)
    if surface is None:
        return NO_CORRECTION
    hot, cold = np.exp(surface.logarithms(point.coordinates))
    return Correction(float(hot), float(cold))


@cache
def _file() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(files("gpulab").joinpath(_FILE).read_text("utf-8"))
    return content


@cache
def _surface(name: str) -> EfficiencySurface | None:
    fitted = _file()["surfaces"].get(name)
    return None if fitted is None else _read(fitted)


def unpacked(text: str, n_columns: int) -> FloatArray:
    """Return the table of whole numbers that the fit has compressed into a text, by columns."""
    columns = np.frombuffer(zlib.decompress(b64decode(text)), dtype="<i4")
    return columns.reshape(n_columns, -1).T.astype(np.float64)


def _read(fitted: dict[str, Any]) -> EfficiencySurface:
    words = tuple(
        None if item is None else dict(zip(item, range(len(item)), strict=True))
        for item in fitted["words"]
    )
    units = np.array([_COORDINATE_UNIT if item is None else 1.0 for item in words])
    # The last two columns are the weights, hot and cold.
    table = unpacked(fitted["rows"], len(words) + 2)
    logarithms = [np.array(fitted[key]) for key in ("middle", "least", "most")]
    return EfficiencySurface(
        tuple(fitted["used"]),
        words,
        np.array(fitted["scales"]),
        np.array(fitted["shares"]),
        table[:, :-2] * units,
        table[:, -2:] * _WEIGHT_UNIT,
        *logarithms,
    )
