"""Which machine is entered, and on which thread."""

from threading import get_ident

from gpulab.core.errors import NotModelledError, VirtualGpuError
from gpulab.virtual.simulator._machine import Machine

# The entered machine, with the thread that entered it.
_entered: list[tuple[Machine, int]] = []
# Not empty in a forked process. As with CUDA, the child of a fork cannot use the parent's device.
_lost: list[bool] = []


def is_entered() -> bool:
    """Return whether a virtual GPU is entered, on any thread."""
    return bool(_entered)


def is_owner() -> bool:
    """Return whether the calling thread has entered a virtual GPU, in this very process."""
    return bool(_entered) and not _lost and get_ident() == _entered[-1][1]


def active() -> Machine:
    """Return the machine of the entered virtual GPU."""
    if _lost:
        raise forked_error()
    if not _entered:
        raise VirtualGpuError(
            "no virtual GPU is active, but a tensor, stream, event or graph of one is used; "
            "work with it inside `with gpu:` or after gpulab.use(...)"
        )
    machine, owner = _entered[-1]
    if get_ident() != owner:
        raise NotModelledError(
            "the virtual GPU has no model of device work from a second thread; do it on the "
            "thread that entered the virtual GPU, or use a CUDA GPU"
        )
    return machine


def forked_error() -> RuntimeError:
    """Return PyTorch's error for a forked process that uses CUDA."""
    return RuntimeError(
        "Cannot re-initialize CUDA in forked subprocess. "
        "To use CUDA with multiprocessing, you must use the 'spawn' start method"
    )


def disown() -> None:
    """Mark this process as forked: it cannot use the virtual GPU of its parent.

    ``os.register_at_fork`` calls it in the child.
    """
    _lost.append(True)


def enter(machine: Machine) -> None:
    """Make ``machine`` the active one, for the calling thread."""
    _entered.append((machine, get_ident()))


def leave(machine: Machine) -> None:
    """Undo :func:`enter`; do nothing if ``machine`` is not entered."""
    # Not the last entry only: an interrupted end may run this a second time.
    _entered[:] = [entry for entry in _entered if entry[0] is not machine]
