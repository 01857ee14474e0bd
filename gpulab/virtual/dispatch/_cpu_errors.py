"""Tell which errors of the CPU's kernels CUDA raises, too, and in which words."""

import re

import torch

NO_KERNEL = "not implemented for '"
_CPU_IN_NAME = re.compile(r"(?:_vml)?_cpu(?=[_\"])")
# What only the CPU's kernels and libraries refuse.
_CPU_ALONE = r"^(?!\s*Sort).*\bCPU\b|MKL|primitive|INTERNAL ASSERT"
_IS_OF_THE_CPU = re.compile(rf"{NO_KERNEL}|{_CPU_ALONE}")
# And what is refused only for some values.
_NOT_ON_CUDA = re.compile(
    rf"{_CPU_ALONE}|^ZeroDivisionError$|[Ii]ndex\b.* out of (?:bounds|range)"
)


def is_about_arguments(error: Exception) -> bool:
    """Return whether CUDA raises this error of the CPU, too, whatever the values."""
    message = str(error)
    is_of_values = isinstance(error, torch.linalg.LinAlgError)  # type: ignore[attr-defined] # not in its stub
    if is_of_values or "Could not run 'aten::" in message:
        return False
    return NO_KERNEL in message or _NOT_ON_CUDA.search(message) is None


def is_of_the_cpu(error: Exception) -> bool:
    """Return whether CUDA may accept what the CPU refuses with this error."""
    return _IS_OF_THE_CPU.search(str(error)) is not None


def as_on_cuda(error: Exception) -> Exception:
    """Return an error without its traceback, and with a CUDA kernel's name in its message."""
    if NO_KERNEL in str(error):
        return type(error)(_CPU_IN_NAME.sub("_cuda", str(error)))
    return error
