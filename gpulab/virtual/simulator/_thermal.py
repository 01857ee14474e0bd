"""Simulate clock, power and temperature: work heats a GPU, and its power limit slows the clock.

The model was fitted to one NVIDIA H200 (driver 580.159) that ran half-precision matmuls of
8192 x 8192 without pause. Its readings are the section ``clocks`` of the recording
``h200-sxm-2026-11``. For other GPUs the same ratios are applied to their data sheets, which is an
extrapolation.

Not modelled are the values of the data (on the H200 a matmul of zeros draws less power, and took
1473 µs instead of 1512), the dips of the clock below its settled value, the minutes in which a
heat sink warms up, and throttling by temperature (in the recording the power limit prevented it:
61 °C at most).

Two kinds of programs do not lower the clock: small kernels that the host launches one by one,
because there are pauses between them, and streaming kernels, because memory at full bandwidth
draws half of the power between rest and limit.
"""

from collections import deque
from dataclasses import dataclass
from math import exp

from gpulab.gpus import GpuSpec

# The state advances in steps of this length, so a reading is at most this old.
TICK_NS = 5_000_000
# Recorded power readings change every 0.1 s. After a change of load they rise linearly for 1 s, as
# an average over the last ten does.
SAMPLE_NS = 100_000_000
N_POWER_SAMPLES = 10
# NVML's documentation counts utilization over "between 1 second and 1/6 second": here 0.2 s.
N_USE_SAMPLES = 2

CLOCK_STEP_MHZ = 15
# The clock of an H200 at rest without a context, and the lowest of its supported clocks.
LOWEST_CLOCK_MHZ = 345

SW_POWER_CAP = 4  # NVML's bit

# Power of the multiprocessors at the data sheet's peak and the boost clock, as a share of the
# power between rest and limit. Tensor cores: from the recorded 1440 MHz at 691 W, with the cube of
# the clock; no kernel draws this for long. float64: a matmul of 8192 took 5 % longer than 8 of
# 4096, so the limit is met at 0.95 of the clock. float32: matmuls did not slow down with size, so
# it is below the limit.
_TENSOR, _DOUBLE, _PLAIN = 3.19, 1.3, 0.9
# Power of the memory at full bandwidth. Streaming alone is well below the limit and does not lower
# the clock.
_MEMORY = 0.5

# In a short burst, tensor-core matmuls run as if at 0.85 of the boost clock: 1.43 ms in a burst
# and 1.67 ms at 1440 MHz. The cause seems to be a limiter that is faster than NVML's readings.
_BURST_SHARE = 0.8475

# The recorded power settles at 691 of 700 W.
_LIMIT_SHARE = 0.987
_CLOCK_TAU_NS = 25_000_000
# Temperature is the air's, plus the rise of the die and the rise of the heat sink. Each rise has a
# value at the power limit and a time constant.
_AIR_C = 32.5
_DIE_C, _DIE_TAU_NS = 15.5, 20_000_000
_SINK_C, _SINK_TAU_NS = 12.4, 500_000_000

_CLOCK_STEP, _DIE_STEP, _SINK_STEP = (
    1 - exp(-TICK_NS / tau_ns) for tau_ns in (_CLOCK_TAU_NS, _DIE_TAU_NS, _SINK_TAU_NS)
)


@dataclass(frozen=True, slots=True)
class PowerDraw:
    """The power of a running kernel beyond the power at rest, in milliwatts.

    Attributes
    ----------
    core_mw
        Power of the multiprocessors at the boost clock; it falls with the cube of the clock.
    memory_mw
        Power of the device memory, which does not depend on the clock.
    """

    core_mw: int
    memory_mw: int


REST = PowerDraw(0, 0)


@dataclass(slots=True)
class _Sample:
    """Sums over one sample. Integers, so that long runs collect no rounding errors."""

    energy: int = 0  # in milliwatt nanoseconds, like ``memory_work``
    busy_ns: int = 0
    memory_work: int = 0


def power_draw(
    arithmetic: str, flops: int, n_bytes: int, duration_ns: int, spec: GpuSpec
) -> PowerDraw:
    """Return the power of a kernel that does this work in ``duration_ns`` at the burst clock.

    ``arithmetic`` is a key of ``spec.peak_flops_per_s``; ``n_bytes`` go to and from the device
    memory.
    """
    # 1e12 is 1e3 milliwatts in a watt times 1e9 nanoseconds in a second.
    span_mw = (spec.tdp_w - spec.idle_w) * 1e12 / duration_ns
    core = _core(arithmetic, spec) * flops / spec.peak_flops_per_s[arithmetic] if flops else 0
    memory = _MEMORY * n_bytes / spec.bandwidth_bytes_per_s
    return PowerDraw(round(core * span_mw), round(memory * span_mw))


def _core(arithmetic: str, spec: GpuSpec) -> float:
    # A type with a higher peak than float32 is computed by tensor cores. GPUs whose float64 is
    # slower than float32 have few units for it, which draw no more than float32.
    ratio = spec.peak_flops_per_s[arithmetic] / spec.peak_flops_per_s["float32"]
    if arithmetic == "float64":
        return _DOUBLE if ratio >= 1 else _PLAIN
    return _TENSOR if ratio > 1 else _PLAIN


class SimulatedRegime:
    """The clock, power and temperature of one GPU, at any simulated time.

    Times are integer nanoseconds and never go back; an earlier time counts as the latest one.
    Reading changes nothing: work is added up exactly, and the state changes at fixed ticks only.

    Attributes
    ----------
    spec
        Data sheet of the GPU.
    power_limit_w
        The control loop lowers the clock to keep the power below this.
    has_clock_rights
        Whether the user may set clocks and limits. By default False, as for an ordinary user.
    """

    def __init__(self, spec: GpuSpec) -> None:
        self.spec = spec
        self.has_clock_rights = False
        self.power_limit_w = float(spec.tdp_w)
        self._highest_mhz = self._shown_mhz = spec.boost_clock_mhz
        self._mhz = float(spec.boost_clock_mhz)
        # The clock at which the fitted durations hold, by type of arithmetic.
        self._bursts_mhz = {
            name: spec.boost_clock_mhz * (_BURST_SHARE if _core(name, spec) == _TENSOR else 1)
            for name in spec.peak_flops_per_s
        }
        self._is_capped = False
        self._reasons = 0
        self._rest_mw = spec.idle_w * 1_000
        # The heat flow through die and sink, as a share of that at the power limit. A GPU starts
        # at rest for a long time.
        self._die = self._sink = spec.idle_w / spec.tdp_w
        self._since_ns = 0
        self._tick_end_ns = TICK_NS
        self._n_running = self._core_mw = self._memory_mw = 0
        self._core_work = self._memory_work = 0
        self._energy = 0
        self._sample = _Sample()
        rest = _Sample(self._rest_mw * SAMPLE_NS)
        # As after a second of rest, because the first reading averages over a second, too.
        self._samples = deque([rest] * N_POWER_SAMPLES, maxlen=N_POWER_SAMPLES)
        self._n_quiet = 0  # how many samples in a row were equal
        self._before = (self._mhz, self._die, self._sink)

    def start(self, now_ns: int, load: PowerDraw) -> None:
        """Note that a kernel begins to draw ``load``; several may run at a time."""
        self.advance(now_ns)
        # From now on equal samples say nothing about the next ones, so none may be skipped.
        self._n_quiet = 0
        self._n_running += 1
        self._core_mw += load.core_mw
        self._memory_mw += load.memory_mw

    def end(self, now_ns: int, load: PowerDraw) -> None:
        """Note that a kernel that was started with ``load`` is done."""
        self.advance(now_ns)
        self._n_quiet = 0
        self._n_running -= 1
        self._core_mw -= load.core_mw
        self._memory_mw -= load.memory_mw

    def stretch(self, arithmetic: str, now_ns: int) -> float:
        """Return the time of this arithmetic at the present clock, divided by that in a burst.

        The result is at least 1: the costs were fitted to bursts.
        """
        self.advance(now_ns)
        return max(1.0, self._bursts_mhz[arithmetic] / self._shown_mhz)

    def advance(self, now_ns: int) -> None:
        """Advance the state to ``now_ns``."""
        if now_ns == self._since_ns:
            # The usual case, because each kernel asks twice when it starts.
            return
        while now_ns >= self._tick_end_ns:
            self._count(self._tick_end_ns)
            self._tick()
            # All samples are equal, so later ones will be, too. Without the skip, a program that
            # sleeps for an hour of virtual time would simulate 720,000 ticks.
            if self._n_quiet >= N_POWER_SAMPLES:
                self._skip((now_ns - self._since_ns) // SAMPLE_NS)
        self._count(now_ns)

    def clock_mhz(self, now_ns: int) -> int:
        """Return the clock of the multiprocessors, in the driver's steps of 15 MHz."""
        self.advance(now_ns)
        return self._shown_mhz

    def power_w(self, now_ns: int) -> float:
        """Return the average power of the last second; it changes every tenth of a second.

        It says little about this moment: after a new load has lowered the clock it still rises.
        """
        self.advance(now_ns)
        energy = sum(sample.energy for sample in self._samples)
        return energy / (N_POWER_SAMPLES * SAMPLE_NS * 1_000)

    def energy_mj(self, now_ns: int) -> int:
        """Return the energy drawn since time 0 in millijoules."""
        self.advance(now_ns)
        return round(self._energy / 1e9)

    def temperature_c(self, now_ns: int) -> int:
        """Return the temperature of the die in degrees Celsius."""
        self.advance(now_ns)
        return round(_AIR_C + _DIE_C * self._die + _SINK_C * self._sink)

    def reasons(self, now_ns: int) -> int:
        """Return NVML's bit mask of reasons for a low clock, 0 if it is not low."""
        self.advance(now_ns)
        return self._reasons

    def utilization(self, now_ns: int) -> tuple[int, int]:
        """Return two percentages for the last 0.2 s: time with kernels, and bandwidth in use.

        For the memory NVML counts the time with any access instead.
        """
        self.advance(now_ns)
        recent = list(self._samples)[-N_USE_SAMPLES:]
        period_ns = N_USE_SAMPLES * SAMPLE_NS
        full_work = _MEMORY * (self.spec.tdp_w * 1_000 - self._rest_mw) * period_ns
        busy = sum(sample.busy_ns for sample in recent) / period_ns
        memory = sum(sample.memory_work for sample in recent) / full_work
        return round(100 * busy), min(100, round(100 * memory))

    def lock(self, now_ns: int, highest_mhz: int) -> None:
        """Limit the clock to the highest supported one that is not above ``highest_mhz``.

        The power limit may still lower it. There is no lower bound, because an idle GPU of this
        model has the highest clock anyway.
        """
        self.advance(now_ns)
        inside = min(max(highest_mhz, LOWEST_CLOCK_MHZ), self.spec.boost_clock_mhz)
        self._highest_mhz = inside // CLOCK_STEP_MHZ * CLOCK_STEP_MHZ
        self._mhz = min(self._mhz, float(self._highest_mhz))
        self._show()
        self._n_quiet = 0

    def unlock(self, now_ns: int) -> None:
        """Undo :meth:`lock`; the clock rises within a tenth of a second."""
        self.advance(now_ns)
        self._highest_mhz = self.spec.boost_clock_mhz
        self._n_quiet = 0

    def _count(self, now_ns: int) -> None:
        elapsed_ns = now_ns - self._since_ns
        if elapsed_ns <= 0:
            return
        self._since_ns = now_ns
        if self._n_running:
            self._core_work += self._core_mw * elapsed_ns
            self._memory_work += self._memory_mw * elapsed_ns
            self._sample.busy_ns += elapsed_ns

    def _tick(self) -> None:
        """Advance clock and heat by one step, with the average power since the last one."""
        core_mw, memory_mw = self._core_work / TICK_NS, self._memory_work / TICK_NS
        # Power is clock times voltage squared, and the voltage rises with the clock: the cube.
        share = self._mhz / self.spec.boost_clock_mhz
        power_mw = self._rest_mw + round(core_mw * share**3 + memory_mw)
        heat = power_mw / (self.spec.tdp_w * 1_000)
        self._die += (heat - self._die) * _DIE_STEP
        self._sink += (heat - self._sink) * _SINK_STEP
        self._move_clock(core_mw, memory_mw)
        self._sample.energy += power_mw * TICK_NS
        self._sample.memory_work += self._memory_work
        self._core_work = self._memory_work = 0
        if self._tick_end_ns % SAMPLE_NS == 0:
            self._close_sample()
        self._tick_end_ns += TICK_NS

    def _move_clock(self, core_mw: float, memory_mw: float) -> None:
        # The power of the multiprocessors goes with the cube of the clock. So the clock that meets
        # the limit is a cube root.
        budget_mw = self.power_limit_w * 1_000 * _LIMIT_SHARE - self._rest_mw - memory_mw
        share = (max(budget_mw, 0) / max(core_mw, 1)) ** (1 / 3)
        within_mhz = max(self.spec.boost_clock_mhz * share, LOWEST_CLOCK_MHZ)
        wanted_mhz = min(within_mhz, self._highest_mhz)
        self._mhz += (wanted_mhz - self._mhz) * _CLOCK_STEP
        self._show()
        # NVML reports the power cap until the clock is back at its highest value.
        if wanted_mhz < self._highest_mhz:
            self._is_capped = True
        elif self._shown_mhz == self._highest_mhz:
            self._is_capped = False

    def _show(self) -> None:
        # The clock approaches its goal and never reaches it. One megahertz more lets the shown
        # clock, a multiple of 15 MHz, get there.
        self._shown_mhz = int(self._mhz + 1) // CLOCK_STEP_MHZ * CLOCK_STEP_MHZ

    def _close_sample(self) -> None:
        state = (self._mhz, self._die, self._sink)
        is_same = self._sample == self._samples[-1] and state == self._before
        self._n_quiet = self._n_quiet + 1 if is_same else 0
        self._before = state
        self._energy += self._sample.energy
        self._samples.append(self._sample)
        self._sample = _Sample()
        # Only here: a reason appears up to 0.1 s after the clock has fallen (docs/clocks.md).
        self._reasons = SW_POWER_CAP if self._is_capped else 0

    def _skip(self, n_samples: int) -> None:
        """Repeat the last sample ``n_samples`` times: nothing changes any more."""
        skipped_ns = n_samples * SAMPLE_NS
        self._since_ns += skipped_ns
        self._tick_end_ns += skipped_ns
        self._energy += n_samples * self._samples[-1].energy
