"""From samples and what was seen beside them to a measurement with its conditions and doubts."""

from dataclasses import dataclass, replace

from gpulab import clocks, device, gpus
from gpulab.gpus import data_sheet
from gpulab.measurement import Conditions, Measurement
from gpulab.timing._findings import Facts, examine
from gpulab.timing._methods import Method
from gpulab.timing._options import MeasurementOptions
from gpulab.timing._sampling import Run
from gpulab.timing._warmup import WarmUp
from gpulab.timing.calibration import Floor
from gpulab.units import format_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class RunObservations:
    """All that a measurement has seen.

    Attributes
    ----------
    method
        The one that took the samples, which need not be the one that was asked for.
    before, after
        What the driver said of clocks and power; None where it says nothing.
    n_starved, n_dropped, n_allocations, cold_s
        As in :class:`gpulab.timing.Facts`.
    floor
        What is to be subtracted, or None.
    """

    plan: MeasurementOptions
    method: Method
    warm: WarmUp
    run: Run
    before: clocks.Reading | None = None
    after: clocks.Reading | None = None
    n_starved: int = 0
    n_dropped: int = 0
    n_allocations: int = 0
    cold_s: float | None = None
    floor: Floor | None = None

    def measurement(self, *, label: str, least_s: tuple[float, str] | None) -> Measurement:
        """Make the record; the GPU must still be in use."""
        regime = clocks.summarize([self.before, *self.run.readings, self.after])
        flags = clocks.flag(self.run.readings, self.run.batch_sizes)
        facts = self._facts(regime, sum(flags), least_s)
        error_s = 0.0 if self.floor is None else (self.floor.high_s - self.floor.low_s) / 2
        return Measurement(
            samples_s=facts.samples_s,
            method=self.method.name,
            source=device.current().source,
            conditions=self._conditions(regime),
            findings=examine(facts),
            inner_loops=self.plan.inner_loops,
            n_warmup=self.warm.n_calls,
            label=label,
            stopped_by=self.run.stopped_by,
            floor_s=facts.floor_s,
            floor_error_s=error_s,
            floor_method="" if self.floor is None else self.floor.method,
            flagged=tuple(index for index, flag in enumerate(flags) if flag),
        )

    def samples_s(self) -> tuple[float, ...]:
        """Return the samples without the floor; work that enqueues nothing reads zero."""
        share_s = 0.0 if self.floor is None else self.floor.value_s / self.plan.inner_loops
        return tuple(max(0.0, sample_s - share_s) for sample_s in self.run.samples_s)

    def _facts(
        self, regime: clocks.Regime, n_flagged: int, least_s: tuple[float, str] | None
    ) -> Facts:
        low_mhz, high_mhz = regime.lowest_mhz, regime.highest_mhz
        return Facts(
            self.samples_s(),
            self.method.name,
            inner_loops=self.plan.inner_loops,
            synchronizes=self.warm.synchronizes,
            host_s=self.warm.host_s,
            clock=self.method.clock,
            asked_method="" if self.method is self.plan.method else self.plan.method.name,
            cache=self.plan.cache,
            flush=self.plan.flush,
            cold_s=self.cold_s,
            side_s=self.warm.side_s,
            n_starved=self.n_starved,
            n_dropped=self.n_dropped,
            n_allocations=self.n_allocations,
            is_zero=self.warm.is_zero,
            least_s=least_s,
            clocks_mhz=None if low_mhz is None or high_mhz is None else (low_mhz, high_mhz),
            throttle_reasons=regime.reasons,
            n_flagged=n_flagged,
            floor_s=0.0 if self.floor is None else self.floor.value_s,
        )

    def _conditions(self, regime: clocks.Regime) -> Conditions:
        unknown = clocks.Reading(at_s=0.0)
        before, after = self.before or unknown, self.after or unknown
        return replace(
            device.conditions(),
            cache=self.plan.cache,
            clock_before_mhz=before.sm_mhz,
            clock_after_mhz=after.sm_mhz,
            power_before_w=before.power_w,
            power_after_w=after.power_w,
            temperature_before_c=before.temperature_c,
            temperature_after_c=after.temperature_c,
            regime=regime.kind,
            throttle_reasons=regime.reasons,
        )


def least_time(flops: float | None, size_bytes: float | None) -> tuple[float, str] | None:
    """Return the least seconds that a GPU of this name can take, and for what.

    The type of the arithmetic is not known, so the peak of the fastest one is taken; and bytes
    that fit into the L2 set no limit, as they may come from there.
    """
    spec = gpus.by_driver_name(device.current().name)
    if spec is None:
        return None
    limits, roof = [], data_sheet(spec)
    if flops:
        counted = f"{flops:.3g} floating-point operations"
        limits.append((roof.compute_s(flops, roof.fastest), counted))
    if size_bytes and size_bytes > spec.l2_bytes:
        counted = f"{format_bytes(size_bytes)} from and to memory"
        limits.append((roof.memory_s(size_bytes), counted))
    return max(limits, default=None)
