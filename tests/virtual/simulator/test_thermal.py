"""Clock, power and temperature of the virtual GPU agree with recordings of an H200."""

import pytest

from gpulab.gpus import GpuSpec, gpu
from gpulab.virtual import SimulatedRegime, power_draw
from gpulab.virtual.simulator import _thermal as thermal
from gpulab.virtual.simulator._thermal import PowerDraw

MS, S = 1_000_000, 1_000_000_000
N = 8192
PRODUCT_FLOPS, PRODUCT_BYTES, PRODUCT_NS = 2 * N**3, 3 * 2 * N * N, 1_450_000
GAP_NS = 900


def product_load(spec: GpuSpec, arithmetic: str = "float16") -> PowerDraw:
    """Return the power draw of a matmul of 8192 x 8192 matrices that takes 1.45 ms."""
    return power_draw(arithmetic, PRODUCT_FLOPS, PRODUCT_BYTES, PRODUCT_NS, spec)


def run(
    regime: SimulatedRegime, load: PowerDraw, *, from_ns: int, to_ns: int, kernel_ns: int = MS
) -> int:
    """Run kernels of ``kernel_ns`` back to back; return the time at which the last one ended."""
    now_ns = from_ns
    while now_ns < to_ns:
        regime.start(now_ns, load)
        now_ns += kernel_ns
        regime.end(now_ns, load)
        now_ns += GAP_NS
    return now_ns


@pytest.fixture
def h200() -> SimulatedRegime:
    """Return an idle H200."""
    return SimulatedRegime(gpu("H200"))


def test_rest_is_as_recorded(h200: SimulatedRegime) -> None:
    """An idle H200 with a context has the recorded clock, power and temperature."""
    now_ns = 400 * MS
    assert h200.clock_mhz(now_ns) == 1980
    assert h200.power_w(now_ns) == 125
    assert h200.temperature_c(now_ns) == 37
    assert h200.reasons(now_ns) == 0
    assert h200.utilization(now_ns) == (0, 0)


def test_the_clock_falls_before_the_reported_power_rises(h200: SimulatedRegime) -> None:
    """0.15 s after the start the clock is down, while the reported power is still low."""
    # Recorded 0.1 s after the start: 1440 MHz, and 261 W of the later 690.
    run(h200, product_load(h200.spec), from_ns=S, to_ns=S + 150 * MS)
    assert 1380 <= h200.clock_mhz(S + 150 * MS) <= 1480
    assert h200.power_w(S + 150 * MS) < 300


def test_the_settled_regime_is_as_recorded(h200: SimulatedRegime) -> None:
    """After 1.5 s of matmuls clock, power, temperature and reason are the recorded ones."""
    # Recorded: 1410 to 1470 MHz, 691 W, 59 to 61 degrees, software power cap.
    end_ns = run(h200, product_load(h200.spec), from_ns=S, to_ns=S + 1500 * MS)
    assert 1380 <= h200.clock_mhz(end_ns) <= 1480
    assert h200.power_w(end_ns) == pytest.approx(691, rel=0.02)
    assert 58 <= h200.temperature_c(end_ns) <= 61
    assert h200.reasons(end_ns) == thermal.SW_POWER_CAP
    assert h200.utilization(end_ns) == (100, 6)


def test_the_clock_recovers_at_once_and_the_reported_power_within_a_second(
    h200: SimulatedRegime,
) -> None:
    """After the load the clock recovers within 0.2 s, and the reported power within 1.2 s."""
    # Recorded 0.13 s after the end: 1965 MHz, 46 degrees, and still 594 W.
    end_ns = run(h200, product_load(h200.spec), from_ns=S, to_ns=3 * S)
    assert h200.clock_mhz(end_ns + 130 * MS) >= 1965
    assert h200.temperature_c(end_ns + 130 * MS) == pytest.approx(46, abs=2)
    assert h200.power_w(end_ns + 130 * MS) == pytest.approx(594, rel=0.1)
    assert h200.clock_mhz(end_ns + 200 * MS) == 1980
    assert h200.reasons(end_ns + 400 * MS) == 0
    assert h200.power_w(end_ns + 1200 * MS) == 125


def test_a_burst_is_not_slowed_and_settled_work_takes_a_sixth_longer(
    h200: SimulatedRegime,
) -> None:
    """The first ten matmuls run at full speed, and those after 100 take a sixth longer."""
    # Recorded: matmuls 2 to 10 took 1.44 ms, and those from the hundredth on 1.67 ms.
    load = product_load(h200.spec)
    now_ns, stretches = S, []
    for _ in range(150):
        stretches.append(h200.stretch("float16", now_ns))
        h200.start(now_ns, load)
        now_ns += round(PRODUCT_NS * stretches[-1])
        h200.end(now_ns, load)
        now_ns += GAP_NS
    assert stretches[:10] == [1.0] * 10
    assert stretches[99] == pytest.approx(1.671 / 1.434, rel=0.02)
    assert stretches[149] == pytest.approx(1.661 / 1.434, rel=0.02)
    assert h200.stretch("float16", now_ns + S) == 1  # after a second of rest


@pytest.mark.parametrize(("flops", "n_bytes"), [(0, 4_400_000_000), (50_000_000_000, 0)])
def test_streaming_and_float32_keep_the_clock(
    h200: SimulatedRegime, flops: int, n_bytes: int
) -> None:
    """Streaming at full bandwidth, or 50 TFLOP/s of float32, does not lower the clock."""
    load = power_draw("float32", flops, n_bytes, MS, h200.spec)
    end_ns = run(h200, load, from_ns=0, to_ns=2 * S)
    assert h200.clock_mhz(end_ns) == 1980
    assert h200.stretch("float32", end_ns) == 1
    assert h200.reasons(end_ns) == 0
    assert 350 < h200.power_w(end_ns) < 600


def test_float64_meets_the_limit_at_nineteen_twentieths_of_the_clock(
    h200: SimulatedRegime,
) -> None:
    """Under a float64 matmul the power limit makes arithmetic 5 % slower."""
    # Recorded: the float64 matmul of 8192 took 5 % longer than eight of 4096.
    load = power_draw("float64", 2 * 4096**3, 0, 2_328_000, h200.spec)
    end_ns = run(h200, load, from_ns=0, to_ns=S, kernel_ns=2_328_000)
    assert h200.stretch("float64", end_ns) == pytest.approx(1.05, abs=0.01)


def test_reading_changes_nothing() -> None:
    """A regime that was read every 0.7 ms ends in the same state as one that was not."""
    watched, alone = SimulatedRegime(gpu("H200")), SimulatedRegime(gpu("H200"))
    load = product_load(watched.spec)
    for regime, look_every_ns in ((watched, 700_000), (alone, 10 * S)):
        for start_ns in (S, 3 * S):
            for now_ns in range(start_ns, start_ns + S, look_every_ns):
                if now_ns == start_ns:
                    regime.start(now_ns, load)
                regime.power_w(now_ns)
            regime.end(start_ns + S, load)
    for now_ns in range(4 * S, 40 * S, 990 * MS):
        assert watched.power_w(now_ns) == alone.power_w(now_ns)
        assert watched.energy_mj(now_ns) == alone.energy_mj(now_ns)
        assert watched.temperature_c(now_ns) == alone.temperature_c(now_ns)
        assert watched.clock_mhz(now_ns) == alone.clock_mhz(now_ns)


def test_a_year_at_rest_passes_at_once(h200: SimulatedRegime) -> None:
    """A steady state of a year is skipped in one step, and its energy is counted."""
    run(h200, product_load(h200.spec), from_ns=0, to_ns=S)
    year_s = 365 * 86_400
    before_mj = h200.energy_mj(60 * S)
    assert h200.energy_mj((60 + year_s) * S) - before_mj == year_s * 125_000
    assert h200.clock_mhz((60 + year_s) * S) == 1980


def test_time_skipped_with_work_running_counts_as_busy(h200: SimulatedRegime) -> None:
    """A kernel that runs for an hour keeps the GPU busy and at full power for that hour."""
    h200.start(0, product_load(h200.spec))
    now_ns = 3_600 * S
    assert h200.utilization(now_ns) == (100, 6)
    assert h200.power_w(now_ns) == pytest.approx(691, abs=1)
    h200.end(now_ns, product_load(h200.spec))
    assert h200.power_w(now_ns + 2 * S) == 125


def test_utilization_is_the_time_with_any_kernel(h200: SimulatedRegime) -> None:
    """Utilization is the share of the last 0.2 s in which at least one kernel ran."""
    for start_ns in range(0, 200 * MS, 2 * MS):
        h200.start(start_ns, thermal.REST)
        h200.start(start_ns, thermal.REST)
        h200.end(start_ns + MS, thermal.REST)
        h200.end(start_ns + MS, thermal.REST)
    assert h200.utilization(200 * MS) == (50, 0)
    assert h200.power_w(200 * MS) == 125
    assert h200.utilization(400 * MS) == (0, 0)


def test_a_lock_lowers_the_clock_at_once_and_stretches_the_work(h200: SimulatedRegime) -> None:
    """A lock takes the supported clock below it at once, and arithmetic is slower by the ratio."""
    h200.lock(0, 1207)
    assert h200.clock_mhz(0) == 1200
    assert h200.stretch("float32", 0) == 1980 / 1200
    assert h200.reasons(S) == 0
    h200.unlock(S)
    assert h200.clock_mhz(S + 200 * MS) == 1980
    assert h200.reasons(S + 200 * MS) == 0


def test_the_power_limit_wins_over_the_lock(h200: SimulatedRegime) -> None:
    """A clock locked above what the power limit allows falls below, with that reason."""
    h200.lock(0, 1700)
    end_ns = run(h200, product_load(h200.spec), from_ns=0, to_ns=S)
    assert 1380 <= h200.clock_mhz(end_ns) <= 1480
    assert h200.reasons(end_ns) == thermal.SW_POWER_CAP
    assert h200.reasons(end_ns + S) == 0


@pytest.mark.parametrize("name", ["A100", "H100-PCIE", "T4", "V100", "B200", "RTX4090", "L4"])
def test_gpus_without_a_recording_take_the_same_ratios(name: str) -> None:
    """On a GPU without a recording half-precision matmuls settle at 0.73 of the boost clock."""
    regime = SimulatedRegime(gpu(name))
    flops = round(0.766 * regime.spec.peak_flops_per_s["float16"] * 1e-3)
    end_ns = run(regime, power_draw("float16", flops, 0, MS, regime.spec), from_ns=0, to_ns=2 * S)
    assert regime.clock_mhz(end_ns) / regime.spec.boost_clock_mhz == pytest.approx(0.73, abs=0.02)
    assert regime.power_w(end_ns) == pytest.approx(0.987 * regime.spec.tdp_w, rel=0.01)
