"""A sweep over one's own function: its tasks, the points that are measured, and their table."""

import hashlib
import inspect
import json
import math
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import KW_ONLY, dataclass, replace
from itertools import product
from types import CodeType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch

from gpulab import device
from gpulab.core.errors import DamagedDataError, InvalidOptionError, NotCallableError, shown
from gpulab.core.foreign_text import first_line, one_line, visible, visible_row
from gpulab.core.requirements import Requirement, check_fields, items_of
from gpulab.core.serialization import Saved, parse_object
from gpulab.device.measurement import Measurement
from gpulab.device.work import Work, check_callable
from gpulab.gpus.provenance import check_source
from gpulab.timing import Comparison, MeasurementOptions, amount_of, measure, measure_in_turns
from gpulab.workloads.sweeps import _host
from gpulab.workloads.sweeps._measure_point import clean_up, device_lock

if TYPE_CHECKING:
    import pandas as pd

Made = Work | Mapping[str, Work]
Make = Callable[..., Made]
Amount = Callable[..., float] | float | str | None

_COLUMNS = (
    *("median_s", "low_s", "high_s", "n_samples", "ratio", "ratio_low", "ratio_high"),
    *("flops_per_s", "bytes_per_s", "limit", "share_of_limit", "peak_bytes"),
    *("source", "device_name", "clock_mhz", "findings", "error"),
)
_WORK = "work"
_PLAIN = (int, float, str, bool, torch.dtype)


def _python(value: object) -> object:
    """Return a number of NumPy as one of Python, which JSON has, also inside a tuple."""
    if isinstance(value, tuple | list):
        return type(value)(map(_python, value)) if type(value) in (tuple, list) else value
    for kind, plain in ((np.bool_, bool), (np.integer, int), (np.floating, float)):
        if isinstance(value, kind):
            return plain(value)
    return value


def _is_saved(value: object) -> bool:
    value = _python(value)
    if isinstance(value, tuple | list):
        return all(map(_is_saved, value))
    return isinstance(value, _PLAIN) and not (
        isinstance(value, float) and not math.isfinite(value)
    )


_VALUE = Requirement(
    "a finite number, a text, a type of PyTorch, or a tuple of these, so that it can be saved",
    _is_saved,
)


def _is_object(text: str) -> bool:
    try:
        parse_object(text)
    except DamagedDataError:
        return False
    return True


_OBJECT = Requirement('an object in JSON, such as {"n": 64}', _is_object)


@dataclass(frozen=True, slots=True)
class Setting:
    """One choice of parameters for a function of one's own, as JSON; ``how`` has method and cache.

    ``code`` is a hash of the function's own code. A point of another version is not taken for one
    of this. Parameters that are no JSON object raise `InvalidOptionError`.

    >>> print(Setting("add", '{"n": 4096, "dtype": "float16"}'))
    add(n=4,096, dtype=float16)
    """

    function: str
    parameters: str
    how: str = ""
    code: str = ""

    def __post_init__(self) -> None:
        check_fields(self)
        _OBJECT.check(parameters=self.parameters)

    @property
    def arguments(self) -> dict[str, Any]:
        """The values by parameter; a type of PyTorch is its name."""
        arguments: dict[str, Any] = json.loads(self.parameters)
        return arguments

    @property
    def key(self) -> str:
        """Text that identifies it, also in the file of a sweep that is resumed."""
        return f"{self.function}/{self.parameters}/{self.how}/{self.code}"

    def __str__(self) -> str:
        parts = (f"{name}={_shown(value)}" for name, value in self.arguments.items())
        return one_line(f"{self.function}({', '.join(parts)})")

    __repr__ = __str__


def _shown(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


@dataclass(frozen=True, slots=True)
class FunctionPoint(Saved):
    """The times of one's own work for one choice of parameters, or why there are none.

    Attributes
    ----------
    task
        The parameters.
    measurements
        One for each work that the function returned, labelled with its name. Several were
        measured in turns.
    source, device_name, taken_at
        As in :class:`Point`.
    error
        Why there is no time, in one line; empty if there is one.

    Examples
    --------
    >>> FunctionPoint(Setting("add", '{"n": 64}'), error="out of memory").ok
    False
    """

    schema: ClassVar[str] = "gpulab.function_point/1"

    task: Setting
    _: KW_ONLY
    measurements: tuple[Measurement, ...] = ()
    source: str = "measured"
    device_name: str = ""
    error: str = ""
    taken_at: str = ""

    def __post_init__(self) -> None:
        check_fields(self)
        check_source(self.source)
        if not self.error and not self.measurements:
            raise InvalidOptionError(
                f"{self.task} has neither measurements nor an error; a point needs one of them"
            )
        counts = {len(taken.samples_s) for taken in self.measurements}
        if len(counts) > 1:
            raise InvalidOptionError(
                f"the measurements of {self.task} have from {min(counts)} to {max(counts)} "
                "samples; works that were measured in turns have the same number"
            )

    @property
    def ok(self) -> bool:
        """Whether there is a time."""
        return not self.error

    @property
    def findings(self) -> tuple[str, ...]:
        """Codes of the findings about its works, each once."""
        codes = (finding.code for taken in self.measurements for finding in taken.findings)
        return tuple(dict.fromkeys(codes))

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Each other work beside the first one; empty if there is one work."""
        return tuple(Comparison(self.measurements[0], other) for other in self.measurements[1:])

    def __str__(self) -> str:
        if self.error:
            return one_line(f"{self.task}: {self.error}")
        verdicts = (comparison.verdict() for comparison in self.comparisons)
        return "\n".join([f"{self.task}:", *map(str, self.measurements), *verdicts])

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class FunctionTask:
    """A choice of parameters that is still to be measured; it can be pickled if ``make`` can.

    ``setting`` has the parameters as they are saved, ``arguments`` those with which ``make`` is
    called to return the work. The options have the FLOPs and bytes of one call, too.
    """

    setting: Setting
    make: Make
    arguments: Mapping[str, object]
    options: MeasurementOptions

    @property
    def key(self) -> str:
        """The key of its parameters."""
        return self.setting.key

    @property
    def on(self) -> str:
        """It runs on the GPU, as other work of :func:`gpulab.measure` does."""
        return "gpu"

    def __str__(self) -> str:
        return str(self.setting)

    def failed(self, reason: str, **facts: Any) -> FunctionPoint:  # noqa: ANN401  # fields of a point
        """Return a point with an error instead of a time."""
        return FunctionPoint(self.setting, error=reason, **facts)


def function_tasks(
    make: Make,
    parameters: Mapping[str, Iterable[object]],
    *,
    options: MeasurementOptions,
    flops: Amount,
    size_bytes: Amount,
) -> Iterator[FunctionTask]:
    """Yield one task for each combination of the values.

    `NotCallableError` if ``make`` is a coroutine or a generator function, `InvalidOptionError` if
    it does not take these parameters, or a value cannot be saved.
    """
    check_callable("make", make, "pass a function of the parameters that returns the work")
    name = getattr(make, "__name__", type(make).__name__)
    values = {
        parameter: [*map(_python, items_of(parameter, listed, _VALUE))]
        for parameter, listed in parameters.items()
    }
    for parameter, listed in values.items():
        if not listed:
            raise InvalidOptionError(
                f"{parameter} has no values; give at least one: {parameter}=[...]"
            )
        if parameter in (*_COLUMNS, _WORK):
            raise InvalidOptionError(
                f"{parameter} is a column of the table already; give the parameter another name"
            )
    _check_signature(make, name, values)
    how, code = f"{options.method}-{options.cache_state}", _fingerprint(make)
    for choice in product(*values.values()):
        arguments = dict(zip(values, choice, strict=True))
        saved = json.dumps({each: _plain(value) for each, value in arguments.items()})
        counted = replace(
            options,
            flops=amount_of("flops", flops, **arguments),
            size_bytes=amount_of("size_bytes", size_bytes, **arguments),
        )
        yield FunctionTask(Setting(name, saved, how, code), make, arguments, counted)


def _check_signature(make: Make, name: str, values: Mapping[str, object]) -> None:
    passed = ", ".join(f"{each}=[...]" for each in values) or "none"
    try:
        inspect.signature(make).bind(**values)
    except TypeError as error:
        raise InvalidOptionError(
            f"{name} cannot be called with the parameters of the sweep ({passed}): {error}"
        ) from error
    except ValueError:  # a function in C without a signature
        return


def _plain(value: object) -> object:
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    return str(value).removeprefix("torch.") if isinstance(value, torch.dtype) else value


def _fingerprint(make: Make) -> str:
    """Return a hash of a function's own code; what it calls is not part of it."""
    code = getattr(make, "__code__", None)
    return "" if code is None else hashlib.sha256(repr(_parts(code)).encode()).hexdigest()[:12]


def _parts(code: CodeType) -> tuple[object, ...]:
    # Without names of files and numbers of lines: a function that moves stays the same.
    return code.co_code, code.co_names, code.co_varnames, [*map(_constant, code.co_consts)]


def _constant(value: object) -> object:
    if isinstance(value, CodeType):
        return _parts(value)
    # The order of a set of texts differs from process to process.
    return sorted(map(repr, value)) if isinstance(value, frozenset) else value


def refuse_unpicklable(executor: Executor, make: Make) -> None:
    """Refuse a function that a pool of processes cannot get, because it cannot be pickled.

    Dask's executors send functions by value, and take all.
    """
    if not isinstance(executor, ProcessPoolExecutor):
        return
    try:
        pickle.dumps(make)
    except Exception as error:
        raise InvalidOptionError(
            f"{shown(make)} cannot be sent to another process ({first_line(error)}); define it at "
            "the top of a module, or use gpulab.cluster.local(), which sends any function"
        ) from error


def measure_function(task: FunctionTask) -> FunctionPoint:
    """Return the point of a task, measured now; `NotCallableError` if it has no work."""
    with device.active() as gpu, device_lock(task.on):
        facts = {"source": gpu.source, "device_name": gpu.name, "taken_at": _host.utc_now()}
        try:
            return FunctionPoint(task.setting, measurements=_measured(task), **facts)
        except NotCallableError:
            raise  # every other point would fail in the same way
        except torch.OutOfMemoryError:
            reason = "out of memory"
        except Exception as error:  # noqa: BLE001  # one point's failure must not end a sweep
            reason = f"{type(error).__name__}: {first_line(error)}"
        # Outside the handler, because the frames of the error still refer to the tensors.
        clean_up()
        return task.failed(reason, **facts)


def _measured(task: FunctionTask) -> tuple[Measurement, ...]:
    made = task.make(**task.arguments)
    works = dict(made) if isinstance(made, Mapping) else {"": made}
    cure = (
        "return the work, a function without arguments such as `lambda: a + b`, or a dict of "
        "several by name"
    )
    if not works:
        raise NotCallableError(f"{task} returned an empty dict; {cure}")
    for name, work in works.items():
        check_callable(f"what {task} returned{f' as {name}' if name else ''}", work, cure)
    if len(works) > 1:
        labels = list(map(str, works))
        measurements = measure_in_turns(works.values(), labels, task.options)
    else:
        ((label, work),) = works.items()
        options = task.options.arguments()
        measurements = (measure(work, label=str(label), progress=False, **options),)
    if any(each.stopped_by == "interrupt" for each in measurements):
        raise KeyboardInterrupt  # not precise, so a resumed sweep must measure it again
    return measurements


def function_frame(points: Iterable[FunctionPoint]) -> "pd.DataFrame":
    """Return a table with one row per point, or one per work if a point has several."""
    import pandas as pd

    points = list(points)
    rows = [row for point in points for row in _rows(point)]
    arguments = (visible(name) for point in points for name in point.task.arguments)
    names = list(dict.fromkeys(arguments))
    works = [_WORK] if any(row.get(_WORK) for row in rows) else []
    table = pd.DataFrame(rows, columns=[*names, *works, *_COLUMNS])
    return table.astype({"clock_mhz": "Int64", "peak_bytes": "Int64", "n_samples": "Int64"})


def _rows(point: FunctionPoint) -> Iterator[dict[str, object]]:
    values = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in point.task.arguments.items()
    }
    about = {"source": point.source, "device_name": point.device_name}
    if point.error:
        yield visible_row(values | about | {"error": point.error})
    for number, taken in enumerate(point.measurements):
        yield visible_row(values | about | _times(taken) | _ratio(point, number))


def _times(taken: Measurement) -> dict[str, object]:
    low_s, high_s = taken.interval_s
    per_s = {rate.unit: rate.per_s for rate in taken.rates}
    limit = taken.binding
    return {
        _WORK: taken.label,
        "median_s": taken.median_s,
        "low_s": low_s,
        "high_s": high_s,
        "n_samples": taken.n_samples,
        "flops_per_s": per_s.get("FLOP", math.nan),
        "bytes_per_s": per_s.get("B", math.nan),
        "limit": "" if limit is None else limit.limit_name,
        "share_of_limit": math.nan if limit is None else limit.share,
        "peak_bytes": taken.peak_bytes,
        "clock_mhz": taken.conditions.clock_after_mhz,
        "findings": ",".join(finding.code for finding in taken.findings),
        "error": "",
    }


def _ratio(point: FunctionPoint, number: int) -> dict[str, object]:
    if number == 0:
        return dict.fromkeys(("ratio", "ratio_low", "ratio_high"), 1.0)
    comparison = point.comparisons[number - 1]
    low, high = comparison.ratio_interval
    return {"ratio": comparison.ratio, "ratio_low": low, "ratio_high": high}
