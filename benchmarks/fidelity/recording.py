"""Record a GPU, real or virtual, write the recording, and read it."""

import json
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import gpulab
from benchmarks.common.environment import clock_mhz
from benchmarks.fidelity.bench import Bench, at_most, real_bench, virtual_bench
from benchmarks.fidelity.programs import Program, programs
from benchmarks.fidelity.readings import (
    Recording,
    device_of_program,
    device_of_workload,
    host_of_program,
    host_of_workload,
    provenance,
)
from benchmarks.fidelity.workload import Workload
from gpulab.core.errors import NoValuesError

SCHEMA = 1
_ITEM_LIMIT_S = 30.0
_KNOWN = ("family", "role", "dtype", "parameters")
_PARTS = ("programs", "workloads")
_NOTHING: Mapping[str, Any] = {}
_REAL = time.perf_counter  # bound here, so that it stays the real clock on the virtual GPU

Bencher = Callable[[], Any]
Read = Callable[[Bench], Recording | Iterator[tuple[str, Any]]]


@dataclass(slots=True)
class Recorder:
    """Records a GPU item by item, and writes the file after each.

    Attributes
    ----------
    workloads
        What to time, beside the programs.
    bench
        Returns the bench for one item, as a context.
    quick_bench
        A bench that is tried first for workloads: a virtual GPU without values, which takes a
        fraction of the time. The few workloads that need values are read again by ``bench``.
    source
        ``"measured"`` or ``"virtual"``.
    only
        Record only names that contain this; empty for all.
    role
        Record only the workloads of this role, and no programs; empty for everything.
    out
        File of the recording, or None to write none.
    deadline_s
        Time by the real clock after which nothing more is started.
    """

    workloads: Sequence[Workload]
    bench: Bencher
    source: str
    only: str = ""
    role: str = ""
    out: Path | None = None
    deadline_s: float = float("inf")
    quick_bench: Bencher | None = None
    recording: Recording = field(default_factory=dict)

    def record(self) -> Recording:
        """Time everything twice: first all host times, then, with the profiler, all records."""
        with self.bench():
            self.recording.update(schema=SCHEMA, source=self.source, provenance=provenance())
        # In this order: where CUPTI cannot be removed, every launch after the first session of the
        # profiler takes longer (docs/floor.md).
        self._programs(host_of_program)
        self._workloads(host_of_workload)
        # With the profiler, the most important comes first, as the time may run out.
        self._workloads(device_of_workload)
        self._programs(device_of_program)
        self.recording["sm_clock_after_mhz"] = clock_mhz()
        self._write()
        return self.recording

    def _programs(self, read: Callable[[Program, Bench], Recording]) -> None:
        for program in () if self.role else programs():
            self._item("programs", program.name, partial(read, program))

    def _workloads(self, read: Callable[[Workload, Bench], Recording]) -> None:
        workloads = [w for w in self.workloads if self.role in {"", w.role}]
        # Shuffled, so that neither heat nor the time limit hits one family alone.
        random.Random(0).shuffle(workloads)  # noqa: S311 # an order, not a secret
        for workload in workloads:
            known = {key: getattr(workload, key) for key in _KNOWN}
            self._item(
                "workloads", workload.name, partial(read, workload), known, self.quick_bench
            )

    def _item(
        self,
        part: str,
        name: str,
        read: Read,
        known: Mapping[str, Any] = _NOTHING,
        quick_bench: Bencher | None = None,
    ) -> None:
        if self.only not in name:
            return
        entry = self.recording.setdefault(part, {}).setdefault(name, dict(known))
        if _REAL() > self.deadline_s:
            entry["failed"] = "no time was left"
            return
        start_s = _REAL()
        try:
            with at_most(_ITEM_LIMIT_S):
                try:
                    _read_into(entry, read, quick_bench or self.bench)
                except NoValuesError:
                    _read_into(entry, read, self.bench)
        except Exception as error:  # noqa: BLE001 # whatever fails, the rest goes on
            entry["failed"] = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        print(f"{_REAL() - start_s:6.2f} s  {name}  {entry.get('failed', '')}", flush=True)
        self._write()

    def _write(self) -> None:
        if self.out is None:
            return
        fresh = self.out.with_suffix(".part")
        fresh.write_text(as_json(self.recording), "utf-8")
        # Renamed when it is complete: a run that is ended leaves the last whole file.
        fresh.replace(self.out)


def _read_into(entry: Recording, read: Read, bench: Bencher) -> None:
    with bench() as given:
        found = read(given)
        # One by one, so that an error leaves what was read before it.
        for key, value in found.items() if isinstance(found, dict) else found:
            entry[key] = value


def as_json(recording: Recording) -> str:
    """Return a recording as JSON with a line for each item, so that changes can be read."""
    lines = []
    for part, value in recording.items():
        if part in _PARTS:
            items = [f"  {json.dumps(name)}: {json.dumps(item)}" for name, item in value.items()]
            text = "{\n" + ",\n".join(items) + "\n }"
        else:
            text = json.dumps(value)
        lines.append(f" {json.dumps(part)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def read(paths: list[Path]) -> Recording:
    """Return several recordings as one: the first, with the items of the others added."""
    first, *others = (json.loads(path.read_text("utf-8")) for path in paths)
    for other in others:
        for part in _PARTS:
            first.setdefault(part, {}).update(other.get(part, {}))
    first["origins"] = [
        {"path": path.name, **found["provenance"]}
        for path, found in zip(paths, (first, *others), strict=True)
    ]
    return dict(first)


def real(*, quick: bool) -> Bencher:
    """Return a function that returns the bench of the CUDA GPU in use."""
    bench = real_bench(quick=quick)
    return lambda: nullcontext(bench)


def virtual(name: str, **limits: int) -> Bencher:
    """Return a function that enters a fresh virtual GPU each time and returns its bench.

    Parameters
    ----------
    name
        The short name of the GPU.
    limits
        Options of ``gpulab.virtual_gpu`` that limit which tensors have values.
    """

    @contextmanager
    def bench() -> Iterator[Bench]:
        with gpulab.virtual_gpu(name, first_use=False, **limits):
            yield virtual_bench()

    return bench


def chosen_of(recording: Recording, only: str, role: str) -> Recording:
    """Return a recording with only the items whose name contains ``only``, of one role or all."""
    parts = {
        part: {
            name: item
            for name, item in recording.get(part, {}).items()
            if only in name and role in {"", item.get("role")}
        }
        for part in _PARTS
    }
    return recording | parts
