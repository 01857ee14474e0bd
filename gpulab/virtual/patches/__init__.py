"""Replace names of ``torch.cuda`` and related modules by the virtual GPU's, and restore them."""

from gpulab.virtual.patches._torch_compile import NotCompiledWarning
from gpulab.virtual.patches._torch_cuda import install

__all__ = ["NotCompiledWarning", "install"]
