"""Interrupt a program, use the same GPU again, and compare with an uninterrupted one."""

import math
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import gpulab
from benchmarks.common import real_clocks
from benchmarks.interrupts import condition
from benchmarks.interrupts.injection import INJECTED, Injector, Tracer
from benchmarks.interrupts.targets import (
    leave_notebook,
    notebook_programs,
    programs,
    set_up_notebook,
    use_in_notebook,
)

if TYPE_CHECKING:
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

    def add(self, injector: Injector, faults: list[str]) -> None:
        """Count one strike."""
        self.n += 1
        self.n_failed += bool(faults)
        self.faults.update(faults)
        self.worst_wait_s = max([self.worst_wait_s, *injector.waits_s])


class Campaign:
    """Interrupts targets on a virtual or a CUDA GPU, with one kind of interrupt.

    Attributes
    ----------
    kind
        The kind of interrupt.
    end_s
        The moment of ``time.monotonic()`` after which no interrupt begins.
    is_beyond_repair
        Whether an interrupt has left a process in which no GPU can be used; then it stops.
    """

    def __init__(self, *, kind: str, device: str = "virtual") -> None:
        self.kind = kind
        self.end_s = math.inf
        self.is_beyond_repair = False
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
        for _ in range(2):
            count = Tracer()
            count.run(run)
        self._names = condition.names()
        for _ in range(n):
            if self.is_beyond_repair or real_clocks.monotonic() >= self.end_s:
                break
            self._strike(outcome, run, generator.randrange(count.n), in_notebook=in_notebook)
        return outcome

    def _strike(
        self, outcome: Outcome, run: Callable[[], Any], at: int, *, in_notebook: bool
    ) -> None:
        injector = Injector(self.kind)
        faults = []
        with injector.listening():
            settings = condition.settings()
            try:
                Tracer(injector, at=at).run(run)
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
        outcome.add(injector, faults)
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


def rows(outcomes: Iterable[Outcome]) -> list[tuple[str, str, str, str]]:
    """Return the rows of the table: target, strikes, failures, longest wait."""
    return [
        (each.name, f"{each.n:,}", f"{each.n_failed:,}", f"{1e3 * each.worst_wait_s:.1f} ms")
        for each in outcomes
    ]
