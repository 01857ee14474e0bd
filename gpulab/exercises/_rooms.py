"""Where exercises and claims are: each lesson has a room of its own, all cases share one."""


def room_of(unit: str) -> str:
    """Return the package of a lesson (``"03"``) or of a case (``"case-03"``)."""
    name = f"lesson_{unit}" if unit.isdigit() else "cases"
    return f"gpulab.exercises.{name}"
