"""A Triton kernel, in its own module because importing it needs Triton."""

import triton
from triton import language as tl


# Triton compiles the annotations, too, and understands no others than its own.
@triton.jit
def doubled_and_added(x, y, out, n, BLOCK: tl.constexpr):  # noqa: ANN001, ANN201, N803 # see above
    """Write 2 x + y."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    total = 2.0 * tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside)
    tl.store(out + at, total, mask=inside)
