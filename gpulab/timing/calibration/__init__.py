"""The floor: how much more time a pair of events shows than the work between them takes."""

from gpulab.timing.calibration._device_floor import (
    device_floor,
    floor,
)
from gpulab.timing.calibration._work_floor import Floor, can_record, record_calls, work_floor

__all__ = [
    "Floor",
    "can_record",
    "device_floor",
    "floor",
    "record_calls",
    "work_floor",
]
