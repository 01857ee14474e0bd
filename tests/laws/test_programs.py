"""Random programs are the same for the same seed, run as text, and shrink to what matters."""

import ast
from dataclasses import replace

import pytest

from benchmarks.laws.programs import Program, Step, program_of, shrunk
from benchmarks.laws.readings import VIRTUAL, ProgramError, run_step, session
from benchmarks.laws.statements import FAMILIES


def test_a_seed_makes_one_program() -> None:
    """The same seed makes the same program, and other seeds make others."""
    texts = [program_of(seed).text() for seed in (*range(20), *range(20))]
    assert texts[:20] == texts[20:]
    assert len(set(texts)) == 20


def test_a_few_programs_have_all_families() -> None:
    """A hundred programs have statements of every family, and can be read by Python."""
    programs = [program_of(seed) for seed in range(100)]
    assert {step.family for program in programs for step in program.steps} >= set(FAMILIES)
    for program in programs:
        ast.parse(program.text())


def test_a_printed_program_takes_as_long() -> None:
    """A printed program is complete, and reads the same clock after each run."""
    clock_s: list[float] = []
    for _ in range(2):
        names: dict[str, object] = {"clock_s": clock_s}
        text = program_of(3).text(options=", first_use=False")
        run_step(f"{text}    clock_s.append(time.perf_counter())\n", names)
    assert clock_s[0] == clock_s[1]


def test_a_program_shrinks_to_the_steps_that_matter() -> None:
    """Shrinking keeps the two steps that are needed, and no other."""
    program = program_of(5, n_steps=30)
    needed = {program.steps[4], program.steps[21]}
    smallest = shrunk(program, lambda smaller: needed <= set(smaller.steps))
    assert set(smallest.steps) == needed


def test_steps_that_read_values_can_be_left_out() -> None:
    """Without values, only the steps of one family raise an error."""
    programs = [program_of(seed) for seed in range(30)]
    assert any(step.reads_values for program in programs for step in program.steps)
    with session(VIRTUAL.new(max_value_elements=0)) as sessions:
        for program in programs:
            sessions.run(program.without_value_reads())


def test_an_error_names_the_step() -> None:
    """An error that a program does not catch says which step raised it."""
    program = Program("one step", (Step("missing + 1", "elementwise"),))
    expected = r"'missing \+ 1' raised NameError: name 'missing'"
    with session(VIRTUAL.new()) as programs, pytest.raises(ProgramError, match=expected):
        programs.run(program)


def test_readings_are_of_each_step_and_of_the_end() -> None:
    """There is a reading for each step and one for the end, and clocks never go back."""
    program = replace(program_of(1), steps=program_of(1).steps[:5])
    with session(VIRTUAL.new()) as programs:
        readings = programs.run(program)
    assert len(readings) == 6
    times_ns = [time_ns for reading in readings for time_ns in (reading.begin_ns, reading.end_ns)]
    assert times_ns == sorted(times_ns)
    on_default_ms = [reading.device_ms[0] for reading in readings]
    assert on_default_ms == sorted(on_default_ms)
