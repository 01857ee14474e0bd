"""Return the virtual GPU that is entered, without importing torch or the simulator."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpulab.virtual._session import VirtualGpu

# It has at most one entry: torch.cuda can use only one machine at a time.
stack: "list[VirtualGpu]" = []


def entered() -> "VirtualGpu | None":
    """Return the virtual GPU that ``torch.cuda`` uses now, or None."""
    return stack[-1] if stack else None
