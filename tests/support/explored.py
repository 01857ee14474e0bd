"""Times from a formula instead of measurements, for the tests of the explorers."""

from pathlib import Path

from gpulab.gpus import Roof
from gpulab.roofline import Ceilings
from gpulab.workloads import workload
from gpulab.workloads.recordings import Recording, save
from gpulab.workloads.sweeps import Point, Task

CPU, GPU = "a CPU", "NVIDIA H200"
_FIXED_S = {"cpu": 2e-6, "gpu": 1e-5}
_BYTES_PER_S = {"cpu": 4e10, "gpu": 4e12}


def formula(task: Task) -> Point:
    """Return the point of a task: a fixed time, and a time for each byte."""
    size_bytes = workload(task.workload).bytes(task.size, task.dtype)
    time_s = _FIXED_S[task.on] + size_bytes / _BYTES_PER_S[task.on] / (task.n_threads or 1)
    time_s += 1e-5 if task.transfers != "none" else 0.0
    name = CPU if task.on == "cpu" else GPU
    interval = {"low_s": 0.99 * time_s, "high_s": 1.01 * time_s}
    return Point(task, median_s=time_s, **interval, n_samples=9, device_name=name)


def take(step: object) -> Point | Ceilings:
    """Return the result of a step of an explorer: a point or the ceilings."""
    if isinstance(step, Task):
        return formula(step)
    roof = Roof("measured", {"float32": 5e13, "tf32": 4e14}, 4e12, 6e12, 1e-6)
    return Ceilings(GPU, "measured", (roof,))


def points(name: str, *, n_threads: tuple[int, ...] = (1,)) -> tuple[Point, ...]:
    """Return points of the CPU and the GPU for a crossover, at the catalogue's sizes."""
    sizes = workload(name).sizes
    cpu = [Task(name, size, on="cpu", n_threads=n) for n in n_threads for size in sizes]
    gpu = [Task(name, size, cache="hot", method="synchronized") for size in sizes]
    return tuple(map(formula, [*cpu, *gpu]))


def recording(found: tuple[Point, ...], folder: Path) -> str:
    """Write points as a recording, and return the path of the file."""
    provenance = {"gpu": GPU, "cpu": CPU, "source": "measured", "taken_at": "2026-11-21"}
    return str(save(Recording("mine", provenance, found), folder / "mine.jsonl"))
