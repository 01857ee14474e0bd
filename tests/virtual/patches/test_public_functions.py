"""Public functions of ``torch.cuda`` and its relatives do not fail for want of a CUDA build."""

import importlib
import inspect
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import torch

import gpulab
from gpulab.core.errors import NotModelledError
from gpulab.core.torch_private import C

MODULES = (
    *("torch.accelerator", "torch.amp", "torch.backends.cuda", "torch.backends.cudnn"),
    *("torch.backends.cudnn.rnn", "torch.cuda", "torch.cuda.amp", "torch.cuda.comm"),
    *("torch.cuda.gds", "torch.cuda.graphs", "torch.cuda.green_contexts", "torch.cuda.jiterator"),
    *("torch.cuda.memory", "torch.cuda.nccl", "torch.cuda.nvtx", "torch.cuda.profiler"),
    *("torch.cuda.random", "torch.cuda.sparse", "torch.cuda.streams", "torch.cuda.tunable"),
    *("torch.nn.parallel", "torch.nn.parallel.comm", "torch.nn.parallel.scatter_gather"),
    *("torch.random", "torch.utils.dlpack"),
)
# The folders of torch whose sources are read for names of PyTorch's C layer.
FOLDERS = ("accelerator", "amp", "backends/cuda", "backends/cudnn", "cuda", "nn/parallel")
# What these change would stay so for the tests that come after.
_KEPT_BY_THE_PROCESS = ("_", "register", "disable_global_flags", "set_flags")
OF_THE_BUILD = re.compile(
    r"module 'torch\._C' has no|not compiled with CUDA|NVIDIA driver|none is available"
)


@pytest.fixture
def gpu() -> Iterator[None]:
    """Enter two virtual GPUs without first-use costs."""
    with gpulab.virtual_gpu("H200", first_use=False, count=2):
        yield


def public_functions(module: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the public functions and classes of a module of torch, now that a GPU is entered."""
    owner = importlib.import_module(module)
    for name, value in sorted(vars(owner).items()):
        is_own = str(getattr(value, "__module__", "")).startswith(("torch", "gpulab"))
        if callable(value) and is_own and not name.startswith(_KEPT_BY_THE_PROCESS):
            yield f"{module}.{name}", value


def likely_calls(function: Callable[..., Any]) -> Iterator[list[Any]]:
    """Yield arguments for a call, guessed from the names of its parameters."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # written in C
        parameters = ()
    required = [
        parameter.name
        for parameter in parameters
        if parameter.default is parameter.empty
        and parameter.kind in {parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD}
    ]
    x, layer = torch.ones(4, 4, device="cuda"), torch.nn.Linear(4, 2).cuda()
    known = {
        **dict.fromkeys(("module", "network", "model"), layer),
        **{name: [x, x.to("cuda:1")] for name in ("inputs", "outputs", "tensors")},
        **{name: [0, 1] for name in ("devices", "target_gpus", "device_ids")},
        **dict.fromkeys(("device", "destination", "target_device", "index", "seed"), 0),
        "modules": [layer, layer],
        "stream": torch.cuda.current_stream(),
        "fraction": 0.5,
    }
    for other in (x, 0, "name") if required else (None,):
        yield [known.get(name, other) for name in required]


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("module", MODULES)
def test_no_call_ends_in_an_error_about_the_build(module: str) -> None:
    """A call with likely arguments works, is refused by name, or raises the caller's own error."""
    ended_badly = []
    for name, function in public_functions(module):
        for arguments in likely_calls(function):
            try:
                with warnings.catch_warnings(), redirect_stdout(StringIO()):
                    warnings.simplefilter("ignore")
                    function(*arguments)
            except NotModelledError:
                continue
            except Exception as error:  # noqa: BLE001 # others are errors of the guessed arguments
                if OF_THE_BUILD.search(str(error)):
                    ended_badly.append(f"{name}: {error}")
    assert not ended_badly


def names_of_c() -> Iterator[str]:
    """Yield the names of PyTorch's C layer that the sources of ``FOLDERS`` mention."""
    root = Path(torch.__file__).parent
    sources = [path for folder in FOLDERS for path in sorted((root / folder).glob("*.py"))]
    mentions = [re.findall(r"\b_C\.(\w+)", path.read_text("utf-8")) for path in sources]
    yield from sorted({name for names in mentions for name in names})


@pytest.mark.usefixtures("gpu")
def test_each_name_of_the_c_layer_exists_or_is_refused() -> None:
    """What torch's own Python code calls in its C layer exists or raises NotModelledError."""
    missing = []
    for name in names_of_c():
        try:
            getattr(C, name)
        except NotModelledError:
            continue
        except AttributeError:
            missing.append(name)
    assert not missing
