"""Interrupt gpulab at random calls, use the same GPU again, and see that nothing has changed.

``GPULAB_STRIKES=50`` interrupts each program 50 times, and not only three of them four times.
"""

import os
import random
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import pytest
import torch

import gpulab
from tests.support import condition, injection
from tests.support.injection import INJECTED, KINDS, Injector, Tracer
from tests.support.interrupted_programs import (
    leave_notebook,
    notebook_programs,
    programs,
    set_up_notebook,
    use_in_notebook,
)

if TYPE_CHECKING:
    from gpulab.virtual import VirtualGpu

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::UserWarning"),  # measurements warn of the tracer
]

_RISE_S = 2.0  # until a clock is back at its highest after a lock
N_STRIKES = int(os.environ.get("GPULAB_STRIKES", "0"))
NAMES = [*programs(), *notebook_programs()] if N_STRIKES else ["streams", "graphs", "measure"]

NO_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
CUDA = pytest.param("cuda", marks=[pytest.mark.gpu, NO_GPU])


class Campaign:
    """Interrupts programs on a virtual or a CUDA GPU, with one kind of interrupt."""

    def __init__(self, *, kind: str, device: str = "virtual") -> None:
        self.kind = kind
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

    def faults(self, name: str, n: int) -> tuple[int, list[str]]:
        """Interrupt ``n`` random calls of a program on the GPU, or of a notebook's cells.

        Returns how many interrupts came, and the faults after the last one. It ends with the first
        interrupt after which something has changed: what comes later might be its consequence.
        """
        if name in notebook_programs():
            set_up_notebook()
            use_in_notebook()
            found = self._faults(name, notebook_programs()[name], n, in_notebook=True)
            leave_notebook()
            return found
        program = programs()[name]

        def run() -> None:
            with self._entered():
                program()

        return self._faults(name, run, n)

    def _faults(
        self, name: str, run: Callable[[], Any], n: int, *, in_notebook: bool = False
    ) -> tuple[int, list[str]]:
        # A seed for each program, so that a new program does not change the moments of the others.
        generator = random.Random(f"{name} 1")
        for _ in range(2):
            count = Tracer()
            count.run(run)
        self._names = condition.names()
        n_struck = 0
        for _ in range(n):
            injector = Injector(self.kind)
            at = generator.randrange(count.n)
            faults = self._strike(injector, run, at, in_notebook=in_notebook)
            n_struck += injector.is_done  # else the program took another way this time
            if faults:
                return n_struck, faults
        return n_struck, []

    def _strike(
        self, injector: Injector, run: Callable[[], Any], at: int, *, in_notebook: bool
    ) -> list[str]:
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
        return faults + self._use_again(in_notebook=in_notebook)

    def _use_again(self, *, in_notebook: bool) -> list[str]:
        faults = []
        try:
            if in_notebook:
                left, results = use_in_notebook()
                faults += left + condition.differences(results, self._expected)
            with self._entered():
                faults += condition.left_on(self._gpu)
                faults += condition.differences(condition.use(), self._expected)
                if self._is_virtual:
                    faults += self._slower_clock()
            faults += condition.changes(self._names, self._settings)
        except Exception as error:  # noqa: BLE001 # every error is a fault
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


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for a handler as long as it needs: on a busy machine a late one is no fault."""
    monkeypatch.setattr(injection, "_PATIENCE_S", 3600)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("device", ["virtual", CUDA])
def test_nothing_is_left_behind(kind: str, device: str) -> None:
    """After interrupts, contexts are closed and the GPU computes as an undisturbed one does."""
    campaign = Campaign(kind=kind, device=device)
    n_each = N_STRIKES or 4
    names = [name for name in NAMES if device == "virtual" or name in programs()]
    found = {name: campaign.faults(name, n_each) for name in names}
    assert {name: faults for name, (_, faults) in found.items() if faults} == {}
    assert all(n_struck >= 0.75 * n_each for n_struck, _ in found.values())


def test_what_a_strike_has_left_is_its_last_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names and settings that a program leaves are faults, and no interrupt follows."""
    n_runs = 0

    def leave_much() -> None:
        nonlocal n_runs
        n_runs += 1
        if n_runs == 3:  # after two that count the calls
            monkeypatch.setattr(torch, "sinc", torch.ones)
            torch.set_num_threads(n_threads + 1)
        torch.ones(3, device="cuda").add_(1)

    monkeypatch.setattr(f"{__name__}.programs", lambda: {"leaves": leave_much})
    n_threads = torch.get_num_threads()
    n_struck, faults = Campaign(kind="interrupt").faults("leaves", 4)
    torch.set_num_threads(n_threads)
    assert n_struck == 1
    assert "torch.sinc is replaced" in faults
    assert f"threads: {n_threads + 1}, not {n_threads}" in faults
