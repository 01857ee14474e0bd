"""Predict how long a workload takes on a GPU, by the plain roofline or by a refined model."""

from dataclasses import asdict, dataclass

from gpulab import device, gpus
from gpulab.core.errors import InvalidOptionError
from gpulab.core.foreign_text import one_line
from gpulab.core.requirements import NameOf, instance_of
from gpulab.core.torch_private import allows_tf32
from gpulab.core.units import format_time
from gpulab.gpus import GpuSpec, Roof, data_sheet
from gpulab.roofline._kernel_model import TimeBreakdown, predict_by_kernels
from gpulab.workloads import Workload, workload
from gpulab.workloads.sweeps import CACHES

MODELS = ("refined", "plain")


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedTime:
    """How long one call of a workload should take, and what should limit it.

    Attributes
    ----------
    workload, size, dtype, cache
        What the prediction is for; the plain model ignores the cache.
    model
        ``"plain"`` or ``"refined"``.
    device_name
        The GPU, as its driver reports it; empty if a roof was given.
    duration_s
        Seconds from the start of the first kernel to the end of the last, as ``measure`` times by
        default. It does not include the launch by the host.
    bound
        The part that takes most of the time: ``"compute"``, ``"memory"``, ``"L2"`` or
        ``"launch"``.
    compute_s, memory_s, launch_s
        Seconds for the arithmetic, for moving the bytes, and for floors, latencies and pauses
        between kernels. The first two overlap, so only the longer one counts.
    flops, size_bytes
        Least number of operations and bytes of the workload.
    arithmetic
        Type in which it computes: ``"tf32"`` if float32 may be rounded to it.
    basis
        Where the limits come from.

    Examples
    --------
    >>> from gpulab.roofline import predict
    >>> print(predict("add", 2**20, gpu="H200", model="plain"))
    add n=1048576 float32: 2.62 µs predicted for NVIDIA H200 (plain model, cold cache), bound by \
memory
    """

    workload: str
    size: int
    dtype: str
    cache: str
    model: str
    device_name: str
    duration_s: float
    bound: str
    compute_s: float
    memory_s: float
    launch_s: float
    flops: int
    size_bytes: int
    arithmetic: str
    basis: str

    def __str__(self) -> str:
        where = self.device_name or "a GPU of these limits"
        duration = format_time(self.duration_s)
        return one_line(
            f"{self.workload} n={self.size} {self.dtype}: {duration} predicted for {where} "
            f"({self.model} model, {self.cache} cache), bound by {self.bound}"
        )

    @property
    def intensity(self) -> float:
        """Arithmetic intensity, in FLOP/byte; 0 for work that only moves data."""
        return self.flops / self.size_bytes


def predict(  # noqa: PLR0913 # what is timed, where, and how it is computed
    name: str,
    size: int,
    dtype: str = "float32",
    gpu: str | GpuSpec | Roof | None = None,
    *,
    model: str = "refined",
    cache: str = "cold",
) -> PredictedTime:
    """Return how long one call of a workload should take on a GPU.

    The plain model is the roofline of textbooks: FLOPs over the peak or bytes over the bandwidth,
    whichever is longer. The refined model is that of the virtual GPU. It includes the kernels that
    the call launches, their tiles and waves, what the cache serves, floors, and a correction by
    kind and size of the call that was fitted to a real GPU (``docs/fidelity.md`` has its errors).
    Both assume the clock of a short burst.

    Parameters
    ----------
    name, size, dtype
        A workload of :data:`gpulab.workloads.WORKLOADS`, its size, and one of its types.
    gpu
        A name from :func:`gpulab.gpus.names`, a driver's name, a ``GpuSpec``, or None for the GPU
        in use. A ``Roof``, such as ``measure_ceilings().measured``, gives the plain model other
        limits than those of the data sheet.
    model
        ``"refined"`` or ``"plain"``.
    cache
        ``"cold"``: all data come from memory. ``"hot"``: the cache contains data of the previous
        call.

    Raises
    ------
    UnknownNameError
        If there is no workload, type, GPU, model or cache state of that name.
    InvalidOptionError
        If the size is below 1 or does not fit into the memory of the GPU, if the GPU in use has no
        data sheet, or if you pass a roof to the refined model.

    Examples
    --------
    >>> time = predict("matmul", 4096, "float16", "A100", model="plain")
    >>> time.bound, f"{time.duration_s * 1e3:.2f} ms", f"{time.intensity:.0f} FLOP/byte"
    ('compute', '0.44 ms', '1365 FLOP/byte')
    """
    NameOf("model", MODELS).check(model=model)
    NameOf("cache state", CACHES).check(cache=cache)
    work = workload(name)
    # The counts come first: they raise with a clear message for a wrong size or type.
    flops, size_bytes = work.flops(size), work.bytes(size, dtype)
    arithmetic = arithmetic_of(work, size, dtype)
    on = gpu if isinstance(gpu, Roof) else spec_of(gpu)
    if isinstance(on, GpuSpec) and model == "refined":
        parts = predict_by_kernels(name, size, dtype, on, cache)
        basis = f"the virtual GPU's model, {on.basis}"
    else:
        roof = _plain_roof(on, model)
        parts = _plain(roof, flops, size_bytes, arithmetic)
        basis = f"{roof.basis}: {roof.detail}" if roof.detail else roof.basis
    return PredictedTime(
        workload=name,
        size=size,
        dtype=dtype,
        cache=cache,
        model=model,
        device_name="" if isinstance(on, Roof) else on.driver_name,
        flops=flops,
        size_bytes=size_bytes,
        arithmetic=arithmetic,
        basis=basis,
        **asdict(parts),
    )


def _plain(roof: Roof, flops: int, size_bytes: int, arithmetic: str) -> TimeBreakdown:
    # Work without FLOPs needs no peak; a measured roof may have none for its type.
    compute_s = roof.compute_s(flops, arithmetic) if flops else 0.0
    memory_s = roof.memory_s(size_bytes)
    bound = "compute" if compute_s > memory_s else "memory"
    return TimeBreakdown(max(compute_s, memory_s), compute_s, memory_s, 0.0, bound)


def _plain_roof(spec: GpuSpec | Roof, model: str) -> Roof:
    if not isinstance(spec, Roof):
        return data_sheet(spec)
    if model != "plain":
        raise InvalidOptionError(
            f"gpu is a roof ({spec.basis}) and model={model!r}; the refined model needs the GPU "
            'itself: give its name, or use model="plain"'
        )
    return spec


_GPU = instance_of(str, "the name of a GPU, a GpuSpec, a Roof, or None for the GPU in use")


def spec_of(gpu: str | GpuSpec | None) -> GpuSpec:
    """Return the data sheet of a GPU by its short name or the driver's, or of the GPU in use.

    Raises `UnknownNameError` for an unknown name, `InvalidOptionError` if the GPU in use has none.
    """
    if isinstance(gpu, GpuSpec):
        return gpu
    if gpu is not None:
        _GPU.check(gpu=gpu)
        # The driver's names are tried first, so that an error lists the short names.
        return gpus.by_driver_name(gpu) or gpus.gpu(gpu)
    in_use = device.current().name
    spec = gpus.by_driver_name(in_use)
    if spec is None:
        raise InvalidOptionError(
            f"{gpus.why_unknown(in_use)}; predict with those: "
            'predict(..., gpu=measure_ceilings().measured, model="plain")'
        )
    return spec


def arithmetic_of(work: Workload, size: int, dtype: str) -> str:
    """Return the type in which a workload computes, given torch's two switches for TF32."""
    # By default PyTorch allows TF32 for convolutions and not for matmuls.
    allowed = {"matmul": allows_tf32("matmul"), "cudnn": allows_tf32("conv")}
    is_rounded = dtype == "float32" and allowed.get(work.problem(size).tensor_cores, False)
    return "tf32" if is_rounded else dtype
