"""What every timeline must obey: made-up ones, those of random programs, and one of an H200."""

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch

import gpulab
from gpulab.tracing import Span, Timeline, _capture, timeline
from gpulab.tracing._counters import CounterSeries, counter_series, engine_use, queue_depth
from gpulab.tracing._flows import flows
from gpulab.tracing._from_activity import spans_of
from gpulab.tracing._geometry import drawing
from gpulab.tracing._lanes import layout
from gpulab.tracing._spans import ENGINES
from tests.support.spans import US, host, mark, work

RECORDED = Path(__file__).parents[1] / "data" / "timeline-h200.json"
MOST_ROWS = 8


def made_up(seed: int) -> Timeline:
    """Return launches with one or several kernels and copies, events, and waits, in any order."""
    draw = random.Random(seed)
    spans, now = [], draw.randint(0, 500)
    numbers = range(1, draw.randint(2, 30))
    streams, devices = draw.randint(1, 3), draw.randint(1, 2)
    for number in numbers:
        begin, end = now, now + draw.randint(1, 20)
        now = end + draw.randint(0, 30)
        stream, device = draw.randrange(streams), draw.randrange(devices)
        kind = draw.choice(["launch", "launch", "launch", "event", "wait", "host wait", "unknown"])
        if kind in {"launch", "unknown"}:
            if kind == "launch":
                spans.append(host("launch", begin, end, number))
            for _ in range(draw.choice([1, 1, 1, 1, 4, 20])):  # nodes of a graph
                start = draw.randint(begin, end + 60)
                engine = draw.choice(ENGINES)
                length = draw.randint(1, 80)
                options = {"engine": engine, "device": device, "size_bytes": 64}
                spans.append(work(start, start + length, stream, number, **options))
        elif kind == "host wait":
            waits = host("wait", begin, end, number, waits_for=draw.randint(0, number))
            spans.append(replace(waits, lane=draw.choice(["host", "host thread 2"])))
        else:
            spans.append(host("host", begin, end, number))
            awaited = draw.randint(0, number) if kind == "wait" else None
            last = end if kind == "event" else end + draw.randint(0, 40)
            spans.append(mark(kind, end, last, stream, number, awaited))
    draw.shuffle(spans)
    memory = CounterSeries("memory", "B", 0, (0.0, now * US), (512.0, 1024.0))
    return Timeline(tuple(spans), "virtual", "NVIDIA H200", (memory,))


def random_program(draw: random.Random) -> Callable[[], None]:
    """Return a program on two streams of the GPU in use."""
    streams = [torch.cuda.default_stream(), torch.cuda.Stream()]
    pinned, target = torch.empty(1 << 18).pin_memory(), torch.empty(1 << 18, device="cuda")
    events = [torch.cuda.Event() for _ in range(3)]
    actions: list[Callable[[torch.cuda.Stream], object]] = [
        lambda _: torch.cuda._sleep(draw.randint(1, 80) * 1980),
        lambda _: target.copy_(pinned, non_blocking=True),
        lambda _: target.add_(1),
        lambda stream: draw.choice(events).record(stream),
        lambda stream: stream.wait_event(draw.choice(events)),
        lambda stream: stream.synchronize(),
        lambda _: torch.ones(1 << draw.randint(8, 16), device="cuda"),
    ]

    def program() -> None:
        for _ in range(25):
            stream = draw.choice(streams)
            with torch.cuda.stream(stream):
                draw.choice(actions)(stream)

    return program


def of_a_program(seed: int) -> Timeline:
    """Return what a random program does on a virtual GPU."""
    with gpulab.virtual_gpu("H200", first_use=False):
        return timeline(random_program(random.Random(seed)), n_warmup=0)


def timelines() -> Iterator[Any]:
    """Yield each timeline with a name."""
    for seed in range(20):
        yield pytest.param(lambda seed=seed: made_up(seed), id=f"made up {seed}")
    for seed in range(4):
        yield pytest.param(lambda seed=seed: of_a_program(seed), id=f"program {seed}")
    yield pytest.param(lambda: Timeline.from_json(RECORDED.read_text("utf-8")), id="an H200's")


@pytest.fixture(params=timelines())
def shown(request: pytest.FixtureRequest) -> Timeline:
    """Return one of the timelines."""
    made: Timeline = request.param()
    return made


def pieces(spans: Sequence[Span]) -> list[tuple[float, float]]:
    """Return the time between each start or end of a span and the next."""
    return list(
        pairwise(sorted({time_s for span in spans for time_s in (span.start_s, span.end_s)}))
    )


def active(spans: Sequence[Span], at_s: float) -> list[Span]:
    """Return the spans that run at a time."""
    return [span for span in spans if span.start_s <= at_s < span.end_s]


def seconds(spans: Sequence[Span], holds: Callable[[list[Span]], bool]) -> float:
    """Return for how long something holds of the spans that run."""
    return sum(
        end_s - start_s for start_s, end_s in pieces(spans) if holds(active(spans, start_s))
    )


def test_the_summary_adds_up(shown: Timeline) -> None:
    """Busy time, overlap and idle time are those of a count at every moment."""
    spans, summary = shown.spans, shown.summary()
    assert dict(summary.n_spans) == Counter(span.kind for span in spans)
    assert summary.window_s == pytest.approx(shown.duration_s)
    works = [span for span in spans if span.is_work]
    assert [share.device for share in summary.devices] == sorted({span.device for span in works})
    for share in summary.devices:
        mine = [span for span in works if span.device == share.device]
        assert share.busy_s == pytest.approx(seconds(mine, bool))
        two = seconds(mine, lambda running: len({span.lane for span in running}) > 1)
        assert share.overlap_s == pytest.approx(two, abs=1e-12)
        for parts, name in ((share.streams, "lane"), (share.engines, "engine")):
            groups = {
                part: [s for s in mine if getattr(s, name) == part]
                for part in sorted({getattr(span, name) for span in mine})
            }
            assert [part.name for part in parts] == list(groups)
            assert [part.n_works for part in parts] == [*map(len, groups.values())]
            busy_s = [seconds(group, bool) for group in groups.values()]
            assert [part.busy_s for part in parts] == pytest.approx(busy_s)
        total_s = sum(part.busy_s for part in share.streams)
        assert share.saved_s == pytest.approx(total_s - share.busy_s, abs=1e-12)
        # Kernels can share the multiprocessors, and copies in one direction cannot share theirs.
        engines = [part for part in share.engines if part.name != "compute"]
        longest_s = max(part.busy_s for part in (*share.streams, *engines))
        assert share.possible_s == pytest.approx(total_s - longest_s, abs=1e-12)
        achieved = share.overlap_achieved
        assert (achieved is None) == (share.possible_s <= 0)
        assert achieved is None or 0 <= achieved <= 1 + 1e-9
        idle_s = sum(summary.idle_by_cause(share.device).values())
        all_s = idle_s + share.before_s + share.after_s + share.busy_s
        assert all_s == pytest.approx(summary.window_s)
    lengths_s = [gap.duration_s for gap in summary.gaps]
    assert all(length_s > 0 for length_s in lengths_s)
    assert lengths_s == sorted(lengths_s, reverse=True)
    listed = str(summary).partition("Longest gaps:\n")[2].splitlines()
    assert len(listed) == min(5, len(summary.gaps))


def value_at(series: Sequence[CounterSeries], name: str, device: int, at_s: float) -> float:
    """Return the value of a series at a time."""
    (found,) = [each for each in series if (each.name, each.device) == (name, device)]
    earlier = [
        value for time_s, value in zip(found.times_s, found.values, strict=True) if time_s <= at_s
    ]
    return earlier[-1] if earlier else 0.0


def test_the_counters_count(shown: Timeline) -> None:
    """At every moment: works of an engine that run, and launches that are not done."""
    works = [span for span in shown.spans if span.is_work]
    callers = {span.correlation: span for span in shown.spans if span.is_on_host}
    pending: dict[tuple[int | None, int | None], tuple[float, float]] = {}
    for span in works:
        if span.correlation in callers:
            key = span.device, span.correlation
            first_s, last_s = pending.get(key, (callers[span.correlation].end_s, span.end_s))
            pending[key] = min(first_s, span.start_s), max(last_s, span.end_s)
    engines, queue = engine_use(shown.spans), queue_depth(shown.spans)
    times_s = {span.start_s for span in works} | {first_s for first_s, _ in pending.values()}
    for at_s in times_s:
        for engine, device in {(span.engine, span.device) for span in works}:
            running = [s for s in active(works, at_s) if (s.engine, s.device) == (engine, device)]
            assert value_at(engines, str(engine), device or 0, at_s) == len(running)
        for device in {device for device, _ in pending}:
            waiting = [
                key
                for key, (first_s, last_s) in pending.items()
                if key[0] == device and first_s <= at_s < last_s
            ]
            assert value_at(queue, "queue depth", device or 0, at_s) == len(waiting)
    for series in (*engines, *queue):
        assert series.values[-1] == 0
        assert list(series.times_s) == sorted({*series.times_s})


def test_an_arrow_has_both_ends(shown: Timeline) -> None:
    """A launch has one to all that it put on a device; a wait, from the last that it awaited."""
    spans = shown.spans
    callers = {span.correlation: i for i, span in enumerate(spans) if span.is_on_host}
    expected = {
        ("launch" if span.is_work else "record", callers[span.correlation], i)
        for i, span in enumerate(spans)
        if not span.is_on_host and span.correlation in callers
    }
    arrows = flows(spans)
    assert {tuple(arrow) for arrow in arrows if arrow.kind != "wait"} == expected
    waits = [arrow for arrow in arrows if arrow.kind == "wait"]
    done = {span.correlation for span in spans if not span.is_on_host}
    assert {arrow.target for arrow in waits} == {
        i for i, span in enumerate(spans) if span.waits_for in done and span.waits_for is not None
    }
    for arrow in waits:
        source, target = spans[arrow.source], spans[arrow.target]
        others = [s for s in spans if not s.is_on_host and s.correlation == target.waits_for]
        assert source.end_s == max(other.end_s for other in others)


def test_a_row_has_one_span_at_a_time(shown: Timeline) -> None:
    """The host is on top, and a lane has as many rows as run at once, up to eight."""
    spans, placed = shown.spans, layout(shown.spans)
    hosts = [lane.name for lane in placed.lanes if lane.device is None]
    streams = [
        (lane.device, int(lane.name.split()[-1]))
        for lane in placed.lanes[len(hosts) :]
        if lane.device is not None
    ]
    assert (hosts, streams) == (sorted(hosts), sorted(streams))
    assert len(hosts) + len(streams) == len(placed.lanes)
    assert [lane.first_row for lane in placed.lanes] == [
        sum(lane.n_rows for lane in placed.lanes[:i]) for i in range(len(placed.lanes))
    ]
    for lane in placed.lanes:
        device = lane.device
        here = [
            (span, row)
            for span, row in zip(spans, placed.rows, strict=True)
            if span.lane == lane.name and (None if span.is_on_host else span.device) == device
        ]
        assert {row for _, row in here} <= set(range(lane.first_row, lane.first_row + lane.n_rows))
        long = [(span, row) for span, row in here if span.start_s < span.end_s]
        depth = max(
            (len(active([span for span, _ in long], s.start_s)) for s, _ in long), default=1
        )
        assert lane.n_rows == min(depth, MOST_ROWS)
        last = lane.first_row + MOST_ROWS - 1
        for row in {row for _, row in long if row < last}:
            ordered = sorted((s.start_s, s.end_s) for s, other in long if other == row)
            assert all(end_s <= next_s for (_, end_s), (next_s, _) in pairwise(ordered))


@pytest.mark.parametrize("most", [1, 12, 10_000])
def test_nothing_is_lost_in_a_picture(shown: Timeline, most: int) -> None:
    """Bars stand for all spans, and an arrow joins bars that stand for one."""
    shape = drawing(shown, max_bars=most)
    bars, begin_s = shape.bars, min(span.start_s for span in shown.spans)
    assert int(bars.count.sum()) == len(shown.spans)
    by_row: Counter[int] = Counter()
    for row, count in zip(bars.row.tolist(), bars.count.tolist(), strict=True):
        by_row[row] += count
    assert by_row == Counter(layout(shown.spans).rows)
    assert len(bars) <= max(most, sum(lane.n_rows for lane in shape.lanes))
    assert (shape.note == "") == (len(bars) == len(shown.spans))
    assert float(bars.busy_s.sum()) == pytest.approx(sum(span.duration_s for span in shown.spans))
    assert shape.length_s == pytest.approx(shown.duration_s)
    order = list(zip(bars.row.tolist(), bars.start_s.tolist(), strict=True))
    assert order == sorted(order)
    ends = {(round(s.start_s - begin_s, 12), round(s.end_s - begin_s, 12)) for s in shown.spans}
    for start_s, end_s, count in zip(bars.start_s, bars.end_s, bars.count, strict=True):
        assert count > 1 or (round(float(start_s), 12), round(float(end_s), 12)) in ends
    for arrow in shape.arrows:
        assert bars.count[arrow.source] == bars.count[arrow.target] == 1
    if most > len(shown.spans):
        assert len(shape.arrows) == len(flows(shown.spans))
    assert all(len(series.values) <= most for series in shape.series)
    if most > len(shown.spans):  # those that show more than the bars
        several = [
            each
            for each in counter_series(shown.spans, shown.memory)
            if len({*each.values}) > 1 and (each.unit == "B" or each.largest > 1)
        ]
        assert [each.values for each in shape.series] == [each.values for each in several]


def test_a_trace_can_be_opened(shown: Timeline, tmp_path: Path) -> None:
    """Each span is a slice of its thread, slices do not cross, and arrows lie in them."""
    written = json.loads(shown.to_chrome_trace(tmp_path / "trace.json").read_text("utf-8"))
    events: list[dict[str, Any]] = written["traceEvents"]
    assert written["otherData"] == {"device": shown.device_name, "place": shown.place}
    by_phase: dict[str, list[dict[str, Any]]] = {phase: [] for phase in "MXsfC"}
    for event in events:
        assert {"ph", "pid", "tid", "name", "ts"} <= set(event)
        assert event["ts"] >= 0
        by_phase[event["ph"]].append(event)
    slices = by_phase["X"]
    assert len(slices) == len(shown.spans)
    threads = {(e["pid"], e["tid"]) for e in by_phase["M"] if e["name"] == "thread_name"}
    assert {(event["pid"], event["tid"]) for event in slices} == threads
    for event, span in zip(slices, shown.spans, strict=True):
        assert (event["cat"], event["name"]) == (span.kind, span.name)
        assert event["dur"] == pytest.approx(max(span.duration_s * 1e6, 0.001), abs=2e-3)
        assert event["ts"] + event["dur"] == pytest.approx(max(span.end_s * 1e6, 0.001), abs=2e-3)
        assert event["args"].get("correlation") == span.correlation
    starts, ends = by_phase["s"], by_phase["f"]
    assert [event["id"] for event in starts] == [event["id"] for event in ends]
    assert len({event["id"] for event in starts}) == len(starts) <= len(flows(shown.spans))
    for start, end in zip(starts, ends, strict=True):
        assert start["ts"] <= end["ts"]
        assert end["bp"] == "e"
        for event in (start, end):
            assert any(
                (each["pid"], each["tid"]) == (event["pid"], event["tid"])
                and each["ts"] <= event["ts"] < each["ts"] + each["dur"]
                for each in slices
            )
    series = (*shown.queue_depth, *shown.memory)
    assert len(by_phase["C"]) == sum(len(each.times_s) for each in series)


def test_a_timeline_survives_a_file(shown: Timeline) -> None:
    """JSON and table have every span, and whole numbers stay whole."""
    assert Timeline.from_json(shown.to_json()) == shown
    frame = shown.to_frame()
    assert list(frame["duration_s"]) == [span.duration_s for span in shown.spans]
    for name in ("correlation", "waits_for", "stream", "device", "size_bytes"):
        known = [value for span in shown.spans if (value := getattr(span, name)) is not None]
        assert list(frame[name].dropna()) == known
        assert str(frame[name].dtype) == "Int64"


@pytest.mark.parametrize("seed", range(6))
def test_events_of_a_cuda_gpu_are_found_from_its_kernels(seed: int) -> None:
    """Without the device's own times they are early by a few µs, and all else is equal."""
    with gpulab.virtual_gpu("H200", first_use=False) as virtual:
        program = random_program(random.Random(seed))
        recorded = _capture._recorded(program, virtual.machine)
    exact, computed = (
        {
            (span.kind, span.lane, span.correlation): span
            for span in spans_of(recorded.records, notes, str)[0]
        }
        for notes in (recorded.notes, [replace(note, at_ns=None) for note in recorded.notes])
    )
    assert exact.keys() == computed.keys()
    assert min(span.start_s for span in exact.values()) == 0
    for key, span in exact.items():
        if span.is_on_host or span.is_work:
            assert span == computed[key]
        else:
            assert 0 < span.end_s - computed[key].end_s < 5 * US
            assert span.waits_for == computed[key].waits_for
