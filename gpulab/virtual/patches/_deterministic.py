"""``torch.use_deterministic_algorithms`` on the virtual GPU: it raises or warns as on CUDA."""

from typing import Any

from gpulab.core.interrupts import Undo
from gpulab.core.torch_private import C, deterministic_mode, set_deterministic_mode
from gpulab.virtual.dispatch import require_deterministic
from gpulab.virtual.simulator import Machine, is_owner


def replacements(machine: Machine) -> list[tuple[Any, dict[str, Any]]]:  # noqa: ARG001 # as every patch
    """Return the replacement for the function of PyTorch that sets the mode."""

    def set_mode(mode: bool, *, warn_only: bool = False) -> None:  # noqa: FBT001 # torch's signature
        # PyTorch's mode is set, too: its Python code asks for it, and so do operators of the host.
        set_deterministic_mode(mode, warn_only=warn_only)
        if is_owner():
            require_deterministic(is_required=mode)

    return [(C, {"_set_deterministic_algorithms": set_mode})]


def install(_machine: Machine, undo: Undo) -> None:
    """Follow the mode that the program has chosen before, until ``undo`` is closed."""
    # The program may also switch it on later.
    undo.callback(_end)
    if deterministic_mode():
        require_deterministic(is_required=True)


def _end() -> None:
    require_deterministic(is_required=False)
