"""Switches of PyTorch: deterministic algorithms act, and a warning names each without a model."""

from collections.abc import Callable
from functools import partial
from typing import Any

from gpulab.core.interrupts import Undo
from gpulab.core.torch_private import C, deterministic_mode, set_deterministic_mode
from gpulab.virtual._environment import warn
from gpulab.virtual.dispatch import require_deterministic
from gpulab.virtual.simulator import Machine, is_owner

_ONE_KERNEL = "attention is one fused kernel here, whichever is allowed"
_REDUCED = "the rounding of a matmul is the CPU's here"
_LIBRARY = "there is one implementation of each operator here"
# Each function of PyTorch's C layer that sets a switch: the function that reads it, the value that
# the virtual GPU does not model, the switch's public name, and the reason.
NOT_MODELLED: dict[str, tuple[str, bool, str, str]] = {
    "_set_cudnn_benchmark": (
        *("_get_cudnn_benchmark", True, "torch.backends.cudnn.benchmark"),
        "each convolution has one algorithm here, so nothing is searched",
    ),
    "_set_cudnn_deterministic": (
        *("_get_cudnn_deterministic", True, "torch.backends.cudnn.deterministic"),
        "each convolution has one algorithm here, and its results are always the same",
    ),
    "_set_cublas_allow_fp16_accumulation": (
        *("_get_cublas_allow_fp16_accumulation", True),
        *("torch.backends.cuda.matmul.allow_fp16_accumulation", _REDUCED),
    ),
    **{
        f"_set_cublas_allow_{dtype}_reduced_precision_reduction": (
            *(f"_get_cublas_allow_{dtype}_reduced_precision_reduction", False),
            *(f"torch.backends.cuda.matmul.allow_{dtype}_reduced_precision_reduction", _REDUCED),
        )
        for dtype in ("fp16", "bf16")
    },
    **{
        f"_set_sdp_use_{name}": (
            f"_get_{name}_sdp_enabled",
            False,
            "torch.nn.attention.sdpa_kernel or torch.backends.cuda.enable_..._sdp",
            _ONE_KERNEL,
        )
        for name in ("flash", "mem_efficient", "math", "cudnn")
    },
}
# PyTorch without CUDA raises errors in these.
_REPLACED = {
    "_set_linalg_preferred_backend": ("torch.backends.cuda.preferred_linalg_library", _LIBRARY),
    "_set_blas_preferred_backend": ("torch.backends.cuda.preferred_blas_library", _LIBRARY),
    "_accelerator_setAllocatorSettings": (
        *("torch.cuda.memory._set_allocator_settings",),
        "the allocator has PyTorch's default settings here",
    ),
}


def replacements(machine: Machine) -> list[tuple[Any, dict[str, Any]]]:  # noqa: ARG001 # as every patch
    """Return functions that set these switches."""
    setters = {name: _setter(name) for name in NOT_MODELLED if hasattr(C, name)}
    ignoring = {name: _ignoring(*texts) for name, texts in _REPLACED.items() if hasattr(C, name)}
    return [(C, {**setters, **ignoring, "_set_deterministic_algorithms": _set_deterministic})]


def _set_deterministic(mode: bool, *, warn_only: bool = False) -> None:  # noqa: FBT001 # torch's signature
    # PyTorch's mode is set, too: its Python code asks for it, and so do operators of the host.
    set_deterministic_mode(mode, warn_only=warn_only)
    if is_owner():
        require_deterministic(is_required=mode)


def install(_machine: Machine, undo: Undo) -> None:
    """Follow the mode that the program has set before, and warn of its other switches."""
    # The program may also switch it on later.
    undo.callback(partial(require_deterministic, is_required=False))
    if deterministic_mode():
        require_deterministic(is_required=True)
    for reader, value, name, reason in NOT_MODELLED.values():
        setting = getattr(C, reader)()
        if value in (setting if isinstance(setting, tuple) else (setting,)):
            warn(_text(name, reason))


def _setter(function: str) -> Callable[..., None]:
    _, ignored, name, reason = NOT_MODELLED[function]
    original = getattr(C, function)

    def set_switch(*values: bool) -> None:
        original(*values)
        if ignored in values:
            warn(_text(name, reason))

    return set_switch


def _ignoring(name: str, reason: str) -> Callable[..., None]:
    return lambda *_values: warn(_text(name, reason))


def _text(name: str, reason: str) -> str:
    return f"{name} does nothing on the virtual GPU: {reason}. Use a CUDA GPU to see what it does"
