"""Name the kernels that CUDA runs for a call, where they are other ones than those of its time.

The time of a call comes from the roofline of its lowering, which often is one kernel. PyTorch may
run several: an index by a mask first counts the elements, a loss ends with a mean. The kernels
here are those that the driver recorded on an H100 and an H200 with torch 2.11, by PyTorch's rules
for sizes. They share the time of the call.
"""

from collections.abc import Sequence
from dataclasses import replace

from gpulab.virtual.operators import (
    _convolution_kernels,
    _factorization_kernels,
    _layer_kernels,
    _selection_kernels,
)
from gpulab.virtual.operators._operator_call import Names, Rules
from gpulab.virtual.simulator.costs import KernelWork
from gpulab.virtual.tensors import TensorLayout

# A call launches each kernel after its first in this time; before the first one it allocates, and
# chooses its kernels. Reductions and matmuls of two kernels took an H200's host 2 to 3 us longer
# than those of one.
_NEXT_LAUNCH_NS = 2_500
# The time of these is modelled as that of longer ways, whose kernels take the host 22 to 83 us. On
# an H200's host they took 10 to 22.
_QUICK_NS: dict[Names, int] = {
    ("find and gather the k largest", "block sort"): 17_000,
    ("k-th value of each row",): 8_000,
    ("median of each row",): 8_000,
    # A layer in two parts takes no longer than a whole one: with 20 of them, each with a ReLU, a
    # step took an H200's host 376 us, and with a wait after each 659; here 389 and 655.
    **dict.fromkeys((("linear", "sum of parts"), ("addmm", "sum of parts")), 10_500),
}


def as_launched(
    work: KernelWork, names: Names, reads: Sequence[TensorLayout], writes: Sequence[TensorLayout]
) -> KernelWork:
    """Return the work of the kernels that CUDA launches for a call.

    ``work`` is what the model of its time computes, with other kernels or fewer.
    """
    parts = tuple(_with_cached_bytes(part, reads, writes) for part in (*work.before, work))
    shares = _shares(names)
    host_ns = _host_ns(names, [part.launch_ns for part in parts])
    # The heavy one makes the accesses of the call, so it also takes what memory adds.
    heavy = shares.index(max(shares)) if len(set(shares)) > 1 else len(names) - 1
    *before, last = [
        replace(
            work,
            before=(),
            flops=work.flops if index == heavy else 0,
            reads=index == heavy,
            writes=index == heavy,
            name=name,
            host_ns=each_ns,
            whole=parts,
            share=share,
        )
        for index, (name, share, each_ns) in enumerate(zip(names, shares, host_ns, strict=True))
    ]
    return replace(last, before=tuple(before))


def _host_ns(names: Names, parts_ns: Sequence[int]) -> list[int]:
    """Return the host's time for each kernel, given those of the parts of the model."""
    n_more, n_next = max(0, len(names) - len(parts_ns)), len(names) - 1
    whole_ns = _QUICK_NS.get(tuple(names)) or sum(parts_ns) + n_more * _NEXT_LAUNCH_NS
    # What the call does before its first kernel is in the longest part.
    rest_ns = max(whole_ns - max(parts_ns), _NEXT_LAUNCH_NS * n_next)
    next_ns = rest_ns // n_next if n_next else 0
    return [whole_ns - n_next * next_ns, *[next_ns] * n_next]


def _shares(names: Names) -> list[float]:
    """Return the share of each kernel in the time of the call."""
    n_heavy = sum(name in _HEAVY for name in names)
    n_light = len(names) - n_heavy
    if not n_heavy or not n_light:
        return [1 / len(names)] * len(names)
    light = min(_LIGHT_SHARE, _MOST_LIGHT / n_light)
    heavy = (1 - light * n_light) / n_heavy
    return [heavy if name in _HEAVY else light for name in names]


# A matmul, a convolution or attention takes most of the time of its call.
_HEAVY = frozenset(
    {
        *("mm", "addmm", "linear", "convolution", "convolution_backward", "weights"),
        *(_layer_kernels.ATTENTION, _layer_kernels.ATTENTION_BACKWARD),
    }
)
_LIGHT_SHARE, _MOST_LIGHT = 0.1, 0.5


def _with_cached_bytes(
    part: KernelWork, reads: Sequence[TensorLayout], writes: Sequence[TensorLayout]
) -> KernelWork:
    touched = [*(reads if part.reads else ()), *(writes if part.writes else ())]
    sizes = [min(item.size_bytes, part.most_bytes or item.size_bytes) for item in touched]
    return replace(part, before=(), cached_bytes=sum(sizes))


RULES: Rules = {
    name: rule
    for family in (
        *(_selection_kernels, _factorization_kernels, _layer_kernels, _convolution_kernels),
    )
    for names, rule in family.RULES.items()
    for name in names.split()
}
