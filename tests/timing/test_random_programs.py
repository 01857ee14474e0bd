"""Random programs whose true time is known, through every method, ``measure`` and its callers."""

import random
from dataclasses import dataclass

import pytest
import torch

from gpulab.device.measurement import Measurement
from gpulab.gpus import gpu
from gpulab.timing import METHODS, N_RUNGS, _work_floor, compare, ladder, measure, take_samples
from gpulab.virtual import Gaps
from gpulab.virtual.simulator import GRAPH_GAPS, HostCosts

pytestmark = pytest.mark.usefixtures("gpu")

HOST = HostCosts()
H200 = gpu("H200")
CYCLES_PER_US = H200.boost_clock_mhz
TICK_S = 32e-9  # one step of the events' clock
ROUNDING_S = 1e-15  # of sums of floats
NS = 1e-9
SLEEP_LAUNCH_S = HOST.sleep_launch_ns * NS


# What events read without any work, which two methods subtract.
FLOORS_S = {
    name: (gaps.mark_to_work_ns + gaps.work_to_mark_ns) * NS
    for name, gaps in (("calibrated", Gaps()), ("graph", GRAPH_GAPS))
}


@dataclass
class Program:
    """Kernels of known length, one after another; ``n_calls`` counts its calls.

    It may wait for the GPU at its end, launch a long kernel on another stream, and return a
    tensor.
    """

    lengths_us: tuple[int, ...]
    waits: bool = False
    side: torch.cuda.Stream | None = None
    result: torch.Tensor | None = None
    n_calls: int = 0

    def __call__(self) -> torch.Tensor | None:
        """Enqueue the kernels."""
        self.n_calls += 1
        if self.side is not None:
            with torch.cuda.stream(self.side):
                torch.cuda._sleep(1_000 * CYCLES_PER_US)
        for length_us in self.lengths_us:
            torch.cuda._sleep(length_us * CYCLES_PER_US)
        if self.waits:
            torch.cuda.synchronize()
        return self.result

    def busy_s(self) -> float:
        """Return how long its kernels take."""
        return sum(self.lengths_us) * 1e-6

    def span_s(self, inner_loops: int = 1, gaps: Gaps | None = None) -> float:
        """Return the seconds of a call from its first start to its last end, pauses included."""
        n_pauses = max(0, len(self.lengths_us) * inner_loops - 1)
        return self.busy_s() + n_pauses * (gaps or Gaps()).work_to_work_ns * NS / inner_loops


def lengths(draw: random.Random, least_us: int = 1) -> tuple[int, ...]:
    """Return the lengths of some kernels."""
    return tuple(draw.randint(least_us, 200) for _ in range(draw.randint(1, 5)))


def bounds_s(method: str, program: Program, inner_loops: int) -> tuple[float, float]:
    """Return between which times per call a method reads a program, its floor included."""
    launches_s = len(program.lengths_us) * SLEEP_LAUNCH_S
    if method == "naive":
        # The host is slower after a wait, by less than a third here.
        return launches_s, 1.3 * launches_s + HOST.clock_read_ns * NS / inner_loops
    span_s = program.span_s(inner_loops)
    if method == "synchronized":
        around_ns = HOST.launch_latency_ns + HOST.wake_ns + HOST.clock_read_ns
        around_s = around_ns * NS / inner_loops
        return span_s + around_s, span_s + around_s + 1.3 * launches_s
    if method.startswith("profiler"):
        read_s = program.busy_s() if method == "profiler" else span_s
        return read_s - NS, read_s + NS
    gaps = GRAPH_GAPS if method == "graph" else Gaps()
    floor_s = (gaps.mark_to_work_ns + gaps.work_to_mark_ns) * NS
    read_s = program.span_s(inner_loops, gaps) + floor_s / inner_loops
    # Without a sleep, the GPU may wait for each launch.
    waits_s = launches_s if method == "events" else 0.0
    off_s = TICK_S / inner_loops + ROUNDING_S
    return read_s - off_s, read_s + waits_s + off_s


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(4))
def test_every_method_reads_what_it_promises(method: str, seed: int) -> None:
    """Each sample is within a tick of the truth of its method; what goes before is not in it."""
    draw = random.Random(seed)
    program, before = Program(lengths(draw)), Program((50,))
    n_samples, inner_loops = draw.randint(1, 30), draw.randint(1, 3)
    options = {"before": before} if draw.random() < 0.5 else {}
    torch.cuda._sleep(draw.randint(0, 1_000) * CYCLES_PER_US)  # a backlog that is not charged
    samples_s = take_samples(
        method, program, n_samples=n_samples, inner_loops=inner_loops, **options
    )
    low_s, high_s = bounds_s(method, program, inner_loops)
    assert len(samples_s) == n_samples
    assert low_s <= min(samples_s)
    assert max(samples_s) <= high_s
    n_taken = 10 if method == "graph" else n_samples
    assert program.n_calls == n_taken * inner_loops
    assert before.n_calls == n_taken * bool(options)


def drawn_program(draw: random.Random) -> Program:
    """Return a program that may do what a finding is about."""
    # Each kernel takes longer than its launch, so that no reading is the host's.
    program = Program(() if draw.random() < 0.15 else lengths(draw, least_us=20))
    kind = draw.choice(["plain", "plain", "waits", "side", "zero", "result"])
    program.waits = kind == "waits"
    program.side = torch.cuda.Stream() if kind == "side" and program.lengths_us else None
    if kind in {"zero", "result"}:
        program.result = torch.full((8,), float(kind == "result"), device="cuda")
    return program


def drawn_options(draw: random.Random) -> dict[str, object]:
    """Return options of a measurement; those that are left out have their defaults."""
    # The default takes the most ways.
    methods = [*METHODS, *["calibrated"] * len(METHODS)]
    options: dict[str, object] = {"method": draw.choice(methods)}
    if draw.random() < 0.6:
        options["n_samples"] = draw.randint(1, 20)
    if draw.random() < 0.6:
        options["n_warmup"] = draw.randint(0, 5)
    if draw.random() < 0.4:
        options["inner_loops"] = draw.randint(2, 3)
    elif draw.random() < 0.4:
        options["cache"] = draw.choice(["hot", "cold"])
    if draw.random() < 0.3:
        options["flush"] = "write"
    if draw.random() < 0.5:
        options["setup"] = Program((30,))
    if draw.random() < 0.3:
        options["flops"] = draw.choice([1.0, 1e18])
    if draw.random() < 0.3:
        # What fits into the L2 sets no limit, and two gigabytes take less than a second.
        options["size_bytes"] = draw.choice([H200.l2_bytes, 2 * 10**9, 10**13])
    options["floor"] = draw.choice(["work", "device"])
    return options


def expected_findings(program: Program, taken: Measurement, asked: dict[str, object]) -> set[str]:
    """Return the codes of the findings that a measurement must have."""
    method, n_warmup = taken.method, asked.get("n_warmup")
    is_probed = n_warmup is None or int(str(n_warmup)) > 1
    clock = METHODS[method].clock
    side_seen = program.side is not None and n_warmup != 0 and clock != "records"
    is_empty = not program.lengths_us and (is_probed or clock == "records" or taken.floor_s > 0)
    short = clock == "events" and taken.median_s * taken.inner_loops < 0.5e-6
    waits_seen = program.waits and is_probed
    least_s = max(
        float(str(asked.get("flops", 0))) / max(H200.peak_flops_per_s.values()),
        float(str(asked.get("size_bytes", 0))) / H200.bandwidth_bytes_per_s,
    )
    told = {
        "faster-than-roofline": (
            least_s > 1.05 * taken.median_s and asked.get("size_bytes") != H200.l2_bytes
        )
        or asked.get("flops") == 1e18,
        "too-few-samples": taken.n_samples < 6,
        "naive-launch-only": method == "naive" and not waits_seen,
        "synchronizes-inside": waits_seen,
        "side-stream": side_seen,
        "nothing-launched": is_empty,
        "below-resolution": short and not is_empty,
        "write-flush": taken.conditions.cache == "cold" and asked.get("flush") == "write",
        "zero-result": program.result is not None and is_probed and not program.result.any(),
        "starved": METHODS[method].needs_host_ahead and program.waits and not waits_seen,
    }
    return {code for code, is_told in told.items() if is_told}


def expected_calls(
    taken: Measurement, asked: dict[str, object], *, is_recorded: bool
) -> tuple[int, int]:
    """Return how often a measurement calls the work, and its setup."""
    if taken.method == "graph":  # ten samples are captured, and ten more on a cold cache
        n_captured = 20 if taken.conditions.cache == "hot" and is_open(taken, asked) else 10
        return taken.n_warmup + n_captured * taken.inner_loops, n_captured
    n_taken = taken.n_samples
    if taken.method == "calibrated" and is_open(taken, asked):
        if taken.conditions.cache == "hot":
            n_taken += 5  # on a cold cache, for the finding "cache-hot"
        if is_recorded and asked["floor"] == "work":
            n_taken += 12  # with the driver's records
    return taken.n_warmup + n_taken * taken.inner_loops, n_taken


def is_open(taken: Measurement, asked: dict[str, object]) -> bool:
    """Return whether a measurement may call the work a few times more than it was asked for."""
    return "n_samples" not in asked and taken.inner_loops == 1


@pytest.mark.parametrize("seed", range(60))
def test_a_measurement_is_what_was_asked_for(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its time is the truth, its findings are those of the program, and its calls are counted.

    In one of two runs the model's records pass for those of a driver.
    """
    draw = random.Random(seed)
    is_recorded = seed % 2 == 1
    monkeypatch.setattr(_work_floor, "can_record", lambda: is_recorded)
    program, options = drawn_program(draw), drawn_options(draw)
    asked, loops = METHODS[str(options["method"])], int(str(options.get("inner_loops", 1)))
    if asked.name == "graph":
        program.waits = False  # a graph cannot contain a wait
    if program.side is not None:
        options.setdefault("n_samples", 6)  # two streams may never get precise
    taken = measure(program, **options)  # type: ignore[arg-type]  # options of measure
    is_probed = options.get("n_warmup", 2) not in {0, 1}
    is_replaced = program.waits and is_probed and asked.needs_host_ahead
    assert taken.method == ("events" if is_replaced else asked.name)
    assert taken.inner_loops == loops
    assert taken.conditions.cache == options.get("cache", asked.cache if loops == 1 else "hot")
    assert taken.peak_bytes == (0 if is_probed else None)
    has_own = is_recorded and options["floor"] == "work" and bool(program.lengths_us)
    has_own = has_own and taken.method == "calibrated" and is_open(taken, options)
    # On hardware a session of records adds to several kernels, and the model's adds nothing.
    off_s = TICK_S + (_work_floor.SESSION_S if has_own else 0.0)
    assert taken.floor_s == pytest.approx(FLOORS_S.get(taken.method, 0.0), abs=off_s)
    assert (taken.floor_error_s > 0) == has_own
    if taken.method in FLOORS_S:
        assert taken.floor_method == ("work" if has_own else "records")
    assert taken.stopped_by == ("n_samples" if "n_samples" in options else "precision")
    # Steady samples are precise as soon as they may be; the records add some.
    assert taken.n_samples == options.get("n_samples", 22 if has_own else 10)
    assert taken.n_warmup == options.get("n_warmup", taken.n_warmup)
    codes = {finding.code for finding in taken.findings}
    assert codes == expected_findings(program, taken, options)
    # Work that waits is repeated where a sleep should keep the host ahead.
    if not program.waits or taken.method in {"naive", "synchronized", "events"}:
        n_calls, n_setups = expected_calls(taken, options, is_recorded=is_recorded)
        n_refuting = program.side is not None and "n_warmup" not in options
        assert program.n_calls == n_calls + n_refuting  # the driver's records of one more call
        assert isinstance(setup := options.get("setup", Program(())), Program)
        assert setup.n_calls == n_setups * ("setup" in options)
    if not program.waits and program.side is None and program.lengths_us:
        low_s, high_s = bounds_s(taken.method, program, loops)
        assert low_s <= min(taken.samples_s) + taken.floor_s / loops
        assert max(taken.samples_s) + taken.floor_s / loops <= high_s


@pytest.mark.parametrize("seed", range(8))
def test_a_comparison_is_the_ratio_of_the_truths(seed: int) -> None:
    """In turns or from two measurements: the ratio is right, and equal work does not differ."""
    draw = random.Random(seed)
    first = Program(lengths(draw, least_us=20))
    second = Program(first.lengths_us if seed % 4 == 0 else lengths(draw, least_us=20))
    method = draw.choice([name for name in METHODS if name not in {"naive", "events"}])
    options = {"method": method} | ({"n_samples": draw.randint(6, 40)} if seed % 2 else {})
    bounds = [bounds_s(method, program, 1) for program in (first, second)]
    floor_s = FLOORS_S.get(method, 0.0)
    (low_s, high_s), (other_low_s, other_high_s) = bounds
    found = compare(first, second, labels=("a", "b"), **options)  # type: ignore[arg-type]  # as above
    before = measure(first, label="a", **options)  # type: ignore[arg-type]  # as above
    later = compare(before, second, labels=("", "b"), **options)  # type: ignore[arg-type]  # as above
    for each in (found, later):
        assert each.first.label, each.second.label == ("a", "b")
        assert (other_low_s - floor_s) / (high_s - floor_s) <= each.ratio
        assert each.ratio <= (other_high_s - floor_s) / (low_s - floor_s)
        low, high = each.ratio_interval
        assert low <= each.ratio <= high
        assert each.differs == (low > 1 or high < 1)
        assert each.verdict().startswith(
            "b takes" if each.differs else "no difference seen: b / a"
        )
        assert each.differs == (first.lengths_us != second.lengths_us)
        assert f"<p>{each.verdict()}</p>" in each._repr_html_()
    assert found.first.n_samples == found.second.n_samples == options.get("n_samples", 20)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_the_rungs_of_a_ladder_are_the_truths(seed: int) -> None:
    """Each rung is what its method promises, and off by how much that differs from the records."""
    draw = random.Random(seed)
    program, setup = Program((3,) * 4 if seed == 0 else lengths(draw)[:seed]), Program((10,))
    climbed = ladder(program, setup=setup, max_time_s=0.01, progress=False)
    span_s = program.span_s()
    is_warm = [rung.record is not None and rung.record.n_warmup > 0 for rung in climbed.rungs]
    assert is_warm == [False] * 3 + [True] * (N_RUNGS - 3)
    for rung in climbed.rungs:
        record = rung.record
        assert record is not None
        low_s, high_s = bounds_s(record.method, program, 1)
        first_s = 0.0 if record.n_warmup else 1e-3
        assert low_s <= record.median_s + record.floor_s <= high_s + first_s
        assert rung.referee_s == pytest.approx(span_s, abs=NS)
        assert rung.error == pytest.approx(record.median_s / span_s - 1, abs=1e-4)
    is_short = program.busy_s() < 0.95 * span_s
    assert climbed.kernels_s == (pytest.approx(program.busy_s(), abs=NS) if is_short else None)
    for shown in (str(climbed), climbed._repr_html_()):
        assert ("the kernels alone take" in shown) == is_short
