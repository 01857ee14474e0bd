"""Record what does not depend on a GPU's speed, to compare the virtual GPU with a real one."""

import contextlib
import json
from pathlib import Path

import gpulab
from benchmarks.common.environment import provenance
from benchmarks.fidelity.captures import captures
from benchmarks.fidelity.profiler_tables import tables


def write(path: Path, gpu: str = "", only: str = "") -> None:
    """Write the profiler's tables and the answers of captures as JSON.

    Parameters
    ----------
    path
        The file to write.
    gpu
        A virtual GPU's name; by default the CUDA GPU.
    only
        Record only tables whose names contain this; captures only without it.
    """
    with gpulab.virtual_gpu(gpu) if gpu else contextlib.nullcontext():
        answers = {"provenance": provenance(), "tables": tables(only)}
    if not only:
        answers["captures"] = captures(gpu)
    path.write_text(json.dumps(answers), "utf-8")
