"""The record of a benchmark card: each reading beside the driver's, and failed situations."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, ClassVar

from gpulab.core.disk import write_whole
from gpulab.core.errors import InvalidOptionError, shown
from gpulab.core.foreign_text import one_line, visible, visible_row
from gpulab.core.markup import clean, table
from gpulab.core.requirements import PATH
from gpulab.core.serialization import Saved
from gpulab.core.units import aligned, format_percent, format_time
from gpulab.device.measurement import Conditions
from gpulab.gpus.provenance import check_source, device_label
from gpulab.timing.cards._works import HIDDEN, LESSONS

if TYPE_CHECKING:
    import pandas as pd

# Relative errors: a benchmark is tuned if the lessons' works are close and the hidden ones far
# off.
_CLOSE, _FAR = 0.15, 0.3
_HEAD = ("work", "known", "records", "yours", "off by", "spread", "gpulab.measure", "off by")


@dataclass(frozen=True, slots=True)
class CardEntry:
    """One work of a card, of the group ``"lessons"`` or ``"hidden"``.

    ``records_s`` is the time by the driver's records, for the card's state of the cache,
    ``measured_s`` that by :func:`gpulab.measure`, or None. ``readings_s`` are what the benchmark
    returned, one for each call of it. ``problem`` says why a reading is missing.

    >>> entry = CardEntry("matmul of 512", "hidden", 20e-6, 20e-6, (22e-6, 22e-6, 23e-6))
    >>> f"{entry.error:+.0%}"
    '+10%'
    """

    work: str
    group: str
    records_s: float
    measured_s: float | None
    readings_s: tuple[float, ...]
    problem: str = ""

    @property
    def error(self) -> float | None:
        """Relative difference of the median reading from the records; None without a reading."""
        return median(self.readings_s) / self.records_s - 1 if self.readings_s else None

    @property
    def measured_error(self) -> float | None:
        """Relative difference of :func:`gpulab.measure` from the records; None without a time."""
        return None if self.measured_s is None else self.measured_s / self.records_s - 1

    @property
    def spread(self) -> float | None:
        """Range of the readings as a share of their median; None for fewer than two readings."""
        if len(self.readings_s) < 2:  # noqa: PLR2004  # a spread needs two
            return None
        return (max(self.readings_s) - min(self.readings_s)) / median(self.readings_s)


@dataclass(frozen=True, slots=True)
class CardCheck:
    """Whether the benchmark handles a difficult situation, such as ``"a GPU that is still busy"``.

    ``problem`` is what went wrong; empty if it handles it.
    """

    situation: str
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Card(Saved):
    """How well a benchmark times the works of a card on one GPU.

    The card is about these works on this GPU and says nothing about other works. A benchmark that
    gets the right numbers by other means than timing would pass.

    Attributes
    ----------
    benchmark
        Name of the function.
    source, device_name
        As in a :class:`gpulab.Measurement`.
    cache
        ``"hot"`` or ``"cold"``: the state of the L2 cache in which the records agree better with
        the readings.
    seed
        Determines the hidden works: :func:`gpulab.card` with this seed has the same ones.
    entries
        One for each work.
    checks
        One for each difficult situation.
    conditions
        Versions, clock and temperature at the end.
    referee
        What the readings are compared with: the driver's records, those of the virtual GPU, or
        :func:`gpulab.measure` if there are no records.

    Raises
    ------
    UnknownNameError
        If the source is not one of the three.

    Examples
    --------
    >>> import gpulab
    >>> with gpulab.virtual_gpu("H200"):
    ...     result = gpulab.card(lambda fn: 1.0, seed=1, progress=False)
    >>> result.verdict()[1].partition(":")[2]
    ' it never called fn, so it timed nothing.'
    """

    schema: ClassVar[str] = "gpulab.card/1"

    benchmark: str
    source: str
    device_name: str
    cache: str
    seed: int
    entries: tuple[CardEntry, ...]
    checks: tuple[CardCheck, ...]
    conditions: Conditions
    referee: str

    def __post_init__(self) -> None:
        check_source(self.source)

    @property
    def median_error(self) -> float:
        """Median of the absolute relative errors of the hidden works; nan without a reading."""
        return self._median_error(HIDDEN)

    @property
    def is_tuned(self) -> bool:
        """Whether it times the works of the lessons well and the hidden ones badly."""
        return self._median_error(LESSONS) < _CLOSE and self.median_error > _FAR

    def to_frame(self) -> "pd.DataFrame":
        """Return a table with one row per work, times in seconds and errors as shares."""
        import pandas as pd

        rows = [
            {
                "work": entry.work,
                "group": entry.group,
                "records_s": entry.records_s,
                "median_s": median(entry.readings_s) if entry.readings_s else None,
                "error": entry.error,
                "spread": entry.spread,
                "measure_s": entry.measured_s,
                "measure_error": entry.measured_error,
                "problem": entry.problem,
            }
            for entry in self.entries
        ]
        return pd.DataFrame([visible_row(row) for row in rows])

    def save(self, path: str | Path) -> Path:
        """Write the card as HTML or as JSON, depending on the suffix, and return the path.

        Raises
        ------
        InvalidOptionError
            If the name ends neither in ``.html`` nor in ``.json``.
        NotSavedError
            If the file cannot be written.
        """
        PATH.check(path=path)
        target = Path(path)
        suffix = target.suffix.lower()
        if suffix not in (".html", ".json"):
            raise InvalidOptionError(
                f"path={shown(str(path))}; its name must end in .html or in .json"
            )
        text = self.to_json(indent=1) if suffix == ".json" else self._page()
        write_whole(target, text.encode())
        return target

    def __str__(self) -> str:
        rows = aligned([_HEAD, *map(_cells, self.entries)])
        return visible("\n".join([self._title, *rows, *self.verdict()]))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = map(_cells, self.entries)
        sentences = "".join(f"<p>{clean(line)}</p>" for line in self.verdict())
        return table(rows, caption=self._title, headings=_HEAD, has_row_headings=True) + sentences

    def verdict(self) -> tuple[str, ...]:
        """Return the card's findings, one sentence each."""
        sentences = [self._summary]
        if self.is_tuned:
            sentences.append(
                "It reads the works of the lessons well and the hidden ones badly: it is tuned to "
                "the works that it has seen."
            )
        readings = [(each.problem, each.work) for each in self.entries]
        sentences += _gathered("No reading of", readings)
        sentences += _gathered(
            "Does not handle", [(each.problem, each.situation) for each in self.checks]
        )
        handled = [each.situation for each in self.checks if not each.problem]
        sentences += [f"Handles {', '.join(handled)}."] if handled else []
        return tuple(map(visible, (*sentences, self._conditions)))

    @property
    def _title(self) -> str:
        device = device_label(self.device_name, self.source)
        return f"Benchmark card of {one_line(self.benchmark)} ({device}, {self.cache} cache)"

    @property
    def _summary(self) -> str:
        errors = [
            abs(each.measured_error) for each in self.entries if each.measured_error is not None
        ]
        ours = (
            f"gpulab.measure: median {_text(median(errors))}."
            if errors
            else "gpulab.measure: no reading."
        )
        if math.isnan(self.median_error):
            return f"It gave no reading of the hidden works. {ours}"
        worst = max(
            (each for each in self.entries if each.error is not None),
            key=lambda each: abs(each.error or 0),
        )
        return (
            f"Median error of the hidden works {_text(self.median_error)}; the worst of all is "
            f"{worst.work}, {_signed(worst.error)}. {ours}"
        )

    @property
    def _conditions(self) -> str:
        here = self.conditions
        clock = (
            "" if here.clock_after_mhz is None else f", {here.clock_after_mhz:g} MHz at the end"
        )
        driver = "" if here.driver_version is None else f", driver {here.driver_version}"
        return (
            f"Judged by {self.referee}. torch {here.torch_version}, gpulab "
            f"{here.gpulab_version}{driver}{clock}, {here.taken_at}, seed {self.seed}."
        )

    def _median_error(self, group: str) -> float:
        errors = (each.error for each in self.entries if each.group == group)
        return _median(abs(error) for error in errors if error is not None)

    def _page(self) -> str:
        title = clean(self._title)
        return (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">'
            f"<title>{title}</title></head><body><h1>{title}</h1>{self._repr_html_()}"
            "</body></html>\n"
        )


def _gathered(begin: str, reasons: list[tuple[str, str]]) -> list[str]:
    """Return one sentence for each problem, which names all works or situations with it."""
    problems = dict.fromkeys(problem for problem, _ in reasons if problem)
    return [
        f"{begin} {', '.join(what for other, what in reasons if other == problem)}: it {problem}."
        for problem in problems
    ]


def _cells(entry: CardEntry) -> tuple[str, ...]:
    return (
        entry.work,
        entry.group,
        format_time(entry.records_s),
        format_time(median(entry.readings_s)) if entry.readings_s else "no reading",
        _signed(entry.error),
        _text(entry.spread),
        "no reading" if entry.measured_s is None else format_time(entry.measured_s),
        _signed(entry.measured_error),
    )


def _median(values: Iterable[float]) -> float:
    numbers = list(values)
    return median(numbers) if numbers else math.nan


def _text(share: float | None) -> str:
    return "" if share is None else format_percent(share, 1)


def _signed(share: float | None) -> str:
    return "" if share is None else format_percent(share, 1, sign="+")
