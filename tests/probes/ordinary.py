"""Probes of everyday calls: numbers as devices, sequences as indices, empty tensors."""

import copy
import io
import pickle
import warnings
from typing import Any

import numpy as np
import torch
from torch import nn

from tests.probes.table import Gives, Probe, normal, same


def _profiled() -> list[object]:
    x = torch.ones(1 << 20, device="cuda")
    x.exp()
    torch.cuda.synchronize()
    with torch.profiler.profile() as profiler:
        with torch.profiler.record_function("mine"):
            x.exp()
            x.exp()
        x.sum().item()
    exp = next(row for row in profiler.key_averages() if row.key == "aten::exp")
    on_device = [event.name for event in profiler.events() if event.device_type.name == "CUDA"]
    (mine,) = [event for event in profiler.events() if event.name == "mine" and event.cpu_children]
    return [
        *(exp.count, exp.cpu_time_total > 0, exp.device_time_total > 0),
        [child.name for child in mine.cpu_children],
        sum("exp" in name for name in on_device),
        any(name.startswith("Memcpy DtoH") for name in on_device),
    ]


def _table(d: str) -> torch.Tensor:
    return torch.arange(12.0, device=d).reshape(3, 4)


def _read_by_sequences(d: str) -> list[torch.Tensor]:
    x, columns = _table(d), torch.tensor([1, 2, 3], device=d)
    return [
        *(x[range(3), columns], x[[0, 1], (2, 3)], x[((0, 1),)], x[range(1, 3)], x[[]]),
        *(x[[True, False, True]], x[np.array([0, 2]), [1, 1]], x[np.int64(1)], x[:, (0, 3)]),
    ]


def _write_by_sequences(d: str) -> torch.Tensor:
    x = _table(d)
    x[range(3), torch.tensor([1, 2, 3], device=d)] = 50
    x[[0, 2], (2, 3)] = torch.tensor([-1.0, -2.0], device=d)
    x[[True, False, False]] += 100
    x[[]] = 7
    return x


def _devices_by_number() -> list[str]:
    made = [
        *(torch.device(0), torch.ones(1).to(0).device, torch.zeros(1, device=0).device),
        *(torch.ones(1).cuda(0).device, next(nn.Linear(1, 1).to(0).parameters()).device),
        torch.tensor([1.0], device=0).device,
    ]
    torch.set_default_device(0)
    try:
        made.append(torch.ones(1).device)
    finally:
        torch.set_default_device(None)
    return [str(device) for device in made]


def _device_objects() -> list[bool]:
    device = torch.device("cuda", 0)
    buffer = io.BytesIO()
    torch.save({"device": device}, buffer)
    buffer.seek(0)
    return [
        isinstance(device, torch.device),
        type(device) == torch.device,  # noqa: E721 # programs compare so
        pickle.loads(pickle.dumps(device)) == device,
        copy.deepcopy(device) == device,
        torch.load(buffer)["device"] == device,
        isinstance(torch.device("cpu"), torch.device),
        not isinstance("cuda", torch.device),
    ]


def _copy_by_position(d: str) -> list[object]:
    x = torch.ones(2, device=d)
    moved = [
        x.to(torch.float32, False, True),  # noqa: FBT003 # positional arguments are what is probed
        x.to(x.device, torch.float32, False, True),  # noqa: FBT003 # as above
        x.to(x, False, True),  # noqa: FBT003 # as above
        x.to(x.device, torch.float32, True),  # noqa: FBT003 # as above
    ]
    return [item.data_ptr() == x.data_ptr() for item in moved]


def _memory_formats() -> list[bool]:
    x = torch.randn(2, 3, 4, 5)
    there = x.cuda(memory_format=torch.channels_last)
    back = there.cpu(memory_format=torch.contiguous_format)
    return [
        there.is_contiguous(memory_format=torch.channels_last),
        back.is_contiguous(),
        torch.equal(back, x),
        there.cpu().is_contiguous(memory_format=torch.channels_last),
    ]


def _gradient_of_an_expanded_copy() -> list[float]:
    x = torch.ones(1, 3, device="cuda:0", requires_grad=True)
    (x.expand(4, 3).to("cuda:1") * 2).sum().backward()
    gradient: Any = x.grad
    return gradient.flatten().tolist()  # type: ignore[no-any-return] # torch's is untyped


def _one_device_in_parallel(d: str) -> list[torch.Tensor]:
    torch.manual_seed(1)
    layer = nn.Linear(3, 2).to(d)
    x = normal(d, 4, 3)
    if d == "cpu":
        return [layer(x)]
    return [nn.DataParallel(layer, device_ids=[0])(x)]


def _encoder_with_padding(d: str) -> torch.Tensor:
    torch.manual_seed(1)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).to(d).eval()
    padding = torch.zeros(2, 5, dtype=torch.bool, device=d)
    padding[0, 3:] = True
    with torch.no_grad():
        return encoder(normal(d, 2, 5, 8), src_key_padding_mask=padding)[:, :3]  # type: ignore[no-any-return] # as above


def _encoder_with_nested_tensors() -> list[int]:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2).cuda().eval()
    padding = torch.zeros(2, 5, dtype=torch.bool, device="cuda")
    padding[0, 3:] = True
    with torch.no_grad():
        out = encoder(torch.ones(2, 5, 8, device="cuda"), src_key_padding_mask=padding)
    return list(out.shape)


def _host_tensors_of_other_layouts() -> list[object]:
    sparse = torch.eye(3).to_sparse()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch warns that nested tensors are a prototype
        nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
        rows = torch.eye(2).to_sparse_csr()
    return [
        (sparse @ torch.ones(3, 2)).tolist(),
        rows.values().tolist(),
        nested.to_padded_tensor(0.0).tolist(),
    ]


def _empty_work(d: str) -> list[torch.Tensor]:
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).to(d)
    out = model(torch.ones(0, 3, device=d))
    out.sum().backward()
    gradient: Any = model[0].weight.grad  # type: ignore[union-attr] # a layer's
    return [
        *(out, gradient, torch.ones(0, 3, 4, device=d) @ torch.ones(0, 4, 2, device=d)),
        torch.linalg.vecdot(torch.ones(0, device=d), torch.ones(0, device=d)),
        *(torch.ones(3, 0, device=d) @ torch.ones(0, 4, device=d), torch.ones(0, device=d).sum()),
        nn.Conv2d(3, 4, 3).to(d)(torch.ones(0, 3, 8, 8, device=d)),
        torch.cat([torch.ones(0, 2, device=d), torch.ones(1, 2, device=d)]),
    ]


def _in_place_products(d: str) -> list[torch.Tensor]:
    made = []
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        a, b = torch.ones(2, 3, device=d, dtype=dtype), torch.ones(3, 2, device=d, dtype=dtype)
        made.append(torch.ones(2, 2, device=d, dtype=dtype).addmm_(a, b, beta=0.5))
        batched = torch.ones(1, 2, 2, device=d, dtype=dtype)
        batched.baddbmm_(a[None], b[None])
        made += [batched, torch.ones(2, 2, device=d, dtype=dtype).addbmm_(a[None], b[None])]
    return made


def _results_in_out(d: str) -> list[torch.Tensor]:
    a, b = normal(d, 5, 5), normal(d, 5, 5)
    kron, stacked = torch.empty(25, 25, device=d), torch.empty(2, 5, 5, device=d)
    q, r = (torch.empty_strided((5, 5), (1, 5), device=d) for _ in range(2))
    rank = torch.empty((), dtype=torch.long, device=d)
    rows = torch.empty(2, 5, device=d)
    return [
        torch.kron(a, b, out=kron),
        torch.matmul(torch.stack([a, b]), a, out=stacked),
        *torch.linalg.qr(a, out=(q, r)),
        torch.linalg.matrix_rank(a, out=rank),
        torch._C._nn.linear(a[:2], b, out=rows),
        torch.zeros(5, device=d, out=torch.ones(5, device=d)),
        *(kron, stacked, q, r, rank, rows),
    ]


def _complex_matrices(d: str) -> list[torch.Tensor]:
    torch.manual_seed(1)
    a = torch.randn(3, 4, 3, dtype=torch.complex64).to(d)
    b = torch.randn(3, 4, 2, dtype=torch.complex64).to(d)
    solved = torch.linalg.lstsq(a, b, driver="gels")
    return [torch.linalg.pinv(a, rtol=1e-5), solved.solution, solved.residuals]


def _complex_matrices_of_the_host() -> list[bool]:
    a = torch.tensor([[1, 1j], [2j, 3], [0, 1 - 1j]])
    inverse = torch.linalg.pinv(a)
    return [inverse.is_cuda, torch.allclose(inverse @ a, torch.eye(2).to(a.dtype), atol=1e-5)]


def _converted_by_the_host() -> list[float]:
    source = torch.full((1 << 20,), 3.0, device="cuda")
    pinned = torch.zeros(1 << 20, pin_memory=True)
    pinned.copy_(source, non_blocking=True)
    torch.cuda.synchronize()
    return pinned[:4].to("cuda", torch.float16, non_blocking=True).tolist()  # type: ignore[no-any-return] # as above


def _custom_kernel() -> str:
    code = "template <typename T> T doubled(T x) { return x + x; }"
    made: Any = torch.cuda.jiterator._create_jit_fn(code)
    return str(made.kernel_name)


def _accelerator_graph() -> list[float]:
    graph_class: Any = getattr(torch.accelerator, "Graph", None)
    if graph_class is None:
        return [3.0]  # this version of torch does not have the class
    x = torch.ones(1, device="cuda")
    graph, stream = graph_class(), torch.Stream()
    with stream, graph:
        x += 1
    x.fill_(2)
    graph.replay()
    torch.accelerator.synchronize()
    return x.tolist()  # type: ignore[no-any-return] # as above


FAMILIES: dict[str, list[Probe]] = {
    "ordinary": [
        *same(
            {
                "reading by sequences": _read_by_sequences,
                "writing by sequences": _write_by_sequences,
                "copy by position": _copy_by_position,
                "DataParallel over one device": _one_device_in_parallel,
                "an encoder with padding": _encoder_with_padding,
                "empty tensors": _empty_work,
                "matmuls in place": _in_place_products,
                "results in out=": _results_in_out,
                "complex matrices": _complex_matrices,
            }
        ),
        Gives("complex matrices of the host", _complex_matrices_of_the_host, [False, True]),
        Gives("devices by number", _devices_by_number, ["cuda:0"] * 7),
        Gives("device objects", _device_objects, [True] * 7),
        Gives("memory formats of copies", _memory_formats, [True] * 4),
        Gives(
            "the gradient of an expanded copy", _gradient_of_an_expanded_copy, [8.0] * 3, n_gpus=2
        ),
        Gives("an encoder with nested tensors", _encoder_with_nested_tensors, [2, 5, 8]),
        Gives(
            "sparse and nested tensors of the host",
            _host_tensors_of_other_layouts,
            [[[1.0, 1.0]] * 3, [1.0, 1.0], [[1.0, 1.0, 0.0], [1.0, 1.0, 1.0]]],
        ),
        Gives("types converted by the host", _converted_by_the_host, [3.0] * 4),
        Gives(
            "a profile",
            _profiled,
            [2, True, True, ["aten::exp", "aten::exp"], 2, True],
        ),
        Gives("making a custom kernel", _custom_kernel, "doubled"),
        Gives("torch.accelerator.Graph", _accelerator_graph, [3.0]),
        Gives(
            "cuDNN and identity",
            lambda: [
                torch.backends.cudnn.is_acceptable(torch.ones(1, device="cuda")),
                torch.backends.cudnn.is_acceptable(torch.ones(1)),
                len(torch.cuda.get_device_properties(0).uuid.bytes),
            ],
            [True, False, 16],
        ),
    ]
}
