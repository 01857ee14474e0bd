"""Environment variables of PyTorch and CUDA: which of them act, and a warning for the others.

CUDA reads its variables when a context is made, and so does the virtual GPU: at its first entry.
"""

import os
import warnings
from collections.abc import Iterator, Mapping

from gpulab.happens_before import user_site

# These act: PyTorch itself reads the second one.
ACTING = ("CUDA_LAUNCH_BLOCKING", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE")
_OFF_BY_0 = """
TORCH_BLAS_PREFER_CUBLASLT TORCH_LINALG_PREFER_CUSOLVER TORCH_LINALG_PREFER_MAGMA
TORCH_CUDNN_USE_HEURISTIC_MODE_B TORCH_CUDNN_V8_API_DISABLED TORCH_CUDNN_V8_API_LRU_CACHE_LIMIT
TORCH_CUDNN_SDPA_ENABLED CUDNN_CONV_WSCAP_DBG CUDNN_ERRATA_JSON_FILE PYTORCH_TUNABLEOP_ENABLED
PYTORCH_TUNABLEOP_TUNING CUDA_CACHE_DISABLE CUDA_CACHE_MAXSIZE CUDA_CACHE_PATH CUDA_DISABLE_JIT
CUDA_DISABLE_PTX_JIT CUDA_FORCE_JIT CUDA_FORCE_PTX_JIT CUDA_DEVICE_MAX_COPY_CONNECTIONS
CUDA_SCALE_LAUNCH_QUEUES CUDA_GRAPHS_USE_NODE_PRIORITY
CUDA_DEVICE_DEFAULT_PERSISTING_L2_CACHE_PERCENTAGE_LIMIT CUDA_BINARY_LOADER_THREAD_COUNT
CUDA_FORCE_PRELOAD_LIBRARIES CUDA_ENABLE_COREDUMP_ON_EXCEPTION
CUDA_ENABLE_CPU_COREDUMP_ON_EXCEPTION CUDA_ENABLE_LIGHTWEIGHT_COREDUMP
CUDA_ENABLE_USER_TRIGGERED_COREDUMP CUDA_COREDUMP_FILE CUDA_COREDUMP_PIPE
CUDA_COREDUMP_GENERATION_FLAGS CUDA_COREDUMP_SHOW_PROGRESS CUDA_DEVICE_WAITS_ON_EXCEPTION
TORCH_USE_CUDA_DSA PYTORCH_CUDA_DSA_STACKTRACING
"""
_NEVER_OFF = """
CUBLASLT_WORKSPACE_SIZE TORCH_CUBLAS_WORKSPACE_CACHE PYTORCH_NO_CUDA_MEMORY_CACHING
NVIDIA_TF32_OVERRIDE PYTORCH_NVML_BASED_CUDA_CHECK CUDA_MANAGED_FORCE_DEVICE_ALLOC CUDA_AUTO_BOOST
CUDA_DISABLE_PERF_BOOST CUDA_PREFER_SPINLOCKS_ON_HOST CUDA_MPS_ACTIVE_THREAD_PERCENTAGE
CUDA_MPS_PINNED_DEVICE_MEM_LIMIT CUDA_MPS_PIPE_DIRECTORY CUDA_LOG_FILE CUDA_INJECTION64_PATH
CUDA_DEVICE_DEFAULT_STACK_SIZE_MAX
"""
# Each variable that is not modelled, with the values that change nothing. The reasons are in
# docs/virtual-gpu.md.
NOT_MODELLED: dict[str, tuple[str, ...]] = {
    "CUDA_VISIBLE_DEVICES": ("", "-1"),  # these only hide the CUDA GPUs of this machine
    "CUDA_DEVICE_ORDER": ("FASTEST_FIRST",),
    # The values for deterministic results: here all results are.
    "CUBLAS_WORKSPACE_CONFIG": (":4096:8", ":16:8"),
    **dict.fromkeys(
        ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"),
        ("", "backend:native", "expandable_segments:False"),
    ),
    **dict.fromkeys(("CUDA_MODULE_LOADING", "CUDA_MODULE_DATA_LOADING"), ("LAZY", "DEFAULT")),
    "CUDA_DEVICE_MAX_CONNECTIONS": ("8",),
    **dict.fromkeys(_OFF_BY_0.split(), ("0",)),
    **dict.fromkeys(_NEVER_OFF.split(), ()),
}
_INSTEAD = {
    "CUDA_VISIBLE_DEVICES": " (count= of gpulab.virtual_gpu says how many GPUs there are)",
    "NVIDIA_TF32_OVERRIDE": " (use torch.backends.cuda.matmul.fp32_precision)",
}
_NAMES = frozenset({*ACTING, *NOT_MODELLED})
# Exercises and tests make many virtual GPUs, so a process shows each text once.
_shown: set[str] = set()


class IgnoredSwitchWarning(UserWarning):
    """Warns that a switch of PyTorch or CUDA is set that the virtual GPU does not model."""


class Environment:
    """The variables that a virtual GPU read at its first entry."""

    def __init__(self, n_gpus: int) -> None:
        self._n_gpus = n_gpus
        self._read: dict[str, str] | None = None

    @property
    def blocks_launches(self) -> bool:
        """Whether each launch waits until its work is done."""
        # An H100 blocks with 1 only: not with 2.
        return (self._read or {}).get("CUDA_LAUNCH_BLOCKING") == "1"

    def read(self) -> None:
        """Read the variables, and warn of those that do nothing."""
        # This runs at each entry, and looking up a name that is not set takes long.
        now = {name: os.environ[name] for name in sorted(_NAMES.intersection(os.environ))}
        if self._read is None:
            self._read = now
            _warn_of_all(self._ignored(now))
        elif now != self._read:
            changed = now.items() ^ self._read.items()
            _warn_of_change(sorted({name for name, _ in changed}))

    def _ignored(self, now: Mapping[str, str]) -> Iterator[str]:
        for name, value in now.items():
            harmless = NOT_MODELLED.get(name, (value,))
            if value not in harmless and not self._shows_all(name, value):
                yield f"{name}={value}{_INSTEAD.get(name, '')}"

    def _shows_all(self, name: str, value: str) -> bool:
        """Return whether the variable makes as many GPUs visible as there are."""
        return name == "CUDA_VISIBLE_DEVICES" and value.count(",") + 1 == self._n_gpus


def _warn_of_all(ignored: Iterator[str]) -> None:
    named = "; ".join(ignored)
    if named:
        warn(
            f"the virtual GPU does not model these environment variables, so they do nothing: "
            f"{named}. Unset them, or use a CUDA GPU to see what they do"
        )


def _warn_of_change(names: list[str]) -> None:
    warn(
        f"{', '.join(names)} changed since this virtual GPU was entered for the first time; as "
        "CUDA, it reads environment variables only then. Set them before, or make a new one with "
        "gpulab.virtual_gpu(...)"
    )


def warn(text: str) -> None:
    """Show an :class:`IgnoredSwitchWarning` at the program's line, once in each process."""
    if text not in _shown:
        _shown.add(text)
        warnings.warn_explicit(text, IgnoredSwitchWarning, *user_site())
