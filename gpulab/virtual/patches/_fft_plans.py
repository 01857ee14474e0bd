"""``torch.backends.cuda.cufft_plan_cache`` on the virtual GPU: an empty cache of FFT plans."""

from typing import Any

from torch.backends import cuda

from gpulab.virtual.simulator import Machine

_MAX_SIZE = 4096  # PyTorch's default, since CUDA 10


def replacements(machine: Machine) -> list[tuple[Any, dict[str, Any]]]:
    """Return a cache that is always empty, because the virtual GPU makes no plans."""
    sizes = [_MAX_SIZE] * len(machine.gpus)

    def set_size(cache: Any, size: int) -> None:
        if size < 0:
            raise RuntimeError("cuFFT: cache max size must be non-negative")
        sizes[cache.device_index] = size

    def refuse(_cache: Any, _size: int) -> None:
        raise RuntimeError(
            ".size is a read-only property showing the number of plans currently in the "
            "cache. To change the cache capacity, set cufft_plan_cache.max_size."
        )

    names = {
        "size": property(lambda _cache: 0, refuse),
        "max_size": property(lambda cache: sizes[cache.device_index], set_size),
        "clear": lambda _cache: None,
    }
    # PyTorch makes its list of caches once and keeps it, with the devices of that time.
    manager = {"cufft_plan_cache": cuda.cuFFTPlanCacheManager()}  # type: ignore[no-untyped-call] # torch's is untyped
    return [(cuda.cuFFTPlanCache, names), (cuda, manager)]
