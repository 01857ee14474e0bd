"""All public outputs show text from other programs, and no terminal or page obeys it."""

import dataclasses
import html
import importlib
import inspect
import io
import json
import pkgutil
import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner
from matplotlib.figure import Figure as Canvas

import gpulab
from gpulab import cli, clocks, plots, recordings, roofline
from gpulab.core.errors import GpulabError, InvalidOptionError
from gpulab.core.foreign_text import one_line, visible
from gpulab.device import Device
from gpulab.device._report import DiagnosisRow, Report
from gpulab.device.measurement import Finding, Measurement
from gpulab.exercises import _html
from gpulab.exercises._carried import Carried
from gpulab.exercises._claims import ClaimReview
from gpulab.exercises._drawings import DrawingReview, draw
from gpulab.exercises._entries import Guess, Reveal
from gpulab.exercises._exercise import Exercise, Hint, Verdict
from gpulab.exercises._history import KeptPrediction
from gpulab.exercises._predictions import Prediction
from gpulab.exercises._progress import ExerciseProgress, Progress
from gpulab.exercises.lesson_04 import TEN_CALLS
from gpulab.figures import Lanes, Strip
from gpulab.gpus import Roof
from gpulab.happens_before import Hazard, Operation
from gpulab.roofline import Ceilings, Chart
from gpulab.roofline.scaling import Crossover, crossover
from gpulab.timing import BenchmarkResult, Comparison, Ladder, Rung
from gpulab.timing.cards._card import Card, CardCheck, CardEntry
from gpulab.tracing import Span, Summary, Timeline
from gpulab.tracing._counters import CounterSeries
from gpulab.tracing.sanitizer import Hazards
from gpulab.views.explorers import Explorer, crossover_explorer
from gpulab.views.live import Series, Trace
from gpulab.views.live import draw as draw_live
from gpulab.workloads.recordings import Recording
from gpulab.workloads.sweeps import FunctionPoint, Point, Sweep, Task
from gpulab.workloads.sweeps._functions import Setting
from tests.support import explored
from tests.support.conditions import HERE

NASTY = {
    "NUL": "a\0b",
    "ANSI": "a\x1b[31mred\x1b[2J",
    "C1": "a\x9b31m\x85b",
    "line ends": "a\r\nb\x0b\x0c\x1c\u2028c\u2029d",
    "backspaces": "12.5 ns\b\b\b\b\b\b1 ns\x7f",
    "direction": "a\u202eb\u2066c\u200f",
    "high surrogate": "a\ud800b",
    "low surrogate": "\udc80",
    "not XML": "a\ufffe\uffff\ufeff",
    "mathtext": r"$\frac{1}{$ and $x$",
    "markup": "<script>a</script>&\"'<!-- ]]>",
}


def texts(*quick: str) -> list[Any]:
    """Return all texts as parameters, of which only some are for the fast tests."""
    return [
        pytest.param(text, id=name, marks=() if name in quick else pytest.mark.slow)
        for name, text in NASTY.items()
    ]


def drawn_texts() -> list[Any]:
    """Return the texts in two parameters, because each drawing takes a quarter of a second."""
    names = ["mathtext", *(name for name in NASTY if name != "mathtext")]
    formula, slow = (" ".join(NASTY[name] for name in part) for part in (names[:6], names[6:]))
    return [
        pytest.param(formula, id="formula, controls"),
        pytest.param(slow, id="direction, surrogates, markup", marks=pytest.mark.slow),
    ]


# Characters that a terminal or a page obeys, or that no file can contain. A newline is left out:
# it may be from us.
OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff"
    "\ud800-\udfff\ufffe\uffff]"
)
PAGE = re.compile(r"\s*<(div|p|table|figure|pre|ul|svg)\b")
DOOR = re.compile(
    r"__str__|__repr__|_repr_\w+_|to_svg|to_frame|frame|section|summary|verdict|details"
    r"|to_chrome_trace|description|title|caption"
)
SHOWS = ("_repr_html_", "_repr_mimebundle_", "_repr_pretty_", "_repr_svg_", "to_frame", "to_svg")


def require_harmless(text: str) -> None:
    """Fail if the text has a character that a terminal obeys or that a file cannot contain."""
    obeyed = OBEYED.search(text)
    assert obeyed is None, (obeyed, text[:2000])
    text.encode()
    n_scripts = text.count("<script>") - text.count("<script>(() => {\nconst MARK")  # our own
    assert not n_scripts or not PAGE.match(text)


def spoiled(value: Any, text: str) -> Any:  # noqa: ANN401 # any record
    """Return a record with this text in every field that accepts it, at any depth."""
    if isinstance(value, str):
        return text
    if isinstance(value, tuple):
        return tuple(spoiled(part, text) for part in value)
    if isinstance(value, Mapping):
        return {name: spoiled(part, text) for name, part in value.items()}
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return value
    for field in dataclasses.fields(value):
        part = spoiled(getattr(value, field.name), text)
        # A field that allows only a few words, such as a kind, keeps its value.
        for candidate in (part, getattr(value, field.name)):
            try:
                value = dataclasses.replace(value, **{field.name: candidate})
            except (GpulabError, KeyError):
                continue
            break
    return value


class Printer:
    """IPython's printer, as far as records use it."""

    def __init__(self) -> None:
        self.written = ""

    def text(self, text: str) -> None:
        """Print this text."""
        self.written += text


def renderings(shown: Any, folder: Path) -> Iterator[str]:  # noqa: ANN401 # whatever is shown
    """Yield every text that an object shows, found by the names of its methods."""
    for name in dir(type(shown)):
        if not DOOR.fullmatch(name):
            continue
        door = getattr(shown, name)
        if name == "_repr_pretty_":
            printer = Printer()
            door(printer, False)  # noqa: FBT003 # as IPython calls it
            yield printer.written
        elif name == "to_chrome_trace":
            written = json.loads(door(folder / "trace.json").read_text("utf-8"))
            yield from texts_of(written)
        elif name == "section":
            for section in shown.sections:
                yield from texts_of(door(section))
        else:
            yield from texts_of(door() if callable(door) else door)


def texts_of(shown: object) -> Iterator[str]:
    """Yield the texts in what such a method returned."""
    if isinstance(shown, str):
        yield shown
    elif isinstance(shown, pd.DataFrame):
        yield from (shown.to_csv(), shown.to_string(), shown.to_html())
        yield from (text for text in shown.attrs.values() if isinstance(text, str))
    elif isinstance(shown, Mapping):
        for key, value in shown.items():
            yield from texts_of(key)
            yield from texts_of(value)
    elif isinstance(shown, list | tuple):
        for part in shown:
            yield from texts_of(part)
    elif isinstance(shown, Summary):
        yield from (str(shown), shown._repr_html_())
    else:
        assert shown is not None, "it shows nothing"


MEASUREMENT = Measurement(
    tuple(2e-5 + 1e-8 * (n % 7) for n in range(24)),
    "events",
    "measured",
    HERE,
    (Finding("code", "message", "advice"),),
    label="label",
    floor_s=1e-6,
    floor_method="work",
)
TIMELINE = Timeline(
    (
        Span("launch", "launch", "host", 0.0, 5e-6, correlation=1),
        Span("kernel", "gemm", "stream 7", 6e-6, 9e-6, 7, 0, "compute", 1),
        Span("kernel", "gemm", "stream 7", 8e-5, 9e-5, 7, 0, "compute", 2),
    ),
    "measured",
    "NVIDIA H200",
    (CounterSeries("memory", "B", 0, (0.0, 1e-5), (0.0, 4096.0)),),
)
EVENT = Span("event", "event", "stream 7", 1e-6, 1e-6, 7, 0, None, 3)
LATER = dataclasses.replace(EVENT, start_s=2e-5, end_s=2e-5, correlation=4)
BETWEEN_EVENTS = dataclasses.replace(TIMELINE, spans=(*TIMELINE.spans, EVENT, LATER))
POINT = Point(
    Task("add", 1024), median_s=2e-6, low_s=1e-6, high_s=3e-6, n_samples=9, device_name="GPU"
)
FAILED = Point(Task("sort", 4), error="out of memory", device_name="GPU", findings=("drift",))
CEILINGS = Ceilings("GPU", "measured", (Roof("measured", {"float32": 5e13}, 4e12, detail="x"),))
LADDER = Ladder(
    (Rung("naive", "nothing", MEASUREMENT, 2e-5), Rung("graph", "launch", obstacle="no")),
    "measured",
    "GPU",
    "label",
)
TRACE = Trace(
    (clocks.Reading(0.0, 1980, reasons=("power cap",)), clocks.Reading(0.1, 1900, reasons=("x",))),
    "measured",
    "GPU",
    2.0,
)
HAZARD = Hazard(
    "read after write",
    "tensor",
    Operation("add", "stream 1", "writes", "a.py:1"),
    Operation("mul", "stream 2", "reads", "a.py:2"),
    "wait",
)


def exercise(text: str) -> Exercise:
    """Return an exercise about this text."""
    judge: Any = SimpleNamespace(how=text)
    readings = pd.DataFrame({"what": [visible(text)], "time_s": [1e-6]})
    return Exercise(text, text, judge, (text,), {"a": text}, lambda: readings)


def kept_prediction(text: str) -> KeptPrediction:
    """Return a saved prediction with this text in all of its fields."""
    reveal = Reveal(text, text, text, text, text, text, is_right=False)
    return KeptPrediction(text, Guess(text, text, choice=text, confidence=text), reveal)


def spoiled_crossover(text: str) -> Crossover:
    """Return a crossover of devices with this name."""
    points = [dataclasses.replace(p, device_name=text) for p in explored.points("add")]
    return crossover("add", source=points)


def spoiled_chart(text: str) -> Chart:
    """Return a roofline of a GPU with this name."""
    points = [
        dataclasses.replace(POINT, device_name=text, task=Task("add", n)) for n in (64, 4096)
    ]
    return roofline.chart(points, spoiled(CEILINGS, text))


def spoiled_explorer(text: str) -> Explorer:
    """Return an explorer over a recording of devices with this name."""
    points = [dataclasses.replace(p, device_name=text) for p in explored.points("add")]
    here = {"cpu": "here", "gpu": "here", "n_threads": 1, "transfers": "none"}
    return crossover_explorer("add", points=points, **here)


def spoiled_point(text: str) -> FunctionPoint:
    """Return a point of a function, a parameter and a value with this name."""
    setting = Setting(text, json.dumps({"n": 1, text: text}))
    taken = spoiled(MEASUREMENT, text)
    return FunctionPoint(setting, measurements=(taken, taken), device_name=text)


def spoiled_sweep(text: str) -> Sweep:
    """Return a sweep over such a function, with a point that failed."""
    point = spoiled_point(text)
    failed = FunctionPoint(point.task, error=text, device_name=text)
    return Sweep((point, failed), {"gpu": text}, (point.task,), text)


def spoiled_hazards(text: str) -> Hazards:
    """Return hazards with this text in every name."""
    checker: Any = SimpleNamespace(hazards=(), operations=Counter())
    report = Hazards(checker)
    checker.hazards = (spoiled(HAZARD, text),)
    return report


# A function for each class that has a display of its own; it makes an object that contains a text.
SUBJECTS: dict[str, Callable[[str], object]] = {
    "Measurement": lambda text: spoiled(MEASUREMENT, text),
    "Finding": lambda text: spoiled(Finding("a", "b", "c"), text),
    "Comparison": lambda text: spoiled(Comparison(MEASUREMENT, MEASUREMENT), text),
    "Ladder": lambda text: spoiled(LADDER, text),
    "Timeline": lambda text: spoiled(TIMELINE, text),
    "Lanes": lambda text: Lanes.in_rows([text], [Strip(0, "kernel", text, 0.0, 1e-6)], 1e-6),
    "Summary": lambda text: spoiled(TIMELINE, text).summary(),
    "Point": lambda text: spoiled(POINT, text),
    "Task": lambda text: spoiled(Task("add", 1), text),
    "Sweep": lambda text: Sweep(
        (spoiled(POINT, text), spoiled(FAILED, text)), {"gpu": text}, (Task(text, 1),), text
    ),
    "Setting": lambda text: spoiled_point(text).task,
    "FunctionPoint": spoiled_point,
    "own Sweep": spoiled_sweep,
    "BenchmarkResult": lambda text: BenchmarkResult(
        spoiled(MEASUREMENT, text), spoiled(MEASUREMENT, text)
    ),
    "Recording": lambda text: Recording(
        text, {"gpu": text, "cpu": text}, (spoiled(POINT, text),), {text: ({text: text},)}
    ),
    "Ceilings": lambda text: spoiled(CEILINGS, text),
    "Trace": lambda text: spoiled(TRACE, text),
    "missing Trace": lambda text: dataclasses.replace(TRACE, missing=text),
    "Series": lambda text: Series((1,), spoiled(MEASUREMENT, text), 2),
    "Hazard": lambda text: spoiled(HAZARD, text),
    "Hazards": spoiled_hazards,
    "Device": lambda text: Device(text, "measured", text),
    "Report": lambda text: Report((DiagnosisRow(text, text, text, text),)),
    "PredictedTime": lambda text: spoiled(roofline.predict("add", 1024, gpu="H200"), text),
    "Crossover": spoiled_crossover,
    "Chart": spoiled_chart,
    "Explorer": spoiled_explorer,
    "Figure": lambda text: plots.draw(plots.samples, MEASUREMENT, title=text, alt=f"x {text}"),
    "ladder Figure": lambda text: plots.ladder(dataclasses.replace(LADDER, label=text)),
    "timeline Figure": lambda text: plots.timeline(spoiled(TIMELINE, text)),
    "crossover Figure": lambda text: plots.crossover(spoiled_crossover(text)),
    "live Figure": lambda text: draw_live(spoiled(TRACE, text)),
    "Verdict": lambda text: Verdict(ok=True, message=text),
    "Question": lambda text: exercise(text).asked,
    "ClaimReview": lambda text: ClaimReview(text, ((text, text, False),), text),
    "Card": lambda text: Card(
        *(text, "virtual", text, "hot", 0),
        (CardEntry(text, "hidden", 1e-6, 1e-6, (1e-6,), text),),
        (CardCheck(text, text),),
        HERE,
        text,
    ),
    "Hint": lambda text: Hint(text, 1, 2),
    "Carried": lambda text: Carried(text, text),
    "Progress": lambda text: Progress(((text, ExerciseProgress()),), (kept_prediction(text),)),
    "DrawingReview": lambda text: DrawingReview(
        _html.RIGHT,
        text,
        draw(text, [1.0] * 10, name="04.first", axes=TEN_CALLS).compare([1.0] * 10).figure,
    ),
    "Prediction": lambda text: Prediction(text, None, text, (text,), text),
    "GuessReview": lambda text: dataclasses.replace(
        Prediction("q", 1e-6, "s").compare(2e-6), message=text
    ),
}


# They draw a figure of several panels for each text.
DRAWN = {
    *("Explorer", "Figure", "crossover Figure", "ladder Figure", "live Figure", "timeline Figure"),
    *("DrawingReview", "Timeline"),
}
# They show only files that come with the package.
OUR_OWN_WORDS = ("Animation", "Glossary")


def classes_that_show_themselves() -> set[str]:
    """Return the public classes of the package that define how they are shown."""
    classes = set()
    for module in pkgutil.walk_packages(gpulab.__path__, "gpulab."):
        if ".lesson_" in module.name or module.name.endswith("__main__"):
            continue
        for name, each in vars(importlib.import_module(module.name)).items():
            is_own = inspect.isclass(each) and each.__module__ == module.name
            if is_own and not name.startswith("_") and any(door in vars(each) for door in SHOWS):
                classes.add(name)
    return classes


def test_whatever_shows_itself_is_tried() -> None:
    """Each class that defines how it is shown is in the list above."""
    others = {"Distribution", "ComparedGuess", *OUR_OWN_WORDS}  # a GuessReview is a ComparedGuess
    assert classes_that_show_themselves() - others <= set(SUBJECTS)


def require_harmless_renderings(name: str, text: str, folder: Path) -> None:
    """Expect that no terminal obeys what a record shows, and that files can contain it."""
    for rendering in renderings(SUBJECTS[name](text), folder):
        require_harmless(rendering)


@pytest.mark.parametrize("text", texts("ANSI", "high surrogate", "markup"))
@pytest.mark.parametrize("name", sorted(SUBJECTS.keys() - DRAWN))
def test_nothing_obeys_a_text(name: str, text: str, tmp_path: Path) -> None:
    """Every text that a record shows can be written to a file, and no terminal obeys it."""
    require_harmless_renderings(name, text, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("text", drawn_texts())
@pytest.mark.parametrize("name", sorted(DRAWN))
def test_nothing_obeys_a_drawn_text(name: str, text: str, tmp_path: Path) -> None:
    """The same for records that show a picture."""
    require_harmless_renderings(name, text, tmp_path)


# The text of a claim has columns of its own.
@pytest.mark.parametrize("name", sorted(SUBJECTS.keys() - DRAWN - {"ClaimReview"}))
def test_a_notebook_shows_what_a_terminal_shows(name: str) -> None:
    """The HTML of a record has all words of the first line of its text."""
    shown: Any = SUBJECTS[name]("name")
    if "__str__" in vars(type(shown)) and hasattr(shown, "_repr_html_"):
        page = html.unescape(re.sub(r"<[^>]*>", " ", shown._repr_html_()))
        first = str(shown).partition("\n")[0]
        assert set(re.findall(r"\w+", first)) <= set(re.findall(r"\w+", page))


PLOTTED: dict[str, Callable[[str], object]] = {
    "samples": lambda text: [spoiled(MEASUREMENT, text), MEASUREMENT],
    "compare_methods": lambda text: [spoiled(MEASUREMENT, text), MEASUREMENT],
    "scaling": lambda text: pd.DataFrame(
        {"size": [1, 2, 4, 8], "duration_s": [1e-6] * 4, "series": [one_line(text), "b"] * 2}
    ),
    "call_times": lambda text: spoiled(MEASUREMENT, text),
    "crossover": spoiled_crossover,
    "roofline": lambda text: roofline.chart(
        [dataclasses.replace(POINT, device_name="NVIDIA H200")],
        Ceilings("NVIDIA H200", "measured", spoiled(CEILINGS, text).roofs),
    ),
    "gaps": lambda text: pd.DataFrame(
        {"workload": [visible(text)], "plain_ratio": [1.2], "refined_ratio": [1.1]}
    ),
    "timeline": lambda text: spoiled(TIMELINE, text),
    "host_and_gpu": lambda text: spoiled(TIMELINE, text),
    "between_two_events": lambda text: {one_line(text): spoiled(BETWEEN_EVENTS, text)},
    "reading_and_work": lambda text: pd.DataFrame(
        {"n": [1, 2], "reading_s": [1e-6] * 2, "gpu_s": [1e-5] * 2, visible(text): [0, 0]}
    ),
    "host_times": lambda text: {text: 1e-6, "y.cpu()": 1e-3},
    "readings_in_order": lambda text: {text: [1e-6] * 3},
    "side_by_side": lambda text: {one_line(text): spoiled(TIMELINE, text)},
    "sweep": spoiled_sweep,
    "ladder": lambda text: dataclasses.replace(
        LADDER, rungs=(Rung(one_line(text), "nothing", MEASUREMENT, 2e-5),)
    ),
    "line": lambda text: pd.DataFrame({"n": [1, 2], f"{visible(text)}_s": [1e-6, 2e-6]}),
    "scatter": lambda text: pd.DataFrame({"n": [1, 2], visible(text): [1.0, 2.0]}),
    "bars": lambda text: pd.DataFrame({"name": [visible(text), "b"], "time_s": [1e-6, 2e-6]}),
}


def test_every_plot_is_tried() -> None:
    """Each function that draws on axes is in the list above."""
    drawn = {
        name
        for name in plots.__all__
        if inspect.isfunction(getattr(plots, name))
        and "ax" in inspect.signature(getattr(plots, name)).parameters
    }
    assert drawn <= set(PLOTTED)


# The other characters are shown by the same function, as the records above are drawn with them.
@pytest.mark.parametrize("text", drawn_texts()[:1])
@pytest.mark.parametrize("name", PLOTTED)
def test_plots_draw_a_text_as_it_is(name: str, text: str) -> None:
    """A name is drawn as text and not as a formula, and the SVG is well-formed and harmless."""
    ax = Canvas().add_subplot()
    getattr(plots, name)(PLOTTED[name](text), ax)
    ax.set_title("title")
    file = io.BytesIO()
    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.savefig(file, format="svg")
    ET.fromstring(file.getvalue())  # our own
    require_harmless(file.getvalue().decode())


@pytest.mark.parametrize("text", NASTY.values(), ids=NASTY)
def test_an_error_says_a_text_as_it_is(text: str) -> None:
    """The message of an error shows control characters, and no terminal obeys it."""
    require_harmless(str(InvalidOptionError(f"name={text}")))
    with pytest.raises(GpulabError) as error:
        recordings.load(f"{text}/x.jsonl")
    require_harmless(str(error.value))


@pytest.mark.parametrize("text", NASTY.values(), ids=NASTY)
def test_the_command_says_a_text_as_it_is(text: str, tmp_path: Path) -> None:
    """An error about a file can be printed, whatever the name of the file is."""
    name = text.replace("\0", "").replace("/", "")
    path = tmp_path / f"{name}.gz"
    result = CliRunner().invoke(
        cli.main, ["record", "--plan", "--gpu", "H200", "--out", str(path)]
    )
    assert result.exit_code in {1, 2}
    require_harmless(result.output)


def test_a_name_cannot_pass_for_a_line() -> None:
    """A name with a line break in it does not start a new line of the output."""
    forged = "H200\n24.9 µs per call"
    finding = Finding(forged, "message", forged)
    shown = str(dataclasses.replace(MEASUREMENT, label=forged, findings=(finding,)))
    assert len(shown.splitlines()) == 2  # the result, and a line for the finding
    assert "\n" not in str(spoiled(POINT.task, "a\nb"))
    assert str(Device("a\nb", "measured", "c\nd")).count("\n") == 0


def test_usual_text_stays_as_it_is() -> None:
    """Visible text in any script is not changed, and other characters become their escapes."""
    for text in ("24.9 µs ± 1", "名前", "שלום", "a\tb\nc", "e\u0301", "👩\u200d🔬"):
        assert visible(text) == text
    assert visible("a\x1b[31m\u202e") == r"a\x1b[31m\u202e"


def test_a_recording_keeps_any_name(tmp_path: Path) -> None:
    """Names with surrogates or line separators can be saved in a recording and read back."""
    for text in NASTY.values():
        made = Recording("mine", {"gpu": text}, (dataclasses.replace(POINT, device_name=text),))
        path = recordings.save(made, tmp_path / "mine.jsonl")
        loaded = recordings.load(path)
        assert (loaded.points[0].device_name, loaded.provenance["gpu"]) == (text, text)
