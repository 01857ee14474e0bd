"""Save frozen records as JSON under the name of a schema, and check every field when reading."""

import json
from dataclasses import MISSING, asdict, fields, is_dataclass
from types import GenericAlias, NoneType, UnionType
from typing import TYPE_CHECKING, ClassVar, Self, TypeVar

from gpulab.errors import SchemaVersionError
from gpulab.requirements import COUNT_OR_ZERO, TEXT, Requirement

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


_MOST_SPACES = 100
_INDENT = Requirement(
    f"a whole number from 0 to {_MOST_SPACES}, or None",
    lambda value: value is None or (COUNT_OR_ZERO.accepts(value) and value <= _MOST_SPACES),
)
R = TypeVar("R", bound="DataclassInstance")


class Saved:
    """A frozen record that can be written as JSON and read back.

    Attributes
    ----------
    schema
        Name and version of the form in which it is saved.
    """

    __slots__ = ()
    schema: ClassVar[str]

    def to_dict(self: "DataclassInstance") -> dict[str, object]:
        """Return all fields as plain values, nested records as dicts, with the schema's name."""
        return {"schema": type(self).schema, **asdict(self)}  # type: ignore[attr-defined] # self is a Saved, too

    @classmethod
    def from_dict(cls, data: object) -> Self:
        """Return the record that :meth:`to_dict` wrote.

        Raises
        ------
        SchemaVersionError
            If the schema is another one, or a field is missing, unknown or of another type.
        """
        found = data.get("schema") if isinstance(data, dict) else None
        if not isinstance(data, dict) or found != cls.schema:
            raise SchemaVersionError(
                f"the saved data have the schema {found!r} and this version of gpulab reads "
                f"{cls.schema!r}; read them with the gpulab that wrote them, or save them again "
                "with this"
            )
        content = {name: value for name, value in data.items() if name != "schema"}
        return _record(cls, content, cls.schema, "")  # type: ignore[type-var] # every Saved is a dataclass

    def to_json(self, indent: int | None = None) -> str:
        """Return all fields as a JSON text, with the name of the schema; no digit is lost."""
        _INDENT.check(indent=indent)
        return json.dumps(self.to_dict(), indent=indent)  # type: ignore[misc] # as above

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the record that :meth:`to_json` wrote.

        Raises
        ------
        SchemaVersionError
            If the text is not JSON, has another schema, or is not whole.
        """
        TEXT.check(text=text)
        try:
            data = json.loads(text)
        except json.JSONDecodeError as error:
            raise SchemaVersionError(
                f"{_bad(cls.schema)} the text is not JSON ({error})"
            ) from error
        return cls.from_dict(data)


def _record(cls: type[R], data: dict[str, object], schema: str, where: str) -> R:
    # A field that is not known is refused rather than dropped: dropping would lose it for good.
    known = {field.name: field for field in fields(cls)}
    if unknown := sorted(data.keys() - known.keys()):
        raise SchemaVersionError(f"{_bad(schema)} {where}{unknown[0]} is not a field of it")
    values = {}
    for name, field in known.items():
        if name in data:
            values[name] = _value(field.type, data[name], schema, where + name)
        elif field.default is MISSING:
            raise SchemaVersionError(f"{_bad(schema)} {where}{name} is missing")
    return cls(**values)


def _value(kind: object, value: object, schema: str, where: str) -> object:
    """Return ``value`` as the field's annotation says, going down into records and tuples."""
    declared = kind
    if isinstance(kind, UnionType) and value is not None:
        # A field is a record, a number or a text, or nothing; no field could be two of them.
        (kind,) = (part for part in kind.__args__ if part is not NoneType)
    if isinstance(kind, GenericAlias) and isinstance(value, list | tuple):
        inner = kind.__args__[0]
        return tuple(_value(inner, part, schema, f"{where}[{i}]") for i, part in enumerate(value))
    if isinstance(kind, type) and is_dataclass(kind) and isinstance(value, dict):
        return _record(kind, value, schema, f"{where}.")
    # JSON writers of other languages write the float 2.0 as 2.
    if kind is float and isinstance(value, int):
        return float(value)
    if isinstance(kind, GenericAlias) or not isinstance(value, kind):  # type: ignore[arg-type] # an annotation
        name = getattr(declared, "__name__", declared)
        raise SchemaVersionError(f"{_bad(schema)} {where}={value!r} is not of type {name}")
    return value


def _bad(schema: str) -> str:
    return f"the saved data are not a whole {schema!r} record; save them again:"
