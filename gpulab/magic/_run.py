"""Do with a timed cell what its options ask for, and write the result as text."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from IPython.core.error import UsageError

from gpulab.magic._cell import Shell, TimedCode, build_work
from gpulab.magic._isolation import settings_kept, wait_for_earlier_work
from gpulab.magic._options import CellOptions
from gpulab.work import Work

if TYPE_CHECKING:
    import torch

    from gpulab.measurement import Measurement


def timed_result(
    shell: Shell, timed: TimedCode, options: CellOptions, scope: dict[str, object]
) -> tuple[object, str]:
    """Time the cell as its options ask for, and return the record and its text.

    Parameters
    ----------
    shell
        Whose namespace the code runs in.
    timed
        The code.
    options
        What was asked for.
    scope
        Variables of the caller.

    Returns
    -------
    tuple of object and str
        A Measurement, Comparison, Ladder or Timeline; and what is printed.
    """
    import torch

    # In a cell, and in a line outside of functions, the local scope is the namespace itself.
    local_scope = {} if scope is shell.user_ns else scope
    variables = shell.user_ns | dict(local_scope)
    other = _find_other(options.versus, variables)
    with settings_kept(shell):
        wait_for_earlier_work()  # a stream of the user's may then read inputs of another one
        stream = _find_stream(options.stream, variables)
        seed(options.seed)
        with torch.cuda.stream(stream):
            return _run(build_work(shell, timed, local_scope)(), options, other)


def figures(result: object) -> Iterator[object]:
    """Return what is shown below the text: the ladder's figure, the timeline."""
    from gpulab.plots import draw_ladder
    from gpulab.timing import Ladder
    from gpulab.tracing import Timeline

    if isinstance(result, Ladder):
        yield draw_ladder(result)
    elif isinstance(result, Timeline):
        yield result


def seed(seed: int | None) -> None:
    """Seed PyTorch's random numbers, if asked to."""
    import torch

    if seed is not None:
        torch.manual_seed(seed)


def _run(
    work: Work, options: CellOptions, other: "Measurement | Work | None"
) -> tuple[object, str]:
    from gpulab.measurement import Measurement
    from gpulab.timing import compare, measure, versus

    if options.shows_ladder:
        return _time_by_every_method(work, options)
    if options.shows_timeline:
        return _trace(work)
    asked = options.measurement.arguments()
    if other is not None and not isinstance(other, Measurement):
        labels = (options.versus or "", "the cell")
        comparison = compare(other, work, labels=labels, **asked)
        records = (comparison.first, comparison.second)
        texts = [*(_describe(record, options.n_digits) for record in records)]
        return comparison, "\n".join([*texts, comparison.verdict()])
    record = measure(work, progress=False, **asked)  # the magic's output is one line
    text = _describe(record, options.n_digits)
    if other is not None:
        text += f"\n{versus(other, record, options.versus or '')}"
    return record, text


def _time_by_every_method(work: Work, options: CellOptions) -> tuple[object, str]:
    from gpulab.timing import ladder

    asked = options.measurement
    found = ladder(work, precision=asked.precision, max_time_s=asked.max_time_s, progress=False)
    return found, str(found)


def _trace(work: Work) -> tuple[object, str]:
    from gpulab.tracing import timeline

    traced = timeline(work)
    return traced, str(traced.summary())


def _find_stream(name: str | None, variables: Mapping[str, object]) -> "torch.cuda.Stream | None":
    """Return the user's stream; None, when none was named, means the current one."""
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
    """Return what is to be compared with; None if nothing is."""
    from gpulab.measurement import Measurement

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
    """Write the line and its notes, with as many digits as were asked for."""
    line = measurement.line(n_digits)
    notes = list(map(str, measurement.findings))
    if measurement.stopped_by == "interrupt":
        notes.insert(0, f"interrupted; these are the {measurement.n_samples} samples until then")
    return "\n".join([line, *(f"  note: {note}" for note in notes)])
