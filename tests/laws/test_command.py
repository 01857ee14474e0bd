"""``python -m benchmarks.laws`` counts what breaks a law."""

from collections.abc import Callable

import pytest

from benchmarks.laws import __main__ as command
from benchmarks.laws import campaign
from benchmarks.laws.laws import Law
from benchmarks.laws.programs import Program, Step
from benchmarks.laws.readings import VIRTUAL, Gpu
from benchmarks.laws.same_times import values_cost_no_time


def law_of(check: Callable[[Program, Gpu], str | None]) -> dict[int, Law]:
    """Return laws with one check."""
    return {1: Law(1, "A law.", ((check, 2),))}


def test_laws_and_programs_are_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each second program is tried; the smallest one that breaks the law is printed."""

    def check(program: Program, _gpu: Gpu) -> str | None:
        return "it has a wait" if any(step.family == "wait" for step in program.steps) else None

    monkeypatch.setattr("benchmarks.laws.laws.LAWS", law_of(check))
    with pytest.raises(SystemExit) as stopped:
        command.main(["--programs", "40", "--seed", "3"])
    shown = capsys.readouterr().out
    assert stopped.value.code == 1
    assert "| 1. A law. |       20 |" in shown
    assert ": it has a wait\nimport gpulab\n" in shown
    printed = shown.split("event = torch.cuda.Event(enable_timing=True)\n")[1]
    assert "synchronize()" in printed.partition("\n\n")[0]


def test_a_program_that_ends_with_an_error_breaks_a_law() -> None:
    """An error that a program does not catch counts, whatever the law."""
    program = Program("wrong", (Step("torch.ones(3, device='cuda') @ 7", "matmul"),))
    what = campaign.broken(values_cost_no_time, program, VIRTUAL)
    assert what is not None
    assert what.startswith("the program ended with an error: ")
