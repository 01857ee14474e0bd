"""A linear layer timed after a learner's flush, and beside it hot, cold and dirty."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import inf, nan

import torch
from torch.nn.functional import linear
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

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
    touched_l2
        Bytes that its operators touched, in sizes of the L2; infinite if it called none of
        PyTorch's, as then nobody can say.
    """

    hot_s: float
    clean_s: float
    dirty_s: float
    own_s: float
    error: Exception | None = None
    waits: bool = False
    touched_l2: float = inf


def run(flush: Callable[[], object]) -> FlushTrial:
    """Time the layer on the GPU in use after the learner's flush, and hot, cold and dirty."""
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
            with _TouchedBytes() as touched:
                flush()
            own = _read(work, cache="hot", setup=flush)
        except Exception as error:  # noqa: BLE001  # a learner's function may raise anything
            return FlushTrial(hot_s, clean_s, dirty_s, nan, error)
        waits = any(finding.code == "starved" for finding in own.findings)
        touched_l2 = touched.n_bytes / l2_bytes if touched.n_bytes else inf
        return FlushTrial(hot_s, clean_s, dirty_s, own.median_s, None, waits, touched_l2)


class _TouchedBytes(TorchDispatchMode):
    """Counts the bytes of all tensors on a GPU that operators get or return, each one once."""

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
        """Run the operator and note the tensors that it works on."""
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves((args, kwargs, result)):
            if isinstance(leaf, torch.Tensor) and leaf.is_cuda:
                size = leaf.numel() * leaf.element_size()
                address = leaf.data_ptr()
                self._sizes[address] = max(size, self._sizes.get(address, 0))
        return result


def _read(work: Callable[[], object], **options: object) -> Measurement:
    return measure(work, n_samples=_N_SAMPLES, n_warmup=5, progress=False, **options)  # type: ignore[arg-type]  # passed on
