"""The table and the figure of the accuracy benchmark, made from its results by one command."""

import json
import math
import os
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.common.folders import IMAGES
from benchmarks.common.markdown import print_or_write, source, table
from benchmarks.common.tool import DEFAULT
from gpulab.core.palette import FAINT, INK, ROLES, SERIES

Record = dict[str, Any]

_IMAGE = IMAGES / "accuracy-h200.png"
_SHORT_US = 1000.0  # answers about work shorter than this have a goal for their wall time

# Any two colours differ for readers of any colour vision; marks differ too, for print.
_SHOWN = (
    ("measure", "gpulab.measure, cold", ROLES["cold"].colour.light, "o"),
    ("measure, hot", "gpulab.measure, hot", ROLES["hot"].colour.light, "s"),
    ("triton do_bench", "triton do_bench", SERIES[2].light, "^"),
    ("triton do_bench_cudagraph", "triton do_bench_cudagraph", SERIES[3].light, "v"),
    ("torch.utils.benchmark blocked_autorange", "torch.utils.benchmark", SERIES[0].light, "D"),
    ("Inductor benchmarker", "Inductor benchmarker", SERIES[4].light, "P"),
    ("cupyx.profiler.benchmark", "cupyx.profiler.benchmark", INK.light, "x"),
)
# Smaller errors are drawn here, because a logarithmic axis has no zero.
_LEAST_PERCENT = 0.01
_COLUMNS = (
    *("answers", "median error", "median", "mean", "worst", "bias"),
    *("interval contains it", "an answer takes"),
)


def answers(results: Record) -> pd.DataFrame:
    """Return a row for each answer of a tool, in microseconds, with its signed errors.

    ``referee_us`` is the referee's median. It includes the gaps between kernels if the tool counts
    them, minus what the profiler adds to these gaps; ``recorded_us`` is the same before that, and
    ``clean_us`` after a flush that leaves no dirty lines.
    """
    rows = []
    for name, tool in results["tools"].items():
        for case in results["cases"]:
            answer = case.get("answers", {}).get(name, {"error": ""})
            if "error" not in answer:
                # As `_spread` of benchmarks.accuracy.run writes them.
                _, span_us, _, busy_us = case["read_us"]
                clean_us = span_us - case["stretch_us"] if tool["counts_gaps"] else busy_us
                about = {"tool": name, "is_hot": tool["state"] == "hot", "clean_us": clean_us}
                nothing = {"low_us": math.nan, "high_us": math.nan}
                rows.append({**about, "n_records": case["n_records"], **nothing, **answer})
    frame = pd.DataFrame(rows)
    frame["error_us"] = frame["us"] - frame["referee_us"]
    frame["error"] = frame["error_us"] / frame["referee_us"]
    frame["recorded_error"] = frame["us"] / frame["recorded_us"] - 1
    frame["clean_error"] = frame["us"] / frame["clean_us"] - 1
    return frame


def _of(answered: pd.DataFrame, name: str = DEFAULT) -> pd.DataFrame:
    return answered[answered["tool"] == name]


def coverage(of_tool: pd.DataFrame) -> str:
    """Return in how many percent the intervals contain the referee's median; "" without any."""
    known = of_tool[of_tool["low_us"].notna()]
    holds = (known["low_us"] <= known["referee_us"]) & (known["referee_us"] <= known["high_us"])
    return f"{100 * holds.mean():.0f} %" if len(known) else ""


def write_report(results: Path, write: Path | None, image: Path | None) -> None:
    """Draw the figure, and print the report or put it into the page ``write``."""
    record = json.loads(results.read_text("utf-8"))
    image = image or _IMAGE
    draw(record, image)
    shown = Path(os.path.relpath(image, write.parent if write else Path.cwd())).as_posix()
    print_or_write("\n".join(report(record, shown)), write, "accuracy")


def print_goals(results: Path) -> None:
    """Print each goal of ``gpulab.measure`` and what a run measured."""
    record = json.loads(results.read_text("utf-8"))
    own = _of(answers(record))
    if own.empty:
        raise SystemExit(f"{results} contains no answer of gpulab.measure")
    print(f"gpulab.measure, {len(own)} workloads on {record['provenance']['gpu']}:")
    for goal, measured in goals(record, own):
        print(f"  {goal}: {measured}")


def report(results: Record, image: str) -> Iterator[str]:
    """Yield the lines of the report."""
    answered = answers(results)
    times_us = [case["read_us"][1] for case in results["cases"] if "read_us" in case]
    shortest, longest = _time(min(times_us)), _time(max(times_us))
    n_cases = sum("answers" in case for case in results["cases"])
    yield (
        f"One run timed {n_cases} workloads from {shortest} to {longest} with every tool. Each "
        "answer is compared with the driver's own kernel records, which were read before and "
        "after it with the cache in the same state."
    )
    yield ""
    yield f"![{_alt(answered)}]({image})"
    yield ""
    for title, is_hot in (("cold cache", False), ("warm cache", True)):
        yield from _tools_table(title, answered[answered["is_hot"] == is_hot])
        yield ""
    own = _of(answered)
    if not own.empty:
        head = ["goal of `gpulab.measure`", "measured"]
        yield from table(head, list(goals(results, own)), n_names=2)
        yield ""
    yield from _notes(results, own)
    yield ""
    command = "python -m benchmarks.accuracy report --write docs/accuracy.md"
    yield f"{source(results['provenance'])} `{command}` made this part."


def _tools_table(title: str, answered: pd.DataFrame) -> list[str]:
    is_clean = not answered["is_hot"].any()
    head = [title, *_COLUMNS, *(["against a clean cold cache"] if is_clean else [])]
    # The best tool comes first, whoever made it.
    tools = [group for _, group in answered.groupby("tool", sort=False)]
    tools.sort(key=lambda group: group["error"].abs().median())
    return table(head, [_cells(group, is_clean=is_clean) for group in tools])


def _cells(of_tool: pd.DataFrame, *, is_clean: bool) -> list[str]:
    name = of_tool["tool"].iloc[0]
    own, comma, rest = name.partition(",")
    sizes = of_tool["error"].abs()
    return [
        f"**`gpulab.{own}`{comma}{rest}**" if own == DEFAULT else name,
        str(len(of_tool)),
        f"{of_tool['error_us'].abs().median():.2f} µs",
        _percent(sizes.median()),
        _percent(sizes.mean()),
        _percent(of_tool["error"][sizes.idxmax()], sign=True),
        f"{of_tool['error_us'].median():+.2f} µs",
        coverage(of_tool) or "-",
        f"{of_tool['wall_s'].median():.3f} s",
        *([_percent(of_tool["clean_error"].abs().mean())] if is_clean else []),
    ]


def goals(results: Record, own: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """Yield each goal of ``gpulab.measure`` and what was measured."""
    yield "median error at most 0.10 µs", f"{own['error_us'].abs().median():.3f} µs"
    yield "mean relative error at most 1.5 %", _percent(own["error"].abs().mean())
    yield "interval contains the referee's median in 90 to 99 %", coverage(own) or "none"
    short_s = own["wall_s"][own["referee_us"] < _SHORT_US].median()
    yield "an answer within 0.05 s for work under 1 ms", f"{short_s:.3f} s"
    processes = results.get("processes", {})
    for cache in ("cold", "hot") if processes.get("n_processes", 0) > 1 else ():
        own_spread, records = (
            list(processes["variation_percent"][way].values())
            for way in (cache, f"referee_{cache}")
        )
        goal = f"variation over {processes['n_processes']} processes at most 0.3 %"
        measured = f"{_range(own_spread)}; the driver's own records of them {_range(records)}"
        yield f"{goal}, kernels of 10 to 16 µs, {cache}", measured
    magic = results.get("magic", {})
    if magic and "error" not in magic:
        added = max(body["added_us"] for body in magic.values())
        yield "`%%cudatime` adds at most 1 µs to the host time of its body", f"{added:+.2f} µs"


def _range(percents: Sequence[float]) -> str:
    least, most = min(percents), max(percents)
    return f"{statistics.median(percents):.2f} % ({least:.2f} to {most:.2f} %)"


def _notes(results: Record, own: pd.DataFrame) -> Iterator[str]:
    yield (
        "The error is the tool's number minus the median of the records; worst and bias keep "
        "their sign. Work of several kernels counts from the start of the first to the end of "
        "the last, minus what the profiler adds to the pauses between them (events with and "
        "without the profiler show how much that is). "
        "A tool that flushes the cache is compared with records taken after the same kind of "
        "flush; the last column compares it with records after a flush that leaves no dirty lines."
    )
    if not own.empty:
        yield " ".join(_by_kernels(own))
    left_out = len(results["left_out"])
    if left_out:
        yield f"{left_out} more workloads were left out because the time was up."
    for name in results["tools"]:
        tool_answers = [case.get("answers", {}).get(name, {}) for case in results["cases"]]
        failed = [answer["error"] for answer in tool_answers if "error" in answer]
        if 0 < len(failed) < sum(map(bool, tool_answers)):
            first = failed[0]
            yield f"{name} gave no answer for {len(failed)} workloads. The first error: {first}."
    not_run = results.get("not_run", {})
    if not_run:
        listed = "; ".join(f"{name} ({reason})" for name, reason in not_run.items())
        yield f"Not run: {listed}."


def _by_kernels(own: pd.DataFrame) -> Iterator[str]:
    """Yield the errors for single kernels, and for work of several, where gaps count too."""
    # Separate figures, because the pauses between kernels differ from batch to batch and decide
    # the error of several (docs/accuracy.md).
    is_single = own["n_records"] == 1
    for part, what in ((own[is_single], "a single kernel or copy"), (own[~is_single], "several")):
        if not part.empty:
            uncorrected = _percent(part["recorded_error"].abs().mean())
            yield (
                f"For the {len(part)} workloads that consist of {what}, the median error "
                f"of `gpulab.measure` is {part['error_us'].abs().median():.2f} µs, the mean "
                f"{_percent(part['error'].abs().mean())}"
                + ("." if what != "several" else f" ({uncorrected} against uncorrected records).")
            )


def _alt(answered: pd.DataFrame) -> str:
    parts = [
        f"{label} {_percent(_of(answered, name)['error'].abs().median())}"
        for name, label, _, _ in _SHOWN
        if name in set(answered["tool"])
    ]
    return (
        "Relative error of timing tools against the time on the GPU, both axes logarithmic. "
        f"Median errors: {', '.join(parts)}."
    )


def draw(results: Record, image: Path) -> None:
    """Draw the error of the best-known tools against the time of the work."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import LogLocator, NullFormatter

    answered = answers(results)
    figure, axes = plt.subplots(figsize=(8, 5.2), layout="constrained")
    for name, label, colour, mark in _SHOWN:
        of_tool = _of(answered, name)
        if not of_tool.empty:
            sizes = 100 * of_tool["error"].abs()
            axes.plot(
                of_tool["referee_us"],
                sizes.clip(lower=_LEAST_PERCENT),
                linestyle="none",
                marker=mark,
                markersize=4.5,
                color=colour,
                alpha=0.8,
                label=f"{label}: median {_percent(sizes.median() / 100)}",
            )
    axes.set(xscale="log", yscale="log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _place: f"{value:,g}")
        axis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.set_xlabel("Time on the GPU by the driver's records (µs)")
    axes.set_ylabel("Error of the tool's answer (%)")
    axes.set_title(_title(results["provenance"]["gpu"]), loc="left", fontsize=11)
    axes.grid(visible=True, which="major", color=FAINT.light, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(frameon=False, fontsize=8, ncols=2, loc="outside lower center")
    image.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(image, dpi=150)
    plt.close(figure)


def _title(gpu: str) -> str:
    kind = "computed for the" if gpu.startswith("virtual") else "measured on"
    return f"How far timing tools are from the driver's records, {kind} {gpu}"


def _time(time_us: float) -> str:
    return f"{time_us:.1f} µs" if time_us < 1000 else f"{time_us / 1000:.1f} ms"  # noqa: PLR2004 # to ms


def _percent(share: float, *, sign: bool = False) -> str:
    value = 100 * share
    digits = 2 if abs(value) < 1 else 1 if abs(value) < 10 else 0  # noqa: PLR2004 # three digits at most
    return f"{value:{'+' if sign else ''}.{digits}f} %"
