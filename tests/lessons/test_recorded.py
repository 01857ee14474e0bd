"""Every figure that a lesson calls recorded is what the data say, to its last digit.

Each sentence has a form with places for its figures. They come from the saved claims, the shipped
recordings, the results of benchmarks, and ``benchmarks/results/lesson-figures.json``, which has
the figures of single runs, by their GPUs, lessons and sentences.
"""

import json
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import gpulab
from gpulab import exercises
from gpulab.workloads import WORKLOADS
from tests.support.lesson_text import LessonText
from tests.support.lessons import ROOT, SOURCES

RESULTS = ROOT / "benchmarks" / "results"
GPUS = ("NVIDIA H200", "NVIDIA H100 80GB HBM3")
# Names of GPUs, lessons and types, dates, and sizes of the data are no figures.
NAMES = re.compile(
    r"\bL2\b|\bH\d00s?\b|\bfloat32\b|\blessons? \d+b?\b|\(\d+b?\)|November 2026|\b16 cores"
    r"|\b\d+ MiB\b|n = \d+ and n = \d+"
)
BOUNDARY = re.compile(r"(?<=[.!?:]) (?=[A-Z*(-])")

Said = tuple[str, str, Sequence[float]]  # lesson, form of the sentence, figures


def read(*path: str) -> Any:  # noqa: ANN401  # any JSON
    """Return the content of a file of data."""
    return json.loads(ROOT.joinpath(*path).read_text("utf-8"))


def claims(*names: str) -> list[float]:
    """Return what claims came to on both recorded GPUs."""
    saved = read("gpulab", "data", "lesson_claims.json")["claims"]
    return [saved[name]["recorded"][gpu] for name in names for gpu in GPUS]


def flushed() -> Iterator[Said]:
    """Yield what lesson 06 says about times after flushes."""
    measured = read("benchmarks", "results", "cold-cache-h200.json")
    works = measured["works"]
    yield "06", "over {} kernels", [len(works)]
    counted = exercises.readings("06.staircase")
    layer = counted.query("work == 'linear layer' and working_set_mib == 45").squeeze()
    l2_mb = measured["origin"]["l2_bytes"] / 1e6
    yield "06", "weights of {:.1f} MB, in an L2 of {:.1f} MB", [layer["cold_mb"], l2_mb]

    def us(work: str, size_mib: int, *ways: str) -> list[float]:
        return [works[work]["times_us"][str(size_mib)][way][0] for way in ways]

    yield (
        "06",
        "30 MiB in all take {:.1f} µs, and 60 MiB take {:.1f} µs",
        [
            *us("add", 30, "hot"),
            *us("add", 60, "hot"),
        ],
    )
    repeated = "of 60 MiB takes {:.1f} µs when repeated and {:.1f} µs in a clean cache"
    yield "06", repeated, us("softmax", 60, "hot", "read 2x")
    ways = ("read 2x", "write 256 MiB", "write 256 MiB, wait 1 ms", "rotate 2x")
    read_us, write_us, paused_us, rotated_us = us("linear, 1 row", 30, *ways)
    yield "06", "{:.1f} µs without the pause, {:.1f} µs with it", [write_us, paused_us]
    yield "06", "layer: {:.1f}, {:.1f} and {:.1f} µs", [read_us, write_us, rotated_us]
    after = "{:.1f} µs after a read flush, {:.1f} µs after a write flush, {:.1f} µs in rotation"
    yield "06", after, us("softmax", 30, "read 2x", "write 256 MiB", "rotate 2x")
    lost = (us(name, 30, *ways[:2]) for name in ("fill", "sum", "matrix product", "linear, 1 row"))
    yield (
        "06",
        "at 30 MiB: fill +{:.0f} %, sum +{:.0f} %, matmul {:.0f} %, linear layer +{:.0f} %",
        [100 * (write / read - 1) for read, write in lost],
    )


def rows_of_flushes() -> Iterator[Said]:
    """Yield the rows of the table of lesson 06, from the page that the benchmark writes."""
    page = (ROOT / "docs" / "cold-cache.md").read_text("utf-8")
    for way, name in {
        "read 1x": "1 times the L2",
        "read 1.5x": "1.5 times",
        "read 2x": "2 times",
        "read 4x": "4 times",
    }.items():
        first, second = re.findall(rf"^\| {re.escape(way)} \| (.*) \|$", page, re.MULTILINE)
        takes, left, *_ = first.split(" | ")
        written = float(second.split(" | ")[2])
        form = f"| {name} | {{:.0f}} µs | {{:.1f}} % | {{:.1f}} MB |"
        yield "06", form, [float(takes), float(left.removesuffix(" %")), written]


def cold_kernels() -> Iterator[Said]:
    """Yield what lesson 10 says about softmaxes and matmuls, by the data sheet's bandwidth."""
    frame = gpulab.recordings.load("h200-sxm-2026-11").frame()
    frame = frame.query("cache == 'cold' and method == 'calibrated'")
    times_s = frame.set_index(["workload", "dtype", "size"])["median_s"].to_dict()
    half_s, single_s = (times_s["softmax", dtype, 4096] for dtype in ("float16", "float32"))
    half_least_s = 4 * 4096 * 4096 / 4.8e12
    form = "4,096 such rows take {:.0f} µs in half precision, {:.1f} times the plain prediction"
    yield "10", form, [1e6 * half_s, half_s / half_least_s]
    form = "bytes and take {:.0f} µs as well, {:.1f} times the prediction"
    yield "10", form, [1e6 * single_s, single_s / (2 * half_least_s)]
    matmuls_us = [1e6 * times_s[name, "float16", 2048] for name in ("matmul_odd", "matmul")]
    yield "10", "n = 2048: {:.0f} µs with odd sides, and {:.0f} µs with aligned rows", matmuls_us


@cache
def said() -> list[Said]:
    """Return all sentences with figures that were recorded."""
    kept = read("benchmarks", "results", "lesson-figures.json")
    return [
        *(
            (lesson, form, figures)
            for lessons in kept.values()
            for lesson, forms in lessons.items()
            for form, figures in forms.items()
        ),
        (
            "08b",
            "took {1:.2f} times as long on an H100, and {0:.2f} times on an H200",
            [*claims("08.prefetch-is-faster")],
        ),
        ("10", "the step was {:.0f} %", claims("10.wave")),
        ("10", "the recorded times of {} operations", [len(WORKLOADS)]),
        ("11", "{:.0f} % on an H200, {:.0f} % on an H100", claims("11.profiler-costs")),
        *flushed(),
        *rows_of_flushes(),
        *cold_kernels(),
    ]


def id_of(text: LessonText) -> str:
    """Return a lesson's number with its letter."""
    return text.source.stem.split("_")[0]


def prose_of(text: LessonText) -> list[str]:
    """Return the texts of a lesson and its exercises, each on one line."""
    return [" ".join(paragraph.split()) for paragraph in text.strings]


def without_a_source(text: LessonText) -> list[str]:
    """Return the recorded sentences with figures that no data belong to."""
    forms = [form.format(*figures) for lesson, form, figures in said() if lesson == id_of(text)]
    found = []
    for paragraph in prose_of(text):
        rest = paragraph
        for form in forms:
            rest = rest.replace(form, "FIGURES ")
        parts = [rest] if rest.startswith("|") else BOUNDARY.split(rest)
        found += [
            part
            for before, part in zip(["", *parts], parts, strict=False)
            # A colon before the figures, as in "*Recorded* on an H200: 3 µs", ends no sentence.
            if "ecorded" in part + (before if before.endswith(":") else "")
            if re.search(r"\d", NAMES.sub("", re.sub(r"`[^`]*`", "", part)))
        ]
    return found


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_each_recorded_figure_has_its_data(source: Path) -> None:
    """No sentence with "recorded" has a figure of which the data do not know."""
    assert without_a_source(LessonText(source)) == []


def test_no_sentence_of_the_data_is_left_over() -> None:
    """Each sentence with figures is in its lesson, and has the figures of the data."""
    texts = {id_of(text): " ".join(prose_of(text)) for text in map(LessonText, SOURCES)}
    sentences = [(lesson, form.format(*figures)) for lesson, form, figures in said()]
    assert [each for each in sentences if each[1] not in texts[each[0]]] == []
