"""The edits of the machine explorer: each message of the page makes a new program."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from gpulab.core.requirements import NameOf
from gpulab.views.machine._program import MachineProgram, ProgramOperation

_SETTINGS = ("launch_us", "queue_depth", "repetitions", "n_streams")
SETTING = NameOf("setting of the machine", _SETTINGS)
_FIELD = NameOf("field of an operation", tuple(ProgramOperation.__dataclass_fields__))
Message = Mapping[str, Any]


def _set(program: MachineProgram, message: Message) -> MachineProgram:
    """Change one field of an operation; a copy in other memory still moves as many bytes."""
    index, field, value = message["place"], message["field"], message["value"]
    _FIELD.check(field=field)
    operation = program.operations[index]
    if field == "is_pinned":
        return program.replaced(index, operation.with_pinned(bool(value), program.spec))
    return program.replaced(index, replace(operation, **{field: value}))


def _tune(program: MachineProgram, message: Message) -> MachineProgram:
    SETTING.check(field=message["field"])
    return replace(program, **{message["field"]: message["value"]})


def _add(program: MachineProgram, message: Message) -> MachineProgram:
    """Add an operation, with the event and the buffer that it most likely needs."""
    kind, stream = message["kind"], int(message["stream"])
    operation = ProgramOperation(kind, stream, is_pinned=bool(message["is_pinned"]))
    if kind == "record":
        operation = replace(operation, event=program.free_event())
    elif kind == "wait":
        recorded = [each.event for each in program.operations if each.kind == "record"]
        operation = replace(operation, event=recorded[-1] if recorded else "a")
    elif operation.is_copy:
        operation = replace(operation, buffer="y")
    return program.inserted(min(int(message["place"]), len(program.operations)), operation)


def _move(program: MachineProgram, message: Message) -> MachineProgram:
    """Move an operation to another place in the program, and to another stream, in one change."""
    index = message["place"]
    operation = replace(program.operations[index], stream=int(message["stream"]))
    return program.replaced(index, operation).moved(index, int(message["to"]))


def _remove(program: MachineProgram, message: Message) -> MachineProgram:
    return program.removed(message["place"])


EDITS: Mapping[str, Callable[[MachineProgram, Message], MachineProgram]] = MappingProxyType(
    {"set": _set, "tune": _tune, "add": _add, "move": _move, "remove": _remove}
)
