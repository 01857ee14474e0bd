"""Choose the tiles in which a GPU computes a matmul, and compute how long that takes.

Every multiprocessor computes one tile of the result after another. The best size of the tiles
depends on the sizes of the matrices. So the model tries a few and takes the fastest; a library
chooses by heuristics.
"""

from dataclasses import dataclass
from math import ceil

from gpulab.gpus import GpuSpec

_NS = 1e9


@dataclass(frozen=True, slots=True)
class MatmulShape:
    """Sizes of a batch of matmuls ``(m, k) @ (k, n)``, or of a kernel that computes like one.

    Attributes
    ----------
    batch, m, n, k
        The number of matmuls, and their sizes.
    kind
        ``"gemm"``, ``"linear"`` (with a bias), ``"conv"``, ``"weights"`` (the gradient of a
        convolution's weights, with a long sum), ``"attention"`` or ``"attention backward"``.
    is_aligned
        Whether rows begin at multiples of 16 bytes; otherwise libraries use slower kernels.
    """

    batch: int
    m: int
    n: int
    k: int
    kind: str = "gemm"
    is_aligned: bool = True

    @property
    def flops(self) -> int:
        """Floating-point operations; a multiply-add counts as two."""
        return 2 * self.batch * self.m * self.n * self.k


@dataclass(frozen=True, slots=True)
class Tile:
    """A tile of the result, and the share of a multiprocessor's peak that it reaches."""

    m: int
    n: int
    share: float


# Shares of the data sheet's peak, fitted to square matmuls of 64 to 8192 on an H200. A wave of
# tiles takes additional time, because it writes its results after the arithmetic.
# Libraries have many for halves, so that one row more seldom costs another wave.
_HALF = (
    *(Tile(256, 128, 0.815), Tile(192, 192, 0.76), Tile(128, 192, 0.77), Tile(128, 128, 0.72)),
    *(Tile(128, 96, 0.69), Tile(128, 64, 0.65), Tile(64, 64, 0.45)),
)
_TF32 = (Tile(256, 128, 0.845), Tile(128, 64, 0.42), Tile(64, 64, 0.30))
_DOUBLE = (Tile(128, 64, 0.93), Tile(64, 32, 0.70))
_SINGLE = (Tile(256, 128, 0.79), Tile(128, 64, 0.60), Tile(64, 64, 0.56), Tile(32, 32, 0.28))
_GEMM = {
    "float16": _HALF,
    "bfloat16": _HALF,
    "tf32": _TF32,
    "float64": _DOUBLE,
    "float32": _SINGLE,
}
_UNALIGNED = (Tile(128, 128, 0.2), Tile(64, 64, 0.085), Tile(32, 32, 0.08))
_CONV_HALF = (Tile(128, 128, 0.70), Tile(256, 64, 0.52))
_CONV = {
    "float16": _CONV_HALF,
    "bfloat16": _CONV_HALF,
    "tf32": (Tile(128, 128, 0.45), Tile(128, 64, 0.285)),
    "float64": _DOUBLE,
    "float32": _SINGLE,
}
_ATTENTION_HALF = (Tile(128, 128, 0.66), Tile(128, 64, 0.58))
_ATTENTION = {
    "float16": _ATTENTION_HALF,
    "bfloat16": _ATTENTION_HALF,
    # The attention kernel for float32 does not use TF32.
    "tf32": (Tile(64, 64, 0.06),),
    "float64": (Tile(64, 64, 0.30),),
    "float32": (Tile(64, 64, 0.45),),
}
_TILES = {
    "gemm": _GEMM,
    "linear": _GEMM,
    "conv": _CONV,
    "weights": _CONV,
    "attention": _ATTENTION,
    "attention backward": _ATTENTION,
}
# Each wave of attention tiles takes this much time besides the arithmetic. In matmuls on tensor
# cores there is a pause of _TILE_END_NS between two waves.
_WAVE_NS = {"attention": 2_000, "attention backward": 5_000}
_TILE_END_NS = 1_200
# A tile of float32 or float64 takes the time of 40 more steps of k, until its pipeline is full.
_TILE_START = 40
# With more waves than this, fast and slow tiles even out.
_FEW_WAVES = 8
# A library may split the sum over k among several tiles: into at most 64 parts, of at least 128
# steps of k, if a tile has at most 64 x 64 results.
_LARGEST_SPLIT = 64 * 64
_MOST_SPLITS = 64
_LEAST_SPLIT = 128
# Then a second kernel adds up the results of the parts: a fixed time, and a time for each part.
_SPLIT_NS, _PART_NS = 1_750, 70


@dataclass(frozen=True, slots=True)
class TileSchedule:
    """The time of a matmul with one choice of tiles.

    Attributes
    ----------
    n_tiles
        Number of tiles, each by one block of threads.
    arithmetic_ns
        Time of the arithmetic units, in nanoseconds at the boost clock.
    waves_ns
        Time between waves of tiles, which does not depend on the clock.
    after_ns
        Time to add up the parts of a sum that was split.
    """

    n_tiles: int
    arithmetic_ns: float
    waves_ns: float
    after_ns: float

    @property
    def total_ns(self) -> float:
        """The sum of all times, which decides between choices."""
        return self.arithmetic_ns + self.waves_ns + self.after_ns


def schedule(matmul: MatmulShape, arithmetic: str, spec: GpuSpec) -> TileSchedule:
    """Return the fastest schedule of a matmul.

    It is the best of a few choices. A library may choose another kernel.
    """
    tiles = _TILES[matmul.kind][arithmetic]
    # Only half and TF32 kernels load 16 bytes at a time; the tiles of the other types stay.
    if not matmul.is_aligned and (tiles is _HALF or tiles is _TF32):
        tiles = _UNALIGNED
    schedules = [_tiled_schedule(matmul, tile, 1, arithmetic, spec) for tile in tiles]
    schedules += [
        _tiled_schedule(matmul, tile, n_splits, arithmetic, spec)
        for tile in tiles
        # The gradient of a convolution's weights is a sum over all pixels with few results, so it
        # is split whatever the tile. A type with one tile has no smaller one to split instead.
        if tile.m * tile.n <= _LARGEST_SPLIT
        or len(tiles) == 1
        or tiles is _UNALIGNED
        or matmul.kind == "weights"
        for n_splits in _splits(matmul, tile, arithmetic, spec)
    ]
    return min(schedules, key=lambda candidate: candidate.total_ns)


def _splits(matmul: MatmulShape, tile: Tile, arithmetic: str, spec: GpuSpec) -> list[int]:
    """Return the numbers of parts that the sum may be split into.

    More parts than idle multiprocessors would not help.
    """
    if matmul.kind not in {"gemm", "linear", "weights"}:
        return []
    if matmul.kind == "linear" and not _is_quick(arithmetic):
        return []
    n_tiles = _n_tiles(matmul, tile)
    n_most = min(_MOST_SPLITS, matmul.k // _LEAST_SPLIT, spec.n_sms // n_tiles)
    return [1 << power for power in range(1, 7) if 1 << power <= n_most]


def _n_results(matmul: MatmulShape, tile: Tile) -> int:
    return ceil(matmul.m / tile.m) * ceil(matmul.n / tile.n)


def _tiled_schedule(
    matmul: MatmulShape, tile: Tile, n_splits: int, arithmetic: str, spec: GpuSpec
) -> TileSchedule:
    n_tiles = _n_tiles(matmul, tile) * n_splits
    n_waves = _waves(n_tiles, spec.n_sms)
    is_quick = _is_quick(arithmetic)
    n_steps = ceil(matmul.k / n_splits) + (0 if is_quick else _TILE_START)
    per_sm = spec.peak_flops_per_s[arithmetic] / spec.n_sms * tile.share
    wave_ns = _WAVE_NS.get(matmul.kind, _TILE_END_NS if is_quick else 0)
    n_between = n_waves if matmul.kind in _WAVE_NS else n_waves - 1
    return TileSchedule(
        n_tiles,
        n_waves * 2 * tile.m * tile.n * n_steps / per_sm * _NS,
        n_between * wave_ns,
        _SPLIT_NS + _PART_NS * n_splits if n_splits > 1 else 0,
    )


def _is_quick(arithmetic: str) -> bool:
    """Return whether tensor cores are so fast that writing a tile takes extra time."""
    return arithmetic not in {"float32", "float64"}


def _n_tiles(matmul: MatmulShape, tile: Tile) -> int:
    # An empty matmul takes one block, too.
    return max(1, matmul.batch * _n_results(matmul, tile))


def _waves(n_tiles: int, n_sms: int) -> float:
    """Return how many waves of tiles there are; a fraction if there are many."""
    whole = ceil(n_tiles / n_sms)
    # Rounding up adds half a wave on average.
    return float(whole) if whole <= _FEW_WAVES else n_tiles / n_sms + 0.5
