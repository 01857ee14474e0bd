"""Run NVBench through ``cuda.bench``, and read the driver's records inside its benchmarks."""

import json
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks.accuracy.cases import find
from benchmarks.common.own_process import Answerer, OwnProcess
from benchmarks.common.referee import HOT, Reading, Referee
from benchmarks.common.tool import Answer, Tool, described, judged

COLD, _HOT = "NVBench cold", "NVBench batch"
NAMES = (
    *("add n=1024 float32", "matmul n=1024 float16", "sum n=4194304 float32"),
    *("softmax n=1024 float32", "linear n=1 float16", "add n=67108864 float32"),
    *("layer_norm n=256 float16", "matmul n=2048 float32", "copy n=4194304 float32"),
    *("chain: ten adds", "sort n=64 float32", "attention n=1024 float16"),
)
_TIMEOUT_S = 3.0  # NVBench's default is 15 s, and most of the short kernels use all of it

Record = dict[str, Any]


def tools() -> tuple[Tool, Tool]:
    """Return NVBench's cold and batch times as two tools; one run answers for both."""

    def ask(_work: object) -> Answer:
        raise NotImplementedError("NVBench asks for its work itself")

    return (
        Tool(COLD, "NVBench", "write 1 x L2", ask, "mean ± noise", "cuda.bench"),
        Tool(_HOT, "NVBench", HOT, ask, "", "cuda.bench"),
    )


def answers(n_cases: int, out: Path, limit_s: float) -> Record:
    """Return NVBench's answers about the first cases, by case and tool; empty if there are none.

    It runs in its own process, so that a kernel that never ends cannot stop this one, and writes
    its file after each case, so that an end by the limit still leaves answers.
    """
    if limit_s <= 0:
        return {}
    process = OwnProcess(partial(_begin, out))
    try:
        process.ask(NAMES[:n_cases], limit_s)
    except (TimeoutError, RuntimeError) as error:
        print(f"NVBench: {error}")
    process.close()
    found: Record = json.loads(out.read_text("utf-8")) if out.exists() else {}
    out.unlink(missing_ok=True)
    return found


def _begin(out: Path) -> Answerer:
    return lambda names: _run(names, out)


def _run(names: Sequence[str], out: Path) -> None:
    """Run NVBench on some cases and write its answers and the referee's, by case and tool."""
    from cuda import bench
    from cuda.bench.results import BenchmarkResult

    readings: dict[str, Record] = {}

    def benchmark(state: Any) -> None:  # noqa: ANN401 # its state is untyped
        name = names[int(state.get_int64("case"))]
        # NVBench times the work on a stream of its own, so torch has to launch there.
        stream = torch.cuda.ExternalStream(state.get_stream().addressof())
        with torch.cuda.stream(stream):
            try:
                readings[name] = _between(state, name)
            except Exception as error:  # noqa: BLE001 # the other cases go on
                state.skip(described(error))
                readings[name] = {"error": described(error)}
        # After each case: the run may be ended from outside, and the cases so far must not be
        # lost.
        out.write_text(json.dumps({name: _failed(said) for name, said in readings.items()}))

    registered = bench.register(benchmark)
    registered.add_int64_axis("case", list(range(len(names))))
    registered.set_timeout(_TIMEOUT_S)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "nvbench.json"
        bench.run_all_benchmarks(["nvbench", "--jsonbin", str(path)])
        states = BenchmarkResult.from_json(path)["benchmark"]
        said = {names[int(state.point["case"])]: state.summaries for state in states}
    answers = {name: _answers(said.get(name, {}), read) for name, read in readings.items()}
    out.write_text(json.dumps(answers))


def _between(state: Any, name: str) -> Record:  # noqa: ANN401 # its state is untyped
    work = find(name).build()
    referee = Referee(work)
    cold, hot = tools()
    before = {tool.name: referee.read(tool.state) for tool in (cold, hot)}
    start_s = time.perf_counter()
    state.exec(lambda _launch: work())
    wall_s = time.perf_counter() - start_s
    after = {tool.name: referee.read(tool.state) for tool in (cold, hot)}
    return {"before": before, "after": after, "wall_s": round(wall_s, 3)}


def _answers(summaries: Any, read: Record) -> Record:  # noqa: ANN401 # a table of its records
    if "error" in read:
        return _failed(read)
    answers: Record = {}
    for tool, mean, noise in zip(
        tools(),
        ("nv/cold/time/gpu/mean", "nv/batch/time/gpu/mean"),
        ("nv/cold/time/gpu/stdev/relative", ""),
        strict=True,
    ):
        if mean not in summaries:
            answers[tool.name] = {"error": "it gave no such number"}
            continue
        answer = _answer(summaries, mean, noise)
        before: Reading = read["before"][tool.name]
        after: Reading = read["after"][tool.name]
        answers[tool.name] = judged(tool, answer, before, after) | {"wall_s": read["wall_s"]}
    return answers


def _answer(summaries: Any, mean: str, noise: str) -> Answer:  # noqa: ANN401 # as above
    mean_s = float(summaries[mean].value)
    if noise not in summaries:
        return Answer(mean_s)
    share = float(summaries[noise].value)
    return Answer(mean_s, mean_s * (1 - share), mean_s * (1 + share))


def _failed(read: Record) -> Record:
    reason = read.get("error", "NVBench ended before it wrote its results")
    return {tool.name: {"error": reason} for tool in tools()}
