"""Made-up spans for the tests of timelines; times are in microseconds."""

from gpulab.tracing import Span

US = 1e-6


def host(kind: str, start: float, end: float, number: int | None = None, **more: object) -> Span:
    """Make a span of the host: a launch, a wait or another call."""
    name = str(more.pop("name", kind))
    return Span(kind, name, "host", start * US, end * US, correlation=number, **more)  # type: ignore[arg-type]  # plain options


def work(
    start: float, end: float, stream: int = 0, number: int | None = None, **more: object
) -> Span:
    """Make a kernel, or a copy if an engine for copies is named."""
    engine = more.pop("engine", "compute")
    kind = "kernel" if engine == "compute" else "copy"
    name, device = str(more.pop("name", kind)), more.pop("device", 0)
    times = (start * US, end * US)
    return Span(kind, name, f"stream {stream}", *times, stream, device, engine, number, **more)  # type: ignore[arg-type]  # plain options


def mark(  # noqa: PLR0913, PLR0917 # the fields of an event or a wait
    kind: str, start: float, end: float, stream: int, number: int, waits_for: int | None = None
) -> Span:
    """Make an event in a stream, or a stream's wait for one."""
    lane = f"stream {stream}"
    return Span(kind, kind, lane, start * US, end * US, stream, 0, None, number, waits_for)
