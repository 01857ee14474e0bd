"""The self-check of ``gpulab doctor`` passes here and finds broken parts."""

import pytest

import gpulab
from gpulab.virtual import _self_check as self_check


def test_everything_passes_here() -> None:
    """No check fails with the torch of the tests."""
    with gpulab.virtual_gpu("H200"):
        assert self_check.failures() == {}


@pytest.mark.parametrize("name", self_check.CHECKS)
def test_each_check_can_fail(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check that gives a wrong result, or raises, is reported by name."""

    def fail() -> bool:
        raise KeyError(name)

    with gpulab.virtual_gpu("H200"):
        monkeypatch.setitem(self_check.CHECKS, name, lambda: False)
        assert self_check.failures() == {name: "gave a wrong result"}
        monkeypatch.setitem(self_check.CHECKS, name, fail)
        assert self_check.failures() == {name: f"KeyError: '{name}'"}


def test_a_broken_part_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device that waits in every launch fails the checks of asynchrony and streams."""
    from gpulab.virtual import Machine

    launch = Machine.launch

    def launch_and_wait(machine: Machine, *args: object) -> object:
        task = launch(machine, *args)  # type: ignore[arg-type] # passed on unchanged
        if machine.capture is None:
            machine.host.wait(task)
        return task

    monkeypatch.setattr(Machine, "launch", launch_and_wait)
    with gpulab.virtual_gpu("H200"):
        assert set(self_check.failures()) == {"asynchrony", "streams"}
