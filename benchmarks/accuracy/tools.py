"""The tools to compare: gpulab's methods and other people's, each called as its users do."""

import statistics
from collections.abc import Iterator
from typing import Any

import torch

from benchmarks.common.referee import HOT, READ
from benchmarks.common.tool import OWN, OWN_INTERVAL, Answer, Tool, default_tool, measured
from gpulab.device.work import Work
from gpulab.timing import METHODS

_RUNG_S = 0.1  # single methods need not reach the precision: their errors are systematic
_N_CUPY = 100
_S_PER_MS = 1e-3


def own_tools() -> Iterator[Tool]:
    """Yield ``gpulab.measure`` without options, then its variants and each timing method."""
    states = {"hot": HOT, "cold": READ}
    kind = OWN_INTERVAL
    yield default_tool()
    yield Tool("measure, hot", OWN, HOT, measured(cache="hot"), kind)
    for cache, state in states.items():
        ask = measured(cache=cache, floor="device")
        yield Tool(f"measure, floor of the device, {cache}", OWN, state, ask, kind)
    for name, method in METHODS.items():
        if name == "calibrated":  # the default, above
            continue
        caches = ("cold", "hot") if name == "graph" else (method.cache,)
        for cache in caches:
            yield Tool(
                f"method {name}" + (f", {cache}" if len(caches) > 1 else ""),
                OWN,
                states[cache],
                measured(method=name, cache=cache, max_time_s=_RUNG_S),
                kind,
                counts_gaps=name != "profiler",
            )


def other_tools() -> tuple[Tool, ...]:
    """Return other people's tools."""
    write = "write 256 MiB"
    spread = "mean ± standard deviation"
    quartiles = "interquartile range"
    timer = "torch.utils.benchmark"
    return (
        Tool("triton do_bench", "triton", write, _do_bench, needs="triton"),
        Tool("triton do_bench_cudagraph", "triton", HOT, _do_bench_cudagraph, needs="triton"),
        Tool(f"{timer} blocked_autorange", "PyTorch", HOT, _blocked_autorange, quartiles),
        Tool(
            f"{timer} adaptive_autorange",
            "PyTorch",
            HOT,
            _adaptive_autorange,
            quartiles,
            is_slow=True,
        ),
        Tool("Inductor benchmarker", "PyTorch", "write 1 x L2", _inductor),
        Tool("cupyx.profiler.benchmark", "CuPy", HOT, _cupyx, spread, needs="cupyx"),
        Tool("%gpu_timeit's way", "CuPy", HOT, _gpu_timeit, spread, needs="cupyx"),
        Tool(
            "flashinfer, events",
            "flashinfer",
            "write 2 x L2",
            _flashinfer_events,
            needs="flashinfer.testing.utils",
        ),
        Tool(
            "flashinfer, graph",
            "flashinfer",
            HOT,
            _flashinfer_graph,
            needs="flashinfer.testing.utils",
        ),
        Tool("kernelmeter", "kernelmeter", write, _kernelmeter, needs="kernelmeter"),
    )


def _do_bench(work: Work) -> Answer:
    from triton.testing import do_bench

    return Answer(do_bench(work) * _S_PER_MS)  # the mean, which is its default


def _do_bench_cudagraph(work: Work) -> Answer:
    from triton.testing import do_bench_cudagraph

    with torch.cuda.stream(torch.cuda.Stream()):  # type: ignore[no-untyped-call] # it captures
        return Answer(do_bench_cudagraph(work) * _S_PER_MS)


def _blocked_autorange(work: Work) -> Answer:
    return _timer_answer(_timer(work).blocked_autorange())


def _adaptive_autorange(work: Work) -> Answer:
    return _timer_answer(_timer(work).adaptive_autorange())


def _timer(work: Work) -> Any:  # noqa: ANN401 # torch's timer is untyped
    from torch.utils.benchmark import Timer

    return Timer("work()", globals={"work": work})


def _timer_answer(taken: Any) -> Answer:  # noqa: ANN401 # torch's measurement is untyped
    return Answer(taken.median, taken._p25, taken._p75)


def _inductor(work: Work) -> Answer:
    from torch._inductor.runtime.benchmarking import benchmarker

    return Answer(benchmarker.benchmark_gpu(work) * _S_PER_MS)


def _cupyx(work: Work) -> Answer:
    from cupyx.profiler import benchmark

    # Its default of 10,000 repeats, without a limit on time, would take minutes for long work.
    return _cupy_answer(benchmark(work, n_repeat=_N_CUPY))


def _gpu_timeit(work: Work) -> Answer:
    """Time as CuPy's magic times a cell: compile and run its source text in each repeat."""
    from cupyx.profiler import benchmark

    names: dict[str, object] = {"work": work}

    def run() -> None:
        exec("work()", names, names)  # noqa: S102 # this is what is judged

    return _cupy_answer(benchmark(run, n_repeat=_N_CUPY))


def _cupy_answer(taken: Any) -> Answer:  # noqa: ANN401 # CuPy's result is untyped
    times_s = [float(time_s) for time_s in taken.gpu_times[0]]
    mean_s, deviation_s = statistics.fmean(times_s), statistics.pstdev(times_s)
    return Answer(mean_s, mean_s - deviation_s, mean_s + deviation_s)


def _flashinfer_events(work: Work) -> Answer:
    from flashinfer.testing.utils import bench_gpu_time_with_cuda_event

    return Answer(statistics.median(bench_gpu_time_with_cuda_event(work)) * _S_PER_MS)


def _flashinfer_graph(work: Work) -> Answer:
    from flashinfer.testing.utils import bench_gpu_time_with_cudagraph

    # A call without arguments has no inputs to rotate, so a cold cache is impossible here, and
    # flashinfer would warn.
    times_ms = bench_gpu_time_with_cudagraph(work, cold_l2_cache=False)
    return Answer(statistics.median(times_ms) * _S_PER_MS)


def _kernelmeter(work: Work) -> Answer:
    from kernelmeter.bench import BenchSpec, run

    taken = run(BenchSpec(fn=work, name="work", args=lambda: ()))
    return Answer(taken.ms_median * _S_PER_MS)


def all_tools() -> list[Tool]:
    """Return all tools, in the order of asking.

    Tools that time in the same cache state follow one another, so that the reading after one
    tool is also the reading before the next.
    """
    return sorted([*own_tools(), *other_tools()], key=lambda tool: tool.state)
