"""The constant that a pair of events adds to a kernel: recorded readings, and the judge."""

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from gpulab.errors import InvalidOptionError
from gpulab.exercises._exercise import Verdict, is_open
from gpulab.exercises.answers import Diagnosis, malformed, read_number, unanswered

if TYPE_CHECKING:
    import pandas as pd


# One NVIDIA H200, 2026-11-20: a kernel's own record (median, s) and a pair of events round it.
_FLOOR_ROWS = (
    ("no kernel: an empty pair", 0.0, 1.280e-6),
    ("add, 2^10 elements", 1.184e-6, 4.256e-6),
    ("matmul, n = 128, float16", 2.448e-6, 5.440e-6),
    ("add, 2^20 elements", 4.929e-6, 7.936e-6),
    ("layer_norm, 8192 x 4096, float16", 50.272e-6, 53.408e-6),
    ("exp, 2^26 elements", 127.551e-6, 130.640e-6),
    ("add, 2^26 elements", 185.889e-6, 188.960e-6),
)


def floor_readings() -> "pd.DataFrame":
    """Return one row a kernel: its own time, and what a pair of events round it read."""
    import pandas as pd

    frame = pd.DataFrame(_FLOOR_ROWS, columns=["work", "kernel_s", "pair_s"])
    return frame.assign(source="recorded", device_name="NVIDIA H200")


@dataclass(frozen=True, slots=True)
class EventFloor:
    """Judges the constant by which a pair of events reads more than the kernel in it."""

    how: str = (
        'Answer in seconds, or as text with a unit, for example "12.5 µs". Pass your own frame '
        "with kernel_s and pair_s as readings=, if you took one."
    )
    tolerance: float = 0.2

    def __call__(self, answer: object, readings: object = None) -> Verdict:
        """Judge a duration."""
        if is_open(answer):
            return unanswered(self.how)
        number_s = read_number(answer)
        if number_s is None:
            return malformed(answer, self.how)
        empty_s, pairs_s, floor_s = _floor_of(readings)
        if self._near(number_s, floor_s):
            return Verdict(ok=True, message=_SUBTRACT)
        found = self._recognise(number_s, floor_s, empty_s, pairs_s)
        return (found or (_SMALL if number_s < floor_s else _LARGE)).verdict()

    def _near(self, number_s: float, expected_s: float) -> bool:
        return abs(number_s - expected_s) <= self.tolerance * abs(expected_s)

    def _recognise(
        self, number_s: float, floor_s: float, empty_s: list[float], pairs_s: list[float]
    ) -> Diagnosis | None:
        if any(self._near(number_s * scale, floor_s) for scale in (1e-6, 1e-3)):
            return _UNITS
        if any(self._near(number_s, value_s) for value_s in empty_s):
            return _EMPTY
        if any(abs(number_s - value_s) <= 0.01 * value_s for value_s in pairs_s):
            return _READING
        return _RATIO if number_s > 1 else None


def _floor_of(readings: Any) -> tuple[list[float], list[float], float]:  # noqa: ANN401  # a frame, if it is one
    """Split readings into empty pairs and pairs round a kernel, and find the constant."""
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
    floor_s = median(pair_s - kernel_s for kernel_s, pair_s in kernels)
    return empty_s, [pair_s for _, pair_s in kernels], floor_s


_SUBTRACT = (
    "The difference is the same for every kernel, from 1 µs to 200 µs: a constant of the method, "
    "not of the kernel. Taken off, it leaves the kernel's own time: calibrated events."
)
_EMPTY = Diagnosis(
    "empty-pair",
    "You took the empty pair. With a kernel between them the events have more to wait for: its "
    "start and its end. Compare pairs that hold a kernel with that kernel's own time.",
)
_UNITS = Diagnosis(
    "forgot-units",
    "The digits are right, the unit is not: a plain number is read as seconds. Write 3.1e-6 for "
    '3.1 µs, or the text "3.1 µs".',
)
_READING = Diagnosis(
    "reading-not-floor",
    "That is one pair's whole reading: kernel and constant together. Take the kernel's own time "
    "off.",
)
_RATIO = Diagnosis(
    "ratio",
    "That looks like a ratio, or a very long time. Divided, the readings give another number for "
    "every kernel; subtracted, they give one.",
)
_SMALL = Diagnosis("too-small", "Too small: subtract kernel_s from pair_s, row by row.")
_LARGE = Diagnosis("too-large", "Too large: subtract kernel_s from pair_s, row by row.")
