"""Forget what was found about the floor of events, which is kept as long as the process."""

from gpulab.timing import _device_floor, _work_floor


def forget_floors() -> None:
    """Forget all floors, and which devices gave no records."""
    _device_floor._floors.clear()
    _device_floor._virtual_floors.clear()
    _device_floor._known.clear()
    _work_floor._refused.clear()
