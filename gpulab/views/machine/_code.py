"""Write a program of the machine as PyTorch code that makes the same calls in the same order."""

import math
from collections.abc import Iterator

from gpulab.views.machine._program import MachineProgram, ProgramOperation
from gpulab.virtual import copied_bytes

_ITEM_BYTES = 4  # float32, PyTorch's default type
_NS_PER_US = 1e3
# Sizes n of matmuls of n by n float32 matrices, and their times in microseconds on the virtual
# H200, which follows a real one. The times jump where another kernel or one more wave of tiles is
# needed, so no formula fits. The duration in the code only has to be near the one in the program.
_MATMULS = (
    *((16, 2.6), (64, 3.2), (128, 4.4), (192, 5.5), (320, 6.7), (384, 9.2), (448, 10.4)),
    *((512, 12.3), (608, 20.3), (768, 34.7), (896, 42.5), (1024, 52.8), (1088, 86.7)),
    *((1280, 116.0), (1536, 188.0), (1664, 239.0), (2048, 330.0), (2304, 577.0), (2560, 726.0)),
    *((3072, 1_296.0), (3584, 1_672.0), (4096, 2_729.0), (4608, 3_801.0), (5120, 5_751.0)),
    *((5632, 7_165.0), (6144, 9_038.0), (6400, 10_203.0)),
)
_CYCLES_PER_US = 1_980  # torch.cuda._sleep counts cycles, and an H200 runs at 1,980 MHz


def code(program: MachineProgram) -> str:
    """Return the program as PyTorch code, to copy into a cell and run.

    Kernels become matmuls of about the same duration that write the program's buffers, so races
    remain races. The cost of a launch and the depth of the queue are those of the GPU that runs
    the code, not those of the program.
    """
    return "\n".join((*_set_up(program), "", *_timed(program), "", *_result(program))) + "\n"


def _set_up(program: MachineProgram) -> Iterator[str]:
    yield "import time"
    yield ""
    yield "import torch"
    yield ""
    yield from _memory(program)
    for stream in range(1, program.n_streams):
        yield f"stream_{stream} = torch.cuda.Stream()"
    for event in sorted({each.event for each in program.operations if each.event}):
        yield f"{_event(event)} = torch.cuda.Event(enable_timing=True)"
    yield from _graphs(program)
    yield "torch.cuda.synchronize()"


def _memory(program: MachineProgram) -> Iterator[str]:
    """Yield the lines that make the inputs of the matmuls, the buffers, and the host memory."""
    kernels = [each for each in program.operations if each.kind in {"kernel", "graph"}]
    for n in sorted({_matmul_n(each) for each in kernels}):
        yield f"a_{n} = torch.randn({n}, {n}, device='cuda')"
    for buffer in sorted({each.buffer for each in program.operations if each.is_work}):
        # As large as the largest operation on it needs.
        yield f"{buffer} = torch.zeros({_n_items(program, buffer):_}, device='cuda')"
    for index, operation in enumerate(program.operations):
        if operation.is_copy:
            pinned = ", pin_memory=True" if operation.is_pinned else ""
            yield f"host_{index + 1} = torch.zeros({_copied(program, operation):_}{pinned})"
    # The first matmul of a process loads cuBLAS, so one runs before the timed part.
    for each in kernels[:1]:
        # One is enough: all matmuls of the program use the same library.
        yield f"{_kernel(each)}  # loads the library"


def _graphs(program: MachineProgram) -> Iterator[str]:
    # A graph is captured before the timed part, as the simulated machine does not charge for it.
    for index, operation in enumerate(program.operations):
        if operation.kind == "graph":
            yield f"graph_{index + 1} = torch.cuda.CUDAGraph()"
            yield f"with torch.cuda.graph(graph_{index + 1}):"
            yield f"    for _ in range({operation.n_kernels}):"
            yield f"        {_kernel(operation)}"


def _timed(program: MachineProgram) -> Iterator[str]:
    # Only the body is repeated. Calls before and after it run once.
    body = program.body
    if any(each.kind == "clock" for each in program.operations):
        yield "read_s = []"
    for index in range(body.start if body else len(program.operations)):
        yield from _call(program, index)
    indent = ""
    if program.repetitions > 1 and body:
        yield f"for _ in range({program.repetitions}):"
        indent = "    "
    for index in body:
        yield from (indent + line for line in _call(program, index))
    for index in range(body.stop, len(program.operations)) if body else ():
        yield from _call(program, index)


def _call(program: MachineProgram, index: int) -> Iterator[str]:
    operation = program.operations[index]
    line = _line(program, index, operation)
    if operation.stream and operation.kind in {"kernel", "copy in", "copy out", "graph", "sleep"}:
        yield f"with torch.cuda.stream(stream_{operation.stream}):"
        yield f"    {line}"
    else:
        yield line


def _line(program: MachineProgram, index: int, operation: ProgramOperation) -> str:
    host = f"host_{index + 1}"
    part = f"{operation.buffer}[:{_copied(program, operation)}]"
    pinned = ", non_blocking=True" if operation.is_pinned else ""
    lines = {
        "kernel": _kernel(operation),
        "copy in": f"{part}.copy_({host}{pinned})",
        "copy out": f"{host}.copy_({part}{pinned})",
        "graph": f"graph_{index + 1}.replay()",
        "sleep": f"torch.cuda._sleep({round(operation.duration_us * _CYCLES_PER_US)})",
        "record": f"{_event(operation.event)}.record({_stream(operation)})",
        "wait": f"{_stream(operation)}.wait_event({_event(operation.event)})",
        "synchronize": "torch.cuda.synchronize()",
        "clock": "read_s.append(time.perf_counter())",
    }
    return lines[operation.kind]


def _result(program: MachineProgram) -> Iterator[str]:
    """Yield the lines that wait for the program and print what its stopwatch and events read."""
    # The same rule as in the simulation: an event that a stream waits for is not for timing.
    awaited = {each.event for each in program.operations if each.kind == "wait"}
    timing = [
        each.event
        for each in program.operations
        if each.kind == "record" and each.event not in awaited
    ]
    share = f" / {program.repetitions}" if program.repetitions > 1 and program.body else ""
    yield "torch.cuda.synchronize()"
    if sum(each.kind == "clock" for each in program.operations) > 1:
        yield f'print("stopwatch:", (read_s[-1] - read_s[0]){share} * 1e6, "µs")'
    if len(set(timing)) > 1:
        first, last = _event(timing[0]), _event(timing[-1])
        yield f'print("events:", {first}.elapsed_time({last}){share} * 1e3, "µs")'


def _kernel(operation: ProgramOperation) -> str:
    n = _matmul_n(operation)
    return f"torch.mm(a_{n}, a_{n}, out={operation.buffer}[:{n * n}].view({n}, {n}))"


def _matmul_n(operation: ProgramOperation) -> int:
    # Compared as ratios: 2 µs instead of 1 is as far off as 200 instead of 100.
    return min(_MATMULS, key=lambda each: abs(math.log(each[1] / operation.duration_us)))[0]


def _copied(program: MachineProgram, operation: ProgramOperation) -> int:
    """Return how many float32 elements a copy moves in its duration."""
    duration_ns = round(operation.duration_us * _NS_PER_US)
    size_bytes = copied_bytes(duration_ns, program.spec, pinned=operation.is_pinned)
    return max(1, math.ceil(size_bytes / _ITEM_BYTES))


def _n_items(program: MachineProgram, buffer: str) -> int:
    return max(
        _copied(program, each) if each.is_copy else _matmul_n(each) ** 2
        for each in program.operations
        if each.is_work and each.buffer == buffer
    )


def _event(event: str) -> str:
    return f"event_{event or 'none'}"


def _stream(operation: ProgramOperation) -> str:
    return f"stream_{operation.stream}" if operation.stream else "torch.cuda.default_stream()"
