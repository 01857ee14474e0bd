"""Recorded readings of events around kernels, and the judge for the difference between them."""

from math import inf
from statistics import median
from typing import TYPE_CHECKING

from gpulab.core.units import format_time
from gpulab.exercises.answers import Diagnosis, Duration

if TYPE_CHECKING:
    import pandas as pd


# One NVIDIA H200, 2026-11-20: a kernel's own record (median, s) and a pair of events around it.
_FLOOR_ROWS = (
    ("no kernel: an empty pair", 0.0, 1.280e-6),
    ("add, 2^10 elements", 1.184e-6, 4.256e-6),
    ("matmul, n = 128, float16", 2.448e-6, 5.440e-6),
    ("add, 2^20 elements", 4.929e-6, 7.936e-6),
    ("sum, 2^20 elements", 7.056e-6, 11.184e-6),
    ("matmul, n = 2048, float16", 24.960e-6, 28.192e-6),
    ("layer_norm, 8192 x 4096, float16", 50.272e-6, 53.408e-6),
    ("exp, 2^26 elements", 127.551e-6, 130.640e-6),
    ("add, 2^26 elements", 185.889e-6, 188.960e-6),
)


def floor_readings() -> "pd.DataFrame":
    """Return a row for each kernel: its own time, and the time between events around it."""
    import pandas as pd

    frame = pd.DataFrame(_FLOOR_ROWS, columns=["work", "kernel_s", "pair_s"])
    return frame.assign(source="recorded", device_name="NVIDIA H200")


_EMPTY = Diagnosis(
    "empty-pair",
    "You took the empty pair. With a kernel between them, the events also wait for its start and "
    "its end. Take the rows that have a kernel, and compare each pair with its kernel.",
)
_READING = Diagnosis(
    "reading-not-floor",
    "That is the whole reading of one pair: the kernel and the floor together. Subtract the "
    "kernel's own time.",
)
_RATIO = Diagnosis(
    "ratio",
    "That looks like a ratio, or like a very long time. The ratio of the columns is different in "
    "every row. Try the difference.",
)
_SMALL = Diagnosis(
    "too-small",
    "Too small: subtract kernel_s from pair_s, row by row, and take the median.",
)
_LARGE = Diagnosis("too-large", "Too large: subtract kernel_s from pair_s, row by row.")

_EMPTY_S = _FLOOR_ROWS[0][2]
_FLOORS_S = [pair_s - kernel_s for _, kernel_s, pair_s in _FLOOR_ROWS if kernel_s]
_FLOOR_S = median(_FLOORS_S)

EVENT_FLOOR = Duration(
    right_s=_FLOOR_S,
    why="The difference hardly depends on how long the kernel takes, so it belongs to the pair. "
    "It is not quite the same for every kernel: in these rows it lies between "
    f"{format_time(min(_FLOORS_S))} and {format_time(max(_FLOORS_S))}. So gpulab.measure finds "
    "the floor of your own work and subtracts it: calibrated events.",
    wrong=(
        (0.9 * _EMPTY_S, 1.1 * _EMPTY_S, _EMPTY),
        # 1 %, because the number was copied from the table. More could take a floor for a reading.
        *(
            (0.99 * pair_s, 1.01 * pair_s, _READING)
            for _, kernel_s, pair_s in _FLOOR_ROWS
            if kernel_s
        ),
        # No floor is a second long, and every ratio of these columns is above 1.
        (1.0, inf, _RATIO),
        (-inf, _FLOOR_S, _SMALL),
    ),
    otherwise=_LARGE,
    tolerance=0.091,  # the mean of the floors is 4 % above their median
    # Rounded to two digits, and not below the smallest floor, which the message names.
    least_s=0.98 * min(_FLOORS_S),
)
