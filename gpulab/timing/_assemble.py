"""Turn the observations of a run into a measurement with conditions and findings."""

from dataclasses import replace

from gpulab import device
from gpulab.device import clocks
from gpulab.device.measurement import Conditions, Measurement
from gpulab.timing._findings import examine, host_pace_s
from gpulab.timing._observations import RunObservations


def assemble(run: RunObservations, *, label: str) -> Measurement:
    """Return the measurement of a run; the GPU must still be in use."""
    return Measurement(
        samples_s=run.samples_s,
        method=run.method.name,
        source=device.current().source,
        conditions=_conditions(run),
        findings=examine(run),
        inner_loops=run.options.inner_loops,
        n_warmup=run.warm_up.n_calls,
        label=label,
        stopped_by=run.stopped_by,
        floor_s=run.floor_s,
        floor_error_s=run.floor_error_s,
        floor_method="" if run.floor is None else run.floor.method,
        flagged=run.flagged,
        # With the method "events" the time itself may be the host's; a finding says so instead.
        launch_s=0.0 if run.method.name == "events" else host_pace_s(run),
        counts=run.counts,
        peak_bytes=run.warm_up.peak_bytes,
    )


def _conditions(run: RunObservations) -> Conditions:
    # A reading that failed leaves each field at None, as an empty reading does.
    unknown = clocks.Reading(at_s=0.0)
    before, after = run.before or unknown, run.after or unknown
    return replace(
        device.conditions(),
        cache=run.options.cache_state,
        clock_before_mhz=before.sm_mhz,
        clock_after_mhz=after.sm_mhz,
        power_before_w=before.power_w,
        power_after_w=after.power_w,
        temperature_before_c=before.temperature_c,
        temperature_after_c=after.temperature_c,
        regime=run.regime.kind,
        throttle_reasons=run.regime.reasons,
    )
