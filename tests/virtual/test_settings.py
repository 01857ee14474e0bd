"""Settings that a program changes inside the context stay, and none points to gpulab."""

import gc
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
import torch

import gpulab
from gpulab import device


@pytest.fixture(autouse=True)
def _settings_are_left_as_found() -> Iterator[None]:
    before = torch.get_num_threads(), torch.get_default_dtype(), gc.get_threshold()
    yield
    torch.set_default_device(None)
    torch.set_num_threads(before[0])
    torch.set_default_dtype(before[1])
    gc.set_threshold(*before[2])


def choose_by_type() -> None:
    """Choose the device in the old way, which warns that it is old."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.set_default_tensor_type("torch.cuda.FloatTensor")


@pytest.mark.parametrize(
    "choose",
    [partial(torch.set_default_device, "cuda"), choose_by_type],
    ids=["device", "tensor type"],
)
def test_the_default_device_is_put_back(choose: Callable[[], None]) -> None:
    """It would name a device that is not there after the context."""
    with gpulab.virtual_gpu("H200"):
        choose()
        assert torch.ones(2).is_cuda
    assert torch.get_default_device() == torch.device("cpu")
    assert not torch.ones(2).is_cuda


def test_the_default_device_from_before_is_put_back() -> None:
    """Not the host, but what was chosen before the context."""
    torch.set_default_device("meta")
    with gpulab.virtual_gpu("H200"):
        torch.set_default_device("cuda")
    assert torch.ones(2).is_meta


def test_the_default_device_is_in_force_again_at_the_next_entry() -> None:
    """Later cells of a notebook enter again and continue with it."""
    gpu = gpulab.virtual_gpu("H200")
    with gpu:
        torch.set_default_device("cuda")
        with device.outside():
            assert not torch.ones(2).is_cuda
        assert torch.ones(2).is_cuda
    with gpu:
        assert torch.ones(2).is_cuda
        torch.set_default_device("cpu")
    with gpu:
        assert not torch.ones(2).is_cuda
    with gpulab.virtual_gpu("H200"):
        assert not torch.ones(2).is_cuda


def test_another_default_device_stays() -> None:
    """It names nothing of the virtual GPU, and PyTorch keeps it."""
    with gpulab.virtual_gpu("H200"):
        torch.set_default_device("meta")
    assert torch.ones(2).is_meta


@pytest.mark.parametrize(
    ("change", "read", "value"),
    [
        (partial(torch.set_num_threads, 3), torch.get_num_threads, 3),
        (partial(gc.set_threshold, 5, 6, 7), gc.get_threshold, (5, 6, 7)),
        (
            partial(torch.set_default_dtype, torch.float64),
            torch.get_default_dtype,
            torch.float64,
        ),
    ],
    ids=["threads", "collector", "type"],
)
def test_what_the_program_sets_stays_set(
    change: Callable[[], object], read: Callable[[], Any], value: object
) -> None:
    """As after the same program on hardware."""
    with gpulab.virtual_gpu("H200"):
        change()
    assert read() == value


def test_what_gpulab_sets_is_put_back() -> None:
    """The number of threads and the collector's thresholds serve the simulation alone."""
    torch.set_num_threads(2)
    gc.set_threshold(100, 6, 7)
    with gpulab.virtual_gpu("H200"):
        assert torch.get_num_threads() == 1
        assert gc.get_threshold() == (10_000, 6, 7)
    assert torch.get_num_threads() == 2
    assert gc.get_threshold() == (100, 6, 7)
