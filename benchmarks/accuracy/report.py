"""The table and the figure of the accuracy benchmark, made from its results by one command."""

import json
import os
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.accuracy.summary import Record, Row, own_row, range_us, rows
from benchmarks.common.folders import IMAGES
from benchmarks.common.markdown import put_between_markers, source, table
from benchmarks.common.tool import DEFAULT
from gpulab.core.palette import FAINT, INK, ROLES, SERIES

_IMAGE = IMAGES / "accuracy-h200.png"

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


def write(results_path: Path, page: Path | None, image: Path | None) -> None:
    """Print the report, draw the figure and, if a page is given, put both between its markers."""
    results = json.loads(results_path.read_text("utf-8"))
    image = image or _IMAGE
    draw(results, image)
    folder = page.parent if page else Path.cwd()
    shown = Path(os.path.relpath(image, folder)).as_posix()
    text = "\n".join(report(results, shown))
    if page is None:
        print(text)
        return
    put_between_markers(page, "accuracy", text)
    print(f"{page} and {image} were written")


def print_goals(results_path: Path) -> None:
    """Print each goal of ``gpulab.measure`` and what a run measured."""
    results = json.loads(results_path.read_text("utf-8"))
    own = own_row(rows(results))
    if own is None:
        raise SystemExit(f"{results_path} contains no answer of gpulab.measure")
    print(f"gpulab.measure, {len(own.points)} workloads on {results['provenance']['gpu']}:")
    for goal, measured in goals(results, own):
        print(f"  {goal}: {measured}")


def report(results: Record, image: str) -> Iterator[str]:
    """Yield the lines of the report."""
    known = rows(results)
    least_us, most_us = range_us(results)
    n_cases = sum("answers" in case for case in results["cases"])
    at = results["provenance"]
    yield (
        f"One run timed {n_cases} workloads from {_time(least_us)} to {_time(most_us)} with "
        "every tool. Each answer is compared with the driver's own kernel records, which were "
        "read before and after it with the cache in the same state."
    )
    yield ""
    yield f"![{_alt(known)}]({image})"
    yield ""
    for title, hot in (("cold cache", False), ("warm cache", True)):
        yield from _tools_table(title, [row for row in known if row.is_hot is hot])
        yield ""
    own = own_row(known)
    if own is not None:
        head = ["goal of `gpulab.measure`", "measured"]
        yield from table(head, list(goals(results, own)), n_names=2)
        yield ""
    yield from _notes(results, known)
    yield ""
    command = "python -m benchmarks.accuracy report --write docs/accuracy.md"
    yield f"{source(at)} `{command}` made this part."


def _tools_table(title: str, listed: Sequence[Row]) -> list[str]:
    clean = not any(row.is_hot for row in listed)
    head = [title, *_COLUMNS, *(["against a clean cold cache"] if clean else [])]
    # The best tool comes first, whoever made it.
    ordered = sorted(listed, key=lambda row: row.median_error)
    return table(head, [_cells(row, clean=clean) for row in ordered])


def _cells(row: Row, *, clean: bool) -> list[str]:
    own, comma, rest = row.name.partition(",")
    return [
        f"**`gpulab.{own}`{comma}{rest}**" if own == DEFAULT else row.name,
        str(len(row.points)),
        f"{row.median_error_us:.2f} µs",
        _percent(row.median_error),
        _percent(row.mean_error),
        _percent(row.worst.error, sign=True),
        f"{row.bias_us:+.2f} µs",
        "-" if row.coverage is None else f"{100 * row.coverage:.0f} %",
        f"{row.wall_s:.3f} s",
        *([_percent(row.clean_error)] if clean else []),
    ]


def goals(results: Record, own: Row) -> Iterator[tuple[str, str]]:
    """Yield each goal of ``gpulab.measure`` and what was measured."""
    yield "median error at most 0.10 µs", f"{own.median_error_us:.3f} µs"
    yield "mean relative error at most 1.5 %", _percent(own.mean_error)
    coverage = "none" if own.coverage is None else f"{100 * own.coverage:.0f} %"
    yield "interval contains the referee's median in 90 to 99 %", coverage
    yield "an answer within 0.05 s for work under 1 ms", f"{own.short_wall_s:.3f} s"
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


def _notes(results: Record, known: Sequence[Row]) -> Iterator[str]:
    yield (
        "The error is the tool's number minus the median of the records; worst and bias keep "
        "their sign. Work of several kernels counts from the start of the first to the end of "
        "the last, minus what the profiler adds to the pauses between them (events with and "
        "without the profiler show how much that is). "
        "A tool that flushes the cache is compared with records taken after the same kind of "
        "flush; the last column compares it with records after a flush that leaves no dirty lines."
    )
    own = own_row(known)
    if own is not None:
        yield " ".join(_by_kernels(own))
    left_out = len(results["left_out"])
    if left_out:
        yield f"{left_out} more workloads were left out because the time was up."
    failures = {row.name: row.failures for row in known if row.failures}
    for name, failed in failures.items():
        reason = next(iter(failed.values()))
        yield f"{name} gave no answer for {len(failed)} workloads. The first error: {reason}."
    not_run = results.get("not_run", {})
    if not_run:
        listed = "; ".join(f"{name} ({reason})" for name, reason in not_run.items())
        yield f"Not run: {listed}."


def _by_kernels(own: Row) -> Iterator[str]:
    """Yield the errors for single kernels, and for work of several, where gaps count too."""
    # Separate figures, because the pauses between kernels differ from batch to batch and decide
    # the error of several (docs/accuracy.md).
    for single, what in ((True, "a single kernel or copy"), (False, "several")):
        part = own.only(single=single)
        if part.points:
            yield (
                f"For the {len(part.points)} workloads that consist of {what}, the median error "
                f"of `gpulab.measure` is {part.median_error_us:.2f} µs, the mean "
                f"{_percent(part.mean_error)}"
                + (
                    "."
                    if single
                    else f" ({_percent(part.recorded_error)} against uncorrected records)."
                )
            )


def _alt(known: Sequence[Row]) -> str:
    parts = [
        f"{label} {_percent(row.median_error)}"
        for name, label, _, _ in _SHOWN
        for row in known
        if row.name == name
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

    known = {row.name: row for row in rows(results)}
    figure, axes = plt.subplots(figsize=(8, 5.2), layout="constrained")
    for name, label, colour, mark in _SHOWN:
        if name in known:
            _scatter(axes, known[name], label=label, colour=colour, mark=mark)
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


def _scatter(axes: Any, row: Row, *, label: str, colour: str, mark: str) -> None:  # noqa: ANN401 # matplotlib's
    axes.plot(
        [point.referee_us for point in row.points],
        [max(100 * abs(point.error), _LEAST_PERCENT) for point in row.points],
        linestyle="none",
        marker=mark,
        markersize=4.5,
        color=colour,
        alpha=0.8,
        label=f"{label}: median {_percent(row.median_error)}",
    )


def _title(gpu: str) -> str:
    kind = "computed for the" if gpu.startswith("virtual") else "measured on"
    return f"How far timing tools are from the driver's records, {kind} {gpu}"


def _time(time_us: float) -> str:
    return f"{time_us:.1f} µs" if time_us < 1000 else f"{time_us / 1000:.1f} ms"  # noqa: PLR2004 # to ms


def _percent(share: float, *, sign: bool = False) -> str:
    value = 100 * share
    digits = 2 if abs(value) < 1 else 1 if abs(value) < 10 else 0  # noqa: PLR2004 # three digits at most
    return f"{value:{'+' if sign else ''}.{digits}f} %"
