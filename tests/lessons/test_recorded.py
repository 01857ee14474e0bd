"""Every figure that a lesson calls recorded is what the data say, to its last digit.

Each sentence has a form with places for its figures. They come from the saved claims, the shipped
recordings, the results and pages of benchmarks, and ``benchmarks/results/lesson-figures.json``:
what a visit to an H200 recorded, and the values of claims that no lesson makes any more.
"""

import json
import math
import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import pytest

import gpulab
from gpulab import exercises
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


def single_runs() -> Iterator[Said]:
    """Yield what the lessons say from the visit to an H200, by lesson and sentence."""
    visit = read("benchmarks", "results", "lesson-figures.json")["visit"]
    works, first_s = visit["works"], visit["first_use_s"]
    add, relus = works["add_f32_2^10"], works["relu_chain10_2^14"]
    yield from launches_of(works)
    yield "02", "its kernel takes {:.1f} µs", [add["cold_kernels_us"]]
    yield "02", "{:.0f} µs for the addition", [add["synchronized_us"]]
    form = "as your first cell did: its pairs read {:.1f} µs"
    yield "03", "the same kernel of {:.1f} µs between", [add["cold_kernels_us"]]
    yield "03", form, [add["events_us"]]
    yield "03", "only once, at the end: its pairs read {:.1f} µs", [add["events_ahead_us"]]
    firsts = ("context_init_s", "first_matmul_s", "first_half_matmul_s", "first_conv_s")
    form = (
        "the context took {:.0f} ms, the first matmul {:.0f} ms, the first in half precision "
        "{:.0f} ms, the first convolution {:.0f} ms"
    )
    yield "04", form, [1e3 * first_s[name] for name in firsts]
    form = "A tensor of 64 MB took {:.0f} µs from the driver, and {:.0f} µs from"
    yield "04", form, [1e6 * first_s[f"{name}_alloc_64MB_s"] for name in ("second", "cached")]
    contexts_s = [first_s["context_init_s"], earlier_claims("04.context")[0]]
    yield (
        "04",
        "in two processes were {:.0f} ms and {:.0f} ms",
        [1e3 * each for each in contexts_s],
    )
    yield from loads_of(visit["clocks_under_load"])
    form = "a pair reads {:.0f} µs for ten relus, and their kernels take {:.0f} µs"
    yield "07", form, [relus["events_us"], relus["hot_kernels_us"]]
    yield "07", "1,000,000 cycles take {:.2f} ms", [visit["sleep_ms"]["1000000"]]
    yield from copies_of(visit)
    yield "09", "crossed at n = {:.0f}", [crossing_of(visit["cross_mm"])]


def launches_of(works: dict[str, Any]) -> Iterator[Said]:
    """Yield what lesson 01 says about the host's time for each kind of operation."""

    def span(*prefixes: str) -> list[float]:
        costs_us = [
            work["host_cost_us"] for name, work in works.items() if name.startswith(prefixes)
        ]
        return [min(costs_us), max(costs_us)]

    form = "{:.0f} to {:.0f} µs for an element-wise operation"
    yield "01", f"*Recorded* on the host of an H200: {form}", span("add", "exp")
    # Of matmuls in half precision and linear layers.
    yield "01", "{:.0f} to {:.0f} µs for a matmul or a linear layer", span("mm_f16", "linear")
    yield "01", "{:.0f} µs for a convolution", span("conv")[:1]


def loads_of(load: dict[str, Any]) -> Iterator[Said]:
    """Yield what lesson 05 says of rows with a time, MHz, watts, degrees and a reason."""
    rows = load["rows"]
    lower = next(index for index, row in enumerate(rows) if row[1] < 0.9 * rows[0][1])
    named = next(index for index, row in enumerate(rows) if row[4])
    steady = [row for row in rows[lower:] if row[2] > 680]
    ended = max(index for index, row in enumerate(rows) if row[1] < 0.9 * rows[0][1]) + 1
    clocks_mhz = sorted(row[1] for row in rows[lower:ended])
    middle_mhz = clocks_mhz[len(clocks_mhz) // 2]
    step_s = rows[lower][0] - rows[lower - 1][0]
    form = (
        "takes {:.2f} ms in a burst and {:.2f} ms settled (recorded on an H200, where the clock "
        "falls within {:.1f} s)"
    )
    yield "05", form, [min(load["ms_first"]), load["ms_1000"], step_s]
    renewed_s = [after[0] for before, after in pairwise(rows) if after[2] != before[2]]
    every_s = median(after - before for before, after in pairwise(renewed_s))
    form = (
        "renews its readings every {:.1f} s. It names the reason {:.1f} s after the clock has "
        "fallen"
    )
    yield "05", form, [every_s, rows[named][0] - rows[lower][0]]
    form = "{:g} MHz falls to about {:g} within {:.1f} s"
    yield "05", form, [rows[0][1], middle_mhz, step_s]
    power_w = sorted(row[2] for row in steady)[len(steady) // 2]
    hottest = max(row[3] for row in rows)
    yield (
        "05",
        "arrives at {:.0f}0 W of 700, and the chip stays below {:g} °C",
        [power_w / 10, hottest + 1],
    )
    yield "05", "showed {:g} MHz again, the second {:g}", [rows[ended][1], rows[ended + 1][1]]
    yield "05", "still names it {:.1f} s after the work is done", [rows[-1][0] - rows[ended][0]]
    dips = [row[1] for before, row in pairwise(rows[lower:ended]) if row[1] < min(before[1], 1340)]
    form = "at about {:g} MHz, it dipped to {:g} MHz and, a second later, to {:g}"
    yield "05", form, [middle_mhz, *dips]


def copies_of(visit: dict[str, Any]) -> Iterator[Said]:
    """Yield what lesson 08 says about copies and about programs with one race."""
    copies = visit["copies_256_mib"]
    pinned, ordinary = copies["h2d_pinned"], copies["h2d_pageable"]
    form = "a pinned copy blocks Python for {:.0f} µs, an ordinary one for {:.1f} ms"
    yield "08", form, [pinned["host_returns_us"], ordinary["host_returns_us"] / 1e3]
    form = "a pinned copy moves {:.0f} GB/s; a pageable one moves {:.0f} GB/s in and {:.0f} out"
    rates = [each["GBps"] for each in (pinned, ordinary, copies["d2h_pageable"])]
    yield "08", form, rates
    alone = visit["seed_double_buffer_device_war_fixed"]
    yield "08", "{} of {} steps with the device's wait alone", [alone["wrong_steps"], alone["of"]]


def crossing_of(times: dict[str, dict[str, float]]) -> float:
    """Return where a GPU gets ahead, on a straight line between the logarithms of two sizes."""
    ratios = {int(n): math.log(each["gpu"] / each["cpu"]) for n, each in times.items()}
    for (small, before), (large, after) in pairwise(sorted(ratios.items())):
        if before > 0 > after:
            return float(small * (large / small) ** (before / (before - after)))
    raise AssertionError("the curves do not cross")


def earlier_claims(*names: str) -> list[float]:
    """Return what claims that no lesson makes any more came to on both recorded GPUs."""
    saved = read("benchmarks", "results", "lesson-figures.json")["claims_of_earlier_lessons"]
    return [saved[name][gpu] for name in names for gpu in GPUS]


def said_of_earlier_claims() -> Iterator[Said]:
    """Yield the sentences with values of claims that the lessons made before."""
    fresh, cold = earlier_claims("06.fresh-rows"), earlier_claims("06.cold-slower")
    form = (
        "fresh rows take {:.2f} and {:.2f} times as long as the same row, and cold ones {:.2f} "
        "and {:.2f} times"
    )
    yield "06", form, [*fresh, *cold]
    forms = {
        "06.write-flush-slower": "{:.2f} times as long on an H200, and {:.2f} times on an H100. C",
        "07.graph-faster": "a replay takes {:.2f} times as long as ten launches on an H200, and "
        "{:.2f} times on an H100",
        "12.fusion": "trips to memory.** *Recorded*: {:.1f} times on an H200, {:.1f} on an H100",
        "12.order-alone": "with the first way: {:.1f} % on an H200, {:.1f} % on an H100",
        "12.data": "in place of zeros. *Recorded*: {:.2f} times on an H200, {:.2f} on an H100",
        "12.channels-last": "*Recorded*: {:.1f} times on an H200, {:.1f} on an H100. (The",
        "12.random-order": "it took {:.2f} times as long as in order on an H200, and {:.2f} times "
        "on an H100",
        "12.launch-jitter": "{:.1f} times on an H200, {:.1f} times on an H100",
    }
    for name, form in forms.items():
        lesson = "07b" if name.startswith("07") else name[:2]
        yield lesson, form, earlier_claims(name)
    # One figure for both GPUs, which would be two if they differed.
    yield (
        "12",
        "was {:.0f} times as fast on an H200 and on an H100",
        earlier_claims("12.batching")[:1],
    )
    yield (
        "08",
        "*Recorded* on an H200 and an H100: {:.0f} of 40",
        earlier_claims("08.listing-is-wrong")[:1],
    )
    form = "{:.0f} of 20 sums were wrong on an H200, {:.0f} of 20 on an H100"
    yield "08b", form, earlier_claims("08.dropped-too-early")


def floors() -> Iterator[Said]:
    """Yield what lesson 03 says about the floor of a pair, and how much a method is off."""
    pairs = exercises.readings("03.floor").query("kernel_s > 0")
    typical_us = 1e6 * (pairs["pair_s"] - pairs["kernel_s"]).median()
    yield "03", "about {:.0f} µs, for short and for long kernels", [typical_us]
    page = (ROOT / "docs" / "accuracy.md").read_text("utf-8")

    def error_us(row: str) -> float:
        match = re.search(rf"^\| \**{re.escape(row)}\** \| \d+ \| ([\d.]+) µs", page, re.MULTILINE)
        assert match, row
        return float(match[1])

    rows = ("method events", "`gpulab.measure`, floor of the device, hot", "`gpulab.measure`, hot")
    form = "{:.1f} µs for plain pairs, {:.2f} µs with the floor of the device, {:.2f} µs with the"
    yield "03", form, [error_us(row) for row in rows]


def cold_hosts() -> Iterator[Said]:
    """Yield what lesson 01 says about a launch after a wait."""
    cold = read("gpulab", "data", "host.json")["cold"]
    after = dict(zip(cold["waits_us"], cold["after_wait"], strict=True))
    form = (
        "after a wait of 0.1 ms a launch takes {:.2f} times as long, after 2.7 ms {:.1f} times "
        "and after 21 ms {:.1f} times"
    )
    yield "01", form, [after[100], after[2700], after[21000]]


def monitors() -> Iterator[Said]:
    """Yield what lesson 11b says about the power of two programs."""
    rows = read("gpulab", "data", "monitors.json")["rows"]

    def middle(program: str, column: str) -> float:
        return float(median(row[column] for row in rows[program]))

    form = "one thread {:.0f} % at {:.0f} W, matmuls {:.0f} % at about {:.0f}0 W of 700"
    figures = [middle("c", "sm_percent"), middle("c", "pwr_w"), middle("a", "sm_percent")]
    yield "11b", form, [*figures, middle("a", "pwr_w") / 10]


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


def n_recorded_workloads() -> int:
    """Return how many workloads the shipped recording of an H200 has."""
    return int(gpulab.recordings.load("h200-sxm-2026-11").frame()["workload"].nunique())


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
def sentences_of_data() -> list[Said]:
    """Return all sentences with figures that were recorded."""
    return [
        *single_runs(),
        *said_of_earlier_claims(),
        *floors(),
        *cold_hosts(),
        *monitors(),
        (
            "08b",
            "took {1:.2f} times as long on an H100, and {0:.2f} times on an H200",
            [*claims("08.prefetch-is-faster")],
        ),
        ("10", "the recorded times of {} operations", [n_recorded_workloads()]),
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
    forms = [
        form.format(*figures)
        for lesson, form, figures in sentences_of_data()
        if lesson == id_of(text)
    ]
    unknown = []
    for paragraph in prose_of(text):
        rest = paragraph
        for form in forms:
            rest = rest.replace(form, "FIGURES ")
        parts = [rest] if rest.startswith("|") else BOUNDARY.split(rest)
        unknown += [
            part
            for before, part in zip(["", *parts], parts, strict=False)
            # A colon before the figures, as in "*Recorded* on an H200: 3 µs", ends no sentence.
            if "ecorded" in part + (before if before.endswith(":") else "")
            if re.search(r"\d", NAMES.sub("", re.sub(r"`[^`]*`", "", part)))
        ]
    return unknown


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_each_recorded_figure_has_its_data(source: Path) -> None:
    """No sentence with "recorded" has a figure of which the data do not know."""
    assert without_a_source(LessonText(source)) == []


def test_no_sentence_of_the_data_is_left_over() -> None:
    """Each sentence with figures is in its lesson, and has the figures of the data."""
    texts = {id_of(text): " ".join(prose_of(text)) for text in map(LessonText, SOURCES)}
    sentences = [(lesson, form.format(*figures)) for lesson, form, figures in sentences_of_data()]
    assert [each for each in sentences if each[1] not in texts[each[0]]] == []
