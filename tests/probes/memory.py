"""Probes of device memory: what is allocated, reserved, released and refused."""

import gc

import torch

from tests.probes.table import Gives, Probe, Raises

MIB = 1 << 20


def _counts() -> list[object]:
    gc.collect()  # garbage of other programs must not be freed in between
    before = torch.cuda.memory_allocated()
    x = torch.empty(1000, device="cuda")
    one = torch.cuda.memory_allocated() - before
    y = torch.empty(4 * MIB, device="cuda")
    two = torch.cuda.memory_allocated() - before
    del x, y
    gc.collect()
    return [one, two, torch.cuda.memory_allocated() - before]


def _reserves() -> list[int]:
    torch.cuda.empty_cache()
    before = torch.cuda.memory_reserved()
    x = torch.empty(64 * MIB, dtype=torch.uint8, device="cuda")
    grown = torch.cuda.memory_reserved() - before
    del x
    kept = torch.cuda.memory_reserved() - before
    torch.cuda.empty_cache()
    return [grown, kept, torch.cuda.memory_reserved() - before]


def _peaks() -> list[int]:
    torch.cuda.reset_peak_memory_stats()
    base = torch.cuda.memory_allocated()
    x = torch.empty(8 * MIB, dtype=torch.uint8, device="cuda")
    del x
    peaks = [torch.cuda.max_memory_allocated() - base]
    torch.cuda.reset_peak_memory_stats()
    return [*peaks, torch.cuda.max_memory_allocated() - base]


def _reused() -> bool:
    x = torch.empty(MIB, device="cuda")
    address = x.data_ptr()
    del x
    return torch.empty(MIB, device="cuda").data_ptr() == address


def _views_share() -> list[object]:
    before = torch.cuda.memory_allocated()
    x = torch.empty(1024, device="cuda")
    y = x[512:]
    shared = torch.cuda.memory_allocated() - before
    del x
    return [shared, y.data_ptr() % 512, torch.cuda.memory_allocated() - before]


_KINDS = ("allocated_bytes", "reserved_bytes", "active_bytes", "inactive_split_bytes", "segment")


def _statistics() -> list[object]:
    x = torch.empty(1024, device="cuda")
    stats = torch.cuda.memory_stats()
    missing = [kind for kind in _KINDS if f"{kind}.all.current" not in stats]
    nested = torch.cuda.memory_stats_as_nested_dict()
    return [
        missing,
        stats["allocated_bytes.all.current"] == torch.cuda.memory_allocated(),
        stats["num_alloc_retries"],
        stats["num_ooms"],
        nested["allocated_bytes"]["all"]["current"] >= x.nbytes,
        stats["allocation.all.allocated"] >= 1,
    ]


def _summary() -> list[bool]:
    x = torch.empty(1024, device="cuda")
    text, short = torch.cuda.memory_summary(), torch.cuda.memory_summary(abbreviated=True)
    return ["PyTorch CUDA memory summary, device ID 0" in text, len(short) < len(text), x.is_cuda]


def _info() -> list[object]:
    free, total = torch.cuda.mem_get_info()
    x = torch.empty(64 * MIB, dtype=torch.uint8, device="cuda")
    later, same = torch.cuda.mem_get_info("cuda:0")
    return [0 < free < total, free - later >= x.nbytes, total == same]


def _fraction() -> str:
    torch.cuda.set_per_process_memory_fraction(0.001)
    try:
        torch.empty(1 << 28, device="cuda")
    except torch.OutOfMemoryError as error:
        text = str(error)
    else:
        text = "allocated"
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    return text.partition(".")[0]


def _goes_on_after_running_out() -> list[object]:
    kinds = []
    try:
        torch.empty(1 << 42, device="cuda")
    except RuntimeError as error:
        kinds = [
            type(error) is torch.OutOfMemoryError,
            isinstance(error, torch.cuda.OutOfMemoryError),
        ]
    return [
        *kinds,
        torch.ones(2, device="cuda").tolist(),
        torch.cuda.memory_stats()["num_ooms"] >= 1,
    ]


def _accelerator() -> list[object]:
    x = torch.empty(1024, device="cuda")
    torch.accelerator.empty_cache()
    return [
        torch.accelerator.memory_allocated() == torch.cuda.memory_allocated(),
        torch.accelerator.max_memory_allocated() >= x.nbytes,
        torch.accelerator.memory_reserved() == torch.cuda.memory_reserved(),
        "allocated_bytes.all.current" in torch.accelerator.memory_stats(),
        torch.accelerator.reset_peak_memory_stats(),
        torch.accelerator.reset_accumulated_memory_stats(),
        torch.accelerator.max_memory_reserved() > 0,
    ]


def _held_by_side_stream() -> bool:
    side, x = torch.cuda.Stream(), torch.ones(MIB, device="cuda")
    address = x.data_ptr()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.cuda._sleep(20_000_000)
        x.add_(1)
    x.record_stream(side)
    del x
    return torch.empty(MIB, device="cuda").data_ptr() != address


OUT_OF_MEMORY = (
    r"CUDA out of memory\. Tried to allocate 4096\.00 GiB\. GPU 0 has a total capacity of "
    r"\d+\.\d\d GiB of which \d+\.\d\d [GM]iB is free\. .*"
)

FAMILIES: dict[str, list[Probe]] = {
    "memory": [
        Gives("memory_allocated", _counts, [4096, 4096 + 16 * MIB, 0]),
        Gives("memory_reserved and empty_cache", _reserves, [64 * MIB, 64 * MIB, 0]),
        Gives("max_memory_allocated", _peaks, [8 * MIB, 0]),
        Gives("memory is reused", _reused),
        Gives("views share memory", _views_share, [4096, 0, 4096]),
        Gives("memory_stats", _statistics, [[], True, 0, 0, True, True]),
        Gives("memory_summary", _summary, [True, True, True]),
        Gives("mem_get_info", _info, [True, True, True]),
        Gives("set_per_process_memory_fraction", _fraction, "CUDA out of memory"),
        Gives("after running out", _goes_on_after_running_out, [True, True, [1.0, 1.0], True]),
        Gives("torch.accelerator", _accelerator, [True, True, True, True, None, None, True]),
        Gives("record_stream delays the reuse of memory", _held_by_side_stream),
        Gives(
            "reset_accumulated_memory_stats",
            lambda: [
                torch.ones(4, device="cuda").tolist(),
                torch.cuda.reset_accumulated_memory_stats(0),
                torch.cuda.memory_stats()["allocation.all.allocated"],
            ],
            [[1.0] * 4, None, 0],
        ),
        Gives("get_allocator_backend", lambda: torch.cuda.get_allocator_backend() == "native"),
        Gives("ipc_collect", lambda: [torch.cuda.ipc_collect()], [None]),
        Gives(
            "get_per_process_memory_fraction",
            lambda: torch.cuda.get_per_process_memory_fraction(0),
            1.0,
        ),
        Gives(
            "is_pinned",
            lambda: [torch.ones(1).is_pinned(), torch.ones(1).pin_memory().is_pinned()],
            [False, True],
        ),
        Gives(
            "factories with pin_memory",
            lambda: [
                torch.tensor([1], pin_memory=True).is_pinned(),
                torch.empty(3, pin_memory=True).is_pinned(),
                torch.ones(3).pin_memory("cuda").is_pinned(),
            ],
            [True, True, True],
        ),
        Raises(
            "running out",
            lambda: torch.empty(1 << 42, dtype=torch.uint8, device="cuda"),
            torch.OutOfMemoryError,
            OUT_OF_MEMORY,
        ),
        Raises(
            "pinning a tensor of the device",
            lambda: torch.ones(2, device="cuda").pin_memory(),
            RuntimeError,
            r"cannot pin 'torch\.cuda\.FloatTensor' only dense CPU tensors can be pinned",
        ),
    ]
}
