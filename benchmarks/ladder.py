"""Time one matmul by every method, on the GPU in use and on the virtual one, side by side.

    python -m benchmarks.ladder

Where there is no CUDA GPU only the virtual figures are printed.
"""

import argparse
from collections.abc import Sequence

import torch

import gpulab
from benchmarks.common.command_line import parser_of
from gpulab.core.units import format_estimate
from gpulab.device.work import Work
from gpulab.timing import METHODS

SIZES = (64, 256, 1024, 4096)
DTYPES = (torch.float32, torch.float16)


def matmul(size: int, dtype: torch.dtype) -> Work:
    """Return the matmul of a square matrix with itself on the GPU, as work to be timed."""
    # Random numbers, because a GPU runs zeros at a higher clock (docs/clocks.md).
    a = torch.randn(size, size, device="cuda", dtype=dtype)
    return lambda: a @ a


def ladder() -> dict[tuple[int, str, str], gpulab.Measurement]:
    """Measure every size, type and method on the GPU in use."""
    readings = {}
    for size in SIZES:
        for dtype in DTYPES:
            for method in METHODS:
                key = (size, str(dtype).removeprefix("torch."), method)
                readings[key] = gpulab.measure(matmul(size, dtype), method=method)
    return readings


def estimate(reading: gpulab.Measurement) -> str:
    """Return the median with its interval."""
    return format_estimate(reading.median_s, *reading.interval_s)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    return parser_of("benchmarks.ladder", __doc__)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser().parse_args(arguments)
    with gpulab.virtual_gpu("H200") as virtual:
        columns = {f"virtual {virtual.spec.driver_name}": ladder()}
    if torch.cuda.is_available():
        columns[f"{torch.cuda.get_device_name()}, measured"] = ladder()
    print(f"{'n':>5} {'type':<8} {'method':<13}" + "".join(f"{name:<30}" for name in columns))
    for key in next(iter(columns.values())):
        size, dtype, method = key
        cells = "".join(f"{estimate(readings[key]):<30}" for readings in columns.values())
        print(f"{size:>5} {dtype:<8} {method:<13}{cells}")


if __name__ == "__main__":
    main()
