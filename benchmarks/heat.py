"""Print recorded clock, power and temperature of an H200 under load, and the model's beside them.

    python -m benchmarks.heat PATH

PATH is a recording: a JSON file whose clocks_under_load contains rows of seconds, MHz, W, °C and
NVML's reasons, sampled while products of 8192 x 8192 half-precision matrices ran back to back,
and ms_first, ms_100, ms_last, durations of such products.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from benchmarks.common.command_line import parser_of
from gpulab.gpus import gpu
from gpulab.virtual.simulator import SimulatedRegime, Traffic, power_draw
from gpulab.virtual.simulator.costs import KernelWork, MatmulShape, duration_ns

SIZE = 8192
START_S, END_S = 0.42, 2.93
GAP_NS = 900
PRODUCT = MatmulShape(1, SIZE, SIZE, SIZE)
WORK = KernelWork("gemm", "float16", PRODUCT.flops, SIZE * SIZE, matmul=PRODUCT)
# Three matrices of 2 bytes an element are 384 MiB, and the L2 has 60: all of it comes from memory.
TRAFFIC = Traffic(hit_bytes=0, miss_bytes=3 * 2 * SIZE * SIZE)


def run_products(regime: SimulatedRegime, times_ns: list[int]) -> tuple[list[str], list[int]]:
    """Run products on the model from START_S to END_S; return its readings and their durations.

    ``times_ns`` are the times to read at.
    """
    spec = regime.spec
    burst_ns = duration_ns(WORK, TRAFFIC, spec)
    load = power_draw(WORK.arithmetic, WORK.flops, TRAFFIC.miss_bytes, burst_ns, spec)
    readings: list[str] = []
    durations_ns: list[int] = []
    now_ns = round(START_S * 1e9)
    pending = iter(times_ns)
    time_ns = next(pending, None)
    while now_ns < END_S * 1e9:
        while time_ns is not None and time_ns <= now_ns:
            readings.append(reading(regime, time_ns))
            time_ns = next(pending, None)
        stretch = regime.stretch(WORK.arithmetic, now_ns)
        durations_ns.append(duration_ns(WORK, TRAFFIC, spec, stretch))
        regime.start(now_ns, load)
        now_ns += durations_ns[-1]
        regime.end(now_ns, load)
        now_ns += GAP_NS
    while time_ns is not None:
        readings.append(reading(regime, time_ns))
        time_ns = next(pending, None)
    return readings, durations_ns


def reading(regime: SimulatedRegime, time_ns: int) -> str:
    """Return clock, power, temperature and reasons in one line."""
    return (
        f"{regime.clock_mhz(time_ns):>6} {regime.power_w(time_ns):>6.0f} "
        f"{regime.temperature_c(time_ns):>4} {regime.reasons(time_ns):>3}"
    )


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = parser_of("benchmarks.heat", __doc__)
    made.add_argument("recording", type=Path, help="JSON file")
    return made


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    path = parser().parse_args(arguments).recording
    recorded = json.loads(path.read_text("utf-8"))["clocks_under_load"]
    rows = recorded["rows"]
    times_ns = [round(row[0] * 1e9) for row in rows]
    modelled, durations_ns = run_products(SimulatedRegime(gpu("H200")), times_ns)
    print(f"{'':>6}  {'recorded':^22}  {'modelled':^22}")
    columns = f"{'MHz':>6} {'W':>6} {'°C':>4} {'why':>3}"
    print(f"{'s':>6}  {columns}  {columns}")
    for (time_s, mhz, power_w, temperature_c, reasons), line in zip(rows, modelled, strict=True):
        print(f"{time_s:>6.2f}  {mhz:>6} {power_w:>6.0f} {temperature_c:>4} {reasons:>3}  {line}")
    durations_ms = [each_ns / 1e6 for each_ns in durations_ns]
    for name, recorded_ms, modelled_ms in (
        ("2nd product", recorded["ms_first"][1], durations_ms[1]),
        ("10th", recorded["ms_first"][9], durations_ms[9]),
        ("100th", recorded["ms_100"], durations_ms[99]),
        ("last", recorded["ms_last"], durations_ms[-1]),
    ):
        print(f"{name:>12}: recorded {recorded_ms:.3f} ms, modelled {modelled_ms:.3f} ms")


if __name__ == "__main__":
    main()
