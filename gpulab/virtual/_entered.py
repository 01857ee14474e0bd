"""Which virtual GPU stands behind ``torch.cuda`` now; asking loads neither it nor torch."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpulab.virtual._session import VirtualGpu

# At most one: two devices cannot both stand behind torch.cuda.
stack: "list[VirtualGpu]" = []


def entered() -> "VirtualGpu | None":
    """Return the virtual GPU that stands behind ``torch.cuda`` now, or None."""
    return stack[-1] if stack else None
