"""Examine the virtual GPU on whole models that a seed draws.

The virtual values are written down, with their digest, before the recorded ones are read.
"""

import gc
import hashlib
import json
import re
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

from benchmarks.common.device_records import busy_us, duration_us, profiled
from benchmarks.common.time_limit import at_most
from benchmarks.programs.whole_models import draw, step_of
from gpulab import device

# Some drawn programs do not fit a GPU or a version of a library; the first of the rest count.
N_DRAWN, N_COUNTED = 36, 30
N_TOP = 5
_LARGE = 0.1
_N_WARM_UP = 3
_N_READINGS = 3
_N_HOST_READINGS = 9
_LIMIT_S = 60.0
# The family of a kernel is the first of these that its name contains; the virtual GPU's kernels
# have the names of operators. All others are elementwise.
_FAMILIES = (
    ("attention", r"flash|fmha|attention|sdpa|mem_eff"),
    ("optimizer", r"multi_tensor|foreach|fused_?adam|fused_?sgd"),
    (
        "layout",
        r"nchwto|nhwcto|transpose|cat|copy|im2col|col2im|roll|flip|^clone|channels|relayout",
    ),
    # cuDNN runs many convolutions by kernels of matmuls, so that no name tells them apart.
    (
        "matmul or convolution",
        (
            r"gemm|gemv|nvjet|cutlass|splitk|dot_kernel|matmul|addmm|^b?mm$|baddbmm|^sum of parts"
            r"|conv|fprop|dgrad|wgrad|winograd|cudnn::cnn|depthwise|conv2d_c1|^(for the )?weights"
        ),
    ),
    (
        "norm",
        (
            r"layer_norm|group_norm|batch_?norm|bn_|rms_norm|gammabeta|rowwisemoments"
            r"|^(normalize|(update )?statistics|inverse deviations|moments)$"
        ),
    ),
    ("softmax", r"soft_?max"),
    ("index", r"index|gather|scatter|embedding"),
    ("pool", r"pool|upsample|interpolate"),
    ("loss", r"nll_loss|cross_entropy|mse"),
    ("random", r"dropout|distribution|philox|bernoulli"),
    ("scan or sort", r"scan|sort|topk|radix|cumsum"),
    ("reduction", r"reduce|^(sum|mean|amax|argmax|var|linalg_vector_norm|sums? .*)$"),
)


def family_of(name: str) -> str:
    """Return the family of a kernel by its name.

    Examples
    --------
    >>> family_of("sm80_xmma_gemm_f32f32_tn_n"), family_of("vectorized_elementwise_kernel<4>")
    ('matmul or convolution', 'elementwise')
    """
    low = name.lower()
    return next(
        (family for family, pattern in _FAMILIES if re.search(pattern, low)), "elementwise"
    )


def examine(  # noqa: PLR0913 # the command's options
    seed: int, out: Path, *, gpu: str, workers: int, limit_s: float, host_only: bool
) -> None:
    """Read each drawn program, and write a file after each."""
    stop_s = time.monotonic() + limit_s
    readings: dict[str, Any] = {"seed": seed, "torch": torch.__version__, "programs": {}}
    readings["gpu"] = f"virtual {gpu}" if gpu else torch.cuda.get_device_name()
    programs = readings["programs"]

    def keep(i: int, row: dict[str, Any]) -> None:
        programs[str(i)] = row
        out.write_text(json.dumps(readings, indent=1) + "\n", "utf-8")

    indices = range(N_DRAWN)
    if gpu:
        with ThreadPoolExecutor(workers) as pool:
            for i, row in zip(
                indices, pool.map(lambda i: _apart(seed, i, gpu), indices), strict=True
            ):
                keep(i, row)
    else:
        for i in indices:
            n_good = sum("error" not in row for row in programs.values())
            if n_good == N_COUNTED or time.monotonic() > stop_s:
                break
            keep(i, read(seed, i, is_host_only=host_only))
    failed = [row for row in programs.values() if "error" in row]
    print(f"{len(programs) - len(failed)} of {len(programs)} programs read, in {readings['gpu']}")
    for row in failed:
        print(f"  {row['name']}: {row['error']}")
    print(f"sha256 of {out.name}: {hashlib.sha256(out.read_bytes()).hexdigest()}")


def _apart(seed: int, i: int, gpu: str) -> dict[str, Any]:
    """Return what a new process reads: a long simulation can be ended there."""
    drawn = draw(seed, N_DRAWN)[i]
    # Generation asks for the values of each token.
    values = ", value_budget_s=60" if drawn.mode == "generate" else ""
    code = (
        "import json, gpulab; from benchmarks.programs.blind import read\n"
        f"with gpulab.virtual_gpu({gpu!r}, first_use=False{values}): "
        f"row = read({seed}, {i}, n_readings=1)\n"
        "print(json.dumps(row))"
    )
    try:
        ran = subprocess.run(  # noqa: S603 # our own code
            [sys.executable, "-W", "ignore", "-c", code],
            capture_output=True, text=True, timeout=4 * _LIMIT_S, check=False,
        )  # fmt: skip
        row: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        return {"name": drawn.name, "error": "took too long"}
    except (IndexError, ValueError):
        return {"name": drawn.name, "error": ran.stderr[-300:]}
    return row


def read(
    seed: int, i: int, n_readings: int = _N_READINGS, *, is_host_only: bool = False
) -> dict[str, Any]:
    """Return what the GPU in use does in a step of the drawn program number ``i``."""
    drawn = draw(seed, N_DRAWN)[i]
    start_s = time.monotonic()
    try:
        with at_most(4 * _LIMIT_S):
            step = step_of(drawn)
            row = _host_times(step, _N_HOST_READINGS) if is_host_only else _read(step, n_readings)
            # Nothing of this program may stay for the next one.
            del step
    except Exception as error:  # noqa: BLE001 # whatever it is, the others are to be read
        row = {"error": f"{type(error).__name__}: {str(error)[:300]}"}
    gc.collect()
    torch.cuda.empty_cache()
    return {"name": drawn.name, **row, "seconds": round(time.monotonic() - start_s, 1)}


def _read(step: Any, n_readings: int) -> dict[str, Any]:  # noqa: ANN401 # Work
    host = _host_times(step, n_readings)
    peak_bytes = torch.cuda.max_memory_allocated() - _workspace_bytes()
    readings = [profiled(step) for _ in range(n_readings)]
    kernels = [[each for each in records if each.kind == "kernel"] for records in readings]
    times: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for each in kernels[-1]:
        times[each.name] += duration_us(each)
        counts[each.name] += 1
    return {
        "busy_us": round(statistics.median(map(busy_us, readings)), 2),
        "n_kernels": statistics.median(map(len, kernels)),
        "peak_bytes": peak_bytes,
        **host,
        "top": [[name, counts[name], round(us, 2)] for name, us in times.most_common(40)],
    }


def _host_times(step: Any, n_readings: int) -> dict[str, float]:  # noqa: ANN401 # Work
    for _ in range(_N_WARM_UP):
        step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    hosts_us = []
    for _ in range(n_readings):
        start_ns = time.perf_counter_ns()
        step()
        hosts_us.append((time.perf_counter_ns() - start_ns) / 1e3)
        torch.cuda.synchronize()
    # One step in several meets Python's collector or another program on its core.
    return {
        "host_us": round(statistics.median(hosts_us), 1),
        "least_host_us": round(min(hosts_us), 1),
    }


def _workspace_bytes() -> int:
    """Return what cuBLAS keeps for itself, and free it.

    It belongs to the process: other programs before this one may have needed it. The virtual GPU's
    cuBLAS takes no memory.
    """
    if device.current().virtual is not None:
        return 0
    n_bytes = torch.cuda.memory_allocated()
    torch._C._cuda_clearCublasWorkspaces()
    return n_bytes - torch.cuda.memory_allocated()


def compare(recorded: Path, virtual: Path) -> None:
    """Print the errors of each program and of all, and how many have the right families."""
    there, here = (json.loads(path.read_text("utf-8"))["programs"] for path in (recorded, virtual))
    errors: dict[str, list[float]] = {
        "busy_us": [],
        "n_kernels": [],
        "peak_bytes": [],
        "host_us": [],
        "least_host_us": [],
    }
    lines, n_right, n_counted, n_refused = [], 0, 0, 0
    for i, row in there.items():
        if "error" in row:
            continue
        n_counted += 1
        virtual_row = here.get(i, {"error": "not read"})
        if "error" in virtual_row:
            n_refused += 1
            lines.append(f"{row['name']}: {virtual_row['error']}")
            continue
        cells = []
        for quantity, all_errors in errors.items():
            if (
                quantity not in row or quantity not in virtual_row
            ):  # the host's alone, or an earlier run
                continue
            all_errors.append(virtual_row[quantity] / row[quantity] - 1)
            cells.append(f"{quantity} {row[quantity]:.0f} {all_errors[-1]:+.1%}")
        families, virtual_families = (
            shares_of(each.get("top", ())) for each in (row, virtual_row)
        )
        is_right = "top" not in row or have_same_top(families, virtual_families)
        n_right += is_right
        lines.append(f"{row['name']}: {', '.join(cells)}")
        if not is_right:
            texts = [
                ", ".join(f"{name} {share:.0%}" for name, share in shares.most_common(N_TOP))
                for shares in (families, virtual_families)
            ]
            lines.append(f"    families {texts[0]}; virtual {texts[1]}")
    lines += _summary(errors)
    if any("top" in row for row in there.values()):
        lines.append(f"families of the top {N_TOP} kernels: {n_right} of {n_counted}")
    print(*lines, f"{n_refused} refused", sep="\n")


def _summary(errors: dict[str, list[float]]) -> list[str]:
    lines = []
    for quantity, signed in errors.items():
        if len(signed) > 1:
            middle = statistics.median(signed)
            lines.append(f"{quantity}: {_sizes(signed)}, median with sign {middle:+.1%}")
            if "host" in quantity:
                # Each host has its own pace.
                paced = [(1 + error) / (1 + middle) - 1 for error in signed]
                lines.append(
                    f"    divided by the median ratio of {1 + middle:.2f}: {_sizes(paced)}"
                )
    return lines


def _sizes(errors: Sequence[float]) -> str:
    sizes = list(map(abs, errors))
    p90 = statistics.quantiles(sizes, n=10, method="inclusive")[-1]
    return f"median {statistics.median(sizes):.1%}, p90 {p90:.1%}"


def shares_of(top: Sequence[Sequence[Any]]) -> "Counter[str]":
    """Return each family's share of the time."""
    times: Counter[str] = Counter()
    for name, _, us in top:
        times[family_of(name)] += us
    whole = sum(times.values())
    return Counter({name: us / whole for name, us in times.items()})


def have_same_top(first: "Counter[str]", second: "Counter[str]") -> bool:
    """Return whether each GPU's families of a tenth of the time or more are in the other's top.

    Smaller ones are not asked for: which of two families is the fifth is a matter of microseconds.

    Examples
    --------
    >>> one, other = Counter(norm=0.9, index=0.1), Counter(norm=0.99, index=0.01)
    >>> have_same_top(one, other), have_same_top(one, Counter(norm=1.0))
    (True, False)
    """

    def has(known: "Counter[str]", asked: "Counter[str]") -> bool:
        top = dict(known.most_common(N_TOP))
        return all(name in top for name, share in asked.items() if share >= _LARGE)

    return has(first, second) and has(second, first)
