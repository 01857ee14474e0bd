"""A linear layer timed after a learner's flush, and beside it hot, cold and dirty."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import nan

import torch
from torch.nn.functional import linear

from gpulab import device
from gpulab.measurement import Measurement
from gpulab.timing import measure

_WIDTH = 4096
# Small enough to stay on any GPU, as less than half of an L2 may be used; large enough to matter.
_SHARE = 0.25
_ELEMENT_BYTES = 2
_N_SAMPLES = 21


@dataclass(frozen=True, slots=True)
class FlushTrial:
    """What a linear layer on one row, its weights a quarter of the L2, took in four states.

    Attributes
    ----------
    hot_s, clean_s, dirty_s
        With its weights in the cache; after a flush that reads; after one that writes.
    own_s
        After the learner's function; not a number if that raised.
    error
        What it raised, or None.
    waits
        Whether it blocked the host until the GPU was done, so that each sample has a launch in it.
    """

    hot_s: float
    clean_s: float
    dirty_s: float
    own_s: float
    error: Exception | None = None
    waits: bool = False


def run(flush: Callable[[], object]) -> FlushTrial:
    """Time the layer on the GPU in use behind a function of the learner's, and beside others."""
    with device.active():
        l2_bytes = torch.cuda.get_device_properties(torch.cuda.current_device()).L2_cache_size
        n_rows = max(64, int(_SHARE * l2_bytes) // (_WIDTH * _ELEMENT_BYTES) // 64 * 64)
        weight = torch.randn(n_rows, _WIDTH, device="cuda", dtype=torch.half)
        row = torch.randn(1, _WIDTH, device="cuda", dtype=torch.half)
        work = partial(linear, row, weight)
        hot_s = _read(work, cache="hot").median_s
        clean_s, dirty_s = (
            _read(work, cache="cold", flush=kind).median_s for kind in ("read", "write")
        )
        try:
            flush()  # what it does only once, it does now
            own = _read(work, cache="hot", setup=flush)
        except Exception as error:  # noqa: BLE001  # a learner's function may raise anything
            return FlushTrial(hot_s, clean_s, dirty_s, nan, error)
        waits = any(finding.code == "starved" for finding in own.findings)
        return FlushTrial(hot_s, clean_s, dirty_s, own.median_s, waits=waits)


def _read(work: Callable[[], object], **options: object) -> Measurement:
    return measure(work, n_samples=_N_SAMPLES, n_warmup=5, progress=False, **options)  # type: ignore[arg-type]  # passed on
