"""Where and when samples were taken, and what is doubtful about them."""

from dataclasses import KW_ONLY, dataclass

from gpulab.foreign_text import visible
from gpulab.requirements import check_fields, check_not_negative


@dataclass(frozen=True, slots=True)
class Finding:
    """A doubt about a measurement, kept with it.

    Attributes
    ----------
    code
        Stable name of the situation, e.g. ``"too-few-samples"``.
    message
        What was seen, with its values.
    advice
        What to do about it.

    Examples
    --------
    >>> import torch, gpulab
    >>> with gpulab.virtual_gpu("H200"):
    ...     a = torch.ones(64, 64, device="cuda")
    ...     taken = gpulab.measure(lambda: a @ a, method="naive", n_samples=5)
    >>> "waits for nothing" in taken.findings[0].message
    True
    """

    code: str
    message: str
    advice: str

    def __post_init__(self) -> None:
        check_fields(self)

    def __str__(self) -> str:
        return visible(f"{self.message}; {self.advice}")


@dataclass(frozen=True, slots=True)
class Conditions:
    """Where and when samples were taken.

    They are what could be read, not all that matters: other programs on the machine, heat
    and power are not among them.

    Attributes
    ----------
    device_name
        As the driver reports it, e.g. ``"NVIDIA H200"``.
    torch_version, python_version, gpulab_version
        Versions that ran.
    cuda_version, driver_version
        Of the toolkit and the driver; None where there is none.
    cache
        State of the device's cache before each sample: ``"hot"`` or ``"cold"``.
    taken_at
        Time at the end, ISO 8601, UTC.
    clock_before_mhz, clock_after_mhz
        Clock of the multiprocessors; None where it could not be read.
    power_before_w, power_after_w
        As the driver averages it; None where it could not be read.
    temperature_before_c, temperature_after_c
        Of the chip; None where it could not be read.
    regime
        ``"burst"``, ``"settled"``, ``"throttled"``, ``"idle"`` or ``"unknown"``: in which state
        the clock was while the samples were taken; see :mod:`gpulab.clocks`.
    throttle_reasons
        What held the clock down meanwhile, in the driver's terms.

    Raises
    ------
    InvalidOptionError
        If a clock or a power is negative or not finite.

    Examples
    --------
    >>> import torch, gpulab
    >>> with gpulab.virtual_gpu("A100"):
    ...     a = torch.ones(64, 64, device="cuda")
    ...     taken = gpulab.measure(lambda: a @ a, n_samples=5)
    >>> "A100" in taken.conditions.device_name
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
