"""Virtual tensors follow PyTorch's rules for inference mode, views and ``set_``."""

from collections.abc import Callable

import pytest
import torch

import gpulab


def _made(device: str) -> torch.Tensor:
    with torch.inference_mode():
        return torch.ones(2, 3, device=device)


def _weight(device: str) -> torch.Tensor:
    return torch.ones(3, device=device, requires_grad=True)


def _viewed(device: str) -> torch.Tensor:
    x = torch.ones(2, 3, device=device)
    with torch.inference_mode():
        return x.view(6)


PROGRAMS: dict[str, Callable[[str], object]] = {
    "saved for backward": lambda d: torch.ones(3, device=d, requires_grad=True) * _made(d),
    "a view saved for backward": lambda d: (
        torch.ones(3, device=d, requires_grad=True) * _made(d)[0]
    ),
    "weights multiplied": lambda d: torch.nn.Linear(3, 1, device=d)(_made(d)),
    "added, which saves nothing": lambda d: (_weight(d) + _made(d)).sum().item(),
    "a clone saved": lambda d: (_weight(d) * _made(d).clone()).sum().item(),
    "changed": lambda d: _made(d).add_(1),
    "changed without gradients": lambda d: torch.no_grad()(lambda: _made(d).zero_())(),
    "changed from the host": lambda d: _made(d).copy_(torch.zeros(3)),
    "written as a result": lambda d: torch.neg(torch.ones(2, 3, device=d), out=_made(d)),
    "resized": lambda d: _made(d).resize_(6),
    "transposed in place": lambda d: _made(d).t_(),
    "asked for gradients": lambda d: _made(d).requires_grad_(),
    "made a parameter": lambda d: torch.nn.Parameter(_made(d)),
    "asked for its version": lambda d: _made(d)._version,
    "what is an inference tensor": lambda d: [
        made.is_inference()
        for x in [_made(d)]
        for made in (x, x[0], x.data, x.detach(), x * 2, _viewed(d))
    ],
    "a view made there of what was made outside": lambda d: _viewed(d).add_(1).tolist(),
    "values": lambda d: (_made(d) + 1).tolist(),
}


def _outcome(program: Callable[[str], object], device: str) -> object:
    try:
        return program(device)
    except RuntimeError as error:
        return str(error)


@pytest.mark.parametrize("name", PROGRAMS)
def test_inference_tensors_follow_the_rules_of_pytorch(name: str) -> None:
    """A program with inference tensors has the CPU's result, or its error message."""
    expected = _outcome(PROGRAMS[name], "cpu")
    with gpulab.virtual_gpu("H200", first_use=False):
        assert _outcome(PROGRAMS[name], "cuda") == expected


# Indices of a tensor of 4 x 4, with n for the number 1 on the device and h for it on the host.
INDICES = (
    *("[n, n]", "[n, h]", "[0, n]", "[h, h]", "(n, h)", "slice(None), [n, n]", "[[0, 1], [1, 2]]"),
    *("[[n, n], [0, 1]]", "[slice(0, 2), n]", "[None, n]", "[..., n]", "[True, n]", "[0, 2]"),
    *("[n] * 40", "[[n, 2]] * 40", "[]", "[[], []]", "[[0, 1]]", "[True, False, True, False]"),
)


@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence")
@pytest.mark.parametrize("index", INDICES)
def test_an_index_with_numbers_of_the_device_selects_what_it_does_on_the_cpu(index: str) -> None:
    """Lists are tuples, or numbers, where PyTorch takes them for that; for reading and writing."""

    def outcome(device: str) -> object:
        x = torch.arange(16.0, device=device).view(4, 4)
        names = {"x": x, "n": torch.tensor(1, device=device), "h": torch.tensor(1)}
        chosen = eval(f"x[{index}]", names)
        exec(f"x[{index}] = -1.0", names)
        return chosen.tolist(), x.tolist()

    with gpulab.virtual_gpu("H200", first_use=False):
        assert _outcome(outcome, "cuda") == _outcome(outcome, "cpu")


def test_memory_used_in_inference_mode_is_written_after_it() -> None:
    """Memory first used in inference mode can be written after it."""
    with gpulab.virtual_gpu("H200"):
        with torch.inference_mode():
            (torch.ones(3, device="cuda") * 2).tolist()
        x = torch.ones(3, device="cuda")
        x.add_(1)
        torch.cuda.synchronize()
        assert x.tolist() == [2.0] * 3


@pytest.mark.parametrize("how", ["method", "operator"])
def test_a_tensor_is_set_to_the_memory_of_another(how: str) -> None:
    """``set_`` makes a tensor share all, a part or nothing of another, as method and operator."""
    set_to = torch.Tensor.set_ if how == "method" else torch.ops.aten.set_
    with gpulab.virtual_gpu("H200"):
        x, y = torch.arange(6.0, device="cuda"), torch.zeros(2, device="cuda")
        if how == "method":
            set_to = type(y).set_
        assert set_to(y, x) is y
        assert (y.tolist(), y.data_ptr()) == ([0.0, 1.0, 2.0, 3.0, 4.0, 5.0], x.data_ptr())
        set_to(y, x, 1, (2, 2), (2, 1))
        assert y.tolist() == [[1.0, 2.0], [3.0, 4.0]]
        x.fill_(7)
        assert y.sum().item() == 28
        assert set_to(y).shape == (0,)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
@pytest.mark.parametrize("of", [lambda x: x, lambda x: x[::2], lambda x: x.untyped_storage()])
def test_printing_takes_as_long_without_values(
    of: Callable[[torch.Tensor], object], dtype: torch.dtype
) -> None:
    """A tensor, also one with gaps, or a storage is copied once to be printed, for any values."""
    durations_s = []
    for max_value_elements, value in ((1 << 26, 1), (1 << 26, 123_456), (0, 1)):
        gpu = gpulab.virtual_gpu(first_use=False, max_value_elements=max_value_elements)
        with gpu:
            shown = of(torch.full((5,), value, dtype=dtype, device="cuda"))
            torch.cuda.synchronize()
            start_s = gpu.now_s
            repr(shown)
            durations_s.append(gpu.now_s - start_s)
    assert durations_s[0] > 0
    assert durations_s[1:] == pytest.approx([durations_s[0]] * 2, abs=0.5e-9)
