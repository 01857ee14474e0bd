"""Write a frozen record as JSON under the name of its schema, and check each field on reading."""

import json
import math
import reprlib
from dataclasses import MISSING, asdict, fields, is_dataclass
from pathlib import Path
from types import GenericAlias, NoneType, UnionType
from typing import TYPE_CHECKING, ClassVar, Self, TypeVar

from gpulab.core.disk import not_read, write_whole
from gpulab.core.errors import DamagedDataError, SchemaVersionError
from gpulab.core.foreign_text import one_line
from gpulab.core.requirements import COUNT_OR_ZERO, PATH, Requirement, instance_of
from gpulab.core.serialization._json import parse_json
from gpulab.core.serialization._text import read_text

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


_MAX_SHOWN = 60  # characters of an unknown name that an error shows
_MOST_SPACES = 100
_INDENT = Requirement(
    f"a whole number from 0 to {_MOST_SPACES}, or None",
    lambda value: value is None or (COUNT_OR_ZERO.accepts(value) and value <= _MOST_SPACES),
)
_JSON_TEXT = instance_of((str, bytes), "the text that to_json returned")
R = TypeVar("R", bound="DataclassInstance")


class Saved:
    """Base class of frozen records that can be written as JSON and read back.

    Attributes
    ----------
    schema
        Name and version of the saved form, e.g. ``"gpulab.timeline/1"``.
    """

    # Otherwise every record would have a dict in spite of its own slots.
    __slots__ = ()
    schema: ClassVar[str]

    def to_dict(self: "DataclassInstance") -> dict[str, object]:
        """Return all fields as plain values, nested records as dicts, with the schema's name."""
        return {"schema": type(self).schema, **asdict(self)}  # type: ignore[attr-defined] # self is a Saved, too

    @classmethod
    def from_dict(cls, data: object) -> Self:
        """Return the record whose fields :meth:`to_dict` returned.

        Raises
        ------
        SchemaVersionError
            If the data have another schema, or a field is missing, unknown or of another type.
        """
        schema = data.get("schema") if isinstance(data, dict) else None
        if not isinstance(data, dict) or schema != cls.schema:
            raise SchemaVersionError(
                f"the saved data have the schema {reprlib.repr(schema)} and this version of "
                f"gpulab reads {cls.schema!r}; {_way_on(schema, cls.schema)}"
            )
        content = {name: value for name, value in data.items() if name != "schema"}
        return _record(cls, content, cls.schema, "")  # type: ignore[type-var] # every Saved is a dataclass

    def to_json(self, indent: int | None = None) -> str:
        """Return all fields as JSON, with the name of the schema; floats are written exactly."""
        _INDENT.check(indent=indent)
        return json.dumps(self.to_dict(), indent=indent)  # type: ignore[misc] # as above

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Return the record that :meth:`to_json` wrote; bytes are read as UTF-8.

        Raises
        ------
        InvalidOptionError
            If ``text`` is neither text nor bytes.
        SchemaVersionError
            If the text is not JSON, has another schema, lacks a field, or has a number that
            :func:`parse_json` refuses.
        """
        _JSON_TEXT.check(text=text)
        try:
            data = parse_json(text)
        except DamagedDataError as error:
            raise SchemaVersionError(f"{_bad(cls.schema)} {error}") from error
        return cls.from_dict(data)

    def save(self, path: str | Path) -> Path:
        """Write the record as JSON, and return the path.

        Raises
        ------
        NotSavedError
            If the file cannot be written.

        Examples
        --------
        ::

            gpulab.measure(lambda: a @ a, label="before").save("base.json")
            base = gpulab.Measurement.load("base.json")
        """
        PATH.check(path=path)
        target = Path(path)
        write_whole(target, f"{self.to_json(indent=1)}\n".encode())
        return target

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Return the record that :meth:`save` wrote.

        Raises
        ------
        NotReadError
            If there is no such file, it is a folder, or the system cannot read it.
        SchemaVersionError
            If it is another kind of record, comes from another version of gpulab, or is damaged.

        Examples
        --------
        ::

            base = gpulab.Measurement.load("base.json")
            gpulab.compare(base, lambda: a @ a).check(at_most=1.05)
        """
        PATH.check(path=path)
        try:
            return cls.from_json(read_text(path))
        except OSError as error:
            example = "base.json" if Path(path).is_dir() else str(path)
            raise not_read(path, error, f"save one first: record.save({example!r})") from error
        except (DamagedDataError, SchemaVersionError) as error:
            raise SchemaVersionError(f"{one_line(str(path))}: {error}") from error


def _record(cls: type[R], data: dict[str, object], schema: str, where: str) -> R:
    # An unknown field is refused, not dropped: saving the record again would lose it.
    fields_by_name = {field.name: field for field in fields(cls)}
    if unknown := sorted(map(str, data.keys() - fields_by_name.keys())):
        name = unknown[0][:_MAX_SHOWN]
        raise SchemaVersionError(f"{_bad(schema)} {where}{name} is not a field of it")
    values = {}
    for name, field in fields_by_name.items():
        if name in data:
            values[name] = _value(field.type, data[name], schema, where + name)
        # A field with a default may be missing: files written before it existed are read on.
        elif field.default is MISSING:
            raise SchemaVersionError(f"{_bad(schema)} {where}{name} is missing")
    return cls(**values)


def _value(kind: object, value: object, schema: str, where: str) -> object:
    """Return ``value`` converted to the type that the field declares, nested records included."""
    declared = kind
    if isinstance(kind, UnionType):
        if value is None:
            return None
        # Every union in our records is "T | None", so exactly one type is left here.
        (kind,) = (part for part in kind.__args__ if part is not NoneType)
    if isinstance(kind, GenericAlias) and isinstance(value, list | tuple):
        inner = kind.__args__[0]
        return tuple(_value(inner, part, schema, f"{where}[{i}]") for i, part in enumerate(value))
    if isinstance(kind, type) and is_dataclass(kind) and isinstance(value, dict):
        return _record(kind, value, schema, f"{where}.")
    # JSON writers of other languages write the float 2.0 as 2.
    if kind is float and type(value) is int:
        value = _as_float(value)
    # isinstance() accepts True as an int and nan as a float, but neither is a count or a time.
    is_other = isinstance(value, bool) and kind is not bool
    is_other |= isinstance(value, float) and not math.isfinite(value)
    if is_other or isinstance(kind, GenericAlias) or not isinstance(value, kind):  # type: ignore[arg-type] # an annotation
        # From Python 3.14 on the __name__ of every union is "Union", so its text is shown.
        is_union = isinstance(declared, UnionType)
        name = declared if is_union else getattr(declared, "__name__", declared)
        shown = reprlib.repr(value)
        raise SchemaVersionError(f"{_bad(schema)} {where}={shown} is not of type {name}")
    return value


def _way_on(schema: object, wanted: str) -> str:
    """Return what to do with data of another schema: a newer or older one, or another record."""
    kind, _, version = str(schema).partition("/")
    wanted_kind, _, wanted_version = wanted.partition("/")
    if kind != wanted_kind or not version.isdigit():
        return f"they are no {wanted_kind.removeprefix('gpulab.')}: give another file"
    if int(version) > int(wanted_version):
        return "a newer gpulab wrote them: update this one"
    return "an older gpulab wrote them: read them with that one, or save them again with this"


def _as_float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _bad(schema: str) -> str:
    return f"the saved data are not a whole {schema!r} record; save them again:"
