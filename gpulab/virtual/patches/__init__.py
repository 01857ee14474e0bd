"""Put the virtual GPU behind ``torch.cuda`` and related names, and take it away again."""

from gpulab.virtual.patches._cuda_graphs import abandon_captures
from gpulab.virtual.patches._torch_compile import NotCompiledWarning
from gpulab.virtual.patches._torch_cuda import install

__all__ = [
    "NotCompiledWarning",
    "abandon_captures",
    "install",
]
