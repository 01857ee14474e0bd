"""Take a recording of a GPU, real or virtual, write it, and read it again."""

import json
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import gpulab
from benchmarks.common.environment import clock_mhz
from benchmarks.fidelity.bench import Bench, at_most, real_bench, virtual_bench
from benchmarks.fidelity.catalogue import catalogue
from benchmarks.fidelity.facts import DEVICE_FACTS, HOST_FACTS, Fact
from benchmarks.fidelity.programs import Program, programs
from benchmarks.fidelity.readings import (
    Recording,
    device_of_program,
    device_of_workload,
    host_of_program,
    host_of_workload,
    provenance,
)
from benchmarks.fidelity.unseen import SEEDS
from benchmarks.fidelity.workload import Workload

SCHEMA = 1
_ITEM_LIMIT_S = 30.0
_KNOWN = ("family", "role", "dtype", "parameters")
_PARTS = ("facts", "programs", "workloads")
_NOTHING: Mapping[str, Any] = {}
_REAL = time.perf_counter  # the clock on the wall, also while the virtual one is entered

Bencher = Callable[[], Any]
Read = Callable[[Bench], Recording | Iterator[tuple[str, Any]]]


@dataclass(slots=True)
class Recorder:
    """Takes a recording, item by item, and writes it after each.

    Attributes
    ----------
    bench
        Gives the bench for one item, as a context.
    source
        ``"measured"`` or ``"virtual"``.
    only
        Part of the names that are wanted; empty for all.
    role
        The workloads that are wanted, and then nothing else; empty for everything.
    seeds
        Those of the draws; the last one's workloads are unseen.
    out
        Where the recording is written, or None.
    deadline_s
        When to begin nothing more, on the clock on the wall.
    """

    bench: Bencher
    source: str
    only: str = ""
    role: str = ""
    seeds: tuple[int, ...] = SEEDS
    out: Path | None = None
    deadline_s: float = float("inf")
    recording: Recording = field(default_factory=dict)

    def record(self) -> Recording:
        """Read everything twice: first all host times, then, with the profiler, all records."""
        with self.bench():
            self.recording.update(schema=SCHEMA, source=self.source, provenance=provenance())
        self._facts(HOST_FACTS)
        self._programs(host_of_program)
        self._workloads(host_of_workload)
        # What the profiler reads comes in order of worth, should the time run out.
        self._workloads(device_of_workload)
        self._programs(device_of_program)
        self._facts(DEVICE_FACTS)
        self.recording["sm_clock_after_mhz"] = clock_mhz()
        self._write()
        return self.recording

    def _facts(self, facts: tuple[Fact, ...]) -> None:
        for fact in () if self.role else facts:
            self._item("facts", fact.__name__, fact)

    def _programs(self, read: Callable[[Program, Bench], Recording]) -> None:
        for program in () if self.role else programs():
            self._item("programs", program.name, partial(read, program))

    def _workloads(self, read: Callable[[Workload, Bench], Recording]) -> None:
        workloads = [w for w in catalogue(self.seeds) if self.role in {"", w.role}]
        # So that neither heat nor a time limit falls on one family.
        random.Random(0).shuffle(workloads)  # noqa: S311 # an order, not a secret
        for workload in workloads:
            known = {key: getattr(workload, key) for key in _KNOWN}
            self._item("workloads", workload.name, partial(read, workload), known)

    def _item(self, part: str, name: str, read: Read, known: Mapping[str, Any] = _NOTHING) -> None:
        if self.only not in name:
            return
        entry = self.recording.setdefault(part, {}).setdefault(name, dict(known))
        if _REAL() > self.deadline_s:
            entry["failed"] = "no time was left"
            return
        start_s = _REAL()
        try:
            with at_most(_ITEM_LIMIT_S), self.bench() as bench:
                found = read(bench)
                for key, value in found.items() if isinstance(found, dict) else found:
                    entry[key] = value
        except Exception as error:  # noqa: BLE001 # whatever fails, the rest goes on
            entry["failed"] = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        print(f"{_REAL() - start_s:6.2f} s  {name}  {entry.get('failed', '')}", flush=True)
        self._write()

    def _write(self) -> None:
        if self.out is None:
            return
        fresh = self.out.with_suffix(".part")
        fresh.write_text(as_json(self.recording), "utf-8")
        fresh.replace(self.out)


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
    """Return recordings as one: the parts of the first, with the items of the others added."""
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
    """Return the one bench of the CUDA GPU in use."""
    bench = real_bench(quick=quick)
    return lambda: nullcontext(bench)


def virtual(name: str) -> Bencher:
    """Return benches of a virtual GPU, a fresh one each time."""

    @contextmanager
    def bench() -> Iterator[Bench]:
        with gpulab.virtual_gpu(name, first_use=False):
            yield virtual_bench()

    return bench


def chosen_of(recording: Recording, only: str, role: str) -> Recording:
    """Return a recording with the items alone whose name contains ``only``, of one role or all."""
    parts = {
        part: {
            name: item
            for name, item in recording.get(part, {}).items()
            if only in name and role in {"", item.get("role")}
        }
        for part in _PARTS
    }
    return recording | parts
