"""Read names of kernels and of CUDA's functions, as the driver's records have them."""

import re

# Parts of a C++ name that nearly every kernel of PyTorch has.
_NOISE = ("void ", "at::native::", "at::cuda::", "(anonymous namespace)::", "at::", "std::")
_NAME_LENGTH = 60
# cudaLaunchHostFunc runs a function on the host, so it leaves no record of the device.
_LAUNCHES = re.compile(r"cu(?:da)?(?:Launch(?!HostFunc)|GraphLaunch|Memcpy|Memset)")


def kind_of_call(name: str) -> str:
    """Return the ``kind`` of a ``HostCall``, from the name of its function.

    >>> kind_of_call("cudaLaunchKernel"), kind_of_call("cudaStreamSynchronize")
    ('launch', 'wait')
    """
    if _LAUNCHES.match(name):
        return "launch"
    return "wait" if "Synchronize" in name else "other"


def short_name(name: str) -> str:
    """Return a kernel's name without namespaces and arguments, at most 60 characters long.

    >>> short_name("void at::native::reduce_kernel<512, 1>(at::native::Op)")
    'reduce_kernel<512, 1>'
    """
    if name.startswith(("Memcpy", "Memset")):
        return name
    for noise in _NOISE:
        name = name.replace(noise, "")
    depth = 0
    for index, letter in enumerate(name):
        depth += {"<": 1, ">": -1}.get(letter, 0)
        # A parenthesis inside <...> belongs to a template argument, not to the call.
        if letter == "(" and not depth and index:
            name = name[:index]
            break
    return name if len(name) <= _NAME_LENGTH else f"{name[: _NAME_LENGTH - 1]}…"
