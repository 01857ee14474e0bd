"""Choose the tiles in which a GPU computes a matmul, and compute how long that takes.

Every multiprocessor computes one tile of the result after another. Which tile is best depends on
the sizes, so the model tries a few, as the library's heuristics do, and takes the quickest.
"""

from dataclasses import dataclass
from math import ceil

from gpulab.gpus import GpuSpec

_NS = 1e9


@dataclass(frozen=True, slots=True)
class MatmulShape:
    """Sizes of a batch of products ``(m, k) @ (k, n)``, or of what is computed like one.

    Attributes
    ----------
    kind
        ``"gemm"``, ``"linear"`` (with a bias), ``"conv"``, ``"weights"`` (of a convolution, whose
        sum is long), ``"attention"`` or ``"attention backward"``.
    is_aligned
        Whether rows begin at multiples of 16 bytes; otherwise older kernels are used.
    """

    batch: int
    m: int
    n: int
    k: int
    kind: str = "gemm"
    is_aligned: bool = True

    @property
    def flops(self) -> int:
        """Floating-point operations, a multiply-add counted as two."""
        return 2 * self.batch * self.m * self.n * self.k


@dataclass(frozen=True, slots=True)
class Tile:
    """A tile of the result, and the share of a multiprocessor's peak that it reaches."""

    m: int
    n: int
    share: float


# Shares of the data sheet's peak, fitted to square products of an H200 between 64 and 8192. A
# wave of tiles costs something besides: it writes its result when the arithmetic is done.
_HALF = (Tile(256, 128, 0.815), Tile(128, 64, 0.65), Tile(64, 64, 0.45))
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
    "tf32": (Tile(64, 64, 0.06),),  # the kernel for single precision does not use TF32 units
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
_WAVE_NS = {"attention": 2_000, "attention backward": 5_000}
_TILE_END_NS = 1_200
_TILE_START = 40  # steps of k until a tile of single precision is under way
_FEW_WAVES = 8
_LARGEST_SPLIT = 64 * 64  # results in a tile whose sum may be split
_MOST_SPLITS = 64
_LEAST_SPLIT = 128  # of k
# A second kernel adds up what the parts of k gave, one after another.
_SPLIT_NS, _PART_NS = 1_750, 70


@dataclass(frozen=True, slots=True)
class TileSchedule:
    """How a product is computed.

    Attributes
    ----------
    n_tiles
        Blocks of threads.
    arithmetic_ns
        Time in the arithmetic units, in nanoseconds at the boost clock.
    waves_ns
        Time between waves of tiles, which no clock shortens.
    after_ns
        Time of adding up what several blocks have of one tile.
    """

    n_tiles: int
    arithmetic_ns: float
    waves_ns: float
    after_ns: float

    @property
    def total_ns(self) -> float:
        """All together."""
        return self.arithmetic_ns + self.waves_ns + self.after_ns


def schedule(matmul: MatmulShape, arithmetic: str, spec: GpuSpec) -> TileSchedule:
    """Return the quickest way to compute a product.

    It is a choice among a few tiles and says nothing of the kernel that a library would take.
    """
    tiles = _TILES[matmul.kind][arithmetic]
    if not matmul.is_aligned and (tiles is _HALF or tiles is _TF32):
        tiles = _UNALIGNED
    schedules = [_tiled_schedule(matmul, tile, 1, arithmetic, spec) for tile in tiles]
    schedules += [
        _tiled_schedule(matmul, tile, n_splits, arithmetic, spec)
        for tile in tiles
        if tile.m * tile.n <= _LARGEST_SPLIT
        or len(tiles) == 1
        or tiles is _UNALIGNED
        or matmul.kind == "weights"
        for n_splits in _splits(matmul, tile, arithmetic, spec)
    ]
    return min(schedules, key=lambda one: one.total_ns)


def _splits(matmul: MatmulShape, tile: Tile, arithmetic: str, spec: GpuSpec) -> list[int]:
    """Return into how many parts the sum may be split: while that occupies idle units."""
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
    """Tell whether tensor cores compute so quickly that writing a tile takes time of its own."""
    return arithmetic not in {"float32", "float64"}


def _n_tiles(matmul: MatmulShape, tile: Tile) -> int:
    return max(1, matmul.batch * _n_results(matmul, tile))  # nothing to multiply takes a block too


def _waves(n_tiles: int, n_sms: int) -> float:
    """Return the rounds of tiles; when there are many, fast and slow ones even out."""
    whole = ceil(n_tiles / n_sms)
    return float(whole) if whole <= _FEW_WAVES else n_tiles / n_sms + 0.5
