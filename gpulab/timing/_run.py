"""The state of one run: the work, its warm-up, its samples so far and its floor.

``measure`` drives one run from its start to its end, and ``compare`` drives two in turns.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import partial
from statistics import median

import torch

from gpulab import device
from gpulab.core.errors import ProfilerBusyError, ProfilerUnavailableError
from gpulab.core.progress import Bar
from gpulab.device import clocks
from gpulab.device.measurement import Measurement
from gpulab.device.work import Work, refuse_endless
from gpulab.timing import _device_floor, _work_floor
from gpulab.timing._assemble import assemble
from gpulab.timing._counts import counts_of, least_time
from gpulab.timing._isolation import calling_work
from gpulab.timing._methods import METHODS, Method
from gpulab.timing._observations import (
    RunFacts,
    RunObservations,
    SampleBatches,
    SimulationCost,
)
from gpulab.timing._options import MeasurementOptions
from gpulab.timing._real_time import RealTime, now_s
from gpulab.timing._samplers import Sampler
from gpulab.timing._warmup import WarmUp, warm_up
from gpulab.timing._work_floor import Floor

_N_COLD = 5  # samples that show how much longer a call takes on a cold cache
_LONG_S = 1.0  # so long a person notices that the samples took real time
# The floors of kernels differ by up to 0.5 µs on an H200: at most 0.05 % of work longer than this,
# which is far less than the default precision. Such work needs no floor of its own.
_WORK_FLOOR_BELOW_S = 1e-3


@dataclass(slots=True, kw_only=True)
class MeasurementRun(RunFacts):
    """One piece of work while it is measured: the facts so far, and what is needed to go on.

    The work rotates through its inputs itself. ``before_each`` is not timed. With
    ``keeps_partial`` the note of an error of the work has the samples taken before it.
    ``reads_clocks`` says whether to read the clock after each batch. Runs that are compared share
    ``real_time``. ``sampling_s`` are the real seconds of the samples so far, ``n_launches`` and
    ``estimated_s`` what a virtual GPU launched for them, and its estimate of their real seconds.
    """

    work: Work
    before_each: Work | None
    sampler: Sampler
    keeps_partial: bool = False
    samples: SampleBatches = field(default_factory=SampleBatches)
    reads_clocks: bool = True
    real_time: RealTime
    bar: Bar | None = None
    sampling_s: float = 0.0
    n_launches: int = 0
    estimated_s: float = 0.0

    @classmethod
    def prepare(
        cls,
        work: Work,
        options: MeasurementOptions,
        *,
        real_time: RealTime,
        bar: Bar | None = None,
        keeps_partial: bool = False,
    ) -> "MeasurementRun":
        """Return a run that is ready for its first sample: floor read, work warmed up."""
        # The flush and the floor allocate memory, so they come before the warm-up. Later they
        # would get the block that the work frees after each call, and the next call of the work
        # would have to ask the driver for another block.
        before_each = options.before_each()
        counts = counts_of(work, options)
        floor = _first_floor(options, before_each)
        warmed_up = warm_up(
            work,
            n_calls=options.n_warmup,
            max_time_s=options.max_time_s,
            real_time=real_time,
            bar=bar,
        )
        if options.n_samples is not None:
            n_calls = options.n_samples * options.inner_loops
            refuse_endless(
                n_calls,
                warmed_up.real_s,
                n_samples=options.n_samples,
                inner_loops=options.inner_loops,
            )
        method = _method_for(options, warmed_up)
        return cls(
            work=work,
            options=options,
            counts=counts,
            before_each=before_each,
            warm_up=warmed_up,
            method=method,
            sampler=method.sampler(work, inner_loops=options.inner_loops, before=before_each),
            # No floor is known for "events", which may have replaced the user's method.
            floor=None if method.floor_of is None else floor,
            keeps_partial=keeps_partial,
            real_time=real_time,
            bar=bar,
        )

    def read_clocks_before(self) -> None:
        """Read clocks and power before the samples; if that fails, do not read them again."""
        self.before = clocks.try_read()
        self.reads_clocks = self.before is not None

    def read_clocks_after(self) -> None:
        """Read clocks and power after the samples."""
        if self.reads_clocks:
            self.after = clocks.try_read()

    def take(self, n_samples: int) -> None:
        """Take a batch of samples, and read the clock after it.

        An interrupt keeps the samples before it. An error of the work drops its batch.
        """
        samples, n_before = self.samples, len(self.samples.values_s)
        if self.bar is not None:
            self.bar.update(n_before - self.bar.n)
        try:
            with (
                calling_work(*self._notes(n_samples)),
                self._counting_real_time(),
                torch.cuda.nvtx.range(f"gpulab: {self.method.name}"),  # for Nsight Systems
            ):
                self.sampler.take(n_samples, partial(self._receive, n_before + n_samples))
        except KeyboardInterrupt:
            if samples.n_open:
                samples.end_batch(None)
            raise
        except BaseException:
            samples.keep(n_before)
            raise
        samples.end_batch(clocks.try_read(parts=clocks.QUICK) if self.reads_clocks else None)

    @contextmanager
    def _counting_real_time(self) -> Iterator[None]:
        virtual = device.current().virtual
        host = None if virtual is None else virtual.machine.host
        start_s = now_s()
        if host is not None:
            self.n_launches -= host.n_launched
            self.estimated_s -= host.estimated_real_s
        try:
            yield
        finally:
            self.sampling_s += now_s() - start_s
            if host is not None:
                self.n_launches += host.n_launched
                self.estimated_s += host.estimated_real_s

    @property
    def sample_real_s(self) -> float | None:
        """Real seconds per sample so far, or those expected after the warm-up; None if unknown."""
        n_taken = len(self.samples.values_s)
        if n_taken:
            return self.sampling_s / n_taken
        call_s = self.warm_up.real_s
        return None if call_s is None else call_s * self.options.inner_loops

    @contextmanager
    def counting_allocations(self) -> Iterator[None]:
        """Count how often PyTorch asks the driver for memory within the block."""
        n_before = n_device_allocations()
        yield
        self.n_allocations += n_device_allocations() - n_before

    def update_floor(self, *, n_more: int = 0) -> None:
        """Update the floor, after the samples were taken.

        It becomes the floor of the work itself if the driver gives records. Otherwise it becomes
        the mean of the floor before the samples and the floor after them. After an interrupt it
        stays as it is. ``n_more`` samples come after the driver has recorded calls of the work, so
        that there are samples both before and after the records.
        """
        floor_of = self.method.floor_of
        if self.floor is None or floor_of is None:
            return
        try:
            # The floor drifts by 0.1 or 0.2 µs within a minute, so take the mean of both times.
            self.floor = self._work_floor(n_more) or self.floor.joined(
                _device_floor.device_floor(self.before_each, of=floor_of)
            )
        except KeyboardInterrupt:
            self.stopped_by = "interrupt"

    def take_cold_samples(self) -> None:
        """After a hot run, take a few cold samples to show how much the cache helped."""
        options = self.options
        # With n_samples the work is called exactly that often; an interrupt ends everything.
        if options.n_samples is not None or self.stopped_by == "interrupt":
            return
        if options.cache_state == "cold" or self.floor is None or options.inner_loops > 1:
            return
        if self.real_time.fitting(_N_COLD, self.sample_real_s) < _N_COLD:
            return
        before_each = replace(options, cache="cold").before_each()
        sampler = self.method.sampler(self.work, before=before_each)
        # The floor of the hot samples: a floor of these cold ones would need another session of
        # records.
        self.cold_s = median(sampler(_N_COLD)) - self.floor.value_s

    def samples_s(self) -> tuple[float, ...]:
        """Return the samples with the floor subtracted; never below zero."""
        floor_s = 0.0 if self.floor is None else self.floor.value_s
        share_s = floor_s / self.options.inner_loops
        return tuple(max(0.0, sample_s - share_s) for sample_s in self.samples.values_s)

    def observations(self) -> RunObservations:
        """Return everything that is known about the run."""
        readings = self.samples.readings
        flags = clocks.flag(readings, self.samples.batch_sizes)
        facts = {fact.name: getattr(self, fact.name) for fact in fields(RunFacts)}
        return RunObservations(
            **facts,
            samples_s=self.samples_s(),
            regime=clocks.summarize([self.before, *readings, self.after]),
            flagged=tuple(index for index, flag in enumerate(flags) if flag),
            n_starved=self.sampler.n_starved,
            n_dropped=self.sampler.n_dropped,
            simulation=self._simulation(),
            others=clocks.other_processes(),
            least_s=least_time(self.counts),
        )

    def measurement(self, *, label: str) -> Measurement:
        """Return the measurement; the GPU must still be in use."""
        return assemble(self.observations(), label=label)

    def _work_floor(self, n_more: int) -> Floor | None:
        if not _has_own_floor(self.options) or self.stopped_by == "interrupt":
            return None
        if median(self.samples.values_s) > _WORK_FLOOR_BELOW_S:
            return None
        try:
            with calling_work("while the driver recorded calls", self._kept()):
                calls = _work_floor.record_calls(self.work, before=self.before_each)
                if n_more:
                    # The last reading again: one taken now would describe the session of the
                    # profiler.
                    self.sampler.take(n_more, self.samples.values_s.extend)
                    self.samples.end_batch(self.samples.readings[-1])
            return _work_floor.work_floor(calls, self.samples.values_s)
        # Not an error of the measurement: the floor of the device serves instead.
        except (ProfilerBusyError, ProfilerUnavailableError):
            return None

    def _receive(self, n_wanted: int, values_s: list[float]) -> None:
        """Keep some samples; show them if more follow, so that no bar flashes up at the end."""
        self.samples.values_s += values_s
        if self.bar is not None and len(self.samples.values_s) < n_wanted:
            self.bar.update(len(values_s))

    def _simulation(self) -> SimulationCost | None:
        limit_s = self.real_time.limit_s if self.real_time.has_cut else None
        was_long = self.stopped_by == "interrupt" and self.sampling_s >= _LONG_S
        if device.current().virtual is None or (limit_s is None and not was_long):
            return None
        n_calls = len(self.samples.values_s) * self.options.inner_loops
        return SimulationCost(
            call_s=self.sampling_s / n_calls,
            n_launches=self.n_launches / n_calls,
            estimated_s=self.estimated_s / n_calls,
            limit_s=limit_s,
        )

    def _notes(self, n_next: int) -> tuple[str, str]:
        """Return when the work failed and what was kept, for the note on its error."""
        n_taken = len(self.samples.values_s)
        when = f"while samples {n_taken + 1} to {n_taken + n_next} were taken"
        if n_next == 1:
            when = f"while sample {n_taken + 1} was taken"
        return when, self._kept()

    def _kept(self) -> str:
        """Return where the earlier samples are, for the note on an error of the work."""
        n_taken = len(self.samples.values_s)
        if n_taken == 0 or not self.keeps_partial:
            return "nothing was measured"
        are = f"the {n_taken} samples before are" if n_taken > 1 else "the sample before is"
        return f"{are} kept in its attribute `partial`"


def n_device_allocations() -> int:
    """Return how often PyTorch has asked the driver for memory."""
    return int(torch.cuda.memory_stats().get("num_device_alloc", 0))


def _first_floor(options: MeasurementOptions, before_each: Work | None) -> Floor | None:
    """Return the device's floor before the samples, or None if the method subtracts none."""
    floor_of = options.timing_method.floor_of
    if floor_of is None:
        return None
    # The floor of the work is found after the samples. Until then, and if that fails, the
    # floor of the device serves; it need not be read again for this cache state.
    if _has_own_floor(options):
        return _device_floor.floor(of=floor_of)
    return _device_floor.device_floor(before_each, of=floor_of)


def _has_own_floor(options: MeasurementOptions) -> bool:
    """Return whether to find the floor from records of the work, and whether that is possible."""
    is_asked = options.floor == "work" and options.timing_method.floor_of == "launches"
    # Records need 12 more calls, and with n_samples the work is called exactly that often.
    counts_calls = options.n_samples is not None or options.inner_loops > 1
    return is_asked and not counts_calls and _work_floor.can_record()


def _method_for(options: MeasurementOptions, warm_up_facts: WarmUp) -> Method:
    """Return the method to use: ``"events"`` if the work waits, as no sleep helps then."""
    method = options.timing_method
    return METHODS["events"] if warm_up_facts.synchronizes and method.needs_host_ahead else method
