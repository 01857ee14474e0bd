"""Time a cell in the way that its options say, and write the result as text."""

from asyncio import AbstractEventLoop
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError

from gpulab.core.errors import InvalidOptionError
from gpulab.core.units import counted
from gpulab.device.work import Work
from gpulab.magic._cell import Shell, TimedCode, build_work
from gpulab.magic._isolation import settings_kept, wait_for_earlier_work
from gpulab.magic._options import CellOptions

if TYPE_CHECKING:
    import torch

    from gpulab.device.measurement import Measurement


_ADDS = (
    "  note: backward() adds to the gradients of the call before; to time it with none, write "
    '--each "w.grad = None" with your parameters'
)


def timed_result(
    shell: Shell,
    timed: TimedCode,
    options: CellOptions,
    scope: dict[str, object],
    loop: AbstractEventLoop,
) -> tuple[object, str]:
    """Time the cell in the way that its options say, and return the record and its text.

    The record is a Measurement, Comparison, Ladder or Timeline. ``scope`` has the variables of the
    caller.
    """
    import torch

    from gpulab.timing import left_as_found

    # In a cell, and in a line outside functions, the local scope is the namespace itself.
    local_scope = {} if scope is shell.user_ns else scope
    variables = shell.user_ns | dict(local_scope)
    other = _find_other(options.versus, variables)
    with left_as_found(), settings_kept(shell):
        # After this wait, the user's stream may read inputs that another stream has written.
        wait_for_earlier_work()
        stream = _find_stream(options.stream, variables)
        amounts = _amounts(options, variables)
        seed(options.seed)
        with torch.cuda.stream(stream):
            work, before_each = build_work(shell, timed, local_scope, loop)()
            setup = before_each if timed.each else None
            result, text = _run(work, options, other, {"setup": setup, **amounts})
            return result, f"{text}\n{_ADDS}" if timed.adds_gradients else text


def figures(result: object) -> Iterator[object]:
    """Yield what to show below the text: the figure of a ladder, or a timeline."""
    from gpulab.timing import Ladder
    from gpulab.tracing import Timeline
    from gpulab.views import plots

    if isinstance(result, Ladder):
        yield plots.ladder(result)
    elif isinstance(result, Timeline):
        yield result


def seed(seed: int | None) -> None:
    """Seed PyTorch's random numbers; None changes nothing."""
    import torch

    if seed is not None:
        torch.manual_seed(seed)


def _run(
    work: Work,
    options: CellOptions,
    other: "Measurement | Work | None",
    more: dict[str, Any],
) -> tuple[object, str]:
    from gpulab.device.measurement import Measurement
    from gpulab.timing import compare, measure

    if options.shows_ladder:
        return _time_by_every_method(work, options, more["setup"])
    if options.shows_timeline:
        return _trace(work)
    asked = options.measurement.arguments() | more
    if other is not None and not isinstance(other, Measurement):
        # The other one comes first, so that the ratio is that of the cell over it.
        labels = (options.versus or "", "the cell")
        comparison = compare(other, work, labels=labels, **asked)
        records = (comparison.first, comparison.second)
        texts = [*(_describe(record, options.n_digits) for record in records)]
        return comparison, "\n".join([*texts, comparison.verdict()])
    record = measure(work, progress=False, **asked)  # the magic's output is one line
    text = _describe(record, options.n_digits)
    if other is not None:
        text += f"\n{compare(other, record, labels=(options.versus or '', 'the cell')).verdict()}"
    return record, text


def _time_by_every_method(
    work: Work, options: CellOptions, setup: Work | None
) -> tuple[object, str]:
    from gpulab.timing import ladder

    asked = options.measurement
    rungs = ladder(
        work,
        setup=setup,
        precision=asked.precision,
        max_time_s=asked.max_time_s,
        progress=False,
    )
    return rungs, str(rungs)


def _trace(work: Work) -> tuple[object, str]:
    from gpulab.tracing import timeline

    traced = timeline(work)
    return traced, str(traced.summary())


def _amounts(options: CellOptions, variables: Mapping[str, object]) -> dict[str, float | str]:
    """Return the counts of a call, from the expressions in the options."""
    from gpulab.timing import amounts_in

    try:
        return amounts_in(variables, flops=options.flops_text, size_bytes=options.bytes_text)
    except InvalidOptionError as error:
        raise UsageError(str(error)) from None


def _find_stream(name: str | None, variables: Mapping[str, object]) -> "torch.cuda.Stream | None":
    """Return the stream in a variable of the user; None, without a name, is the current one."""
    import torch

    if name is None:
        return None
    cure = f"make it first: {name} = torch.cuda.Stream()"
    if name not in variables:
        raise UsageError(f"--stream {name}; there is no such variable; {cure}")
    stream = variables[name]
    if not isinstance(stream, torch.cuda.Stream):
        raise UsageError(f"--stream {name}; it is of type {type(stream).__name__}; {cure}")
    return stream


def _find_other(name: str | None, variables: Mapping[str, object]) -> "Measurement | Work | None":
    """Return the measurement or the function to compare with; None without a name."""
    from gpulab.device.measurement import Measurement

    if name is None:
        return None
    cure = f"store one first (%%cudatime --save {name}), or name a function of no arguments"
    if name not in variables:
        raise UsageError(f"--vs {name}; there is no such variable; {cure}")
    other = variables[name]
    if isinstance(other, Measurement) or callable(other):
        return other
    raise UsageError(f"--vs {name}; it is of type {type(other).__name__}; {cure}")


def _describe(measurement: "Measurement", n_digits: int) -> str:
    """Return the line of a measurement with ``n_digits`` digits, and its notes below it."""
    line = measurement.line(n_digits)
    notes = list(map(str, measurement.findings))
    if measurement.stopped_by == "interrupt":
        n_taken = counted(measurement.n_samples, "sample")
        notes.insert(0, f"interrupted after {n_taken}; the result is from these")
    return "\n".join([line, *measurement.rate_lines(), *(f"  note: {note}" for note in notes)])
