"""The floor: how much more time a pair of events shows than the work between them takes."""

from gpulab.timing.calibration._device_floor import (
    FLOOR_METHODS,
    device_floor,
    floor,
    forget_floors,
)
from gpulab.timing.calibration._work_floor import Floor, can_record, record_calls, work_floor

__all__ = [
    "FLOOR_METHODS",
    "Floor",
    "can_record",
    "device_floor",
    "floor",
    "forget_floors",
    "record_calls",
    "work_floor",
]
