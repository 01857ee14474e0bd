"""Raise an error for each function of torch that the virtual GPU does not model."""

import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache, partial, wraps
from multiprocessing.reduction import ForkingPickler
from typing import Any

import torch
import torch.cuda.comm  # importing torch does not import it

from gpulab.core.errors import NotModelledError, NotModelledNameError
from gpulab.core.torch_private import C, ScriptModule
from gpulab.core.tracebacks import ends_at_the_call
from gpulab.virtual.simulator import Machine
from gpulab.virtual.tensors import VirtualTensor

_DENSE = "use a dense tensor, or a sparse one on the CPU"
_MEMORY = "read torch.cuda.memory_stats() or memory_summary(), or use a CUDA GPU"
_OPERATORS = "write it with PyTorch's operators, or use a CUDA GPU"
_PARALLEL = "use one device, or CUDA GPUs"
_PROFILER = "use torch.profiler.profile(), or a CUDA GPU"
_SCRIPTED = "save model.cpu(), or the state_dict() of the model that was scripted"
_LOADED = "load the state_dict() of the model, or script it on the device"
_PROCESSES = "send a copy on the CPU, made with tensor.cpu()"
_LIBRARIES = "other libraries can read a copy on the CPU, made with tensor.cpu()"
_COMBINE = "copy with .to(device), and combine the copies there"
_COLLECTIVES = (
    *("broadcast", "broadcast_coalesced", "gather", "reduce_add", "reduce_add_coalesced"),
    "scatter",
)
_SPARSE_TYPES = ("BFloat16", "Byte", "Char", "Double", "Float", "Half", "Int", "Long", "Short")
_CUDA_GPU = "use a CUDA GPU"
_STORAGES = (
    *("BFloat16", "Bool", "Byte", "Char", "ComplexDouble", "ComplexFloat", "Double", "Float"),
    *("Half", "Int", "Long", "Short"),
)
_WRAPPER = "torch.nn.parallel.DistributedDataParallel"
_ONE_PROCESS = 'use all devices from one process, or choose the backend "gloo" for the CPU'

# Each unsupported name, and what to use instead; the documentation prints this table.
UNSUPPORTED: dict[str, str] = {
    "torch.autograd.profiler.emit_nvtx": _PROFILER,
    "torch.autograd.profiler.emit_itt": _PROFILER,
    "torch.cuda.memory._record_memory_history": _MEMORY,
    "torch.cuda.memory._dump_snapshot": _MEMORY,
    "torch.cuda.memory._snapshot": _MEMORY,
    "torch.cuda.memory.memory_snapshot": _MEMORY,
    "torch.cuda.memory.MemPool.__new__": "allocate in PyTorch's own pool",
    "torch.backends.cuda.cuFFTPlanCacheManager.__getitem__": "leave FFT plans to PyTorch",
    "torch.cuda.memory.CUDAPluggableAllocator": _MEMORY,
    "torch.cuda.memory.change_current_allocator": _MEMORY,
    "torch.cuda.memory.caching_allocator_enable": "leave PyTorch's cache on, or use a CUDA GPU",
    **{
        f"torch.cuda.memory.{name}": "read torch.cuda.memory_stats(), which is of the device"
        for name in (
            *("host_memory_stats", "host_memory_stats_as_nested_dict"),
            *("reset_peak_host_memory_stats", "reset_accumulated_host_memory_stats"),
        )
    },
    **{
        f"torch.cuda.memory.caching_allocator_{name}": 'use torch.empty(n, device="cuda")'
        for name in ("alloc", "delete")
    },
    **{
        f"torch.cuda.CUDAGraph.{name}": _CUDA_GPU
        for name in ("debug_dump", "raw_cuda_graph", "raw_cuda_graph_exec")
    },
    **{
        f"torch.cuda.{name}Storage.__new__": 'use torch.empty(n, device="cuda").untyped_storage()'
        for name in _STORAGES
    },
    "torch.profiler.profile.export_memory_timeline": "see gpulab.timeline(work)",
    "torch.profiler.profile.toggle_collection_dynamic": "profile each part by itself",
    "torch.range": "use torch.arange(), which leaves out its end",
    "torch.cuda.jiterator._JittedFunction.__call__": _OPERATORS,
    "torch.cuda._compile_kernel": _OPERATORS,
    "torch.utils.cpp_extension.load": _OPERATORS,
    "torch.utils.cpp_extension.load_inline": _OPERATORS,
    "torch.cuda.tunable.enable": "leave the choice of kernels to the model, or use a CUDA GPU",
    "torch.cuda.tunable.tuning_enable": "leave the choice of kernels to the model",
    "torch.cuda.tunable.record_untuned_enable": "leave the choice of kernels to the model",
    "torch.cuda.tunable.tune_gemm_in_file": "leave the choice of kernels to the model",
    "torch.cuda.gds.GdsFile": "use torch.save and torch.load",
    "torch.cuda.gds.gds_register_buffer": "use torch.save and torch.load",
    "torch.cuda.gds.gds_deregister_buffer": "use torch.save and torch.load",
    "torch.cuda.green_contexts.GreenContext.create": "use streams",
    _WRAPPER: _PARALLEL,
    "torch.distributed.init_process_group": _ONE_PROCESS,
    "torch.nn.parallel.replicate": _PARALLEL,
    "torch.nn.parallel.data_parallel": "use torch.nn.DataParallel on one device",
    "torch.nn.parallel.scatter": _COMBINE,
    "torch.nn.parallel.gather": _COMBINE,
    # Both names of a collective are replaced: torch.cuda.comm has those of torch.nn.parallel.comm.
    **{
        f"torch.{module}.{name}": _COMBINE
        for module, names in {
            "nn.parallel.comm": _COLLECTIVES,
            "cuda.comm": _COLLECTIVES,
            "cuda.nccl": ("all_gather", "all_reduce", "broadcast", "reduce", "reduce_scatter"),
        }.items()
        for name in names
    },
    "torch.cuda.nccl.version": _PARALLEL,
    **{
        f"torch.sparse_{kind}_tensor": _DENSE
        for kind in ("bsc", "bsr", "compressed", "coo", "csc", "csr")
    },
    **{f"torch.cuda.sparse.{name}Tensor": _DENSE for name in _SPARSE_TYPES},
    "torch.nested.nested_tensor": "use a list of tensors, or a padded tensor and a mask",
    "torch.nested.as_nested_tensor": "use a list of tensors, or a padded tensor and a mask",
    "torch.nested.nested_tensor_from_jagged": "use a list of tensors, or a padded tensor",
    "torch.export.export": "export the model on the CPU",
    "torch.jit.load": _LOADED,
    "torch.jit.RecursiveScriptModule.save": _SCRIPTED,
    "torch.jit.RecursiveScriptModule.save_to_buffer": _SCRIPTED,
    "torch.quantize_per_tensor": "use integer tensors and a scale of your own",
    "torch.quantize_per_channel": "use integer tensors and a scale of your own",
    "torch.quantize_per_tensor_dynamic": "use integer tensors and a scale of your own",
    "torch.Tensor.share_memory_": _PROCESSES,
    "torch.to_dlpack": _LIBRARIES,
    "torch.utils.dlpack.to_dlpack": _LIBRARIES,
}

# The same names by module or class, because looking one up takes time at each entering.
_NAMES: dict[str, list[tuple[str, str]]] = {}
for _name in UNSUPPORTED:
    _path, _, _last = _name.rpartition(".")
    _NAMES.setdefault(_path, []).append((_name, _last))

# Functions of PyTorch's C layer that only builds with CUDA have, by the beginning of their names,
# and what to use instead. Public functions call them.
_ONLY_WITH_CUDA: dict[str, str] = {
    "_cuda_tunableop_": "leave the choice of kernels to the model",
    "_cuda_record_untuned_": "leave the choice of kernels to the model",
    "_nccl_": _PARALLEL,
    **dict.fromkeys(("_broadcast", "_gather", "_reduce_add", "_scatter"), _COMBINE),
    **dict.fromkeys(("_cuda", "_Cuda", "_CUDA", "_cudnn", "_gds_"), _CUDA_GPU),
}

# Functions with these prefixes still work for tensors on the host.
_ON_DEVICE_ONLY = (
    *("torch.sparse_", "torch.nested.", "torch.export."),
    *("torch.quantize_", "torch.range", "torch.Tensor."),
    *("torch.jit.", "torch.to_dlpack", "torch.utils.dlpack."),
)


def replacements(machine: Machine) -> list[tuple[Any, dict[str, Any]]]:  # noqa: ARG001 # as every patch
    """Return a function that raises an error for each unsupported name, by module or class."""
    return _replacements(
        tuple((name, owner, last, getattr(owner, last, None)) for name, owner, last in _named())
    )


@lru_cache(maxsize=1)  # they are the same each time, until a program imports or replaces one
def _replacements(named: Iterable[tuple[str, Any, str, Any]]) -> list[tuple[Any, dict[str, Any]]]:
    replaced = []
    for name, owner, last, original in named:
        if original is None:
            continue  # not in this version of torch, or not imported
        # A class with __del__ is replaced as a whole: Python would call __del__ on an object whose
        # __init__ has raised. A class of C has no __init__ to replace.
        is_class = isinstance(original, type) and "__init__" in vars(original)
        if is_class and not hasattr(original, "__del__"):
            # Only __init__ is replaced, so that a program that imported the class before is
            # refused, too.
            replaced.append((original, {"__init__": _guard(name, vars(original)["__init__"])}))
            continue
        guarded = _guard(name, original)
        # torch.cuda re-exports many functions of its submodules, so both names are replaced.
        shown = vars(torch.cuda).get(last) is original
        owners = {id(owner): owner, **({id(torch.cuda): torch.cuda} if shown else {})}
        replaced += [(each, {last: guarded}) for each in owners.values()]
    # A build with CUDA has them, and they would look for a real GPU.
    tuning = {
        name: partial(_missing_from_c, name)
        for name in vars(C)
        if name.startswith("_cuda_tunableop_") and not name.endswith("is_enabled")
    }
    return [*replaced, (C, {**tuning, "__getattr__": _missing_from_c})]


def _missing_from_c(name: str, *_: object) -> Any:
    """Raise an error for a name that this build of PyTorch does not have, as Python calls it."""
    instead = next((text for start, text in _ONLY_WITH_CUDA.items() if name.startswith(start)), "")
    if not instead:
        raise AttributeError(f"module '{C.__name__}' has no attribute '{name}'")
    caller = sys._getframe(1)  # noqa: SLF001 # the documented way to read it
    module, function = str(caller.f_globals.get("__name__")), caller.f_code.co_qualname
    # The user has called the public function that needs the name.
    is_public = module.startswith("torch.") and not function.startswith(("_", "<"))
    shown = f"{module}.{function}" if is_public else f"{C.__name__}.{name}"
    raise NotModelledNameError(f"the virtual GPU has no model of {shown}; {instead}")


def unsupported_error(name: str, instead: str = "") -> NotModelledError:
    """Return the error for ``name``, with what to use instead (by default from the table)."""
    return NotModelledError(
        f"the virtual GPU has no model of {name}; {instead or UNSUPPORTED[name]}"
    )


def require_dense(tensor: torch.Tensor) -> None:
    """Raise an error for a host tensor that cannot be copied to the virtual GPU."""
    if tensor.is_nested:
        raise unsupported_error("nested tensors", UNSUPPORTED["torch.nested.nested_tensor"])
    if tensor.is_quantized:
        raise unsupported_error("quantized tensors", UNSUPPORTED["torch.quantize_per_tensor"])
    if tensor.layout is not torch.strided:
        raise unsupported_error(f"sparse tensors ({tensor.layout})", _DENSE)


def _named() -> Iterator[tuple[str, Any, str]]:
    """Yield each name with the module or class that has it, and with the name's last part.

    The module is None if it is not imported.
    """
    for path, names in _NAMES.items():
        owner: Any = torch
        if path == "torch.utils.cpp_extension" and path not in sys.modules:
            # Importing this module takes long.
            owner = None
        else:
            for part in path.split(".")[1:]:
                owner = getattr(owner, part, None)
        for name, last in names:
            yield name, owner, last


@cache  # the same function each time a virtual GPU is entered
def _guard(name: str, original: Any) -> Any:
    if name == "torch.distributed.init_process_group":
        return _refuse_if(name, original, _uses_nccl)
    if name == "torch.jit.load":
        return _refuse_if(
            name,
            original,
            lambda _file, to=None, *_, map_location=None, **__: str(map_location or to).startswith(
                "cuda"
            ),
        )
    if name == _WRAPPER:
        return _refuse_if(
            name, original, lambda _self, *args, **kwargs: _is_on_device(*args, **kwargs)
        )
    if name.startswith(_ON_DEVICE_ONLY):
        return _refuse_if(name, original, _is_on_device)
    return _refusing(name)


def _refusing(name: str) -> Callable[..., Any]:
    @ends_at_the_call
    def refused(*_args: object, **_kwargs: object) -> Any:
        raise unsupported_error(name)

    return refused


def _refuse_if(name: str, original: Any, is_refused: Callable[..., bool]) -> Any:
    @wraps(original)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        if is_refused(*args, **kwargs):
            raise unsupported_error(name)
        return original(*args, **kwargs)

    return guarded


def _uses_nccl(backend: str | None = None, *_args: object, **_kwargs: object) -> bool:
    # Without an argument PyTorch uses NCCL for tensors on a GPU.
    return backend is None or "nccl" in backend


def _is_on_device(*args: Any, device: Any = None, **kwargs: Any) -> bool:
    """Return whether a call has a virtual tensor, or a module with one, or makes one."""
    if device is not None:
        return torch.device(device).type == "cuda"
    arguments = [*args, *kwargs.values()]
    items = [
        item for arg in arguments for item in (arg if isinstance(arg, (list, tuple)) else [arg])
    ]
    modules = [item for item in items if isinstance(item, torch.nn.Module)]
    items += [tensor for module in modules for tensor in _tensors_of(module)]
    if any(isinstance(item, VirtualTensor) for item in items):
        return True
    has_tensors = bool(modules) or any(isinstance(item, torch.Tensor) for item in items)
    return not has_tensors and torch.get_default_device().type == "cuda"


def _tensors_of(module: torch.nn.Module) -> Iterator[torch.Tensor]:
    yield from module.parameters()
    yield from module.buffers()
    if isinstance(module, ScriptModule) and hasattr(module, "graph"):
        # torch.jit.freeze turns parameters into constants of the graph.
        graph: Any = module.inlined_graph
        for node in graph.findAllNodes("prim::Constant"):
            if node.hasAttribute("value") and node.kindOf("value") == "t":
                yield node.t("value")


def _refuse_sending(_tensor: VirtualTensor) -> Any:
    raise unsupported_error("memory shared by processes", _PROCESSES)


def _refuse_foreign(name: str) -> Callable[..., Any]:
    def refused(_self: VirtualTensor, *_args: object, **_kwargs: object) -> Any:
        raise unsupported_error(name, _LIBRARIES)

    return refused


# Other processes and libraries would use the addresses of the virtual GPU as real addresses.
ForkingPickler.register(VirtualTensor, _refuse_sending)
VirtualTensor.__cuda_array_interface__ = property(  # type: ignore[assignment, method-assign] # not the stub's
    _refuse_foreign("the CUDA array interface")
)
VirtualTensor.__dlpack__ = _refuse_foreign("DLPack")  # type: ignore[method-assign] # torch's would give host memory
