"""Interrupt a program, use the same GPU again, and compare with an uninterrupted one."""

import math
import random
import time
import warnings
from collections import Counter
from collections.abc import Callable
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
    """Interrupts a target on a virtual or a CUDA GPU, with one kind of interrupt.

    It ends with the first interrupt after which something has changed: what comes later might be
    its consequence. So each target gets a process of its own.

    Attributes
    ----------
    kind
        The kind of interrupt.
    end_s
        The moment of ``time.monotonic()`` after which no interrupt begins.
    """

    def __init__(self, *, kind: str, device: str = "virtual") -> None:
        self.kind = kind
        self.end_s = math.inf
        self._is_virtual = device == "virtual"
        self._gpu: VirtualGpu | None = None
        if self._is_virtual:
            self._gpu = gpulab.virtual_gpu("H200", first_use=False)
            for each in self._gpu.machine.gpus:
                each.device.regime.has_clock_rights = True
        with self._entered():
            condition.use()  # fills the caches of torch
            condition.spin_ms()
            self._expected = condition.use()
            if self._is_virtual:  # a CUDA GPU may be shared with other processes
                self._spin_ms = condition.spin_ms()
        self._names = condition.names()
        self._settings = condition.settings()

    def points(self, name: str, n: int, seed: int) -> Outcome:
        """Interrupt ``n`` random calls of a program on the GPU, or of a notebook's cells."""
        if name in notebook_programs():
            set_up_notebook()
            use_in_notebook()
            outcome = self._points(name, notebook_programs()[name], n, seed, in_notebook=True)
            leave_notebook()
            return outcome
        program = programs()[name]

        def run() -> None:
            with self._entered():
                program()

        return self._points(name, run, n, seed)

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
        if real_clocks.monotonic() >= self.end_s:
            return outcome
        for _ in range(2):
            count = Tracer()
            count.run(run)
        self._names = condition.names()
        for _ in range(n):
            if outcome.n_failed or real_clocks.monotonic() >= self.end_s:
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


def _comes_of(error: BaseException | None, kinds: tuple[type[BaseException], ...]) -> bool:
    while error is not None:
        if isinstance(error, kinds):
            return True
        error = error.__cause__ or error.__context__
    return False


def interrupted(  # noqa: PLR0913, PLR0917 # a process pool passes them by position
    kind: str, device: str, end_s: float, name: str, n: int, seed: int
) -> Outcome:
    """Return the results of one target, in a process that is its own."""
    warnings.simplefilter("ignore")  # measurements warn of the tracer
    campaign = Campaign(kind=kind, device=device)
    campaign.end_s = end_s
    return campaign.points(name, n, seed)
