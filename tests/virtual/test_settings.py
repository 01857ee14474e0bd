"""Settings that a program changes inside the context stay, unless they name the virtual GPU."""

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
    """Choose the device by the deprecated function, without its warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.set_default_tensor_type("torch.cuda.FloatTensor")


@pytest.mark.parametrize(
    "choose",
    [partial(torch.set_default_device, "cuda"), choose_by_type],
    ids=["device", "tensor type"],
)
def test_the_default_device_is_restored(choose: Callable[[], None]) -> None:
    """A default device on the virtual GPU is the CPU again after the context."""
    with gpulab.virtual_gpu("H200"):
        choose()
        assert torch.ones(2).is_cuda
    assert torch.get_default_device() == torch.device("cpu")
    assert not torch.ones(2).is_cuda


def test_the_default_device_of_before_is_restored() -> None:
    """The default device after the context is the one chosen before it."""
    torch.set_default_device("meta")
    with gpulab.virtual_gpu("H200"):
        torch.set_default_device("cuda")
    assert torch.ones(2).is_meta


def test_the_default_device_is_in_force_again_at_the_next_entry() -> None:
    """A default device chosen on a virtual GPU is the default again at its next entry."""
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
    """A default device that is not the virtual GPU stays after the context."""
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
def test_settings_of_the_program_stay(
    change: Callable[[], object], read: Callable[[], Any], value: object
) -> None:
    """A setting that the program changed inside has its value after the context."""
    with gpulab.virtual_gpu("H200"):
        change()
    assert read() == value


def test_settings_of_gpulab_are_restored() -> None:
    """Number of threads and collector thresholds are those of the simulation only inside."""
    torch.set_num_threads(2)
    gc.set_threshold(100, 6, 7)
    with gpulab.virtual_gpu("H200"):
        assert torch.get_num_threads() == 1
        assert gc.get_threshold() == (10_000, 6, 7)
    assert torch.get_num_threads() == 2
    assert gc.get_threshold() == (100, 6, 7)
