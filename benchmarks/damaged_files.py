"""Damage every kind of file that gpulab reads, in many ways, and count what happens.

    python -m benchmarks.damaged_files --number 5000 --seed 1
    python -m benchmarks.damaged_files --kinds recording timeline

gpulab must refuse a damaged file with an error of its own that names the file, or read it if the
damage does no harm. A file that is read is then shown, tabulated and saved again. Raw errors,
numbers without meaning, and errors that do not name their file are failures: the exit code is 1.
The last columns are the most memory that Python used for one file, and the slowest file.
"""

import codecs
import contextlib
import dataclasses
import gzip
import io
import json
import math
import operator
import random
import sys
import tempfile
import time
import traceback
import tracemalloc
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.common.command_line import parser_of
from benchmarks.common.markdown import padded_table
from gpulab import clocks, course, exercises, lessons, recordings, roofline
from gpulab.core.disk import growing
from gpulab.core.errors import GpulabError
from gpulab.core.serialization import Saved
from gpulab.device.measurement import Finding, Measurement
from gpulab.exercises import _journal
from gpulab.exercises._entries import Answer, Guess, HintRead, Reset, Reveal, Stroke
from gpulab.roofline import survey
from gpulab.timing import Benchmarks, Comparison, Ladder, Rung
from gpulab.tracing import Span, Timeline
from gpulab.tracing._counters import CounterSeries
from gpulab.views.live import Trace
from gpulab.workloads import sweeps
from gpulab.workloads.sweeps import FunctionPoint, Point, Sweep, Task, seal, unsealed
from gpulab.workloads.sweeps._functions import Setting
from tests.support.conditions import HERE

NUMBER, SEED = 5_000, 1
Random = random.Random
# A text that no real file contains; the literals are put in its place.
_HOLE = "@@hole@@"
_BOMB_MEMBERS, _MEMBER_BYTES = 64, 16 << 20  # together 1 GiB
_MIB = 1 << 20

# The files to damage


_CONDITIONS = dataclasses.replace(
    HERE, clock_before_mhz=1980, power_after_w=310.5, throttle_reasons=("power cap",)
)
_MEASUREMENT = Measurement(
    tuple(2e-5 + 1e-8 * (number % 7) for number in range(24)),
    "calibrated",
    "measured",
    _CONDITIONS,
    (Finding("too-few-samples", "24 samples", "take more"),),
    inner_loops=4,
    label="a @ b",
    floor_s=2e-6,
    floor_error_s=1e-8,
    floor_method="work",
    flagged=(3,),
)
_TIMELINE = Timeline(
    (
        Span("launch", "cudaLaunchKernel", "host", 0.0, 5e-6, correlation=1),
        Span("kernel", "gemm<float>", "stream 7", 6e-6, 9e-6, 7, 0, "compute", 1),
        Span("copy", "HtoD", "stream 8", 7e-6, 2e-5, 8, 0, "copy in", 2, size_bytes=4096),
    ),
    "measured",
    "NVIDIA H200",
    (CounterSeries("memory", "B", 0, (0.0, 1e-5), (0.0, 4096.0)),),
)
_POINTS = tuple(
    Point(
        Task("add", size, on=side),
        median_s=2e-6 * number,
        low_s=1.9e-6 * number,
        high_s=2.2e-6 * number,
        n_samples=20,
        device_name="NVIDIA H200" if side == "gpu" else "A CPU",
        clock_mhz=1980,
        findings=("drift",),
    )
    for number, size in enumerate((1024, 4096, 65536), start=1)
    for side in ("gpu", "cpu")
)
_ABOUT = {
    "gpu": "NVIDIA H200",
    "source": "measured",
    "driver": "580.1",
    "torch": "2.13.0",
    "cuda": "13.0",
    "cpu": "A CPU",
    "n_threads": 16,
    "taken_at": "2026-11-20T12:00:00+00:00",
    "clocks": {"sm_mhz": 1980},
}
_SECTIONS = {
    "ceilings": (
        {"roof": "measured", "quantity": "memory", "value": 4e12, "unit": "B/s", "detail": "x"},
        {"roof": "measured", "quantity": "float32", "value": 5e13, "unit": "FLOP/s"},
    ),
    "left_out": ({"what": "sort/4/float32", "reason": "the time was over"},),
}
_RECORDING = recordings.Recording("mine", _ABOUT, _POINTS, _SECTIONS)
_RECORDS: dict[str, Saved] = {
    "measurement": _MEASUREMENT,
    "comparison": Comparison(_MEASUREMENT, _MEASUREMENT),
    "ladder": Ladder(
        (Rung("naive", "nothing", _MEASUREMENT, 2e-5), Rung("graph", "launch", obstacle="no")),
        "measured",
        "NVIDIA H200",
        "a @ b",
    ),
    "timeline": _TIMELINE,
    "trace": Trace(
        (clocks.Reading(0.0, 1980, power_w=100.5), clocks.Reading(0.1, 1900, reasons=("idle",))),
        "measured",
        "NVIDIA H200",
        2.0,
    ),
    "point": _POINTS[0],
    "benchmarks": Benchmarks((_MEASUREMENT,)),
}
_OF_FUNCTION = tuple(
    FunctionPoint(
        Setting("make", json.dumps({"n": n, "dtype": "float32"}), "calibrated-cold", "cd8b8e27"),
        measurements=(_MEASUREMENT, dataclasses.replace(_MEASUREMENT, label="own")),
        device_name="NVIDIA H200",
    )
    for n in (8, 16)
)
_AT = "2026-11-20T12:00:00+00:00"
_PROGRESS = (
    Guess("01.submit-big", _AT, number=2e-3, unit="s", confidence="sure"),
    Reveal("01.submit-big", _AT, "2 ms", size=1.5, is_right=True),
    Guess("04.curve", _AT, strokes=(Stroke("yours", (1.0, 2.0), (3.0, 4.0)),)),
    HintRead("01.hidden-sync", _AT),
    Answer("01.hidden-sync", _AT, ok=True),
    Reset(_AT, lesson="03"),
)
_COURSE_FILES = ("course.json", "marks/timing/ada.json")
_SECRET, _TOKEN = "0123456789abcdef", "3bc49d2f2e1d77f9"
_COURSE = {
    "course.json": json.dumps({"schema": "gpulab.course/1", "token": _TOKEN, "labs": ["timing"]}),
    "grader/secret": _SECRET,
    "marks/timing/ada.json": json.dumps(
        {
            "student": "ada",
            "problems": ["a cell was missing"],
            "marks": [
                {"question": "waits", "points": 1.5, "of": 2, "flag": "", "lines": []},
                {"question": "bytes", "points": 0, "of": 1, "flag": "slow", "lines": ["30 s"]},
            ],
        }
    ),
}


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of file.

    Attributes
    ----------
    text
        The content of an undamaged file.
    name
        The file's name.
    use
        Reads a file, and uses what it read as a program would.
    finished
        Turns a damaged text into the bytes of a file: packs it, or appends a checksum.
    is_packed
        Whether gpulab reads a packed file of this kind, too.
    names_file
        Whether a refusal must name the file; a record is read from text, which has no name.
    """

    text: str
    name: str
    use: Callable[[Path], object]
    finished: Callable[[bytes], bytes] = bytes
    is_packed: bool = False
    names_file: bool = True


def _saved(recording: recordings.Recording, name: str = "r.jsonl") -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        return recordings.save(recording, Path(folder) / name).read_bytes()


def _use_recording(path: Path, *, unfinished: bool = False) -> object:
    found = recordings.load(path, unfinished=unfinished)
    str(found)
    found.frame().to_csv()
    for name in found.sections:
        found.section(name).to_csv()
    if "ceilings" in found.sections:
        str(roofline.ceilings_of(found))
    recordings.save(found, path.with_name("again.jsonl"))
    if found.points:
        recordings.compare(found, found, virtual=True).to_csv()
    return found.points


def _use_journal(path: Path) -> object:
    with growing(path) as file:
        before = sweeps.Journal(file).before
        points, about = tuple(before.points.values()), before.provenance
    whole = Sweep(points, about)
    str(whole)
    whole.to_frame().to_csv()
    return points


def _function_sweep() -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "own.jsonl"
        with growing(path) as file:
            saved = sweeps.Journal(file)
            saved.begin(_ABOUT)
            for point in _OF_FUNCTION:
                saved.add(point)
        return path.read_text("utf-8")


def _use_survey(path: Path) -> object:
    return str(survey.plan(path, sections=["ceilings"], quick=True))


def _use_lessons(path: Path) -> object:
    return lessons.copy_lessons(path.parent)


def _progress() -> str:
    with tempfile.TemporaryDirectory() as folder:
        own = _journal.LearnerJournal(Path(folder))
        for record in _PROGRESS:
            own.add(record)
        return Path(folder, _journal.FILE_NAME).read_text("utf-8")


def _use_progress(path: Path) -> object:
    with contextlib.redirect_stderr(io.StringIO()):  # what a notebook says about a damaged line
        found = exercises.progress_in(path.parent)
        str(found), repr(found), exercises.page(found)
        exercises.class_progress(path.parent)
    return _journal.read(path).entries


def _use_course(path: Path, *, place: str) -> object:
    """Report on a course with one submission; the damaged file is the one at ``place``."""
    folder = path.parent / "course"
    for name, text in _COURSE.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    (folder / "submitted" / "ada" / "timing").mkdir(parents=True, exist_ok=True)
    (folder / place).write_bytes(path.read_bytes())
    return course.report(folder)


def _use_record(kind: type[Saved], path: Path) -> object:
    found = kind.from_json(path.read_bytes())
    str(found), repr(found)
    for name in ("_repr_html_", "summary", "verdict", "_repr_mimebundle_"):
        if hasattr(found, name):
            str(getattr(found, name)())
    if hasattr(found, "to_frame"):
        found.to_frame().to_csv()
    if kind.from_json(found.to_json()) != found:
        raise AssertionError("it is another record after it was saved and read again")
    return found


def _resealed(raw: bytes) -> bytes:
    """Append a matching checksum, so that the damage gets past the check to the code after it."""
    try:
        body = unsealed(raw.decode())
        return (body + seal(body)).encode()
    except (ValueError, RecursionError):
        return raw


def kinds() -> dict[str, Kind]:
    """Return every kind of file by its name."""
    whole = _saved(_RECORDING).decode()
    unfinished = unsealed(whole)
    found = {
        "recording": Kind(whole, "r.jsonl", _use_recording, is_packed=True),
        "recording, sealed again": Kind(whole, "r.jsonl", _use_recording, _resealed),
        "recording, unfinished": Kind(
            unfinished, "r.jsonl", partial(_use_recording, unfinished=True)
        ),
        "recording, packed": Kind(
            whole, "r.jsonl.gz", _use_recording, gzip.compress, is_packed=True
        ),
        "sweep": Kind(unfinished, "sweep.jsonl", _use_journal, is_packed=True),
        "sweep of a function": Kind(_function_sweep(), "own.jsonl", _use_journal, is_packed=True),
        "survey": Kind(unfinished, "r.jsonl", _use_survey, is_packed=True),
        "lessons": Kind(
            json.dumps({"00_start_here.ipynb": "0" * 64, "x.ipynb": "1" * 64}),
            ".gpulab.json",
            _use_lessons,
        ),
        "progress": Kind(
            _progress(),
            _journal.FILE_NAME,
            _use_progress,
            # The notebook's output names the file; the error then says that no progress is there.
            names_file=False,
        ),
    }
    for name in _COURSE_FILES:
        # The damaged file is copied into a course, so an error has another path than this one.
        use_course = partial(_use_course, place=name)
        found[Path(name).name] = Kind(_COURSE[name], Path(name).name, use_course, names_file=False)
    for name, record in _RECORDS.items():
        use = partial(_use_record, type(record))
        found[name] = Kind(record.to_json(), f"{name}.json", use, names_file=False)
    return found


# The ways to damage a file


def _truncated(raw: bytes, chance: Random) -> bytes:
    return raw[: chance.randrange(len(raw))]


def _flipped(raw: bytes, chance: Random) -> bytes:
    found = bytearray(raw)
    for _ in range(chance.choice((1, 1, 3, 20))):
        found[chance.randrange(len(found))] ^= 1 << chance.randrange(8)
    return bytes(found)


def _cut(raw: bytes, chance: Random) -> bytes:
    start = chance.randrange(len(raw))
    return raw[:start] + raw[start + chance.randrange(1, 40) :]


def _repeated(raw: bytes, chance: Random) -> bytes:
    start = chance.randrange(len(raw))
    end = start + chance.randrange(1, 400)
    return raw[:end] + raw[start:end] + raw[end:]


def _bomb(*_: object) -> bytes:
    """Return a megabyte that unpacks to a gigabyte."""
    member = gzip.compress(b" " * _MEMBER_BYTES)
    return gzip.compress(b'{"schema": "gpulab.sweep/1", "provenance": {}}\n') + (
        member * _BOMB_MEMBERS
    )


BYTES: dict[str, Callable[[bytes, Random], bytes]] = {
    "truncated": _truncated,
    "bits flipped": _flipped,
    "bytes cut out": _cut,
    "bytes repeated": _repeated,
    "noise": lambda raw, chance: chance.randbytes(len(raw)),
    "empty": lambda *_: b"",
    "zeros": lambda raw, _: b"\0" * len(raw),
    "UTF-16": lambda raw, _: raw.decode("latin-1").encode("utf-16"),
    "byte order mark": lambda raw, _: codecs.BOM_UTF8 + raw,
    "CR LF": lambda raw, _: raw.replace(b"\n", b"\r\n"),
}
LITERALS = {
    "deep list": "[" * 100_000 + "]" * 100_000,
    "deep object": '{"a":' * 50_000 + "1" + "}" * 50_000,
    "rather deep": "[" * 400 + "]" * 400,
    "1e400": "1e400",
    "10**5000": "1" + "0" * 5_000,
    "10**30": "1" + "0" * 30,
    "2**63": str(2**63),
    "negative": "-3",
    "negative real": "-2.5e-6",
    "tiny": "5e-324",
    "largest": "1.7e308",
    "nan": "NaN",
    "infinity": "-Infinity",
    "null": "null",
    "true": "true",
    "list": "[]",
    "object": "{}",
    "lone surrogate": r'"\ud800"',
    "line separator": '"a\N{LINE SEPARATOR}b\N{NEXT LINE}c"',
    "control characters": r'"\u0000\u001b[31m\n\r\u202e"',
    "mathtext": r'"$\\frac{1}{$"',
    "long text": json.dumps("x" * 200_000),
}


def _paths(value: object, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of keys to each value inside a value."""
    parts: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, dict):
        parts = value.items()
    elif isinstance(value, list):
        parts = enumerate(value)
    for key, part in parts:
        yield (*path, key)
        yield from _paths(part, (*path, key))


def _at(value: Any, path: Sequence[Any]) -> Any:  # noqa: ANN401 # whatever JSON can hold
    for key in path:
        value = value[key]
    return value


def _changed(text: str, chance: Random, change: Callable[[Any, Any], object]) -> str:
    """Change one value of one line; ``change`` gets the dict or list around it, and its key."""
    lines = text.splitlines()
    number = chance.randrange(len(lines))
    row = json.loads(lines[number])
    *outer, key = chance.choice(list(_paths(row)))
    change(_at(row, outer), key)
    lines[number] = json.dumps(row)
    return "\n".join(lines) + "\n" * text.endswith("\n")


def _with_literal(literal: str, text: str, chance: Random) -> str:
    # Through a placeholder, because some literals, such as 1e400, cannot pass through a JSON
    # writer.
    def put(holder: Any, key: Any) -> None:  # noqa: ANN401 # a dict or a list
        holder[key] = _HOLE

    return _changed(text, chance, put).replace(f'"{_HOLE}"', literal)


def _without_key(text: str, chance: Random) -> str:
    return _changed(text, chance, operator.delitem)


def _renamed(text: str, chance: Random) -> str:
    def rename(holder: Any, key: Any) -> None:  # noqa: ANN401 # a dict or a list
        if isinstance(holder, dict):
            holder[f"{key}\ud800\x1b"] = holder.pop(key)

    return _changed(text, chance, rename)


def _twice(text: str, chance: Random) -> str:
    # A brace before an escaped quote is inside a text.
    braces = [i for i, sign in enumerate(text) if sign == "{" and text[i + 1] != "\\"]
    start = chance.choice(braces) + 1
    keys = list(json.JSONDecoder().raw_decode(text, start - 1)[0])
    return f"{text[:start]}{json.dumps(chance.choice(keys))}: 1, {text[start:]}" if keys else text


def _newer(text: str, _: Random) -> str:
    return text.replace('/1"', '/2"')


def _shuffled(text: str, chance: Random) -> str:
    lines = text.splitlines(keepends=True)
    chance.shuffle(lines)
    return "".join(lines)


TEXTS: dict[str, Callable[[str, Random], str]] = {
    **{name: partial(_with_literal, literal) for name, literal in LITERALS.items()},
    "key missing": _without_key,
    "key renamed": _renamed,
    "key twice": _twice,
    "newer schema": _newer,
    "lines shuffled": _shuffled,
}
BOMB = "unpacks to 1 GiB"
MUTATIONS = (*BYTES, *TEXTS, BOMB)


def damaged(kind: Kind, mutation: str, chance: Random) -> bytes | None:
    """Return the bytes of a damaged file; None if this damage does not apply to this kind."""
    if mutation == BOMB:
        return _bomb() if kind.is_packed else None
    if mutation in BYTES:
        return BYTES[mutation](kind.finished(kind.text.encode()), chance)
    return kind.finished(TEXTS[mutation](kind.text, chance).encode(errors="surrogatepass"))


# What happens to the files


REFUSED, READ, RAW, NONSENSE, NAMELESS = (
    *("refused", "read", "raw error", "nonsense read", "file not named"),
)
FAILURES = (RAW, NONSENSE, NAMELESS)
_PLACES = {"start_s", "end_s", "times_s", "at_s"}  # points in time, which may be negative


class Tally(Counter[str]):
    """Numbers of files by their outcome, and the memory and time of the worst file."""

    peak_bytes = 0
    slowest_s = 0.0


def outcome(kind: Kind, content: bytes, folder: Path) -> tuple[str, str]:
    """Return the outcome of reading a file, and its error in a line, or an empty text."""
    path = folder / kind.name
    path.write_bytes(content)
    try:
        found = kind.use(path)
    except GpulabError as error:
        text = str(error)
        named = str(path) in text or not kind.names_file
        return (REFUSED if named else NAMELESS), f"{type(error).__name__}: {text}"
    except Exception as error:  # noqa: BLE001 # these errors are what the campaign looks for
        where = traceback.extract_tb(error.__traceback__)[-1]
        return RAW, f"{type(error).__name__}: {error} ({where.filename}:{where.lineno})"
    return (NONSENSE, repr(found)) if any(map(_means_nothing, _numbers(found))) else (READ, "")


def _means_nothing(named: tuple[str, float]) -> bool:
    name, value = named
    is_amount = name.endswith(("_s", "_mhz", "_w")) and name not in _PLACES
    return not math.isfinite(value) or (is_amount and value < 0)


def _numbers(found: object, name: str = "") -> Iterator[tuple[str, float]]:
    if isinstance(found, float | int):
        yield name, found
    elif dataclasses.is_dataclass(found):
        for part in dataclasses.fields(found):
            yield from _numbers(getattr(found, part.name), part.name)
    elif isinstance(found, tuple | list):
        for each in found:
            yield from _numbers(each, name)


def cases(number: int, seed: int, names: Sequence[str]) -> Iterator[tuple[str, str, Random]]:
    """Yield kind, mutation and random generator of each file: ``number`` files, pair by pair."""
    chance = Random(seed)
    # Every pair of kind and damage comes before any comes twice, so a short run has tried all of
    # them.
    pairs = [(name, mutation) for mutation in MUTATIONS for name in names]
    for place in range(number):
        yield *pairs[place % len(pairs)], Random(chance.random())


def run(
    number: int, seed: int, names: Sequence[str], folder: Path
) -> tuple[dict[str, Tally], list[str]]:
    """Damage and read the files; return a tally for each kind, and the failures."""
    known = kinds()
    tallies: dict[str, Tally] = defaultdict(Tally)
    failures = []
    # First undamaged: these must be read, and reading them imports everything that is needed.
    for name in names:
        content = known[name].finished(known[name].text.encode())
        if (found := outcome(known[name], content, folder))[0] != READ:
            raise SystemExit(f"{name}: an undamaged file is not read: {found}")
    # From here on, so that imports and caches do not count as memory of a file.
    tracemalloc.start()
    for name, mutation, chance in cases(number, seed, names):
        content = damaged(known[name], mutation, chance)
        if content is None:
            continue
        tracemalloc.reset_peak()
        before_bytes, start_s = tracemalloc.get_traced_memory()[0], time.perf_counter()
        found, error = outcome(known[name], content, folder)
        took_s = time.perf_counter() - start_s
        peak_bytes = tracemalloc.get_traced_memory()[1] - before_bytes
        tally = tallies[name]
        tally[found] += 1
        tally.peak_bytes = max(tally.peak_bytes, peak_bytes)
        tally.slowest_s = max(tally.slowest_s, took_s)
        if found in FAILURES:
            failures.append(f"{found}: {name}, {mutation}: {ascii(error)[:400]}")
    tracemalloc.stop()
    return tallies, failures


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table and all failures."""
    made = parser_of("benchmarks.damaged_files", __doc__)
    made.add_argument("--number", type=int, default=NUMBER, help="number of files")
    made.add_argument("--seed", type=int, default=SEED, help="seed of the choice of damages")
    made.add_argument(
        "--kinds", nargs="+", choices=sorted(kinds()), default=None, help="default: all kinds"
    )
    options = made.parse_args(arguments)
    names = options.kinds or list(kinds())
    with tempfile.TemporaryDirectory() as folder:
        tallies, failures = run(options.number, options.seed, names, Path(folder))
    heads = (REFUSED, READ, *FAILURES)
    rows = [
        [
            name,
            *(str(tally[head]) for head in heads),
            f"{tally.peak_bytes / _MIB:.1f}",
            f"{tally.slowest_s:.2f}",
        ]
        for name, tally in tallies.items()
    ]
    print(*padded_table(("file", *heads, "peak MiB", "slowest s"), rows), *failures, sep="\n")
    total = sum(tallies.values(), Counter[str]())
    print("; ".join(f"{total[name]:,} {name}" for name in heads))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
