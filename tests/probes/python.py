"""Probes of types, default devices, flags, timers and NVTX marks, as Python sees them."""

import timeit
import warnings

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils import benchmark

from tests.probes.table import Gives, Probe


def _ones(*sizes: int) -> torch.Tensor:
    return torch.ones(sizes, device="cuda")


def _default_device() -> list[str]:
    torch.set_default_device("cuda")
    try:
        devices = [str(torch.ones(2).device), str(torch.get_default_device())]
        devices += [str(nn.Linear(2, 2).weight.device), str(torch.tensor([1]).device)]
        devices += [str(torch.randn(2).device), str(torch.arange(3, device="cpu").device)]
    finally:
        torch.set_default_device(None)
    return [*devices, str(torch.ones(1).device)]


def _device_context() -> list[str]:
    with torch.device("cuda"):
        inside = [torch.zeros(2), torch.tensor(1.0), nn.Linear(2, 2).weight, torch.randn(2)]
    return [str(x.device) for x in (*inside, torch.zeros(1))]


def _legacy_types() -> list[object]:
    x = torch.cuda.FloatTensor([1.0, 2.0])
    return [
        *(x.type(), x.tolist(), torch.cuda.FloatTensor(2, 3).shape),
        *(isinstance(x, torch.cuda.FloatTensor), isinstance(x, torch.cuda.HalfTensor)),
        *(isinstance(torch.ones(1), torch.cuda.FloatTensor), isinstance(x, torch.FloatTensor)),
        *(x.type(torch.cuda.HalfTensor).dtype, x.type("torch.cuda.DoubleTensor").dtype),
        *(str(torch.ones(1).type(torch.cuda.IntTensor).device), x.type(torch.float16).type()),
        *(x.long().type(), (x > 0).type(), x.type(torch.FloatTensor).device.type),
    ]


_LEGACY = [
    *("torch.cuda.FloatTensor", [1.0, 2.0], torch.Size([2, 3])),
    *(True, False),
    *(False, False),
    *(torch.float16, torch.float64),
    *("cuda:0", "torch.cuda.HalfTensor"),
    *("torch.cuda.LongTensor", "torch.cuda.BoolTensor", "cpu"),
]


def _instances() -> list[bool]:
    x, p = _ones(2), nn.Parameter(_ones(2))
    return [
        *(isinstance(x, torch.Tensor), torch.is_tensor(x), isinstance(x, nn.Parameter)),
        *(isinstance(p, nn.Parameter), isinstance(p, torch.Tensor), p.requires_grad),
        *(isinstance(nn.Linear(2, 2).cuda().weight, nn.Parameter), x.is_floating_point()),
    ]


def _attributes() -> list[object]:
    x = _ones(2, 3)
    return [
        *(x.shape, x.ndim, x.numel(), x.nbytes, x.itemsize, x.element_size(), x.layout),
        *(x.is_leaf, x.requires_grad, x.is_sparse, x.is_quantized, x.is_contiguous()),
        *(x.size(-1), x.dim(), x.is_complex(), x.is_shared(), x.grad, hash(x) == hash(x)),
    ]


def _storage() -> list[object]:
    x, y = _ones(4), _ones(4)
    return [
        *(x.untyped_storage().device.type, x.untyped_storage().nbytes()),
        x.untyped_storage().data_ptr() == x[2:].untyped_storage().data_ptr() == x.data_ptr(),
        x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr(),
        x[2:].data_ptr() - x.data_ptr(),
    ]


def _timer(measure: str) -> object:
    def run() -> list[bool]:
        timer = benchmark.Timer("torch.cuda._sleep(200_000)", globals={"torch": torch})
        options = {
            "timeit": {"number": 20},
            "blocked_autorange": {"min_run_time": 0.002},
            "adaptive_autorange": {"min_run_time": 0.001, "max_run_time": 0.005},
        }[measure]
        measured = getattr(timer, measure)(**options)
        return [5e-5 < measured.median < 1e-3, len(measured.times) >= 1]

    return run


def _timeit() -> list[bool]:
    x = _ones(64, 64)

    def work() -> None:
        x @ x
        torch.cuda.synchronize()

    timer = timeit.Timer(work)
    return [1e-7 < min(timer.repeat(3, 5)) / 5 < 1e-2, timer.timeit(2) > 0]


def _compiled() -> list[object]:
    with warnings.catch_warnings(record=True) as answers:
        warnings.simplefilter("always")
        double = torch.compile(lambda x: x * 2)
        net = torch.compile(nn.Linear(2, 2).cuda(), mode="reduce-overhead")
        first, second = double(_ones(2)).tolist(), net(_ones(1, 2)).shape

        @torch.compile(dynamic=False)
        def decorated(x: torch.Tensor) -> torch.Tensor:
            return x + 1

        third = decorated(_ones(1)).tolist()
    return [
        first,
        second,
        third,
        len([w for w in answers if "virtual GPU" in str(w.message)]) <= 1,
    ]


def _flags() -> list[object]:
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    before = (matmul.allow_tf32, cudnn.benchmark, cudnn.deterministic)
    matmul.allow_tf32 = cudnn.benchmark = cudnn.deterministic = True
    answers = [matmul.allow_tf32, cudnn.benchmark, cudnn.deterministic]
    matmul.allow_tf32, cudnn.benchmark, cudnn.deterministic = before
    with cudnn.flags(enabled=False):
        answers.append(cudnn.enabled)
    return [*answers, cudnn.enabled, torch.backends.cuda.is_built(), cudnn.is_available()]


def _precision() -> list[str]:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    during = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(before)
    return [before, during]


def _deterministic() -> list[object]:
    torch.use_deterministic_algorithms(mode=True)
    try:
        answers = [torch.are_deterministic_algorithms_enabled(), (_ones(2) + 1).tolist()]
    finally:
        torch.use_deterministic_algorithms(mode=False)
    return answers


def _attention_kernels() -> list[object]:
    q = torch.randn(1, 2, 8, 16, device="cuda", dtype=torch.float16)
    out = []
    for backend in (SDPBackend.MATH, SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION):
        with sdpa_kernel(backend):
            out.append(nn.functional.scaled_dot_product_attention(q, q, q))
    with sdpa_kernel([SDPBackend.MATH]):
        flags = [torch.backends.cuda.flash_sdp_enabled(), torch.backends.cuda.math_sdp_enabled()]
    return [*flags, all(torch.allclose(out[0], x, atol=1e-2) for x in out)]


def _marks() -> list[object]:
    nvtx = torch.cuda.nvtx
    depths = [nvtx.range_push("outer"), nvtx.range_push("inner")]
    depths += [nvtx.range_pop(), nvtx.range_pop()]
    nvtx.mark("here")
    with nvtx.range("step {}", 3):
        inside = _ones(1).item()
    handle = nvtx.range_start("across")
    nvtx.range_end(handle)
    return [inside, all(isinstance(depth, int) for depth in depths)]


FAMILIES: dict[str, list[Probe]] = {
    "python types": [
        Gives("instances", _instances, [True, True, False, True, True, True, True, True]),
        Gives(
            "attributes",
            _attributes,
            [
                torch.Size([2, 3]),
                2,
                6,
                24,
                4,
                4,
                torch.strided,
                True,
                False,
                False,
                False,
                True,
                3,
                2,
                False,
                True,
                None,
                True,
            ],
        ),
        Gives("storage", _storage, ["cuda", 16, True, False, 8]),
        Gives("torch.cuda.FloatTensor", _legacy_types, _LEGACY),
        Gives(
            "set_default_device",
            _default_device,
            ["cuda:0", "cuda:0", "cuda:0", "cuda:0", "cuda:0", "cpu", "cpu"],
        ),
        Gives("with torch.device", _device_context, ["cuda:0"] * 4 + ["cpu"]),
        Gives(
            "torch.device without an index",
            lambda: [str(torch.device("cuda")), str(_ones(1).to(torch.device("cuda")).device)],
            ["cuda", "cuda:0"],
        ),
    ],
    "timers": [
        *(
            Gives(name, _timer(name), [True, True])
            for name in ("timeit", "blocked_autorange", "adaptive_autorange")
        ),
        Gives("Python's timeit", _timeit, [True, True]),
    ],
    "flags": [
        Gives("torch.compile", _compiled, [[2.0, 2.0], torch.Size([1, 2]), [2.0], True]),
        Gives(
            "tf32, benchmark, deterministic", _flags, [True, True, True, False, True, True, True]
        ),
        Gives("set_float32_matmul_precision", _precision, ["highest", "high"]),
        Gives("use_deterministic_algorithms", _deterministic, [True, [2.0, 2.0]]),
        Gives("sdpa_kernel", _attention_kernels, [False, True, True]),
        Gives(
            "reduced precision",
            lambda: torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction,
        ),
        Gives("cudnn.version", lambda: torch.backends.cudnn.version() > 8000),
    ],
    "nvtx": [Gives("ranges and marks", _marks, [1.0, True])],
}
