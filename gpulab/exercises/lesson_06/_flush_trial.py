"""Time a linear layer after a learner's flush, and for comparison with a hot and a cold cache."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import inf, nan

import torch
from torch.nn.functional import linear
from torch.utils._pytree import tree_leaves

from gpulab import device
from gpulab.core.torch_private import DispatchMode
from gpulab.device.measurement import Measurement
from gpulab.timing import measure
from gpulab.tracing.trials import called

_WIDTH = 4096
# The weights fill a quarter of the L2. That stays in the cache of any GPU, although a repeated
# kernel may find less than half of an L2, and it is enough for hot and cold times to differ.
_SHARE = 0.25
_ELEMENT_BYTES = 2
_N_SAMPLES = 21


@dataclass(frozen=True, slots=True)
class FlushTrial:
    """Seconds of a linear layer on one row, after the learner's flush and in three known states.

    The layer's weights fill a quarter of the L2. ``hot_s`` is with the weights in the cache,
    ``clean_s`` after a flush that reads, ``dirty_s`` after one that writes, and ``own_s`` after
    the learner's, nan if that raised an error. A flush that ``waits`` for the GPU adds a launch to
    each sample. ``touched_l2`` are the bytes that its operators touched, divided by the size of
    the L2; infinite, because unknown, if it called no operator of PyTorch.
    """

    hot_s: float
    clean_s: float
    dirty_s: float
    own_s: float
    error: BaseException | None = None
    waits: bool = False
    touched_l2: float = inf


def run(flush: Callable[[], object]) -> FlushTrial:
    """Time the layer on the GPU in use: hot, after two known flushes, and after the learner's."""
    with device.active():
        l2_bytes = torch.cuda.get_device_properties(torch.cuda.current_device()).L2_cache_size
        # A multiple of 64, so that the library needs no kernel for odd sizes.
        n_rows = max(64, int(_SHARE * l2_bytes) // (_WIDTH * _ELEMENT_BYTES) // 64 * 64)
        weight = torch.randn(n_rows, _WIDTH, device="cuda", dtype=torch.half)
        row = torch.randn(1, _WIDTH, device="cuda", dtype=torch.half)
        work = partial(linear, row, weight)
        hot_s = _read(work, cache="hot").median_s
        clean, dirty = (_read(work, cache="cold", flush=kind) for kind in ("read", "write"))
        clean_s, dirty_s = clean.median_s, dirty.median_s
        touched = _TouchedBytes()

        def read_own() -> Measurement:
            flush()  # the first call may allocate a buffer, which must not be counted
            with touched:
                flush()
            # With "hot", measure flushes nothing itself: the learner's flush decides the state.
            return _read(work, cache="hot", setup=flush)

        trial = called(read_own)
        own = trial.value
        if not isinstance(own, Measurement):
            return FlushTrial(hot_s, clean_s, dirty_s, nan, trial.error)
        # A flush that waits leaves the queue empty before the layer: measure calls that starved.
        # On a busy machine the queue also empties after a flush that does not wait.
        waits = _is_starved(own) and not _is_starved(clean)
        touched_l2 = touched.n_bytes / l2_bytes if touched.n_bytes else inf
        return FlushTrial(hot_s, clean_s, dirty_s, own.median_s, None, waits, touched_l2)


def _is_starved(measured: Measurement) -> bool:
    return any(finding.code == "starved" for finding in measured.findings)


class _TouchedBytes(DispatchMode):
    """Counts the bytes of the GPU tensors that operators get or return, each tensor once."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's gap
        self._sizes: dict[int, int] = {}

    @property
    def n_bytes(self) -> int:
        """Sum over all tensors seen so far."""
        return sum(self._sizes.values())

    def __torch_dispatch__(
        self,
        func: Callable[..., object],
        types: object,
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        """Run the operator and record the sizes of its tensors, by their addresses."""
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves((args, kwargs, result)):
            if isinstance(leaf, torch.Tensor) and leaf.is_cuda:
                size = leaf.numel() * leaf.element_size()
                # By address, so that views and repeated uses of a buffer count once.
                address = leaf.data_ptr()
                self._sizes[address] = max(size, self._sizes.get(address, 0))
        return result


def _read(work: Callable[[], object], **options: object) -> Measurement:
    return measure(work, n_samples=_N_SAMPLES, n_warmup=5, progress=False, **options)  # type: ignore[arg-type]  # passed on
