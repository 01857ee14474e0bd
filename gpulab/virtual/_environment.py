"""Environment variables of PyTorch and CUDA: which of them act, and a warning for the others.

CUDA reads its variables when a context is made, and so does the virtual GPU: at its first entry.
"""

import os
import warnings
from collections.abc import Iterator, Mapping

from gpulab.happens_before import user_site

_MEMORY = "its allocator has PyTorch's default settings"
_ALIKE = "it has one way to compute each operator"
_COMPILED = "all its kernels are compiled"
_NO_DRIVER = "it has no driver"
_QUEUES = "its queues have CUDA's default sizes"
_LOADING = "it loads each kernel at its first launch, as LAZY does"
_NO_DUMP = "an error leaves no dump; its message names the operator"

# Each variable that acts, and what it does here.
ACTING: dict[str, str] = {
    "CUDA_LAUNCH_BLOCKING": "1: each launch and each graph waits until its work is done, so that "
    "an error comes at its line",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "1: float32 matmuls use TF32",
}
# Each variable that is not modelled: the reason, and the values that change nothing.
NOT_MODELLED: dict[str, tuple[str, tuple[str, ...]]] = {
    "CUDA_VISIBLE_DEVICES": (
        "count= of gpulab.virtual_gpu says how many GPUs there are",
        ("", "-1"),  # these only hide the CUDA GPUs of this machine
    ),
    "CUDA_DEVICE_ORDER": ("its GPUs are alike", ("FASTEST_FIRST",)),
    # The values for deterministic results: here all results are.
    "CUBLAS_WORKSPACE_CONFIG": ("cuBLAS takes no memory here", (":4096:8", ":16:8")),
    "CUBLASLT_WORKSPACE_SIZE": ("cuBLAS takes no memory here", ()),
    "TORCH_CUBLAS_WORKSPACE_CACHE": ("cuBLAS takes no memory here", ()),
    "PYTORCH_NO_CUDA_MEMORY_CACHING": (_MEMORY, ()),
    "PYTORCH_CUDA_ALLOC_CONF": (_MEMORY, ("", "backend:native", "expandable_segments:False")),
    "PYTORCH_ALLOC_CONF": (_MEMORY, ("", "backend:native", "expandable_segments:False")),
    "NVIDIA_TF32_OVERRIDE": ("use torch.backends.cuda.matmul.fp32_precision", ()),
    **dict.fromkeys(
        (
            *("TORCH_BLAS_PREFER_CUBLASLT", "TORCH_LINALG_PREFER_CUSOLVER"),
            *("TORCH_LINALG_PREFER_MAGMA", "TORCH_CUDNN_USE_HEURISTIC_MODE_B"),
            *("TORCH_CUDNN_V8_API_DISABLED", "TORCH_CUDNN_V8_API_LRU_CACHE_LIMIT"),
            *("TORCH_CUDNN_SDPA_ENABLED", "CUDNN_CONV_WSCAP_DBG", "CUDNN_ERRATA_JSON_FILE"),
            *("PYTORCH_TUNABLEOP_ENABLED", "PYTORCH_TUNABLEOP_TUNING"),
        ),
        (_ALIKE, ("0",)),
    ),
    **dict.fromkeys(
        (
            *("CUDA_CACHE_DISABLE", "CUDA_CACHE_MAXSIZE", "CUDA_CACHE_PATH"),
            *("CUDA_DISABLE_JIT", "CUDA_DISABLE_PTX_JIT", "CUDA_FORCE_JIT", "CUDA_FORCE_PTX_JIT"),
        ),
        (_COMPILED, ("0",)),
    ),
    **dict.fromkeys(
        (
            *("PYTORCH_NVML_BASED_CUDA_CHECK", "CUDA_MANAGED_FORCE_DEVICE_ALLOC"),
            *("CUDA_AUTO_BOOST", "CUDA_DISABLE_PERF_BOOST", "CUDA_PREFER_SPINLOCKS_ON_HOST"),
            *("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"),
            *("CUDA_MPS_PIPE_DIRECTORY", "CUDA_LOG_FILE", "CUDA_INJECTION64_PATH"),
            *("CUDA_DEVICE_DEFAULT_STACK_SIZE_MAX",),
        ),
        (_NO_DRIVER, ()),
    ),
    "CUDA_DEVICE_MAX_CONNECTIONS": (_QUEUES, ("8",)),
    **dict.fromkeys(
        (
            *("CUDA_DEVICE_MAX_COPY_CONNECTIONS", "CUDA_SCALE_LAUNCH_QUEUES"),
            *("CUDA_GRAPHS_USE_NODE_PRIORITY",),
            *("CUDA_DEVICE_DEFAULT_PERSISTING_L2_CACHE_PERCENTAGE_LIMIT",),
        ),
        (_QUEUES, ("0",)),
    ),
    "CUDA_MODULE_LOADING": (_LOADING, ("LAZY", "DEFAULT")),
    "CUDA_MODULE_DATA_LOADING": (_LOADING, ("LAZY", "DEFAULT")),
    **dict.fromkeys(
        ("CUDA_BINARY_LOADER_THREAD_COUNT", "CUDA_FORCE_PRELOAD_LIBRARIES"), (_LOADING, ("0",))
    ),
    **dict.fromkeys(
        (
            *("CUDA_ENABLE_COREDUMP_ON_EXCEPTION", "CUDA_ENABLE_CPU_COREDUMP_ON_EXCEPTION"),
            *("CUDA_ENABLE_LIGHTWEIGHT_COREDUMP", "CUDA_ENABLE_USER_TRIGGERED_COREDUMP"),
            *("CUDA_COREDUMP_FILE", "CUDA_COREDUMP_PIPE", "CUDA_COREDUMP_GENERATION_FLAGS"),
            *("CUDA_COREDUMP_SHOW_PROGRESS", "CUDA_DEVICE_WAITS_ON_EXCEPTION"),
            *("TORCH_USE_CUDA_DSA", "PYTORCH_CUDA_DSA_STACKTRACING"),
        ),
        (_NO_DUMP, ("0",)),
    ),
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
        # At each entry, so the quick way round: a lookup of a name that is not set takes long.
        now = {name: os.environ[name] for name in sorted(_NAMES.intersection(os.environ))}
        if self._read is None:
            self._read = now
            _warn_of_all(self._ignored(now))
        elif now != self._read:
            changed = now.items() ^ self._read.items()
            _warn_of_change(sorted({name for name, _ in changed}))

    def _ignored(self, now: Mapping[str, str]) -> Iterator[str]:
        for name, value in now.items():
            reason, harmless = NOT_MODELLED.get(name, ("", (value,)))
            if value not in harmless and not self._shows_all(name, value):
                yield f"{name}={value} ({reason})"

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
