"""``torch.compile`` on the virtual GPU compiles nothing, works, and warns once."""

from collections.abc import Iterator

import pytest
import torch

import gpulab
from gpulab.virtual.patches import _torch_compile as torch_compile
from gpulab.virtual.patches._torch_compile import NotCompiledWarning

MESSAGE = (
    "torch.compile did nothing: the virtual GPU has no model of compiled kernels, so the "
    "function runs as it is written, with its times uncompiled; compile it on a CUDA GPU to "
    "see what fusion saves"
)


@pytest.fixture(autouse=True)
def _not_warned_yet() -> Iterator[None]:
    torch_compile._warn.cache_clear()
    yield
    torch_compile._warn.cache_clear()


def double(x: torch.Tensor) -> torch.Tensor:
    """Return twice ``x``."""
    return x * 2


@pytest.mark.slow
def test_module_compile_warns_at_the_callers_line() -> None:
    """The warning of ``Module.compile`` names the line that calls it."""
    with gpulab.virtual_gpu("H200"), pytest.warns(NotCompiledWarning) as caught:
        torch.nn.Linear(1, 1).compile()
    assert [(str(warning.message), warning.filename) for warning in caught] == [
        (MESSAGE, __file__)
    ]


@pytest.mark.slow
def test_functions_compiled_before_run_uncompiled_inside() -> None:
    """What was compiled before the context runs eagerly inside it, and compiled afterwards."""
    traced = []

    def backend(graph: torch.fx.GraphModule, _inputs: list[torch.Tensor]) -> object:
        traced.append(graph)
        return graph.forward

    function = torch.compile(double, backend=backend)
    module = torch.compile(torch.nn.Linear(2, 2), backend=backend)
    itself = torch.nn.Linear(2, 2)
    itself.compile(backend=backend)
    with gpulab.virtual_gpu("H200"):
        assert function(torch.ones(1, device="cuda")).item() == 2
        assert function(torch.ones(1)).item() == 2
        assert module(torch.ones(1, 2)).shape == (1, 2)
        assert itself.cuda()(torch.ones(1, 2, device="cuda")).is_cuda
        assert traced == []
    assert function(torch.ones(1)).item() == 2
    assert len(traced) == 1
