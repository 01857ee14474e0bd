"""Entering imports little, and modules imported inside the context find PyTorch's own names."""

import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import gpulab
from gpulab.core.torch_private import functions_never_compiled

OPERATIONS = """
import sys
import gpulab, torch
from gpulab.roofline.scaling import LINKS
from gpulab.roofline.scaling._links import copies_s
before = set(sys.modules)
with gpulab.virtual_gpu("H200"):
    x = torch.randn(4, 4, device="cuda", requires_grad=True)
    y = torch.nn.functional.layer_norm(torch.relu(x @ x.T + x), (4,)).softmax(0)
    y.sort().values.mean().backward()
    torch.where(x > 0, x, x.exp()).to("cpu").tolist()
    torch.arange(4, device="cuda").copy_(torch.ones(4)).sum().item()
    torch.ones(4, 4, device="cuda", dtype=torch.half).sum()
    torch.nn.LSTM(4, 4).cuda()(x[None])
    for kind in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW):
        optimizer = kind([x], lr=0.1)
        optimizer.step()
        optimizer.zero_grad()
        optimizer.load_state_dict(optimizer.state_dict())
    gpulab.measure(lambda: torch.relu(x), progress=False)
    gpulab.timeline(lambda: torch.relu(x)).summary()
    for name in ("matmul", "linear", "adam"):
        copies_s(name, 64, "float32", "both", LINKS["PCIe 5"])
new = {name for name in set(sys.modules) - before if not name.startswith("gpulab")}
print(*(name for name in new if name.partition(".")[0] not in sys.stdlib_module_names))
"""
COMPILER = """
import importlib
import gpulab, torch
with gpulab.virtual_gpu("H200"):
    weights = torch.nn.Parameter(torch.ones(2, device="cuda"))
    weights.sum().backward()
    optimizer = torch.optim.SGD([weights], lr=0.1)
    # A stand-in for the compiler is in its place during a step, until another name is asked for.
    optimizer.register_step_pre_hook(lambda *_: (HOOK, None)[1])
    optimizer.step()
    print(torch._dynamo.eval_frame._stance.stance)
print(torch._dynamo.eval_frame._stance.stance)
kept = torch._dynamo.device_interface.CudaInterface.maybe_exchange_device
print(kept is torch.cuda._maybe_exchange_device)
"""
TIMER = """
import gpulab, torch
for name in ("H200", "A100"):
    with gpulab.virtual_gpu(name):
        from torch.utils.benchmark import Timer
        timer = Timer("torch.cuda._sleep(10_000_000)", globals={"torch": torch})
        print(4e-3 < timer.timeit(2).mean < 1e-2)
"""
OWN_MODULES = """
import functools, importlib, pkgutil, sys, types
import gpulab
from gpulab.virtual import _replaced
put, replacements = _replaced._put, []
def noting(owner, names):
    replacements.extend(names.values())
    put(owner, names)
    replacements.extend(getattr(owner, name, None) for name in names)
_replaced._put = noting
with gpulab.virtual_gpu("H200"):
    before, virtual = set(sys.modules), {id(each): each for each in replacements if callable(each)}
    for module in pkgutil.walk_packages(gpulab.__path__, "gpulab."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
def held(value, depth=0):
    yield value
    if isinstance(value, functools.partial):
        yield value.func
    if isinstance(value, types.FunctionType):
        yield from value.__defaults__ or ()
        yield from (value.__kwdefaults__ or {}).values()
    if isinstance(value, type) and value.__module__.startswith("gpulab.") or depth == 0:
        for inner in list(vars(value).values()):
            yield from held(inner, depth + 1)
for name in sorted(set(sys.modules) - before):
    if name.startswith("gpulab."):
        values = held(sys.modules[name])
        print(*{f"{name}:{each.__name__}" for each in values if id(each) in virtual})
"""
MODULE = """
import time
from torch.cuda import device_count
from torch import compile
from time import perf_counter
from timeit import default_timer
helper = __import__("torch.helper_of_probe")
"""


def words(python: list[str], code: str) -> list[str]:
    """Run a program in a new process and return the words that it prints."""
    return subprocess.run(
        [*python, "-c", code], check=True, capture_output=True, text=True
    ).stdout.split()


@pytest.mark.slow
def test_no_other_package_is_imported(warm_python: list[str]) -> None:
    """Using the virtual GPU imports only gpulab, Python's own modules and parts of torch.

    One part of NumPy is allowed, too.
    """
    names = {".".join(name.split(".")[:2]) for name in words(warm_python, OPERATIONS)}
    # PyTorch's counter of FLOPs imports Triton wherever it is installed.
    names = {name for name in names if not name.startswith("triton.") and name != "triton"}
    assert names <= {"torch.cuda", "torch.profiler", "torch.utils", "numpy.random"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "hook", ["torch._dynamo.reset()", "importlib.import_module('torch._dynamo.eval_frame')"]
)
def test_the_compiler_keeps_nothing_of_the_virtual_gpu(warm_python: list[str], hook: str) -> None:
    """The compiler, imported in a step of an optimizer, keeps PyTorch's functions and stance.

    A program may ask for the package or for one of its modules.
    """
    code = COMPILER.replace("HOOK", hook)
    assert words(warm_python, code) == ["force_eager", "default", "True"]


@pytest.mark.slow
def test_a_timer_imported_inside_waits_on_every_virtual_gpu(warm_python: list[str]) -> None:
    """A ``Timer`` imported on one virtual GPU waits for this one and for the next."""
    assert words(warm_python, TIMER) == ["True", "True"]


@pytest.mark.slow
def test_gpulab_imported_inside_keeps_nothing_of_the_virtual_gpu() -> None:
    """No module, class or default of gpulab has a function that is the virtual GPU's own.

    Otherwise ``hazards`` would ask a virtual function about memory of a CUDA GPU, later. A warm
    process has imported most modules, so this one is new.
    """
    assert words([sys.executable], OWN_MODULES) == []


@pytest.fixture
def probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a module of torch that is not imported yet."""
    (tmp_path / "probe.py").write_text(MODULE)
    (tmp_path / "helper_of_probe.py").write_text("from torch.cuda import is_available")
    (tmp_path / "failing_probe.py").write_text("raise ZeroDivisionError")
    monkeypatch.setattr(torch, "__path__", [*torch.__path__, str(tmp_path)])
    yield "torch.probe"
    for name in ("probe", "helper_of_probe", "failing_probe"):
        sys.modules.pop(f"torch.{name}", None)
        vars(torch).pop(name, None)


def imported(name: str) -> SimpleNamespace:
    """Import a module and return its names."""
    __import__(name)
    return SimpleNamespace(**vars(sys.modules[name]))


def test_a_module_imported_inside_gets_pytorchs_functions(probe: str) -> None:
    """A module of torch that is imported inside binds the real functions and clocks."""
    real = torch.cuda.device_count, torch.cuda.is_available, torch.compile, time.perf_counter
    with gpulab.virtual_gpu("H200"):
        virtual = torch.cuda.device_count, torch.cuda.is_available, time.perf_counter
        found = imported(probe)
        helper = sys.modules["torch.helper_of_probe"]
        now = torch.cuda.device_count, torch.cuda.is_available, time.perf_counter
        assert torch.ones(2, device="cuda").sum().item() == 2
    assert (found.device_count, helper.is_available, found.compile, found.perf_counter) == real
    assert found.default_timer is real[3]
    assert now == virtual
    assert real[0] is torch.cuda.device_count


def test_names_that_a_program_replaced_stay_replaced(
    probe: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that the program replaced is still the program's after an import inside."""
    with gpulab.virtual_gpu("H200"), monkeypatch.context() as patch:
        patch.setattr(torch.cuda, "device_count", mine := lambda: 7)
        imported(probe)
        assert torch.cuda.device_count is mine


def test_a_module_that_fails_changes_nothing(probe: str) -> None:
    """An import that fails raises its own error and leaves the virtual functions in place."""
    with gpulab.virtual_gpu("H200"):
        virtual = torch.cuda.is_available
        with pytest.raises(ZeroDivisionError):
            imported(probe.replace("probe", "failing_probe"))
        assert torch.cuda.is_available is virtual


def test_a_module_keeps_its_own_loader(probe: str) -> None:
    """A module imported inside has the loader that Python would have used."""
    with gpulab.virtual_gpu("H200"):
        module = sys.modules[imported(probe).__name__]
    assert type(module.__loader__).__name__ == "SourceFileLoader"
    assert module.__spec__.loader is module.__loader__


def test_the_import_finder_is_removed() -> None:
    """After the context the import finder and the marks on functions are gone."""
    before = list(sys.meta_path)
    with gpulab.virtual_gpu("H200"):
        assert len(sys.meta_path) == len(before) + 1
    assert sys.meta_path == before
    marked = [item for item in functions_never_compiled() if "__dynamo_disable" in vars(item)]
    assert not marked or "torch._dynamo" in sys.modules
