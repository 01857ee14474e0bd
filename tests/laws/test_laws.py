"""The laws of the virtual GPU hold for random programs, and each sees a planted fault."""

from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest
import torch

import gpulab
from benchmarks.laws.campaign import broken, shrunk_break
from benchmarks.laws.laws import LAWS, Check
from benchmarks.laws.programs import Program, Step, program_of
from benchmarks.laws.readings import VIRTUAL
from benchmarks.laws.same_times import (
    _next_cell,
    a_fresh_process_takes_as_long,
    repetitions_take_as_long,
    values_cost_no_time,
    what_came_before_changes_nothing,
)
from benchmarks.laws.tables import tables_add_up
from benchmarks.laws.waits import (
    a_wait_ends_with_the_work,
    readings_have_an_order,
    who_waits_waits_everywhere,
)
from gpulab.virtual.patches import _torch_profiler
from gpulab.virtual.simulator import Host, Kind, Machine, SimulatedStream, StreamTask
from gpulab.virtual.simulator._device import SimulatedDevice
from gpulab.virtual.simulator._event_queue import EventQueue
from gpulab.virtual.simulator.values import PendingValues

N_STEPS = 5
# How many programs each check tries in `make test`; some checks take much longer than others.
N_PROGRAMS: dict[Check, int] = {
    values_cost_no_time: 200,
    a_wait_ends_with_the_work: 100,
    readings_have_an_order: 50,
    what_came_before_changes_nothing: 8,
    who_waits_waits_everywhere: 25,
    tables_add_up: 25,
    repetitions_take_as_long: 1,
    a_fresh_process_takes_as_long: 1,
}
N_PER_TEST = 50
# The first programs of these are tried in `make check`, too.
QUICK = (values_cost_no_time, a_wait_ends_with_the_work, readings_have_an_order)
N_QUICK = 12


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Compute the values on one thread, which takes less time in all."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(n_threads)


def breaks(check: Check, seeds: range) -> list[str]:
    """Return the programs that break a law, shrunk, with what breaks it."""
    found = []
    for seed in seeds:
        program = program_of(seed, N_STEPS)
        if broken(check, program, VIRTUAL):
            law = next(law for law in LAWS.values() if check in dict(law.checks))
            smallest = shrunk_break(law, check, program, VIRTUAL)
            found.append(f"law {law.number}: {smallest.what}\n{smallest.program.text()}")
    return found


def test_every_check_is_tested() -> None:
    """Each check of each law is tried on some programs."""
    assert set(N_PROGRAMS) == {check for law in LAWS.values() for check, _ in law.checks}


@pytest.mark.parametrize("check", QUICK)
def test_a_dozen_programs_obey_the_laws(check: Check) -> None:
    """A dozen programs obey the laws that are cheap to check."""
    assert not breaks(check, range(N_QUICK))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("check", "seeds"),
    [
        (check, range(first, min(first + N_PER_TEST, n_programs)))
        for check, n_programs in N_PROGRAMS.items()
        for first in range(N_QUICK if check in QUICK else 0, n_programs, N_PER_TEST)
    ],
)
def test_programs_obey_the_laws(check: Check, seeds: range) -> None:
    """Hundreds of programs obey the laws."""
    assert not breaks(check, seeds)


def program(*texts: str, family: str = "elementwise") -> Program:
    """Return a program of these steps."""
    return Program("planted", tuple(Step(text, family) for text in texts))


MAKE = 'x = torch.ones(1000, device="cuda")'
CHAIN = "for _ in range(10):\n    y = torch.relu(x)"
WAIT = "torch.cuda.synchronize()"


def after(monkeypatch: pytest.MonkeyPatch, name: str, then: Callable[[Host], None]) -> None:
    """Let a method of the host also do something else at its end."""
    original: Callable[..., object] = getattr(Host, name)

    def changed(host: Host, *args: object, **kwargs: object) -> object:
        result = original(host, *args, **kwargs)
        then(host)
        return result

    monkeypatch.setattr(Host, name, changed)


def test_law_1_sees_time_for_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel with values takes a microsecond of the host: the first law is broken."""
    hosts: list[Host] = []
    retire: Callable[..., None] = SimulatedDevice._retire

    def charge(device: SimulatedDevice, task: StreamTask) -> None:
        hosts[-1].now_ns += 1_000 * (task.payload is not None)
        retire(device, task)

    after(monkeypatch, "__init__", hosts.append)
    monkeypatch.setattr(SimulatedDevice, "_retire", charge)
    found = broken(values_cost_no_time, program(MAKE, CHAIN, WAIT), VIRTUAL)
    assert found is not None
    assert found.startswith("with values and without, run 1: ")


@pytest.mark.parametrize("index", ["x.long()", "torch.zeros(9, dtype=torch.long, device='cuda')"])
@pytest.mark.parametrize("is_refused", [True, False])
def test_law_1_sees_values_that_the_dispatcher_computes(
    monkeypatch: pytest.MonkeyPatch, index: str, *, is_refused: bool
) -> None:
    """Operators that write values come as operators of the program: the first law is broken.

    A wait computes the index, to check it. The host refuses an operator there; without that, it
    would take the program's time.
    """
    monkeypatch.setattr(PendingValues, "guarded", lambda _values, compute: compute())
    if not is_refused:
        monkeypatch.setattr(Host, "_refuse_in_action", lambda _host: None)
        monkeypatch.setattr(Host, "spend", _spend_always)
    found = broken(values_cost_no_time, program(MAKE, f"x[{index}]", WAIT), VIRTUAL)
    assert found is not None
    says = "the virtual GPU has taken its own work" if is_refused else "with values and without"
    assert says in found


def _spend_always(host: Host, duration_ns: int) -> None:
    host.now_ns += duration_ns


def test_law_1_sees_that_a_repetition_takes_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the 500th launch on each takes a nanosecond longer: the first law is broken."""

    def charge(host: Host) -> None:
        host.now_ns += host.n_launched > 500

    after(monkeypatch, "submit", charge)
    found = broken(repetitions_take_as_long, program(MAKE, CHAIN), VIRTUAL)
    assert found is not None
    assert found.startswith("runs 2 and 100: ")


@pytest.mark.slow
def test_law_1_sees_that_another_process_is_quicker(monkeypatch: pytest.MonkeyPatch) -> None:
    """A launch takes a nanosecond longer in this process: the first law is broken."""

    def charge(host: Host) -> None:
        host.now_ns += 1

    after(monkeypatch, "submit", charge)
    found = broken(a_fresh_process_takes_as_long, program(MAKE, CHAIN), VIRTUAL)
    assert found is not None
    assert found.startswith("here and in a new process, run 1: ")


def test_law_2_sees_a_late_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wait for a stream waits for the whole device: the second law is broken."""

    def wait_for_all(host: Host, stream: SimulatedStream) -> None:
        host.wait_for_device(cast("SimulatedDevice", stream.device))

    monkeypatch.setattr(Host, "wait_for_stream", wait_for_all)
    on_side = "with torch.cuda.stream(side[0]):\n    torch.cuda._sleep(1_000_000)"
    steps = program(on_side, "torch.cuda.current_stream().synchronize()", family="wait")
    found = broken(a_wait_ends_with_the_work, steps, VIRTUAL)
    assert found is not None
    assert "us after the work that it waits for" in found


def test_law_2_sees_a_wait_that_looks_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wait ends at a whole tenth of a millisecond: the second law is broken."""

    def round_up(host: Host) -> None:
        host.now_ns += -host.now_ns % 100_000

    after(monkeypatch, "_wait_until", round_up)
    steps = program(MAKE, *[CHAIN, WAIT] * 3, family="wait")
    found = broken(a_wait_ends_with_the_work, steps, VIRTUAL)
    assert found is not None
    assert "us after the work that it waits for" in found


LARGE = program('x = torch.ones(1 << 26, device="cuda")', "x.add_(1)")


def test_law_3_sees_a_reading_that_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wait for the device takes a millisecond of the host: the third law is broken."""

    def charge(host: Host) -> None:
        host.now_ns += 1_000_000

    after(monkeypatch, "wait_for_device", charge)
    found = broken(readings_have_an_order, LARGE, VIRTUAL)
    assert found is not None
    assert "with a wait" in found


def test_law_3_sees_kernels_that_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel right after another one takes half as long: the third law is broken."""
    begin: Callable[..., int] = SimulatedDevice._begin_kernel

    def halved(device: SimulatedDevice, task: StreamTask) -> int:
        before = task.stream.previous
        is_next = before is not None and before.kind is Kind.KERNEL
        gap_ns = device.event_queue.now_ns - (before.end_ns or 0) if before is not None else 0
        return begin(device, task) // (2 if is_next and gap_ns < 5_000 else 1)

    monkeypatch.setattr(SimulatedDevice, "_begin_kernel", halved)
    found = broken(readings_have_an_order, LARGE, VIRTUAL)
    assert found is not None
    assert "8 times the kernels" in found


def test_law_4_sees_what_an_error_leaves_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """After an error of the program each launch takes longer: the fourth law is broken."""
    errors: list[Exception] = []
    original = EventQueue.keep_failure

    def note(queue: EventQueue, error: Exception) -> None:
        errors.append(error)
        original(queue, error)

    def charge(host: Host) -> None:
        host.now_ns += len(errors)

    monkeypatch.setattr(EventQueue, "keep_failure", note)
    after(monkeypatch, "submit", charge)
    found = broken(what_came_before_changes_nothing, program(MAKE, CHAIN), VIRTUAL)
    assert found is not None
    assert found.startswith("before and after errors: ")


def test_law_4_sees_what_another_program_leaves_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of all operators makes each launch slower: the fourth law is broken."""
    operators: set[object] = set()
    begin: Callable[..., None] = Host.begin_operator

    def note(host: Host, operator: object, *args: object, **kwargs: object) -> None:
        operators.add(operator)
        host.now_ns += len(operators)
        begin(host, operator, *args, **kwargs)

    monkeypatch.setattr(Host, "begin_operator", note)
    found = broken(what_came_before_changes_nothing, program(MAKE, CHAIN), VIRTUAL)
    assert found is not None
    assert found.startswith("before and after program ")


def test_a_next_cell_begins_without_autocast() -> None:
    """An interrupt inside PyTorch's own code can leave autocast entered; it is not for the law."""
    with gpulab.virtual_gpu("H200") as gpu:
        for _ in range(2):
            torch.autocast("cuda").__enter__()
        _next_cell(gpu)
        assert not torch.is_autocast_enabled("cuda")
        assert torch.autocast_increment_nesting() == 1
        assert torch.autocast_decrement_nesting() == 0


def test_law_5_sees_a_wait_that_the_debug_mode_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """The debug mode sees no wait: the fifth law is broken."""
    monkeypatch.setattr(Machine, "note_hidden_wait", lambda _machine: None)
    found = broken(who_waits_waits_everywhere, program(MAKE, "x.cpu()", family="copy"), VIRTUAL)
    assert found == (
        "'x.cpu()': does it wait behind a kernel? yes; does the debug mode see it? no; "
        "is it refused in a capture? yes"
    )


def test_law_5_sees_a_wait_that_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wait ends at once, whatever it waits for: the fifth law is broken."""
    monkeypatch.setattr(Host, "_end_of", lambda host, _task: host.now_ns)
    found = broken(who_waits_waits_everywhere, program(MAKE, "x.cpu()", family="copy"), VIRTUAL)
    assert found == (
        "'x.cpu()': does it wait behind a kernel? no; does the debug mode see it? yes; "
        "is it refused in a capture? yes"
    )


def test_law_7_sees_that_an_annotation_counts_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """The row of an annotation on the device is linked to its call: the seventh law is broken."""
    original = _torch_profiler._on_device

    def linked(*args: Any) -> Iterator[Any]:  # noqa: ANN401 # records of the profiler
        for event in original(*args):
            event._values["linked_correlation_id"] = event._values["correlation_id"]
            yield event

    monkeypatch.setattr(_torch_profiler, "_on_device", linked)
    found = broken(tables_add_up, program(MAKE, CHAIN), VIRTUAL)
    assert found is not None
    assert found.startswith("the annotation has ")


def test_law_7_sees_a_kernel_in_the_row_of_an_annotation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels are linked to the annotation around their launch: the seventh law is broken."""
    original = _torch_profiler._of_record

    def linked(record: Any, name: str, launcher: Any, n_ranges: int) -> Any:  # noqa: ANN401 # as above
        event = original(record, name, launcher, n_ranges)
        event._values["linked_correlation_id"] = launcher.user_range().number
        return event

    monkeypatch.setattr(_torch_profiler, "_of_record", linked)
    found = broken(tables_add_up, program(MAKE, CHAIN), VIRTUAL)
    assert found is not None
    assert found.startswith("the annotation has ")
