"""Measurements of tests: saved under the name of each test, and compared with those of before."""

import statistics
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from gpulab.core.requirements import POSITIVE
from gpulab.core.serialization import Saved
from gpulab.device.measurement import Measurement
from gpulab.timing._compare import Comparison, is_only_the_clock

_FORM = "4.0.0"  # of pytest-benchmark's files
_FENCE = 1.5  # Tukey's fences, in interquartile ranges


@dataclass(frozen=True, slots=True)
class Benchmarks(Saved):
    """The measurements of a run of tests, labelled with the names of the tests."""

    schema: ClassVar[str] = "gpulab.benchmarks/1"

    measurements: tuple[Measurement, ...]

    def named(self, name: str) -> Measurement | None:
        """Return the measurement of this name, or None."""
        return next((each for each in self.measurements if each.label == name), None)

    def to_pytest_benchmark(self) -> dict[str, object]:
        """Return plain data in the JSON form of the package pytest-benchmark.

        Its command ``pytest-benchmark compare`` and services that draw benchmarks over time read
        it. Each sample is a round, in seconds.
        """
        last = self.measurements[-1].conditions if self.measurements else None
        gpu = "" if last is None else last.device_name
        return {
            "machine_info": {"gpu": gpu, "node": "", "cpu": {}},
            "commit_info": {},
            "benchmarks": [_exported(each) for each in self.measurements],
            "datetime": "" if last is None else last.taken_at,
            "version": _FORM,
        }


def _exported(taken: Measurement) -> dict[str, object]:
    path, _, name = taken.label.rpartition("::")
    return {
        "group": None,
        "name": name,
        "fullname": f"{path}::{name}" if path else name,
        "params": None,
        "param": None,
        "extra_info": {"source": taken.source, "method": taken.method},
        "options": {"disable_gc": True, "timer": taken.method, "warmup": taken.n_warmup > 0},
        "stats": _statistics(taken),
    }


def _statistics(taken: Measurement) -> dict[str, object]:
    samples_s, n_samples = taken.samples_s, taken.n_samples
    many = n_samples > 1
    mean_s, median_s = statistics.fmean(samples_s), taken.median_s
    q1_s, _, q3_s = statistics.quantiles(samples_s) if many else (median_s,) * 3
    spread_s = statistics.stdev(samples_s) if many else 0.0
    low_s, high_s = q1_s - _FENCE * (q3_s - q1_s), q3_s + _FENCE * (q3_s - q1_s)
    inside_s = [sample_s for sample_s in samples_s if low_s <= sample_s <= high_s]
    n_far = sum(abs(sample_s - mean_s) > spread_s for sample_s in samples_s)
    n_outside = n_samples - len(inside_s)
    return {
        "min": min(samples_s),
        "max": max(samples_s),
        "mean": mean_s,
        "stddev": spread_s,
        "rounds": n_samples,
        "median": median_s,
        "iqr": q3_s - q1_s,
        "q1": q1_s,
        "q3": q3_s,
        "iqr_outliers": n_outside,
        "stddev_outliers": n_far,
        "outliers": f"{n_far};{n_outside}",
        "ld15iqr": min(inside_s, default=median_s),
        "hd15iqr": max(inside_s, default=median_s),
        "ops": 1 / mean_s if mean_s else 0.0,
        "total": sum(samples_s),
        "iterations": taken.inner_loops,
        "data": list(samples_s),
    }


@dataclass(frozen=True, slots=True)
class BenchmarkResult:
    """The measurement of a test, and the saved one that it is compared with, if there is one.

    Attributes
    ----------
    measurement
        What was measured now; its label is the name of the test.
    base
        The measurement of the same name in the file of ``--gpulab-compare``; None without it.

    Examples
    --------
    >>> import torch, gpulab
    >>> with gpulab.virtual_gpu("H200"):
    ...     a = torch.ones(1024, 1024, device="cuda")
    ...     now = gpulab.measure(lambda: a + a, label="test_add")
    >>> print(BenchmarkResult(now, base=now).check(at_most=1.05).comparison.verdict())
    no difference seen: test_add / base = 1.000 [1.000, 1.000], taken at different times
    """

    measurement: Measurement
    base: Measurement | None = None

    @property
    def comparison(self) -> Comparison | None:
        """The ratio of now to before, with its interval; None without a base."""
        if self.base is None:
            return None
        return Comparison(replace(self.base, label="base"), self.measurement, is_paired=False)

    @property
    def has_another_clock(self) -> bool:
        """Whether nothing but the GPU's clock was another than in the base: a pause may help."""
        return self.base is not None and is_only_the_clock(self.base, self.measurement)

    def check(self, *, at_most: float) -> Self:
        """Fail the test unless the work takes at most ``at_most`` times as long as in the base.

        The whole interval of the ratio must be below the limit. Without a base there is nothing to
        check, and the report at the end of the run says so.

        Parameters
        ----------
        at_most
            The largest ratio that passes, such as 1.05 for 5 % longer.

        Raises
        ------
        TooSlowError
            If the interval is above the limit, or reaches above it.
        NotComparableError
            If GPU, clock or the way of timing was another.
        """
        __tracebackhide__ = True  # pytest then shows the line of the test
        POSITIVE.check(at_most=at_most)
        if self.comparison is not None:
            self.comparison.check(at_most=at_most)
        return self

    def __str__(self) -> str:
        comparison = self.comparison
        verdict = "" if comparison is None else f"\n  {comparison.verdict()}"
        return f"{self.measurement}{verdict}"
