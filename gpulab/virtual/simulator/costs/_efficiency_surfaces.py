"""Correct the roofline's durations by measured efficiencies, by the sizes of a call.

A surface belongs to calls that run alike. It goes smoothly through the logarithms of what was
measured at some thousand random sizes, each over what the roofline says (kriging, that is
regression by a Gaussian process with a sum of Matérn kernels): near a measured size it repeats the
measurement, between them it interpolates, and far from all it falls back to their median.
``python -m benchmarks.fidelity fit`` makes the file that is read here.
"""

import json
import zlib
from base64 import b64decode, b64encode
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Coordinate = float | str
FloatArray = NDArray[np.float64]

_FILE = "data/efficiencies.json"
# Coordinates are kept in hundredths, weights and logarithms in thousandths: the file stays small.
_COORDINATE_UNIT, _WEIGHT_UNIT = 0.01, 0.001
_N_KEPT = 1_000
_UNKNOWN = -1  # the number of a word that no measured call has


class SurfacePoint(NamedTuple):
    """Where a call lies.

    Attributes
    ----------
    surface
        Name of the surface.
    coordinates
        Numbers that are near for calls that run alike, and words that are the same.
    """

    surface: str
    coordinates: tuple[Coordinate, ...]


class Correction(NamedTuple):
    """What the roofline's duration is multiplied by.

    Attributes
    ----------
    hot
        If everything that the kernel touches is in the L2 cache.
    cold
        If all of it comes from memory and goes there.
    """

    hot: float
    cold: float


NO_CORRECTION = Correction(1.0, 1.0)


@dataclass(frozen=True, slots=True)
class EfficiencySurface:
    """Measured points, and what goes through them.

    Attributes
    ----------
    used
        Positions of the coordinates that matter.
    words
        For each of these the numbers of its words, or None if it is a number.
    scales
        What a difference of one counts, coordinate by coordinate, a row for each way of being
        near: calls may be alike in some coordinates, or in all.
    shares
        What each way counts.
    points
        A row of coordinates for each measured call.
    weights
        What each point adds to the logarithm, hot and cold, according to its nearness.
    middle
        Median of the logarithms, hot and cold.
    least, most
        The range of the measured logarithms, which no prediction leaves.
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

        Parameters
        ----------
        coordinates
            All of the point's; beyond the measured range they count as its end.
        """
        given = [coordinates[i] for i in self.used]
        point = np.array(
            [
                value if words is None else words.get(str(value), _UNKNOWN)
                for value, words in zip(given, self.words, strict=True)
            ],
            dtype=np.float64,
        )
        is_word = np.array([words is not None for words in self.words])
        inside = np.clip(point, self.points.min(axis=0), self.points.max(axis=0))
        differences = difference(np.where(is_word, point, inside), self.points, is_word)
        near = nearness(differences, self.scales, self.shares)
        return np.clip(self.middle + near @ self.weights, self.least, self.most)


def difference(point: FloatArray, points: FloatArray, is_word: NDArray[np.bool_]) -> FloatArray:
    """Return how far apart one point and others are, coordinate by coordinate.

    Parameters
    ----------
    point
        Coordinates, words as numbers.
    points
        Coordinates of the others, a row each.
    is_word
        Which coordinates are words: these differ by one or not at all.
    """
    apart: FloatArray = np.abs(points - point)
    return np.where(is_word, apart != 0, apart)


def nearness(differences: FloatArray, scales: FloatArray, shares: FloatArray) -> FloatArray:
    """Return a sum of Matérn kernels of order 3/2: 1 at the same point, 0 far away.

    Parameters
    ----------
    differences
        Coordinate by coordinate, a row for each pair.
    scales
        What a difference of one counts, a row for each kernel.
    shares
        What each kernel counts; together 1.
    """
    distances = np.sqrt(differences**2 @ scales.T**2)
    found: FloatArray = ((1 + distances) * np.exp(-distances)) @ shares
    return found


@lru_cache(maxsize=_N_KEPT)  # the kernels of a call ask one after another for the same point
def correction(point: SurfacePoint | None) -> Correction:
    """Return the correction at a point; none where nothing was measured.

    It was measured on one model of GPU and is taken over to others as it is.

    Parameters
    ----------
    point
        Where a call lies, or None.
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
    found: dict[str, Any] = json.loads(files("gpulab").joinpath(_FILE).read_text("utf-8"))
    return found


@cache
def _surface(name: str) -> EfficiencySurface | None:
    found = _file()["surfaces"].get(name)
    return None if found is None else _read(found)


def packed(table: FloatArray) -> str:
    """Return whole numbers as text: there are many, and column by column they are alike."""
    columns = np.ascontiguousarray(table.T.astype("<i4"))
    return b64encode(zlib.compress(columns.tobytes(), 9)).decode()


def unpacked(text: str, n_columns: int) -> FloatArray:
    """Return the numbers that :func:`packed` made a text of."""
    columns = np.frombuffer(zlib.decompress(b64decode(text)), dtype="<i4")
    return columns.reshape(n_columns, -1).T.astype(np.float64)


def _read(found: dict[str, Any]) -> EfficiencySurface:
    words = tuple(
        None if item is None else dict(zip(item, range(len(item)), strict=True))
        for item in found["words"]
    )
    units = np.array([_COORDINATE_UNIT if item is None else 1.0 for item in words])
    table = unpacked(found["rows"], len(words) + 2)
    logarithms = [np.array(found[key]) for key in ("middle", "least", "most")]
    return EfficiencySurface(
        tuple(found["used"]),
        words,
        np.array(found["scales"]),
        np.array(found["shares"]),
        table[:, :-2] * units,
        table[:, -2:] * _WEIGHT_UNIT,
        *logarithms,
    )
