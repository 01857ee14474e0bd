"""Read clock, power and temperature during a few seconds of load, and after it."""

import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import partial

import torch

from gpulab.device import clocks
from gpulab.device.work import Work
from gpulab.workloads.recordings import Row

# Half the 0.1 s after which the driver of an H200 updates its values, so that none is missed.
_PERIOD_S = 0.05
# Half-precision matmuls of this size bring an H200 to its power limit (docs/clocks.md).
_SIDE = 8192
_COPY_ELEMENTS = 1 << 28
_QUICK_SHARE = 10  # a quick survey divides the seconds by this
# The driver still names the power cap until 0.5 s after the work; this shows the end of it.
_IDLE_S = 1.5


def rows(*, quick: bool) -> Iterator[Row]:
    """Yield one row per reading, during three loads and after each of them.

    ``time_s`` counts from the start of the load. One load multiplies matrices of zeros, because
    the power depends on the data too.
    """
    share = _QUICK_SHARE if quick else 1
    for name, (make, duration_s) in _LOADS.items():
        readings = [*clocks.watch(make(), duration_s=duration_s / share, period_s=_PERIOD_S)]
        # After the load the clock recovers at once and the temperature falls slowly; both are
        # recorded.
        # watch() has waited for the load, so these readings are of an idle GPU.
        readings += _cooling(_IDLE_S / share)
        for row in clocks.to_frame(readings).to_dict("records"):
            yield {"load": name, "load_s": duration_s / share, **_plain(row)}


def _cooling(duration_s: float) -> Iterator[clocks.Reading]:
    for _ in range(round(duration_s / _PERIOD_S)):
        time.sleep(_PERIOD_S)
        yield clocks.read()


def _plain(row: Mapping[Hashable, object]) -> Row:
    """Return a row of a table as JSON can store it: a part that was not read is None, not nan."""
    return {str(name): None if value != value else value for name, value in row.items()}  # noqa: PLR0124 # only nan differs from itself


def _matmul(make: Callable[..., torch.Tensor] = torch.randn) -> Work:
    matrix = make(_SIDE, _SIDE, dtype=torch.float16, device="cuda")
    return partial(torch.mm, matrix, matrix, out=torch.empty_like(matrix))


def _copy() -> Work:
    # Far larger than any cache, so that the copy uses the device memory.
    source = torch.randn(_COPY_ELEMENTS, device="cuda")
    return partial(torch.empty_like(source).copy_, source)


# Saved recordings contain these names, so a matmul is "product" here.
_LOADS: dict[str, tuple[Callable[[], Work], float]] = {
    "product": (_matmul, 3.0),
    "product of zeros": (partial(_matmul, torch.zeros), 1.5),
    "copy": (_copy, 1.5),
}
