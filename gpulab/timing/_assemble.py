"""Turn the observations of a run into a measurement with conditions and findings."""

from dataclasses import replace

from gpulab import clocks, device, gpus
from gpulab.gpus import data_sheet
from gpulab.measurement import Conditions, Measurement
from gpulab.timing._findings import examine, host_pace_s
from gpulab.timing._observations import RunObservations
from gpulab.units import format_bytes


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


def least_time(flops: float | None, size_bytes: float | None) -> tuple[float, str] | None:
    """Return the least seconds that the GPU in use needs for one call, and the reason.

    The type of the arithmetic is not known, so the peak of the fastest type counts. Bytes that
    fit into the L2 set no limit, because they may come from there. Returns None for a GPU without
    a data sheet, or without a limit.
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
    # Arithmetic and memory may overlap completely, so the slower of the two is the limit.
    return max(limits, default=None)
