"""For each exercise whose answer is data the right answer, found by running what it asks about.

No key is read: listings are run on the virtual GPU, and readings are computed anew. Exercises that
ask for a word or a sentence about a program have no reference.
"""

import statistics
import time
from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import torch

import gpulab
from benchmarks.judges.references import is_number_near, kernel
from gpulab.exercises._api import exercise
from gpulab.tracing.profiling import capture

Action = Callable[[], object]
_LONG_S = 4e-3  # of a kernel; what ends much earlier has not waited for it
_MIB = 1 << 20


def _h200() -> Any:  # noqa: ANN401  # a context
    return gpulab.virtual_gpu("H200", first_use=False)


def _host_s(action: Action) -> float:
    start_s = time.perf_counter()
    action()
    return time.perf_counter() - start_s


def _blocks(action: Action) -> bool:
    """Return whether the host waits for a kernel that was launched before."""
    torch.cuda.synchronize()
    kernel(_LONG_S)()
    seconds = _host_s(action)
    torch.cuda.synchronize()
    return seconds > _LONG_S / 2


# 00 to 03


def _sources() -> dict[str, str]:
    with _h200():
        source = gpulab.measure(kernel(1e-5), n_samples=3).source
    return {"a": "virtual", "b": "measured", "c": "recorded", "d": source}  # a to c as quoted


def _lines_that_wait() -> set[str]:
    with _h200():
        y, h, pinned = torch.ones(64, 64, device="cuda"), torch.ones(64, 64), torch.ones(64, 64)
        pinned = pinned.pin_memory()
        lines: dict[str, Action] = {
            "a": lambda: y.sum().item(),
            "b": lambda: y.shape,
            "c": lambda: str(y[0, 0]),
            "d": lambda: torch.relu(y),
            "e": y.cpu,
            "f": lambda: bool((y > 0).any()),
            "g": lambda: y.copy_(h),
            "h": lambda: pinned.copy_(y, non_blocking=True),
        }
        return {letter for letter, line in lines.items() if _blocks(line)}


def _who_blocks() -> dict[str, str]:
    with _h200():
        stream, event = torch.cuda.current_stream(), torch.cuda.Event()
        side = torch.cuda.Stream()

        def recorded(wait: Action) -> None:
            event.record()
            wait()

        waits: dict[str, Action] = {
            "torch.cuda.synchronize": torch.cuda.synchronize,
            "stream.synchronize": stream.synchronize,
            "event.synchronize": partial(recorded, event.synchronize),
            "stream.wait_event": partial(recorded, lambda: side.wait_event(event)),
            "stream.wait_stream": lambda: side.wait_stream(stream),
        }
        return {name: "host" if _blocks(wait) else "gpu" for name, wait in waits.items()}


def _snippets() -> dict[str, tuple[str, str]]:
    model, before = kernel(_LONG_S), kernel(3 * _LONG_S)
    fixes = {"launch": "wait after", "work and backlog": "wait before", "work": "none"}
    with _h200():
        x = torch.ones(8, device="cuda")

        def value() -> float:
            model()
            return x.sum().item()

        listings: dict[str, tuple[Action, Action]] = {
            "a": (torch.cuda.synchronize, model),
            "b": (before, lambda: (model(), torch.cuda.synchronize())),
            "c": (value, lambda: (model(), torch.cuda.synchronize())),
            "d": (torch.cuda.synchronize, value),
        }
        contents = {}
        for letter, (ahead, timed) in listings.items():
            before()
            ahead()
            shares = _host_s(timed) / _LONG_S
            torch.cuda.synchronize()
            contents[letter] = (
                "launch" if shares < 0.5 else "work" if shares < 2 else "work and backlog"  # noqa: PLR2004
            )
    return {letter: (contains, fixes[contains]) for letter, contains in contents.items()}


def _wrong_stream() -> str:
    with _h200():
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        with torch.cuda.stream(torch.cuda.Stream()):
            kernel(5e-3)()
        end.record()
        torch.cuda.synchronize()
        try:
            return "b" if start.elapsed_time(end) < 0.1 else "a"  # noqa: PLR2004
        except RuntimeError:
            return "c"


def _floor_s() -> float:
    rows = exercise("03.floor").asked.readings
    timed = rows[rows["kernel_s"] > 0]  # type: ignore[index]  # it has readings
    return statistics.median((timed["pair_s"] - timed["kernel_s"]).tolist())


def _queue_length() -> int:
    with _h200():
        kernel(1.0)()
        for n_launched in range(5000):
            if _host_s(kernel(1e-6)) > 1e-3:  # noqa: PLR2004
                return n_launched + 1  # the long kernel is one of them
    return 0


# 04 to 06


def _begins() -> dict[str, str]:
    """Return after how many calls five in a row stay at the level of the end."""
    from gpulab.exercises.lesson_04.traces import to_frame

    answers = {}
    for letter, rows in to_frame(named=False).groupby("series"):
        samples_s = rows["duration_s"].to_numpy()
        middles = np.array([np.median(samples_s[i : i + 5]) for i in range(len(samples_s) - 4)])
        level_s = np.median(samples_s[-15:])
        slope = np.polyfit(range(20), samples_s[-20:], 1)[0] * 20 / level_s
        counts = [n for n in (1, 5, 10, 30) if (np.abs(middles[n:] / level_s - 1) < 0.02).all()]  # noqa: PLR2004
        # A count that leaves a slow call behind it is too small, unless the call is alone.
        far = [i for i in range(12) if samples_s[i] > 1.1 * level_s]
        counts = [n for n in counts if not far or n > max(far)]
        answers[str(letter)] = "never" if abs(slope) > 0.03 else f"after {counts[0]}"  # noqa: PLR2004
    return answers


def _one_number() -> float:
    samples_s = exercise("04.one-number").asked.readings["duration_s"]  # type: ignore[index]
    return statistics.median(samples_s.tolist())


def _two_traces() -> dict[str, tuple[str, str]]:
    rows = exercise("05.two-traces").asked.readings
    answers = {}
    for letter, run in rows.groupby("series"):  # type: ignore[union-attr]
        slow = run["duration_s"] > 1.08 * run["duration_s"].min()
        clocks_mhz = run["sm_mhz"]
        is_capped = clocks_mhz[slow].max() < clocks_mhz[~slow].max()
        answers[letter] = (
            ("power cap", "name the regime") if is_capped else ("noise", "more samples")
        )
    return answers


def _cold_loops() -> dict[str, str]:
    linear = torch.nn.functional.linear
    with _h200():
        weight, *sixteen = (
            torch.ones(2048, 2048, device="cuda", dtype=torch.half) for _ in range(17)
        )
        rows = [torch.ones(1, 2048, device="cuda", dtype=torch.half) for _ in range(16)]
        loops: dict[str, tuple[tuple[Any, Any], ...]] = {
            "a": tuple((x, weight) for x in rows),
            "b": tuple((rows[0], w) for w in sixteen[:2]),
            "c": tuple((rows[0], w) for w in sixteen),
            "d": tuple((rows[0], weight) for _ in range(16)),
        }

        def timed_s(pairs: tuple[tuple[Any, Any], ...], *, copies: bool = False) -> float:
            for x, w in pairs * 3:
                if copies:
                    weight.copy_(w)
                linear(x, weight if copies else w)
            x, w = pairs[0]
            if copies:
                weight.copy_(w)
            trace = capture(partial(linear, x, weight if copies else w))
            return sum(record.duration_ns for record in trace.records) / 1e9

        times_s = {letter: timed_s(pairs) for letter, pairs in loops.items()}
        times_s["e"] = timed_s(loops["c"], copies=True)
        border_s = (max(times_s.values()) + min(times_s.values())) / 2
    return {letter: "cold" if one_s > border_s else "hot" for letter, one_s in times_s.items()}


# 07 and 08


def _ahead() -> str:
    with _h200():
        loss, n_ahead = torch.ones(64, device="cuda"), 0
        kernel(10e-3)()
        for _ in range(40):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            loss.sum().item()
            end.record()
            n_ahead += not start.query()
    return {40: "a", 1: "b", 0: "c"}[n_ahead]


def _copy_overlap() -> str:
    works = {}
    for pinned, own in product((False, True), repeat=2):
        with _h200():
            batch, x = torch.ones(8 * _MIB, pin_memory=pinned), torch.ones(8 * _MIB, device="cuda")
            stream = torch.cuda.Stream() if own else torch.cuda.current_stream()
            torch.cuda.synchronize()
            trace = capture(partial(_copy_then_compute, x, batch, stream))
        copies = [record for record in trace.records if record.name == "copy in"]
        spins = [record for record in trace.records if record.name == "sleep"]
        works[pinned, own] = spins[0].start_ns < copies[-1].end_ns
    letters = {(False, False): "c", (True, False): "a", (False, True): "b", (True, True): "d"}
    return next(letter for needed, letter in letters.items() if works[needed])


def _copy_then_compute(x: torch.Tensor, batch: torch.Tensor, stream: Any) -> None:  # noqa: ANN401
    with torch.cuda.stream(stream):
        x.copy_(batch, non_blocking=True)
    kernel(1e-3)()


def _two_reasons() -> dict[str, tuple[str, str]]:
    answers = {}
    for name, n in (("two matmuls", 4096), ("two small kernels", 64)):
        with _h200():
            x, streams = torch.ones(n, n, device="cuda"), [torch.cuda.Stream() for _ in range(2)]

            def program(x: torch.Tensor = x, streams: list[Any] = streams, n: int = n) -> None:
                for stream in streams:
                    with torch.cuda.stream(stream):
                        _ = x @ x if n > 1000 else x.relu()  # noqa: PLR2004

            program()
            torch.cuda.synchronize()
            first, second = capture(program).records[-2:]
        is_late = (second.launch_start_ns or 0) > first.end_ns
        answers[name] = (
            ("the host is late", "fewer launches") if is_late else ("the gpu is full", "nothing")
        )
    return answers


def _races() -> dict[str, tuple[str, str, str]]:
    from gpulab.exercises.lesson_08 import pipelines

    def as_listed(slots: Any, copying: Any, fill: Any, compute: Any, n_steps: int) -> None:  # noqa: ANN401
        for step in range(n_steps):
            slot = slots[step % 2]
            fill(slot.pinned, step)
            with torch.cuda.stream(copying):
                slot.on_device.copy_(slot.pinned, non_blocking=True)
                slot.copied.record()
            torch.cuda.current_stream().wait_event(slot.copied)
            compute(slot.on_device, step)

    with _h200():
        races = pipelines.run_for_races(as_listed).trial.hazards or ()
    answers = {}
    for race in races:
        is_host = race.second.stream.startswith("the host")
        reader = "copy" if is_host else "compute"
        answers["pinned" if is_host else "device"] = (
            ("fill", reader, "host") if is_host else ("copy", reader, "copying")
        )
    return answers


def _record_stream() -> dict[str, str]:
    lines: dict[str, Callable[[Any, Any, Any], object]] = {
        "a": lambda *_: None,
        "b": lambda x, _total, side: x.record_stream(side),
        "c": lambda _x, _total, side: torch.cuda.current_stream().wait_stream(side),
        "d": lambda _x, _total, side: side.wait_stream(torch.cuda.current_stream()),
        "e": lambda _x, total, side: total.record_stream(side),
        "f": lambda _x, _total, side: side.synchronize(),
    }
    answers = {}
    for letter, line in lines.items():
        with _h200(), gpulab.hazards() as races:
            side, x = torch.cuda.Stream(), torch.ones(1 << 16, device="cuda")
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                total = x.sum()
            line(x, total, side)
            del x
            torch.full((1 << 16,), 7.0, device="cuda")
            torch.cuda.synchronize()
        answers[letter] = "corrupted" if len(races) else "safe"
    return answers


def _backward() -> dict[str, str]:
    streams = {"a": (0, 0), "b": (1, 0), "c": (0, 2), "d": (1, 1)}
    waits = {
        "none": None,
        "default waits for side": (0, 1),
        "third waits for default": (2, 0),
        "third waits for side": (2, 1),
        "side waits for default": (1, 0),
    }
    answers = {}
    for letter, (backward_on, step_on) in streams.items():
        safe = [word for word, wait in waits.items() if _trains(backward_on, step_on, wait)]
        answers[letter] = safe[0]
    return answers


def _trains(backward_on: int, step_on: int, wait: tuple[int, int] | None) -> bool:
    """Return whether a step finds the gradients, with a wait between backward and step."""
    with _h200():
        streams = [torch.cuda.current_stream(), torch.cuda.Stream(), torch.cuda.Stream()]
        weight = torch.ones(4, device="cuda", requires_grad=True)
        weight.grad = torch.zeros(4, device="cuda")
        with torch.cuda.stream(streams[1]):
            tripled = weight * 3
            tripled.register_hook(lambda _gradient: kernel(3e-3)())
            loss = tripled.sum()
        torch.cuda.synchronize()
        with torch.cuda.stream(streams[backward_on]):
            loss.backward()
        if wait is not None:
            streams[wait[0]].wait_stream(streams[wait[1]])
        with torch.cuda.stream(streams[step_on]), torch.no_grad():
            weight.sub_(weight.grad)
        torch.cuda.synchronize()
        return weight.tolist() == [-2.0] * 4


# 09 to 12


def _meeting_points() -> dict[str, float]:
    def smallest(cpu_s: float, cpu_rate: float, gpu_s: float, gpu_rate: float) -> float:
        """Return the smallest n by bisection: 12 bytes move for each element."""
        low, high = 1, 10**9
        while low < high:
            n = (low + high) // 2
            if gpu_s + 12 * n / gpu_rate < cpu_s + 12 * n / cpu_rate:
                high = n
            else:
                low = n + 1
        return float(low)

    return {
        "n": smallest(2e-6, 40e9, 14e-6, 4e12),
        "n_fast_gpu": smallest(2e-6, 40e9, 14e-6, 8e12),
        "n_slow_launch": smallest(2e-6, 40e9, 28e-6, 4e12),
    }


def _a100() -> dict[str, float]:
    d = 4096
    moved = 3 * d * d * torch.half.itemsize
    return {
        "ridge": 312e12 / 2e12,
        "compute_ms": 1e3 * 2 * d**3 / 312e12,
        "memory_ms": 1e3 * moved / 2e12,
    }


def _recorded_steps() -> set[str]:
    from torch.profiler import ProfilerAction, schedule

    action = schedule(wait=1, warmup=1, active=2, repeat=2)
    records = {ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE}
    return {str(step) for step in range(10) if action(step) in records}


def _verdicts() -> dict[str, str]:
    with _h200():
        conv, image = torch.nn.Conv2d(3, 4, 3).cuda(), torch.ones(2, 3, 8, 8, device="cuda")
        side = torch.cuda.Stream()

        def both() -> None:
            kernel(2e-3)()
            with torch.cuda.stream(side):
                kernel(2e-3)()

        default, on_side = capture(both).records
        torch.cuda.synchronize()
        kernel_s = _host_s(lambda: (kernel(_LONG_S)(), torch.cuda.synchronize()))
        x, host = torch.ones(16 * _MIB, device="cuda"), torch.ones(16 * _MIB)
        copy_s = _host_s(lambda: x.copy_(host, non_blocking=True))
        can_run = {
            "a": hasattr(torch.cuda, "memcpy_async"),
            "b": _runs(lambda: conv(image.flatten(1))),
            "c": _runs(lambda: conv.weight[0, 0].to(memory_format=torch.channels_last)),
        }
    with gpulab.virtual_gpu("H200", first_use=True):
        context_s = _host_s(torch.cuda.synchronize)
    holds = {
        "d": on_side.start_ns >= default.end_ns,
        "e": kernel_s > 1.1 * _LONG_S,
        "f": copy_s < 1e-4,  # noqa: PLR2004
        "g": 0.1 <= context_s <= 0.5,  # noqa: PLR2004
    }
    words = {True: "holds", False: "does not hold"}
    return {
        **{letter: "holds" if runs else "cannot run" for letter, runs in can_run.items()},
        **{letter: words[each] for letter, each in holds.items()},
    }


def _runs(action: Action) -> bool:
    try:
        action()
    except RuntimeError:
        return False
    return True


def _missing_waits() -> set[str]:
    """Return the waits without which the program of case 04 has a race, and that are enough."""
    from gpulab.exercises import cases

    def races(*, arrive: bool, free: bool) -> int:
        with _h200(), gpulab.hazards() as hazards:
            batches = cases.pinned_batches(6)
            buffers = [torch.empty_like(batches[0], device="cuda") for _ in range(2)]
            done = [torch.cuda.Event() for _ in range(2)]
            copying = torch.cuda.Stream()
            for number, batch in enumerate(batches):
                slot = number % 2
                if free:
                    copying.wait_event(done[slot])
                with torch.cuda.stream(copying):
                    buffers[slot].copy_(batch, non_blocking=True)
                if arrive:
                    torch.cuda.current_stream().wait_stream(copying)
                cases.training_step(buffers[slot])
                done[slot].record()
            torch.cuda.synchronize()
        return len(hazards)

    needed = {"a": races(arrive=False, free=True), "d": races(arrive=True, free=False)}
    is_enough = not races(arrive=True, free=True)
    return {letter for letter, n_races in needed.items() if n_races and is_enough}


TRUTHS: dict[str, Callable[[], Any]] = {
    "00.sources": _sources,
    "01.hidden-sync": _lines_that_wait,
    "01.queue-length": _queue_length,
    "02.snippet-quiz": _snippets,
    "02.who-blocks": _who_blocks,
    "03.wrong-stream": _wrong_stream,
    "03.floor": _floor_s,
    "04.where-to-begin": _begins,
    "04.one-number": _one_number,
    "05.two-traces": _two_traces,
    "06.which-is-cold": _cold_loops,
    "07.sync-inside": _ahead,
    "08.copy-overlap": _copy_overlap,
    "08.two-reasons": _two_reasons,
    "08.find-the-races": _races,
    "08.record-stream": _record_stream,
    "08.backward": _backward,
    "09.meeting-point": _meeting_points,
    "10.a100": _a100,
    "11.schedule": _recorded_steps,
    "12.verdicts": _verdicts,
    "case-04.flaw": _missing_waits,
}

# By how much a number may be off: one read off a picture, or computed with rounded inputs.
# The median is one of thirteen samples, of which neighbours differ by less than 1 %.
_SHARES = {"01.queue-length": 0.05, "03.floor": 0.1, "04.one-number": 0.002}


def agrees(exercise_id: str, answer: Any, truth: Any) -> bool:  # noqa: ANN401  # data of any form
    """Return whether an answer that is data is the truth; numbers may be off by a share."""
    if isinstance(truth, Mapping):
        return all(agrees(exercise_id, answer[key], truth[key]) for key in truth)
    if isinstance(truth, int | float):
        return is_number_near(answer, truth, share=_SHARES.get(exercise_id, 0.03))
    return bool(answer == truth)
