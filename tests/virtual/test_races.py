"""Programs with known races give wrong results on the virtual GPU, and right ones when fixed."""

import pytest
import torch

import gpulab

N_STEPS = 40
N_ELEMENTS = 1 << 16


def double_buffer(*, device_wait: bool, host_wait: bool) -> int:
    """Overlap copies and computing with two buffers of each kind; count the wrong results.

    The host refills a pinned buffer for every step, a copy stream brings it to one of two device
    buffers, and the default stream computes from there. ``device_wait`` makes the copy wait until
    the computation that reads the device buffer is done, ``host_wait`` makes the host wait until
    the copy that reads the pinned buffer is done.
    """
    copying, computing = torch.cuda.Stream(), torch.cuda.current_stream()
    pinned = [torch.empty(N_ELEMENTS).pin_memory() for _ in range(2)]
    on_device = [torch.empty(N_ELEMENTS, device="cuda") for _ in range(2)]
    copied = [torch.cuda.Event() for _ in range(2)]
    computed = [torch.cuda.Event() for _ in range(2)]
    results = torch.zeros(N_STEPS, device="cuda")
    torch.cuda.synchronize()
    for step in range(N_STEPS):
        slot = step % 2
        if host_wait:
            copied[slot].synchronize()
        pinned[slot].fill_(step + 1)
        if device_wait:
            copying.wait_event(computed[slot])
        with torch.cuda.stream(copying):
            on_device[slot].copy_(pinned[slot], non_blocking=True)
            copied[slot].record(copying)
        computing.wait_event(copied[slot])
        torch.cuda._sleep(500_000)
        results[step] = on_device[slot].mean()
        computed[slot].record(computing)
    expected = torch.arange(1.0, N_STEPS + 1)
    return int((results.cpu() != expected).sum())


def corrupted_trials(*, record: bool) -> int:
    """Delete a tensor that a side stream still reads; count how often it is overwritten."""
    n_wrong = 0
    side = torch.cuda.Stream()
    for _ in range(20):
        x = torch.ones(N_ELEMENTS, device="cuda")
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            torch.cuda._sleep(1_000_000)
            total = x.sum()
        if record:
            x.record_stream(side)
        del x
        other = torch.full((N_ELEMENTS,), 7.0, device="cuda")
        torch.cuda.synchronize()
        n_wrong += total.item() != N_ELEMENTS
        del other
    return n_wrong


@pytest.mark.parametrize(
    ("device_wait", "host_wait", "least", "most"),
    [(False, False, 36, 40), (True, False, 36, 40), (False, True, 1, 40), (True, True, 0, 0)],
)
def test_a_double_buffer_needs_both_waits(
    *, device_wait: bool, host_wait: bool, least: int, most: int
) -> None:
    """Without both waits most steps compute on wrong data (38 of 40 did on an H200)."""
    with gpulab.virtual_gpu("H200", first_use=False):
        n_wrong = double_buffer(device_wait=device_wait, host_wait=host_wait)
    assert least <= n_wrong <= most


@pytest.mark.parametrize(("record", "least", "most"), [(False, 19, 20), (True, 0, 0)])
def test_memory_deleted_while_a_side_stream_reads_it(
    *, record: bool, least: int, most: int
) -> None:
    """Without ``record_stream`` the memory is overwritten, as on an H200 (19 of 20 times)."""
    with gpulab.virtual_gpu("H200", first_use=False):
        assert least <= corrupted_trials(record=record) <= most
