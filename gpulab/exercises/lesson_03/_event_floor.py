"""Recorded readings of events around kernels, and the judge for the difference between them."""

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from gpulab.core.errors import InvalidOptionError
from gpulab.core.units import format_time
from gpulab.exercises._fields import SECONDS, Fields
from gpulab.exercises.answers import (
    FORGOT_UNITS,
    MALFORMED,
    Diagnosis,
    ReadingsJudge,
    read_number,
)

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


@dataclass(frozen=True, slots=True)
class EventFloor(ReadingsJudge):
    """A judge for the typical difference between a pair of events and the kernel between them."""

    how: str = (
        'Answer in seconds, or as text with a unit, for example "12.5 µs". If you have measured '
        "your own frame with kernel_s and pair_s, pass it as readings=."
    )
    fields: Fields = SECONDS
    # The median and the mean of the floors are within 10 % of each other.
    tolerance: float = 0.1

    def judge_by(self, answer: object, readings: object) -> Diagnosis | str:
        """Judge a duration."""
        number_s = read_number(answer)
        if number_s is None:
            return MALFORMED
        empty_s, pairs_s, floors_s = _split(readings)
        floor_s = median(floors_s)
        # Rounded to two digits, and not below the smallest floor, which the message names.
        if self._near(number_s, floor_s) and number_s >= 0.98 * min(floors_s):
            return _SUBTRACT.format(format_time(min(floors_s)), format_time(max(floors_s)))
        diagnosis = self._recognise(number_s, floor_s, empty_s, pairs_s)
        return diagnosis or (_SMALL if number_s < floor_s else _LARGE)

    def _near(self, number_s: float, expected_s: float) -> bool:
        return abs(number_s - expected_s) <= self.tolerance * abs(expected_s)

    def _recognise(
        self, number_s: float, floor_s: float, empty_s: list[float], pairs_s: list[float]
    ) -> Diagnosis | None:
        # Units come first: a number of microseconds would otherwise be taken for a ratio.
        if any(self._near(number_s * scale, floor_s) for scale in (1e-6, 1e-3)):
            return FORGOT_UNITS
        if any(self._near(number_s, value_s) for value_s in empty_s):
            return _EMPTY
        # 1 %, because the number was copied from the table. More could take a floor for a reading.
        if any(abs(number_s - value_s) <= 0.01 * value_s for value_s in pairs_s):
            return _READING
        # No floor is a second long, and every ratio of these columns is above 1.
        return _RATIO if number_s > 1 else None


def _split(readings: Any) -> tuple[list[float], list[float], list[float]]:  # noqa: ANN401  # a frame, if it is one
    """Return the readings of empty pairs, those of pairs around a kernel, and their floors."""
    rows: list[tuple[str, float, float]] = list(_FLOOR_ROWS)
    if readings is not None:
        columns = {"kernel_s", "pair_s"} - set(getattr(readings, "columns", ()))
        if columns or not (readings["kernel_s"] > 0).any():
            raise InvalidOptionError(
                "readings must be a frame with kernel_s and pair_s, and a kernel in some row"
            )
        rows = [("", *pair) for pair in readings[["kernel_s", "pair_s"]].to_numpy().tolist()]
    empty_s = [pair_s for _, kernel_s, pair_s in rows if kernel_s == 0]
    kernels = [(kernel_s, pair_s) for _, kernel_s, pair_s in rows if kernel_s > 0]
    floors_s = [pair_s - kernel_s for kernel_s, pair_s in kernels]
    return empty_s, [pair_s for _, pair_s in kernels], floors_s


_SUBTRACT = (
    "The difference hardly depends on how long the kernel takes, so it belongs to the pair. It "
    "is not quite the same for every kernel: in these rows it lies between {} and {}. So "
    "gpulab.measure finds the floor of your own work and subtracts it: calibrated events."
)
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
    "Too small: subtract kernel_s from pair_s, row by row, and take the median. If you measured "
    "on your own GPU, pass your frame as readings=.",
)
_LARGE = Diagnosis("too-large", "Too large: subtract kernel_s from pair_s, row by row.")
