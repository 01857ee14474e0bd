"""The questions, each for a process of its own: a switch is read once, when CUDA starts."""

import functools
import time
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree

from benchmarks.operators.database import operators
from benchmarks.switches.calls import Call, deterministic_calls, matmul_calls

if TYPE_CHECKING:
    from torch.testing._internal.opinfo.core import OpInfo, SampleInput

_N_SAMPLES = 8
_SPIN_CYCLES = 20_000_000  # about 10 ms
_MIB = 1 << 20
_ALERT = "determinis"


def deterministic() -> dict[str, Any]:
    """Return for each call what the deterministic mode says to it, forward and backward."""
    return {name: alerts(call) for name, call in deterministic_calls().items()}


def matmuls() -> dict[str, Any]:
    """Return the same for calls that use cuBLAS."""
    return {name: alerts(call) for name, call in matmul_calls().items()}


def database() -> dict[str, Any]:
    """Return the same for samples of each operator in PyTorch's own database, if it alerts."""
    found: dict[str, Any] = {}
    for info in operators():
        for dtype in (torch.float32, torch.int64):
            if dtype in info.dtypes and dtype in info.dtypesIfCUDA:
                name = f"{info.name} {info.variant_test_name}".strip()
                alerts = _database_alerts(info, dtype)
                if alerts:
                    found[f"{name} {dtype}"] = alerts
    return found


def _database_alerts(info: "OpInfo", dtype: torch.dtype) -> dict[str, list[str]]:
    needs_gradient = bool(dtype.is_floating_point and info.supports_autograd)
    try:
        samples = list(info.sample_inputs("cpu", dtype, requires_grad=needs_gradient))
    except Exception:  # noqa: BLE001 # a package that its samples need may be missing
        return {}
    step = max(1, len(samples) // _N_SAMPLES)
    texts: dict[str, set[str]] = {"forward": set(), "backward": set()}
    for sample in samples[::step]:
        call = functools.partial(_on_device, info.op, sample)
        for direction, text in alerts(call).items():
            if _ALERT in (text or ""):
                texts[direction].add(text)
    return {direction: sorted(each) for direction, each in texts.items() if each}


def _on_device(operator: Callable[..., Any], sample: "SampleInput") -> object:
    def moved(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.detach().to("cuda").requires_grad_(tensor.requires_grad)

    given = (sample.input, sample.args, sample.kwargs)
    first, args, kwargs = pytree.tree_map_only(torch.Tensor, moved, given)
    return operator(first, *args, **kwargs)


def alerts(call: Call) -> dict[str, str | None]:
    """Return the errors of a call under deterministic algorithms, or None where there is none."""
    forward: str | None = _error(call, mode=True)
    results: list[Any] = []
    before = _error(lambda: results.append(call()), mode=False)
    outs = [
        out
        for out in pytree.tree_leaves(results)
        if isinstance(out, torch.Tensor) and out.requires_grad
    ]
    if before is not None or not outs:
        return {"forward": forward, "backward": before and f"no result: {before}"}
    loss = functools.reduce(torch.add, (out.abs().sum() for out in outs))
    return {"forward": forward, "backward": _error(loss.backward, mode=True)}


def _error(call: Callable[[], Any], *, mode: bool) -> str | None:
    torch._C._set_deterministic_algorithms(mode, warn_only=False)  # without the compiler's import
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
            torch.cuda.synchronize()
    except Exception as error:  # noqa: BLE001 # its text is the answer
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    finally:
        torch._C._set_deterministic_algorithms(False, warn_only=False)  # noqa: FBT003 # as above
    texts = [str(each.message) for each in caught]
    return next((f"warns: {text}" for text in texts if _ALERT in text), None)


def warns() -> dict[str, Any]:
    """Return what ``warn_only=True`` says for a few calls, with the line of each warning."""
    found = {}
    for name in ("put_", "cumsum", "histc", "kthvalue", "interpolate bicubic 2d", "max_unpool2d"):
        call = deterministic_calls()[name]
        torch._C._set_deterministic_algorithms(True, warn_only=True)  # noqa: FBT003 # as above
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = call()
            if result.requires_grad:
                result.sum().backward()
            torch.cuda.synchronize()
        found[name] = [
            [each.category.__name__, str(each.message), each.filename.rpartition("/")[2]]
            for each in caught
        ]
    torch._C._set_deterministic_algorithms(False, warn_only=False)  # noqa: FBT003 # as above
    return found


def fills() -> dict[str, Any]:
    """Return what new memory contains under deterministic algorithms, and the kernels of it."""
    # Memory with other contents, which the allocator will hand out again.
    torch.full((4, 4), 7.0, device="cuda")
    torch._C._set_deterministic_algorithms(True, warn_only=False)  # noqa: FBT003 # as above
    like = torch.zeros(4, device="cuda")
    made: dict[str, Callable[[], torch.Tensor]] = {
        "empty": lambda: torch.empty(4, device="cuda"),
        "empty int64": lambda: torch.empty(4, device="cuda", dtype=torch.int64),
        "empty uint8": lambda: torch.empty(4, device="cuda", dtype=torch.uint8),
        "empty bool": lambda: torch.empty(4, device="cuda", dtype=torch.bool),
        "empty complex64": lambda: torch.empty(4, device="cuda", dtype=torch.complex64),
        "empty half": lambda: torch.empty(4, device="cuda", dtype=torch.float16),
        "empty_like": lambda: torch.empty_like(like),
        "new_empty": lambda: like.new_empty(4),
        "empty_strided": lambda: torch.empty_strided((4,), (1,), device="cuda"),
        "empty_permuted": lambda: torch.empty_permuted((2, 2), (1, 0), device="cuda"),
        "resize_": lambda: torch.zeros(2, device="cuda").resize_(4),
        "resize_ smaller": lambda: torch.zeros(4, device="cuda").resize_(2),
        "add": lambda: like + like,
        "zeros": lambda: torch.zeros(4, device="cuda"),
        "ones": lambda: torch.ones(4, device="cuda"),
        "full": lambda: torch.full((4,), 3.0, device="cuda"),
        "randn": lambda: torch.randn(4, device="cuda").isfinite(),
        "mm": lambda: torch.ones(2, 2, device="cuda") @ torch.ones(2, 2, device="cuda"),
        "cat": lambda: torch.cat((like, like)),
        "clone": like.clone,
        "to": lambda: torch.ones(4).to("cuda"),
        "sort": lambda: like.sort()[0],
        "softmax": lambda: like.softmax(0),
    }
    found = {}
    for is_filled in (True, False):
        torch.utils.deterministic.fill_uninitialized_memory = is_filled  # type: ignore[assignment] # a property
        for name, make in made.items():
            torch.cuda.synchronize()
            try:
                kernels = _kernels(make)
                result = make()
                found[f"{name}, fill {is_filled}"] = [str(result.flatten().tolist()), kernels]
            except Exception as error:  # noqa: BLE001 # its text is the answer
                found[f"{name}, fill {is_filled}"] = [str(error).splitlines()[0], []]
    torch._C._set_deterministic_algorithms(False, warn_only=False)  # noqa: FBT003 # as above
    return found


def _kernels(make: Callable[[], torch.Tensor]) -> list[str]:
    """Return the names of the kernels and copies that a call runs."""
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as recorded:
        make()
        torch.cuda.synchronize()
    device = torch.autograd.DeviceType.CUDA
    return [each.name[:80] for each in recorded.events() or () if each.device_type == device]


def blocking() -> dict[str, Any]:
    """Return the host's time of calls in milliseconds: short if the host goes on at once."""
    size = 64 * _MIB  # of 4 bytes: the largest tensor that has values on the virtual GPU
    a, b = (torch.zeros(size, device="cuda") for _ in range(2))
    pinned = torch.empty(size, pin_memory=True)
    big = torch.randn(8192, 8192, device="cuda")
    event, other = torch.cuda.Event(), torch.cuda.Event(enable_timing=True)
    side = torch.cuda.Stream()
    graph = torch.cuda.CUDAGraph()
    torch.cuda._sleep(1000)
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        torch.cuda._sleep(_SPIN_CYCLES)
    in_graph = torch.zeros(4, device="cuda")
    two = torch.cuda.CUDAGraph()
    with torch.cuda.graph(two):
        in_graph.add_(1)
    calls: dict[str, Callable[[], Any]] = {
        "spin": lambda: torch.cuda._sleep(_SPIN_CYCLES),
        "spin on a side stream": lambda: _on(side, lambda: torch.cuda._sleep(_SPIN_CYCLES)),
        "matmul": lambda: big @ big,
        "small kernel": lambda: in_graph.add_(1),
        "zero_": a.zero_,
        "fill_": lambda: a.fill_(1),
        "copy on the device": lambda: a.copy_(b),
        "copy in, pinned, non_blocking": lambda: a.copy_(pinned, non_blocking=True),
        "copy out, pinned, non_blocking": lambda: pinned.copy_(a, non_blocking=True),
        "graph of a spin": graph.replay,
        "small graph": two.replay,
        "record": event.record,
        "record with timing": other.record,
        "wait of a stream": lambda: side.wait_event(event),
        "query": event.query,
        "empty": lambda: torch.empty(4, device="cuda"),
        "synchronize": torch.cuda.synchronize,
    }
    found: dict[str, Any] = {}
    for name, call in calls.items():
        call()
        torch.cuda.synchronize()
        alone, after = [], []
        for _ in range(5):
            torch.cuda.synchronize()
            alone.append(_ms(call))
            torch.cuda.synchronize()
            torch.cuda._sleep(_SPIN_CYCLES)
            after.append(_ms(call))
        torch.cuda.synchronize()
        found[name] = {"alone_ms": sorted(alone)[2], "after_a_spin_ms": sorted(after)[2]}
    found["event between"] = _between()
    return found


def _on(stream: torch.cuda.Stream, call: Callable[[], Any]) -> None:
    with torch.cuda.stream(stream):
        call()


def _ms(call: Callable[[], Any]) -> float:
    began_s = time.perf_counter()
    call()
    return round((time.perf_counter() - began_s) * 1e3, 4)


def _between() -> float:
    """Return what two events read around ten small kernels, in milliseconds."""
    x = torch.zeros(4, device="cuda")
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(10):
        x.add_(1)
    end.record()
    torch.cuda.synchronize()
    return round(start.elapsed_time(end), 4)


def late_error() -> dict[str, Any]:
    """Return the line at which an index out of range is reported. The context is lost then."""
    embedding = torch.nn.Embedding(4, 2).to("cuda")
    index = torch.tensor([9], device="cuda")
    torch.cuda.synchronize()
    at = "nowhere"
    text = ""
    for at, call in (  # noqa: B007 # used after the loop
        ("its own line", lambda: embedding(index)),
        ("the next launch", lambda: index + 1),
        ("the wait", torch.cuda.synchronize),
    ):
        try:
            call()
        except Exception as error:  # noqa: BLE001 # its text is the answer
            text = f"{type(error).__name__}: {str(error).splitlines()[0]}"
            break
    return {"at": at, "text": text}


PARTS: dict[str, Callable[[], dict[str, Any]]] = {
    part.__name__: part
    for part in (deterministic, matmuls, database, warns, fills, blocking, late_error)
}
