"""Interrupt a program, use the same GPU again, and compare with an uninterrupted one."""

import math
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import gpulab
from benchmarks.common import real_clocks
from benchmarks.interrupts import condition
from benchmarks.interrupts.injection import INJECTED, Injector, Place, Tracer, can_fail
from benchmarks.interrupts.targets import (
    contexts,
    leave_notebook,
    notebook_programs,
    programs,
    set_up_notebook,
    use_in_notebook,
)
from gpulab.virtual import VirtualGpu

_RISE_S = 2.0  # until a clock is back at its highest after a lock


@dataclass
class Outcome:
    """The results of one target.

    Attributes
    ----------
    n, n_failed
        Number of interrupts ("strikes"), and of those after which something had changed.
    worst_wait_s
        The longest time from a signal to its handler.
    faults
        The faults found, with their counts.
    """

    name: str
    n: int = 0
    n_failed: int = 0
    worst_wait_s: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)

    def merge(self, other: "Outcome") -> None:
        """Add the strikes of another process on the same target."""
        self.n += other.n
        self.n_failed += other.n_failed
        self.worst_wait_s = max(self.worst_wait_s, other.worst_wait_s)
        self.faults.update(other.faults)

    def add(self, injector: Injector, faults: list[str]) -> None:
        """Count one strike."""
        self.n += 1
        self.n_failed += bool(faults)
        self.faults.update(faults)
        self.worst_wait_s = max([self.worst_wait_s, *injector.waits_s])


class Campaign:
    """Interrupts targets on a virtual or a CUDA GPU, with one kind of interrupt.

    Calls ``found`` with the outcome of each single strike.

    Attributes
    ----------
    kind
        The kind of interrupt.
    end_s
        The moment of ``time.monotonic()`` after which no interrupt begins.
    is_beyond_repair
        Whether an interrupt has left a process in which no GPU can be used; then it stops.
    """

    def __init__(
        self,
        *,
        kind: str,
        device: str = "virtual",
        found: Callable[[Outcome], object] = lambda _: None,
    ) -> None:
        self.kind = kind
        self.end_s = math.inf
        self.is_beyond_repair = False
        self._found = found
        self._is_virtual = device == "virtual"
        self._gpu: VirtualGpu | None = None
        self._new_gpu()
        with self._entered():
            condition.use()  # fills the caches of torch
            condition.spin_ms()
            self._expected = condition.use()
            if self._is_virtual:  # a CUDA GPU may be shared with other processes
                self._spin_ms = condition.spin_ms()
        self._names = condition.names()
        self._settings = condition.settings()

    def boundaries(self, name: str, *, step: int = 1, start: int = 0) -> Outcome:
        """Interrupt at every bytecode of a context's beginning and end, in gpulab's modules.

        Each instruction is interrupted the first and the last time that it runs.

        Parameters
        ----------
        name
            The context.
        step, start
            Interrupt only at every ``step``-th of them, from number ``start`` on, in an order that
            is random but the same each time.
        """
        outcome = Outcome(name)

        def enter_and_leave() -> None:
            make, is_inside = contexts(self.gpu)[name]
            with self._entered() if is_inside else nullcontext(), make():
                pass

        for _ in range(3):  # until lazy imports are done and every cache is filled
            count = Tracer(None, by="bytecodes", only_ours=True)
            count.run(enter_and_leave)
        self._names = condition.names()
        # A loop runs the same instruction many times; its first and its last time are where it
        # differs. They are counted for each instruction by itself, because an interrupt may empty
        # a cache, and the next run then takes more instructions.
        times = Counter(count.places)
        chosen = [(place, at) for place, n in times.items() for at in sorted({0, n - 1})]
        if self.kind == "memory":
            chosen = [(place, at) for place, at in chosen if can_fail(place)]
        # In a random order, the same in each process: a campaign that is stopped early has then
        # tried a fair sample.
        random.Random(name).shuffle(chosen)  # noqa: S311 # no secret
        for place, at in chosen[start::step]:
            if self.is_beyond_repair or real_clocks.monotonic() >= self.end_s:
                break
            tracer = {"at": at, "place": place, "by": "bytecodes", "only_ours": True}
            self._strike(outcome, enter_and_leave, tracer)
        return outcome

    def points(self, name: str, n: int, seed: int) -> Outcome:
        """Interrupt ``n`` random calls of a program that runs on the GPU."""
        program = programs()[name]

        def run() -> None:
            with self._entered():
                program()

        return self._points(name, run, n, seed)

    def notebook_points(self, name: str, n: int, seed: int) -> Outcome:
        """Interrupt ``n`` random calls of a notebook's cells."""
        program = notebook_programs()[name]
        set_up_notebook()
        use_in_notebook()
        outcome = self._points(name, program, n, seed, in_notebook=True)
        leave_notebook()
        return outcome

    def _points(
        self,
        name: str,
        run: Callable[[], Any],
        n: int,
        seed: int,
        *,
        in_notebook: bool = False,
    ) -> Outcome:
        outcome = Outcome(name)
        # A seed for each program, so that a new program does not change the moments of the others.
        generator = random.Random(f"{name} {seed}")  # noqa: S311 # no secret
        if self.is_beyond_repair or real_clocks.monotonic() >= self.end_s:
            return outcome
        only_ours = self.kind == "memory"  # other libraries promise nothing after one
        for _ in range(2):
            count = Tracer(None, by="calls", only_ours=only_ours)
            count.run(run)
        self._names = condition.names()
        for _ in range(n):
            if self.is_beyond_repair or real_clocks.monotonic() >= self.end_s:
                break
            tracer = {"at": generator.randrange(count.n), "by": "calls", "only_ours": only_ours}
            self._strike(outcome, run, tracer, in_notebook=in_notebook)
        return outcome

    def _strike(
        self,
        outcome: Outcome,
        run: Callable[[], Any],
        tracer: dict[str, Any],
        *,
        in_notebook: bool = False,
    ) -> None:
        injector = Injector(self.kind)
        faults = []
        with injector.listening():
            settings = condition.settings()
            try:
                Tracer(injector, **tracer).run(run)
                injector.settle()
            except INJECTED:
                pass
            except BaseException as error:  # noqa: BLE001 # the program may turn it into another error
                if not _comes_of(error, INJECTED):
                    faults.append(f"it ended with {type(error).__name__}: {error}")
            try:
                if not injector.settle():
                    faults.append("the signal was never heard")
            except INJECTED:
                pass
            if not in_notebook:  # IPython catches the error, and its next cell cleans up
                faults += condition.changes(self._names, settings)
        faults += self._use_again(in_notebook=in_notebook)
        if not injector.is_done and not faults:
            return  # the program took another way this time
        where = f" [{_named(tracer['place'])}]" if "place" in tracer else ""
        single = Outcome(outcome.name)
        single.add(injector, [f"{fault}{where}" for fault in faults])
        outcome.merge(single)
        self._found(single)
        if faults:
            self._recover()
            if in_notebook:
                set_up_notebook()

    def _use_again(self, *, in_notebook: bool) -> list[str]:
        faults = []
        try:
            if in_notebook:
                left, found = use_in_notebook()
                faults += left + condition.differences(found, self._expected)
            with self._entered():
                faults += condition.left_on(self._gpu)
                faults += condition.differences(condition.use(), self._expected)
                if self._is_virtual:
                    faults += self._slower_clock()
            faults += condition.changes(self._names, self._settings)
        except Exception as error:  # noqa: BLE001 # every error is a fault that is counted
            faults.append(f"using it again: {type(error).__name__}: {error}"[:200])
        return faults

    def _slower_clock(self) -> list[str]:
        """Return whether a lock of the clock is left, by the duration of a fixed kernel."""
        time.sleep(_RISE_S)  # virtual time, in which the clock rises again
        spin_ms = condition.spin_ms()
        if condition.is_close(spin_ms, self._spin_ms):
            return []
        return [f"a spin takes {spin_ms} ms, not {self._spin_ms}"]

    def _entered(self) -> AbstractContextManager[object]:
        return nullcontext() if self._gpu is None else self._gpu

    @property
    def gpu(self) -> VirtualGpu:
        """The virtual GPU that is interrupted."""
        if self._gpu is None:
            raise SystemExit("the bytecodes of contexts are struck on the virtual GPU alone")
        return self._gpu

    def _new_gpu(self) -> None:
        if self._is_virtual:
            self._gpu = gpulab.virtual_gpu("H200", first_use=False)
            for each in self._gpu.machine.gpus:
                each.device.regime.has_clock_rights = True

    def _recover(self) -> None:
        """Restore everything that was found changed, so that one fault is counted only once."""
        from gpulab.virtual import entered

        try:
            for _ in range(10):
                left = entered()
                if left is None:
                    break
                left.__exit__(None, None, None)
            condition.put_back(self._names, self._settings)
            self._new_gpu()
            with self._entered():
                condition.use()
                condition.spin_ms()
        except Exception:  # noqa: BLE001 # whatever it is, nothing more can be learned here
            self.is_beyond_repair = True


def _comes_of(error: BaseException | None, kinds: tuple[type[BaseException], ...]) -> bool:
    while error is not None:
        if isinstance(error, kinds):
            return True
        error = error.__cause__ or error.__context__
    return False


def _named(place: Place) -> str:
    code, index = place
    lines = [line for start, end, line in code.co_lines() if start <= index < end]
    return f"{code.co_filename.rpartition('gpulab/')[2]}:{lines[0] if lines else 0}"


def rows(outcomes: Iterable[Outcome]) -> list[tuple[str, str, str, str]]:
    """Return the rows of the table: target, strikes, failures, longest wait."""
    return [
        (each.name, f"{each.n:,}", f"{each.n_failed:,}", f"{1e3 * each.worst_wait_s:.1f} ms")
        for each in outcomes
    ]
