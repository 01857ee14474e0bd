"""A table of how many operations in a row make up for the transfers, at each size."""

from typing import TYPE_CHECKING

from gpulab.exercises.lesson_09._break_even import n_needed
from gpulab.roofline.scaling import Crossover

if TYPE_CHECKING:
    import pandas as pd


def operations_needed(record: Crossover) -> "pd.DataFrame":
    """Return how many ``operations`` in a row make the GPU faster, for each ``size``.

    The crossover has transfers. The other columns are ``cpu_s``, ``gpu_s`` and ``transfers_s``.
    The number is missing where none is enough.
    """
    import pandas as pd

    by_size = [
        dict(zip(curve.sizes, curve.median_s, strict=True))
        for curve in (record.cpu, record.bare, record.gpu)
    ]
    cpu, bare, moved = by_size
    sizes = sorted(cpu.keys() & bare.keys() & moved.keys())
    # By noise a time with transfers may be below one without; a negative cost would make no sense.
    rows = [(n, cpu[n], bare[n], max(moved[n] - bare[n], 0.0)) for n in sizes]
    frame = pd.DataFrame(rows, columns=["size", "cpu_s", "gpu_s", "transfers_s"])
    needed = [n_needed(*case) for _, *case in rows]
    # A type that can be missing: in an ordinary column, None would turn all numbers into floats.
    return frame.assign(operations=pd.array(needed, dtype="Int64")).set_index("size")
