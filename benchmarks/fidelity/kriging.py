"""Fit a smooth surface through scattered points: kriging with a sum of Matérn kernels.

Gradient descent on the errors of left-out points chooses how much a difference in each coordinate
counts. The errors are bounded, so that a few large ones do not decide.
"""

import itertools
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gpulab.virtual.simulator.costs import Coordinate
from gpulab.virtual.simulator.costs._efficiency_surfaces import difference, nearness

N_KERNELS = 3
UNITS, DIGITS = 100, 4  # coordinates are stored in hundredths, other numbers with four digits
_N_FOLDS = 5
_MOST_SEARCHED = 400  # number of points from which the scales are chosen: it inverts a matrix
_MOST_ADAPTED = 900  # and of points for which their widths are adapted, for its memory
_N_STEPS = 70
_FIRST_STEP, _LAST_STEP = 0.15, 0.01
_FIRST_NOISE, _LEAST_NOISE = 0.02, 1e-3
_LARGE = 0.5  # an error counts less the further it is beyond this
# Errors are logarithms: 0.23 is an error of 26 %, about the goal of 25 % for the p90
# (docs/fidelity.md).
_GOAL, _BLUR = 0.23, 0.05  # an error beyond the goal counts extra
_EXTRA = 0.35
_ROUND = 1e-3  # makes the loss smooth at an error of zero, for the descent
_WIDE = 1e-3  # penalty for narrow kernels, so that useless coordinates drop out
_NO_LOSS = 3e-4
_NARROWER, _NOISIER = (0.8, 1.0, 1.25, 1.6), (0.5, 1.0, 2.0)
_NOISES = (0.001, 0.003, 0.01, 0.02, 0.04, 0.08, 0.15)
# Scales of words and of numbers from which each kernel starts: some narrow, some wide.
_STARTS = ((0.5, 0.25), (1.0, 0.1), (0.3, 0.05))

Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Points:
    """Points to fit a surface to: coordinates, values, and which coordinates are words.

    Attributes
    ----------
    x, y
        Coordinates and values, a row for each point.
    looseness
        Factor of the noise of each point: 1, or less where the surface should come closer.
    words
        For each coordinate its words in the order of their numbers, or None if it is a number.
    """

    x: Numbers
    y: Numbers
    looseness: Numbers
    words: tuple[list[str] | None, ...]

    @property
    def is_word(self) -> NDArray[np.bool_]:
        """Whether each coordinate is a word."""
        return np.array([item is not None for item in self.words])

    def part(self, which: NDArray[Any]) -> "Points":
        """Return some of the points."""
        return replace(self, x=self.x[which], y=self.y[which], looseness=self.looseness[which])


def encoded(
    coordinates_of: list[tuple[Coordinate, ...]],
    values: list[tuple[float, float]],
    looseness: list[float],
) -> Points:
    """Return the points as arrays; points with the same coordinates become one, their mean."""
    values_at: dict[tuple[Coordinate, ...], list[tuple[float, float]]] = {}
    loose: dict[tuple[Coordinate, ...], float] = {}
    for coordinates, value, factor in zip(coordinates_of, values, looseness, strict=True):
        values_at.setdefault(coordinates, []).append(value)
        loose[coordinates] = min(factor, loose.get(coordinates, factor))
    columns = list(zip(*values_at, strict=True))
    words = tuple(
        sorted({str(item) for item in column}) if isinstance(column[0], str) else None
        for column in columns
    )
    x = [
        [
            round(item * UNITS) / UNITS if known is None else known.index(str(item))
            for item in column
        ]
        for column, known in zip(columns, words, strict=True)
    ]
    y = [np.mean(items, axis=0) for items in values_at.values()]
    factors = np.array(list(loose.values()), dtype=np.float64)
    return Points(np.array(x, dtype=np.float64).T, np.array(y), factors, words)


@dataclass(frozen=True, slots=True)
class Fit:
    """The parameters of a surface: scales and shares of the kernels, and the noise of a point."""

    scales: Numbers
    shares: Numbers
    noise: float

    def weights(self, points: Points) -> Numbers:
        """Return the weight of each point."""
        kernel = self.near(points.x, points) + np.diag(self.noise * points.looseness)
        rest = points.y - np.median(points.y, axis=0)
        weights: Numbers = np.linalg.solve(kernel, rest).astype(np.float64)
        return weights

    def near(self, x: Numbers, points: Points) -> Numbers:
        """Return the nearness of every row of ``x`` to every point."""
        # Row by row: all differences at once would take gigabytes.
        rows = [
            nearness(difference(row, points.x, points.is_word), self.scales, self.shares)
            for row in x
        ]
        return np.array(rows)

    def predicted(self, x: Numbers, points: Points) -> Numbers:
        """Return the surface's values at other coordinates, within the values of the points."""
        values = np.median(points.y, axis=0) + self.near(x, points) @ self.weights(points)
        return np.clip(values, points.y.min(axis=0), points.y.max(axis=0))


def fitted(points: Points, n_kernels: int = N_KERNELS) -> Fit:
    """Choose scales, shares and noise so that each point is predicted well by all others."""
    # A fixed seed, so that the same recordings give the same surfaces.
    chosen = np.random.default_rng(0).permutation(len(points.x))[:_MOST_SEARCHED]
    search = _Search(points.part(chosen))
    spread = np.maximum(1.0, points.x.std(axis=0) / 2)
    starts = [np.where(points.is_word, a, b / spread) for a, b in _STARTS[:n_kernels]]
    values = [np.log(np.array(starts)), np.zeros(n_kernels), np.array(np.log(_FIRST_NOISE))]
    tensors = [torch.tensor(value, requires_grad=True) for value in values]
    descent = torch.optim.Adam(tensors)
    # Adam does not go down at every step, so the best step is kept and not the last one.
    least, best = float("inf"), [item.detach().clone() for item in tensors]
    for step in range(_N_STEPS):
        descent.param_groups[0]["lr"] = _FIRST_STEP * (1 - step / _N_STEPS) + _LAST_STEP
        descent.zero_grad()
        loss = search.loss(*tensors)
        if loss.item() < least:
            least, best = loss.item(), [item.detach().clone() for item in tensors]
        loss.backward()  # type: ignore[no-untyped-call] # torch's is untyped
        descent.step()
    if len(points.x) > _MOST_SEARCHED:
        more = np.random.default_rng(0).permutation(len(points.x))[:_MOST_ADAPTED]
        best = _adapted(best, _Search(points.part(more)))
    return search.without_useless(best)


def _adapted(best: list[torch.Tensor], search: "_Search") -> list[torch.Tensor]:
    """Choose the width of the kernels again for all points: more points allow narrower ones."""
    scales, shares, noise = best
    tried = [
        [scales + math.log(narrower), shares, noise + math.log(noisier)]
        for narrower, noisier in itertools.product(_NARROWER, _NOISIER)
    ]
    with torch.no_grad():
        return min(tried, key=lambda item: search.loss(*item).item())


def with_scales(points: Points, scales: Numbers, shares: Numbers) -> Fit:
    """Return a fit with known scales and shares: only the noise is chosen."""
    chosen = np.random.default_rng(0).permutation(len(points.x))[:_MOST_ADAPTED]
    search = _Search(points.part(chosen))
    with np.errstate(divide="ignore"):  # a scale of 0 is a coordinate that does not count
        known = [torch.tensor(np.log(values)) for values in (scales, shares)]
    tried = [torch.tensor(math.log(noise)) for noise in _NOISES]
    with torch.no_grad():
        noise = min(tried, key=lambda each: search.loss(*known, each).item())
    return Fit(scales, shares, float(_noise(noise).item()))


class _Search:
    """The loss as a function of scales, shares and noise, with the same noise for all points."""

    def __init__(self, points: Points) -> None:
        apart = difference(points.x[:, None, :], points.x[None, :, :], points.is_word)
        self.squares = torch.tensor(apart**2)
        self.y = torch.tensor(points.y - np.median(points.y, axis=0))

    def loss(
        self, scales: torch.Tensor, shares: torch.Tensor, noise: torch.Tensor
    ) -> torch.Tensor:
        """Return the mean loss of left-out points; all three arguments are logarithms."""
        squares = torch.exp(2 * scales)
        # The tiny addend keeps the gradient of the root finite where two points coincide.
        distances = torch.sqrt(self.squares @ squares.T + 1e-12)
        # The Matérn kernel of order 3/2: smoother than an exponential, and not as rigid as a
        # Gaussian.
        kernels = (1 + distances) * torch.exp(-distances)
        kernel = kernels @ torch.softmax(shares, 0) + _noise(noise) * torch.eye(len(self.y))
        inverse = torch.linalg.inv(kernel)
        # The errors of all points, each predicted from all others, without a fit for each: the
        # closed form of leaving one out.
        errors = inverse @ self.y / torch.diagonal(inverse)[:, None]
        sizes = torch.sqrt(errors**2 + _ROUND)
        beyond = torch.sigmoid((sizes - _GOAL) / _BLUR)
        wide = squares.clamp(max=1).sum(dim=1).sqrt().mean()
        return (sizes / (1 + sizes / _LARGE) + _EXTRA * beyond).mean() + _WIDE * wide

    def without_useless(self, best: list[torch.Tensor]) -> Fit:
        """Return the fit without the coordinates that do not improve it."""
        scales, shares, noise = best
        with torch.no_grad():
            least = self.loss(scales, shares, noise).item()
            for i in scales.exp().amax(dim=0).argsort().tolist():
                fewer = scales.clone()
                fewer[:, i] = -torch.inf
                loss = self.loss(fewer, shares, noise).item()
                if loss < least + _NO_LOSS:
                    scales, least = fewer, min(loss, least)
        # Rounded before the weights are computed: where points are close together, weights are
        # large, and weights of other scales would miss the points.
        chosen_scales = [
            [float(f"{scale:.{DIGITS}g}") for scale in row] for row in scales.exp().tolist()
        ]
        rounded = torch.softmax(shares, 0).numpy().round(DIGITS)
        return Fit(np.array(chosen_scales), rounded, float(_noise(noise).item()))


def _noise(logarithm: torch.Tensor) -> torch.Tensor:
    return torch.exp(logarithm).clamp(_LEAST_NOISE, 1.0)


def crossed(points: Points, folds: NDArray[np.int64], fit: Fit) -> Numbers:
    """Return the prediction of each point from the points of the other folds."""
    predictions = np.zeros_like(points.y)
    for i in range(folds.max() + 1):
        asked = folds == i
        predictions[asked] = fit.predicted(points.x[asked], points.part(~asked))
    return predictions


def folds_of(points: Points) -> NDArray[np.int64]:
    """Return the number of a random fold for each point."""
    return np.random.default_rng(1).integers(0, _N_FOLDS, len(points.x))
