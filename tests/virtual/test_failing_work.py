"""The call that waits for failed work raises its error, and the virtual GPU continues."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import gpulab
from gpulab.core.errors import VirtualGpuError
from gpulab.virtual.simulator import active

Step = Callable[[list[torch.Tensor], list[torch.cuda.Stream]], None]

_EMPTY_OR_NOT = st.sampled_from([0, 1, 3])


def _product(sizes: tuple[int, int, int]) -> Step:
    m, k, n = sizes

    def run(tensors: list[torch.Tensor], _streams: list[torch.cuda.Stream]) -> None:
        left, right = torch.ones(m, k, device="cuda"), torch.ones(k, n, device="cuda")
        tensors.append((left @ right).sum())
        torch.baddbmm(
            torch.ones(2, m, n, device="cuda"), left.expand(2, m, k), right.expand(2, k, n)
        )

    return run


def _layers(sizes: tuple[int, int, int]) -> Step:
    batch, channels, side = sizes

    def run(tensors: list[torch.Tensor], _streams: list[torch.cuda.Stream]) -> None:
        images = torch.ones(batch, channels or 1, side + 3, side + 3, device="cuda")
        images.requires_grad_()
        weight = torch.ones(2, channels or 1, 2, 2, device="cuda")
        features = torch.nn.functional.conv2d(images, weight).relu()
        pooled = torch.nn.functional.avg_pool2d(features, 2).flatten(1)
        torch.nn.functional.layer_norm(pooled, pooled.shape[1:]).sum().backward()
        tensors.append(pooled.detach().softmax(-1).sum())

    return run


def _wrong_index(number: int) -> Step:
    def run(tensors: list[torch.Tensor], _streams: list[torch.cuda.Stream]) -> None:
        place = torch.tensor([number], device="cuda")
        tensors.append(torch.arange(2.0, device="cuda").index_select(0, place).sum())

    return run


def _assertion(number: int) -> Step:
    def run(_tensors: list[torch.Tensor], _streams: list[torch.cuda.Stream]) -> None:
        torch._assert_async(torch.full((1,), float(number), device="cuda"))

    return run


def _other_stream(number: int) -> Step:
    def run(_tensors: list[torch.Tensor], streams: list[torch.cuda.Stream]) -> None:
        stream = streams[number % len(streams)]
        stream.wait_stream(torch.cuda.current_stream())
        torch.cuda.set_stream(stream)

    return run


def _wait(number: int) -> Step:
    def run(tensors: list[torch.Tensor], streams: list[torch.cuda.Stream]) -> None:
        if number == 0 and tensors:
            tensors[-1].item()
        elif number == 1:
            streams[0].synchronize()
        else:
            torch.cuda.synchronize()

    return run


def _graph(number: int) -> Step:
    def run(tensors: list[torch.Tensor], _streams: list[torch.cuda.Stream]) -> None:
        place = torch.tensor([number], device="cuda")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            tensors.append(torch.ones(2, device="cuda").index_select(0, place).sum())
        graph.replay()

    return run


_STEPS = st.one_of(
    st.tuples(_EMPTY_OR_NOT, _EMPTY_OR_NOT, _EMPTY_OR_NOT).map(_product),
    st.tuples(_EMPTY_OR_NOT, _EMPTY_OR_NOT, _EMPTY_OR_NOT).map(_layers),
    st.integers(0, 3).map(_wrong_index),
    st.integers(0, 1).map(_assertion),
    st.integers(0, 2).map(_other_stream),
    st.integers(0, 2).map(_wait),
    st.integers(0, 3).map(_graph),
)


@pytest.mark.slow
@settings(max_examples=60)
@given(st.lists(_STEPS, max_size=12))
def test_no_work_stops_the_machine(steps: list[Step]) -> None:
    """After any program of empty tensors, wrong values, streams and graphs the GPU computes."""
    with gpulab.virtual_gpu("H200"):
        streams = [torch.cuda.current_stream(), torch.cuda.Stream(), torch.cuda.Stream()]
        tensors: list[torch.Tensor] = []
        for step in steps:
            _tolerate(lambda step=step: step(tensors, streams))
        torch.cuda.set_stream(streams[0])
        _tolerate(torch.cuda.synchronize)
        torch.cuda.synchronize()
        assert (torch.ones(3, device="cuda") * 2).sum().item() == 6


def _tolerate(action: Callable[[], object]) -> None:
    """Run an action; it may fail only with an error of an operator launched earlier."""
    error = None
    try:
        action()
    except (IndexError, RuntimeError) as raised:
        error = raised
    if error is not None:
        assert not isinstance(error, VirtualGpuError), error
        notes = getattr(error, "__notes__", ())
        assert any("which was launched earlier" in note for note in notes), error


@pytest.mark.parametrize("part", ["duration_ns", "n_sms"])
def test_an_error_of_the_model_fails_the_call_that_waits(
    part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error in the cost model is raised once, at the next wait, with the kernel's name."""

    def failing(*_args: object) -> int:
        raise ZeroDivisionError("division by zero")

    with gpulab.virtual_gpu("H200"):
        x = torch.ones(3, device="cuda")
        torch.cuda.synchronize()
        with monkeypatch.context() as patch:
            patch.setattr(f"gpulab.virtual.simulator._device.{part}", failing)
            x.mul_(2)
            active().host.spend(1_000_000)
            active().host.catch_up()  # this does not wait, so it must not raise
            with pytest.raises(ZeroDivisionError) as caught:
                torch.cuda.synchronize()
        note = "The error is in gpulab's model of mul, which was launched earlier."
        assert caught.value.__notes__ == [note]
        torch.cuda.synchronize()
        assert x.sum().item() == 6
