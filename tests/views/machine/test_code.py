"""A machine program as PyTorch code runs in the same order and has the same races."""

import math
from collections.abc import Iterable
from dataclasses import replace

import pytest

from gpulab import hazards, virtual_gpu
from gpulab.views.machine._code import code
from gpulab.views.machine._playback import play
from gpulab.views.machine._program import MachineProgram, ProgramOperation
from gpulab.views.machine._readings import own_readings
from gpulab.views.machine._runner import Runner
from gpulab.views.machine._starts import STARTS, start
from gpulab.virtual import TaskRecord, copied_bytes

O = ProgramOperation  # noqa: E741 # short, because every line of a program needs it
MATMUL_LAUNCH_US = 11.7  # on the virtual H200
MIXED = MachineProgram(
    (
        O("record", event="start"),
        O("kernel", duration_us=200.0),
        O("record", event="a"),
        O("wait", stream=1, event="a"),
        O("copy out", stream=1, duration_us=300.0),
        O("record", stream=1, event="copied"),
        O("copy in", stream=1, buffer="y", duration_us=100.0, is_pinned=False),
        O("graph", buffer="z", n_kernels=3, duration_us=50.0),
        O("sleep", stream=2, duration_us=2_000.0),
        O("record", event="end"),
        O("synchronize"),
        O("clock"),
    ),
    n_streams=3,
    repetitions=2,
)
PROGRAMS = {name: program for name, program in STARTS.items() if program.work} | {"mixed": MIXED}


def halves(text: str) -> tuple[str, str]:
    """Return the code up to the first synchronize, and the rest."""
    head, wait, rest = text.partition("torch.cuda.synchronize()\n")
    return head + wait, rest


def order_of(records: Iterable[TaskRecord], n_streams: int) -> list[tuple[str, int]]:
    """Return kind and stream of all that ran, in order of the starts.

    A graph's own streams are -1 here; the marks at its start and end are left out. So is the sum
    of a matmul that is split, as it is on a real GPU.
    """
    found = sorted(records, key=lambda record: (record.start_ns, record.visible_ns))
    return [
        (record.kind.value, record.stream if record.stream < n_streams else -1)
        for record in found
        if record.name not in {"graph", "sum of parts"}
    ]


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_code_runs_in_the_same_order(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """On the virtual GPU, the code starts its work in the order of the machine."""
    program = PROGRAMS[name]
    before, timed = halves(code(program))
    names: dict[str, object] = {}
    with virtual_gpu("H200", max_value_elements=0) as gpu:
        exec(compile(before, "set-up", "exec"), names)
        with gpu.machine.gpu.device.keeping_records() as of_code:
            exec(compile(timed, "timed", "exec"), names)
    runner = Runner(program)
    with runner.machine.gpu.device.keeping_records() as of_machine:
        runner.run(program.calls)
        runner.settle()
    expected = order_of(of_machine(), program.n_streams)
    assert len(expected) >= sum(each.runs_on_stream for each in program.operations)
    assert order_of(of_code(), program.n_streams) == expected
    has_stopwatch = sum(each.kind == "clock" for each in program.operations) > 1
    assert ("stopwatch: " in capsys.readouterr().out) == has_stopwatch


def test_the_code_races_where_the_program_does() -> None:
    """`hazards` finds a race in the code exactly if the program has one."""
    one = O("kernel")
    racing = MachineProgram((one, O("kernel", stream=1)), n_streams=2)
    wait = (O("record", event="a"), O("wait", stream=1, event="a"))
    mended = MachineProgram((one, *wait, racing.operations[1]), n_streams=2)
    assert [_n_hazards(program) for program in (racing, mended)] == [1, 0]


@pytest.mark.parametrize("duration_us", [3.0, 20.0, 60.0, 200.0, 1_000.0])
def test_kernels_of_the_code_take_about_as_long(duration_us: float) -> None:
    """On the virtual GPU, a kernel of the code takes as long as in the program, to within 30 %."""
    program = MachineProgram((O("kernel", duration_us=duration_us),))
    with virtual_gpu("H200", max_value_elements=0) as gpu:
        exec(compile(code(program), "code", "exec"), {})
        *_, before, last = gpu.machine.gpu.device.records()
    # cuBLAS splits some of them, and adds up the parts in a kernel of its own.
    first = before if last.name == "sum of parts" else last
    assert (last.end_ns - first.start_ns) / 1e3 == pytest.approx(duration_us, rel=0.35)


@pytest.mark.parametrize("name", ["stopwatch", "synchronize", "events", "small kernels"])
def test_the_code_reads_what_the_machine_reads(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the launch of a matmul, the code's clock and events agree with the machine."""
    program = replace(start(name), launch_us=MATMUL_LAUNCH_US)
    with virtual_gpu("H200", max_value_elements=0):
        exec(compile(code(program), "code", "exec"), {})
    printed = [float(line.split()[1]) for line in capsys.readouterr().out.splitlines()]
    expected = [reading.value_us for reading in own_readings(play(program))]
    # The machine's matmul is one kernel, and that of the code may be two.
    assert printed == pytest.approx(expected, rel=0.15)


def _n_hazards(program: MachineProgram) -> int:
    with virtual_gpu("H200", max_value_elements=0), hazards() as found:
        exec(compile(code(program), "code", "exec"), {})
    return len(found)


def test_the_code_is_what_one_would_write() -> None:
    """The code of a program is plain PyTorch, word for word as here."""
    assert code(start("synchronize")).splitlines() == [
        "import time",
        "",
        "import torch",
        "",
        "a_896 = torch.randn(896, 896, device='cuda')",
        "x = torch.zeros(802_816, device='cuda')",
        "torch.mm(a_896, a_896, out=x[:802816].view(896, 896))  # loads the library",
        "torch.cuda.synchronize()",
        "",
        "read_s = []",
        "torch.cuda.synchronize()",
        "read_s.append(time.perf_counter())",
        "torch.mm(a_896, a_896, out=x[:802816].view(896, 896))",
        "torch.cuda.synchronize()",
        "read_s.append(time.perf_counter())",
        "",
        "torch.cuda.synchronize()",
        'print("stopwatch:", (read_s[-1] - read_s[0]) * 1e6, "µs")',
    ]
    copies = MachineProgram((O("copy in"), O("copy out", is_pinned=False)))
    n_pinned, n_pageable = (
        math.ceil(copied_bytes(20_000, copies.spec, pinned=pinned) / 4) for pinned in (True, False)
    )
    assert [line for line in code(copies).splitlines() if "copy_" in line] == [
        f"x[:{n_pinned}].copy_(host_1, non_blocking=True)",
        f"host_2.copy_(x[:{n_pageable}])",
    ]
