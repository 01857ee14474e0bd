"""What the virtual GPU does not model, refused by name instead of done wrongly in silence."""

from collections.abc import Callable
from typing import Any

import torch

from gpulab.errors import NotModelledError

_GRAPHS = "launch the work eagerly, or use a CUDA GPU"
_PROFILER = "see gpulab.timeline.Recorder, or use a CUDA GPU"
_CASTS = "cast tensors and modules with .half() or .to(dtype), or use a CUDA GPU"
_COMPILER = "call the function uncompiled, or use a CUDA GPU"
_PARALLEL = "use one device, or CUDA GPUs"


def refusals() -> list[tuple[Any, dict[str, Any]]]:
    """Return what to put in the place of each name, by the object that has it."""
    graphs = {
        name: _refuse(f"torch.cuda.{name}", _GRAPHS)
        for name in ("CUDAGraph", "graph", "make_graphed_callables")
    }
    cast = _refuse_on_cuda(torch.autocast)
    return [
        (torch.cuda, graphs),
        (torch.cuda.amp, {"autocast": _refuse("torch.cuda.amp.autocast", _CASTS)}),
        (torch.amp, {"autocast": cast}),
        (torch.profiler, {"profile": _refuse("torch.profiler.profile", _PROFILER)}),
        (torch.nn, {"DataParallel": _refuse("torch.nn.DataParallel", _PARALLEL)}),
        (torch, {"autocast": cast, "compile": _refuse("torch.compile", _COMPILER)}),
    ]


def _refuse(name: str, instead: str) -> Callable[..., Any]:
    def refused(*_args: object, **_kwargs: object) -> Any:
        raise NotModelledError(f"the virtual GPU has no model of {name}; {instead}")

    return refused


def _refuse_on_cuda(original: Any) -> Callable[..., Any]:
    """Without this, autocast would keep float32 and nobody would see it."""
    refused = _refuse('torch.autocast("cuda")', _CASTS)

    def autocast(device_type: str, *args: Any, **kwargs: Any) -> Any:
        return (refused if device_type == "cuda" else original)(device_type, *args, **kwargs)

    return autocast
