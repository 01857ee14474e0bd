"""Measurements of tests: saved under the name of each test, and compared with those of before."""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from gpulab.core.requirements import POSITIVE
from gpulab.core.serialization import Saved
from gpulab.device.measurement import Measurement
from gpulab.timing._compare import Comparison, clocks_differ


@dataclass(frozen=True, slots=True)
class Benchmarks(Saved):
    """The measurements of a run of tests, labelled with the names of the tests.

    Examples
    --------
    >>> Benchmarks(()).named("tests/test_relu.py::test_speed") is None
    True
    """

    schema: ClassVar[str] = "gpulab.benchmarks/1"

    measurements: tuple[Measurement, ...]

    def named(self, name: str) -> Measurement | None:
        """Return the measurement of this name, or None."""
        return next((each for each in self.measurements if each.label == name), None)


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
        """Whether the GPU's clock was another than in the base, so that a pause may help."""
        return self.base is not None and clocks_differ(self.base, self.measurement)

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
