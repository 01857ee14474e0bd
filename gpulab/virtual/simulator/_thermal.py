"""Simulate clock, power and temperature: work heats a GPU, and its power limit slows the clock.

Fitted to one NVIDIA H200 (driver 580.159) under back-to-back products of half-precision matrices
of 8192 x 8192; ``python -m benchmarks.heat`` prints the recorded rows beside the modelled ones.
A GPU without a recording takes the same ratios on top of its data sheet: an extrapolation.

Not modelled: data (products of zeros draw less: 1473 µs against 1512 µs on the H200), the dips of
the clock below its settled value, the minutes in which a heat sink warms up, and throttling by
temperature, which the power limit kept away in the recording (61 °C at most).

Small kernels that the host launches one by one leave pauses, and streaming draws half of what
lies between rest and limit, so neither lowers the clock.
"""

from collections import deque
from dataclasses import dataclass
from math import exp

from gpulab.gpus import GpuSpec

TICK_NS = 5_000_000  # state is brought forward in such steps, so a reading is as old at most
SAMPLE_NS = 100_000_000  # recorded power readings change every 0.1 s
N_POWER_SAMPLES = 10  # and rise linearly for 1 s, as a moving average does
N_USE_SAMPLES = 2  # NVML counts use over "between 1 second and 1/6 second", so 0.2 s

CLOCK_STEP_MHZ = 15
LOWEST_CLOCK_MHZ = 345  # of an H200 at rest without a context, and of its list of clocks
LEAST_LIMIT_SHARE = 2 / 7  # of an H200's power limit, 200 of 700 W, can be set

SW_POWER_CAP = 4  # NVML's bit

# Power at the peak of the data sheet and the boost clock, as shares of what lies between rest and
# the limit. Tensor cores: the recorded 1440 MHz at 691 W, extrapolated with the cube of the clock;
# nothing draws it for long. float64: its product of 8192 took 5 % longer than 8 of 4096, so 0.95
# of the clock meets the limit. float32: its products did not slow down with size, so below it.
_TENSOR, _DOUBLE, _PLAIN = 3.19, 1.3, 0.9
_MEMORY = 0.5  # at full bandwidth; streaming alone stays well below the limit and keeps the clock

# What a burst of tensor-core products reaches belongs to an effective 0.85 of the boost clock (a
# limiter faster than NVML's readings): 1.43 ms in a burst, 1.67 ms at 1440 MHz.
_BURST_SHARE = 0.8475

_LIMIT_SHARE = 0.987  # 691 of 700 W
_CLOCK_TAU_NS = 25_000_000
_AIR_C = 32.5
_DIE_C, _DIE_TAU_NS = 15.5, 20_000_000  # rise at the limit, and how fast
_SINK_C, _SINK_TAU_NS = 12.4, 500_000_000

_CLOCK_STEP, _DIE_STEP, _SINK_STEP = (
    1 - exp(-TICK_NS / tau_ns) for tau_ns in (_CLOCK_TAU_NS, _DIE_TAU_NS, _SINK_TAU_NS)
)


@dataclass(frozen=True, slots=True)
class PowerDraw:
    """What a running kernel draws on top of the power at rest, in milliwatts.

    Attributes
    ----------
    core_mw
        Of the multiprocessors, had they the boost clock; it falls with the cube of the clock.
    memory_mw
        Of the device memory, whatever the clock.
    """

    core_mw: int
    memory_mw: int


REST = PowerDraw(0, 0)


@dataclass(slots=True)
class _Sample:
    energy: int = 0  # in milliwatt nanoseconds, as is work
    busy_ns: int = 0
    memory_work: int = 0


def power_draw(
    arithmetic: str, flops: int, n_bytes: int, duration_ns: int, spec: GpuSpec
) -> PowerDraw:
    """Return what a kernel draws that does so much in ``duration_ns`` at the burst clock.

    Parameters
    ----------
    arithmetic
        A key of ``spec.peak_flops_per_s``.
    flops, n_bytes
        Floating-point operations, and bytes to and from the device memory.
    """
    span_mw = (spec.tdp_w - spec.idle_w) * 1e12 / duration_ns
    core = _core(arithmetic, spec) * flops / spec.peak_flops_per_s[arithmetic] if flops else 0
    memory = _MEMORY * n_bytes / spec.bandwidth_bytes_per_s
    return PowerDraw(round(core * span_mw), round(memory * span_mw))


def _core(arithmetic: str, spec: GpuSpec) -> float:
    ratio = spec.peak_flops_per_s[arithmetic] / spec.peak_flops_per_s["float32"]
    if arithmetic == "float64":
        return _DOUBLE if ratio >= 1 else _PLAIN
    return _TENSOR if ratio > 1 else _PLAIN


class SimulatedRegime:
    """In which regime of clock and power one GPU is, at any simulated time.

    Times are integer nanoseconds that never go back; an earlier one counts as the latest. Looking
    changes nothing: work is added up exactly and the state moves at fixed ticks.

    Attributes
    ----------
    power_limit_w
        What the control loop keeps the power below.
    has_clock_rights
        Whether the user may set clocks and limits; by default not, as for an ordinary one.
    """

    def __init__(self, spec: GpuSpec) -> None:
        self.spec = spec
        self.has_clock_rights = False
        self.power_limit_w = float(spec.tdp_w)
        self._highest_mhz = self._shown_mhz = spec.boost_clock_mhz
        self._mhz = float(spec.boost_clock_mhz)
        self._bursts_mhz = {
            name: spec.boost_clock_mhz * (_BURST_SHARE if _core(name, spec) == _TENSOR else 1)
            for name in spec.peak_flops_per_s
        }
        self._is_capped = False
        self._reasons = 0
        self._rest_mw = spec.idle_w * 1_000
        self._die = self._sink = spec.idle_w / spec.tdp_w  # heat that flows, 1 at the limit
        self._since_ns = 0
        self._tick_end_ns = TICK_NS
        self._n_running = self._core_mw = self._memory_mw = 0
        self._core_work = self._memory_work = 0
        self._energy = 0
        self._sample = _Sample()
        rest = _Sample(self._rest_mw * SAMPLE_NS)
        self._samples = deque([rest] * N_POWER_SAMPLES, maxlen=N_POWER_SAMPLES)
        self._n_quiet = 0  # closed samples in a row that changed nothing
        self._before = (self._mhz, self._die, self._sink)

    def start(self, now_ns: int, load: PowerDraw) -> None:
        """Let a kernel begin to draw ``load``; several may run at a time."""
        self.advance(now_ns)
        self._n_quiet = 0
        self._n_running += 1
        self._core_mw += load.core_mw
        self._memory_mw += load.memory_mw

    def end(self, now_ns: int, load: PowerDraw) -> None:
        """Let a kernel that was started with ``load`` be done."""
        self.advance(now_ns)
        self._n_quiet = 0
        self._n_running -= 1
        self._core_mw -= load.core_mw
        self._memory_mw -= load.memory_mw

    def rest(self, now_ns: int) -> None:
        """Let nothing run from now on, whatever was started."""
        self._n_running = self._core_mw = self._memory_mw = 0
        self._n_quiet = 0
        self.advance(now_ns)

    def stretch(self, arithmetic: str, now_ns: int) -> float:
        """Return how many times longer such arithmetic takes now than in a burst, at least 1."""
        self.advance(now_ns)
        return max(1.0, self._bursts_mhz[arithmetic] / self._shown_mhz)

    def advance(self, now_ns: int) -> None:
        """Bring the state to ``now_ns``."""
        if now_ns == self._since_ns:
            return  # each kernel asks twice when it starts
        while now_ns >= self._tick_end_ns:
            self._count(self._tick_end_ns)
            self._tick()
            if self._n_quiet >= N_POWER_SAMPLES:
                self._skip((now_ns - self._since_ns) // SAMPLE_NS)
        self._count(now_ns)

    def clock_mhz(self, now_ns: int) -> int:
        """Return the clock of the multiprocessors, in the driver's steps of 15 MHz."""
        self.advance(now_ns)
        return self._shown_mhz

    def power_w(self, now_ns: int) -> float:
        """Return the power of the last second on average, as of the last tenth of a second.

        It says little about this moment: under a new load it still rises when the clock is low.
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
        """Return why the clock is low, as NVML's bit mask; 0 when it is not."""
        self.advance(now_ns)
        return self._reasons

    def utilization(self, now_ns: int) -> tuple[int, int]:
        """Return in which part of the last 0.2 s any kernel ran, and the bandwidth used then.

        Both in percent. Of the memory NVML counts the time with any access instead.
        """
        self.advance(now_ns)
        recent = list(self._samples)[-N_USE_SAMPLES:]
        period_ns = N_USE_SAMPLES * SAMPLE_NS
        full_work = _MEMORY * (self.spec.tdp_w * 1_000 - self._rest_mw) * period_ns
        busy = sum(sample.busy_ns for sample in recent) / period_ns
        memory = sum(sample.memory_work for sample in recent) / full_work
        return round(100 * busy), min(100, round(100 * memory))

    def lock(self, now_ns: int, highest_mhz: int) -> None:
        """Keep the clock at or below ``highest_mhz``, cut to what is supported.

        The power limit may still lower it. A lower bound would do nothing: the model rests at the
        highest clock.
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

    def limit_power(self, now_ns: int, limit_w: float) -> None:
        """Set the power limit, in watts."""
        self.advance(now_ns)
        self.power_limit_w = limit_w
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
        """Move clock and heat by one step, from what was drawn on average since the last."""
        core_mw, memory_mw = self._core_work / TICK_NS, self._memory_work / TICK_NS
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
        budget_mw = self.power_limit_w * 1_000 * _LIMIT_SHARE - self._rest_mw - memory_mw
        share = (max(budget_mw, 0) / max(core_mw, 1)) ** (1 / 3)
        within_mhz = max(self.spec.boost_clock_mhz * share, LOWEST_CLOCK_MHZ)
        wanted_mhz = min(within_mhz, self._highest_mhz)
        self._mhz += (wanted_mhz - self._mhz) * _CLOCK_STEP
        self._show()
        if wanted_mhz < self._highest_mhz:
            self._is_capped = True
        elif self._shown_mhz == self._highest_mhz:
            self._is_capped = False

    def _show(self) -> None:
        # The last megahertz would take for ever.
        self._shown_mhz = int(self._mhz + 1) // CLOCK_STEP_MHZ * CLOCK_STEP_MHZ

    def _close_sample(self) -> None:
        state = (self._mhz, self._die, self._sink)
        is_same = self._sample == self._samples[-1] and state == self._before
        self._n_quiet = self._n_quiet + 1 if is_same else 0
        self._before = state
        self._energy += self._sample.energy
        self._samples.append(self._sample)
        self._sample = _Sample()
        self._reasons = SW_POWER_CAP if self._is_capped else 0

    def _skip(self, n_samples: int) -> None:
        """Repeat the last sample: nothing has changed for so long that nothing will."""
        skipped_ns = n_samples * SAMPLE_NS
        self._since_ns += skipped_ns
        self._tick_end_ns += skipped_ns
        self._energy += n_samples * self._samples[-1].energy
