"""Probes of devices: properties, the current device, two devices, and torch.accelerator."""

import io

import torch
from torch import nn

from tests.probes.table import Gives, Probe, Raises


def _properties() -> list[object]:
    p = torch.cuda.get_device_properties(0)
    return [
        *(p.name, p.major, p.minor, p.multi_processor_count, p.warp_size),
        *(p.max_threads_per_multi_processor, p.regs_per_multiprocessor),
        *(p.shared_memory_per_block, p.shared_memory_per_multiprocessor),
        *(p.shared_memory_per_block_optin, p.L2_cache_size, p.is_integrated, p.is_multi_gpu_board),
        140e9 < p.total_memory < 152e9,
        str(p).startswith(
            "_CudaDeviceProperties(name='NVIDIA H200', major=9, minor=0, total_memory="
        ),
    ]


_H200 = [
    *("NVIDIA H200", 9, 0, 132, 32),
    *(2048, 65536),
    *(49152, 233472),
    *(232448, 62914560, 0, 0),
    True,
    True,
]


def _readings() -> list[bool]:
    return [
        0 <= torch.cuda.utilization(torch.device("cuda")) <= 100,
        0 <= torch.cuda.memory_usage(0) <= 100,
        20 < torch.cuda.temperature(0) < 95,
        50_000 < torch.cuda.power_draw(0) < 800_000,
        300 < torch.cuda.clock_rate(0) <= 1980,
    ]


def _current() -> list[object]:
    answers = [torch.cuda.current_device()]
    with torch.cuda.device(1):
        answers += [torch.cuda.current_device(), str(torch.ones(1, device="cuda").device)]
        with torch.cuda.device("cuda:0"):
            answers.append(torch.cuda.current_device())
    torch.cuda.set_device(1)
    answers += [torch.cuda.current_device(), str(torch.zeros(2).cuda().device)]
    torch.cuda.set_device("cuda:0")
    return [*answers, torch.cuda.current_device()]


def _device_of() -> list[object]:
    x = torch.ones(2, device="cuda:1")
    with torch.cuda.device_of(x):
        inside = torch.cuda.current_device()
    y = x * 2
    return [inside, torch.cuda.current_device(), str(y.device), x.get_device(), y.tolist()]


def _between() -> list[object]:
    x = torch.arange(3.0, device="cuda:0")
    y = x.to("cuda:1")
    z = torch.empty(3, device="cuda:1").copy_(x)
    return [str(y.device), (y + z).tolist(), str(y.cuda(0).device), y.to(x.device).tolist()]


def _module_moves() -> list[object]:
    net = nn.Linear(2, 2).to("cuda:1")
    net(torch.ones(1, 2, device="cuda:1")).sum().backward()
    return [str(net.weight.grad.device), {str(p.device) for p in net.to("cuda:0").parameters()}]


def _streams_of_each() -> list[object]:
    other, side = torch.cuda.current_stream(1), torch.cuda.Stream(device=1)
    with torch.cuda.stream(side):
        answers = [torch.cuda.current_device(), torch.cuda.current_stream() == side]
        torch.cuda._sleep(2_000_000)
    answers += [torch.cuda.current_device(), str(side.device), str(other.device), side.query()]
    torch.cuda.synchronize(0)
    answers.append(side.query())
    torch.cuda.synchronize("cuda:1")
    return [*answers, side.query(), other == torch.cuda.current_stream(0)]


def _events_of_each() -> list[object]:
    with torch.cuda.device(1):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        torch.cuda._sleep(2_000_000)
        end.record()
    end.wait(torch.cuda.current_stream(0))
    torch.cuda.current_stream(0).synchronize()
    return [end.query(), start.elapsed_time(end) > 0.5, str(end.device)]


def _time_between_devices() -> object:
    events = []
    for index in range(2):
        with torch.cuda.device(index):
            events.append(torch.cuda.Event(enable_timing=True))
            events[-1].record()
        torch.cuda.synchronize(index)
    return events[0].elapsed_time(events[1])


def _memory_of_each() -> list[object]:
    before = [torch.cuda.memory_allocated(i) for i in range(2)]
    x = torch.empty(1024, device="cuda:1")
    after = [torch.cuda.memory_allocated(i) for i in range(2)]
    return [after[0] - before[0], after[1] - before[1], x.device.index]


def _random_of_each() -> list[object]:
    torch.manual_seed(3)
    x, y = torch.rand(3, device="cuda:0"), torch.rand(3, device="cuda:1")
    return [
        x.tolist() == y.tolist(),
        len(torch.cuda.default_generators),
        len(torch.cuda.get_rng_state_all()),
    ]


def _saved_and_loaded() -> object:
    file = io.BytesIO()
    torch.save(torch.ones(2, device="cuda:1"), file)
    devices = []
    for where in (None, "cuda:0", {"cuda:1": "cuda:0"}, "cpu"):
        file.seek(0)
        devices.append(str(torch.load(file, map_location=where).device))
    return devices


def _peers() -> list[object]:
    names = {torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())}
    return [torch.cuda.can_device_access_peer(0, 1), names]


def _accelerator() -> list[object]:
    torch.accelerator.synchronize()
    stream = torch.accelerator.current_stream()
    torch.accelerator.set_stream(stream)
    torch.accelerator.set_device_index(0)
    with torch.accelerator.device_index(0):
        inside = torch.accelerator.current_device_index()
    return [
        torch.accelerator.is_available(),
        str(torch.accelerator.current_accelerator()),
        torch.accelerator.device_count(),
        inside,
        stream.stream_id == torch.cuda.current_stream().stream_id,
    ]


def _accelerator_of_two() -> list[object]:
    torch.accelerator.set_device_index(1)
    with torch.accelerator.device_index(0):
        inside = torch.cuda.current_device()
    return [torch.accelerator.device_count(), inside, torch.cuda.current_device()]


MIXED = (
    r"Expected all tensors to be on the same device, but "
    r"(found at least two devices, cuda:[01] and cuda:[01]!.*"
    r"|got .* on cuda:1, different from other tensors on cuda:0.*)"
)

FAMILIES: dict[str, list[Probe]] = {
    "device": [
        Gives(
            "is_available, device_count",
            lambda: [torch.cuda.is_available(), torch.cuda.device_count()],
            [True, 1],
        ),
        Gives("get_device_name", lambda: torch.cuda.get_device_name(0), "NVIDIA H200"),
        Gives("get_device_capability", lambda: torch.cuda.get_device_capability("cuda"), (9, 0)),
        Gives("get_device_properties", _properties, _H200),
        Gives("get_arch_list", lambda: "sm_90" in torch.cuda.get_arch_list()),
        Gives("get_gencode_flags", lambda: "sm_90" in torch.cuda.get_gencode_flags()),
        Gives(
            "is_bf16_supported, is_tf32_supported",
            lambda: [torch.cuda.is_bf16_supported(), torch.cuda.is_tf32_supported()],
            [True, True],
        ),
        Gives(
            "is_initialized, init",
            lambda: [torch.cuda.init(), torch.cuda.is_initialized()],
            [None, True],
        ),
        Gives("utilization, temperature, power, clock", _readings, [True] * 5),
        Gives("torch.version.cuda", lambda: isinstance(torch.version.cuda, str)),
        Gives(
            "device of a tensor",
            lambda: [
                torch.ones(1, device="cuda").device == torch.device("cuda", 0),
                torch.ones(1, device="cuda").device.type,
                torch.ones(1, device="cuda").device.index,
                torch.ones(1, device="cuda").is_cuda,
                torch.ones(1, device="cuda").get_device(),
                torch.ones(1, device="cuda").is_cpu,
                torch.ones(1, device="cuda").is_meta,
            ],
            [True, "cuda", 0, True, 0, False, False],
        ),
        Gives(
            "synchronize",
            lambda: [
                torch.cuda.synchronize(),
                torch.cuda.synchronize(0),
                torch.cuda.synchronize("cuda"),
            ],
            [None] * 3,
        ),
        Raises(
            "a device that does not exist",
            lambda: torch.ones(1, device="cuda:1"),
            RuntimeError,
            r"CUDA error: invalid device ordinal.*",
        ),
        Raises(
            "moving to a device that does not exist",
            lambda: torch.ones(1).to("cuda:1"),
            RuntimeError,
            r"CUDA error: invalid device ordinal.*",
        ),
        Raises(
            "choosing a device that does not exist",
            lambda: torch.cuda.set_device(1),
            RuntimeError,
            r"CUDA error: invalid device ordinal.*",
        ),
        Raises(
            "properties of a device that does not exist",
            lambda: torch.cuda.get_device_properties(1),
            AssertionError,
            r"Invalid device id",
        ),
    ],
    "two devices": [
        Gives(
            "set_device and torch.cuda.device",
            _current,
            [0, 1, "cuda:1", 0, 1, "cuda:1", 0],
            n_gpus=2,
        ),
        Gives("device_of", _device_of, [1, 0, "cuda:1", 1, [2.0, 2.0]], n_gpus=2),
        Gives(
            "copies between two devices",
            _between,
            ["cuda:1", [0.0, 2.0, 4.0], "cuda:0", [0.0, 1.0, 2.0]],
            n_gpus=2,
        ),
        Gives("a module on the second", _module_moves, ["cuda:1", {"cuda:0"}], n_gpus=2),
        Gives(
            "streams of each",
            _streams_of_each,
            [1, True, 0, "cuda:1", "cuda:1", False, False, True, False],
            n_gpus=2,
        ),
        Gives("events of each", _events_of_each, [True, True, "cuda:1"], n_gpus=2),
        Raises(
            "an interval between events of two devices",
            _time_between_devices,
            torch.AcceleratorError,
            "CUDA error: invalid resource handle.*",
            n_gpus=2,
        ),
        Gives("memory of each", _memory_of_each, [0, 4096, 1], n_gpus=2),
        Gives("random numbers of each", _random_of_each, [True, 2, 2], n_gpus=2),
        Gives(
            "saved on the second",
            _saved_and_loaded,
            ["cuda:1", "cuda:0", "cuda:0", "cpu"],
            n_gpus=2,
        ),
        Gives("peers and names", _peers, [True, {"NVIDIA H200"}], n_gpus=2),
        Gives("torch.accelerator", _accelerator_of_two, [2, 0, 1], n_gpus=2),
        Raises(
            "adding across devices",
            lambda: torch.ones(2, device="cuda:0") + torch.ones(2, device="cuda:1"),
            RuntimeError,
            MIXED,
            n_gpus=2,
        ),
    ],
    "accelerator": [Gives("torch.accelerator", _accelerator, [True, "cuda", 1, 0, True])],
}
