"""Record where and when a measurement was taken, and findings about it."""

from dataclasses import KW_ONLY, dataclass

from gpulab.core.foreign_text import one_line, visible
from gpulab.core.requirements import check_fields, check_not_negative


@dataclass(frozen=True, slots=True)
class Finding:
    """A reason to doubt a measurement, with what to do about it.

    Attributes
    ----------
    code
        Name of the situation, the same in all versions, e.g. ``"too-few-samples"``.
    message
        What was seen, with its values.
    advice
        What to do about it.

    Examples
    --------
    >>> import torch, gpulab
    >>> with gpulab.virtual_gpu("H200"):
    ...     a = torch.ones(64, 64, device="cuda")
    ...     result = gpulab.measure(lambda: a @ a, method="naive", n_samples=5)
    >>> "waits for nothing" in result.findings[0].message
    True
    """

    code: str
    message: str
    advice: str

    def __post_init__(self) -> None:
        check_fields(self)

    def __str__(self) -> str:
        return visible(f"{self.message}; {self.advice}")

    __repr__ = __str__

    def brief(self) -> str:
        """Return its name and what to do about it, in one line."""
        return one_line(f"{self.code}: {self.advice}")


@dataclass(frozen=True, slots=True)
class Conditions:
    """Where and when samples were taken, as far as it could be read.

    Other things matter too and are not recorded, such as other programs on the machine.

    Attributes
    ----------
    device_name
        As the driver reports it, e.g. ``"NVIDIA H200"``.
    torch_version, python_version, gpulab_version
        The versions in use.
    cuda_version, driver_version
        Versions of the CUDA toolkit and of the driver; None without one.
    cache
        State of the device's cache before each sample: ``"hot"`` or ``"cold"``.
    taken_at
        Time at the end of the run, ISO 8601, UTC.
    clock_before_mhz, clock_after_mhz
        Clock of the multiprocessors; None if it could not be read.
    power_before_w, power_after_w
        Power as the driver averages it; None if it could not be read.
    temperature_before_c, temperature_after_c
        Temperature of the chip; None if it could not be read.
    regime
        The state of the clock while the samples were taken: ``"burst"``, ``"settled"``,
        ``"throttled"``, ``"idle"`` or ``"unknown"``; see :mod:`gpulab.clocks`.
    throttle_reasons
        Why the driver lowered the clock during the run, in the driver's terms.

    Raises
    ------
    InvalidOptionError
        If a clock or a power is negative or not finite.

    Examples
    --------
    >>> import torch, gpulab
    >>> with gpulab.virtual_gpu("A100"):
    ...     a = torch.ones(64, 64, device="cuda")
    ...     result = gpulab.measure(lambda: a @ a, n_samples=5)
    >>> "A100" in result.conditions.device_name
    True
    """

    device_name: str
    _: KW_ONLY
    torch_version: str
    python_version: str
    gpulab_version: str
    cuda_version: str | None
    driver_version: str | None
    cache: str
    taken_at: str
    clock_before_mhz: int | None = None
    clock_after_mhz: int | None = None
    power_before_w: float | None = None
    power_after_w: float | None = None
    temperature_before_c: int | None = None
    temperature_after_c: int | None = None
    regime: str = "unknown"
    throttle_reasons: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self)
        clocks = ("clock_before_mhz", "clock_after_mhz")
        check_not_negative(self, *clocks, "power_before_w", "power_after_w")
