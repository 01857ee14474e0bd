"""``torch.compile`` on the virtual GPU compiles nothing, works, and warns once."""

import warnings
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


@pytest.mark.filterwarnings("ignore::gpulab.virtual.NotCompiledWarning")
def test_compile_returns_the_same_function() -> None:
    """``torch.compile`` returns the same function, as a call and as a decorator with options."""
    with gpulab.virtual_gpu("H200"):
        assert torch.compile(double) is double
        assert torch.compile(double, fullgraph=True, mode="max-autotune") is double
        assert torch.compile(mode="reduce-overhead", dynamic=True)(double) is double
        assert torch.compile(model=double) is double

        @torch.compile
        def triple(x: torch.Tensor) -> torch.Tensor:
            return x * 3

        assert triple(torch.ones(1, device="cuda")).item() == 3


@pytest.mark.filterwarnings("ignore::gpulab.virtual.NotCompiledWarning")
def test_a_module_keeps_type_and_attributes() -> None:
    """``torch.compile(module)`` returns the same module; ``module.compile`` changes nothing."""
    with gpulab.virtual_gpu("H200"):
        module = torch.nn.Linear(2, 2).cuda()
        assert torch.compile(module) is module
        assert module.compile(mode="max-autotune") is None  # type: ignore[func-returns-value] # as torch
        assert module._compiled_call_impl is None
        assert module(torch.ones(1, 2, device="cuda")).shape == (1, 2)


def test_the_warning_is_given_once() -> None:
    """The first ``torch.compile`` of a process warns at the caller's line, with the reason."""
    with gpulab.virtual_gpu("H200"):
        with pytest.warns(NotCompiledWarning) as caught:
            torch.compile(double)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            torch.compile(double)
            torch.nn.Linear(1, 1).compile()
    assert [str(warning.message) for warning in caught] == [MESSAGE]
    assert caught[0].filename == __file__
    assert issubclass(NotCompiledWarning, UserWarning)


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


def test_leaving_restores_the_compiler() -> None:
    """After the context ``torch.compile`` and the compiler's stance are those of before."""
    before = torch.compile, torch.nn.Module.compile
    with torch.compiler.set_stance("eager_on_recompile"):
        outside = torch._dynamo.eval_frame._stance.stance
        with gpulab.virtual_gpu("H200"):
            assert torch._dynamo.eval_frame._stance.stance == "force_eager"
        assert torch._dynamo.eval_frame._stance.stance == outside
    assert (torch.compile, torch.nn.Module.compile) == before
