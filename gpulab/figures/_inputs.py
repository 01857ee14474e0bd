"""Check the arguments of figures, and read a record's source and its table."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from gpulab.core.errors import InvalidOptionError, shown
from gpulab.core.foreign_text import one_line, shortened
from gpulab.core.requirements import NUMBER, POSITIVE, TEXT, Requirement
from gpulab.gpus.provenance import virtual_label

if TYPE_CHECKING:
    import pandas as pd


_MOST_ORIGIN = 120  # characters: longer text leaves no space for the picture


_SIZE_IN = Requirement(
    "width and height in inches, such as (9.0, 4.2)",
    lambda value: (
        isinstance(value, list | tuple)
        and len(value) == 2  # noqa: PLR2004  # width and height
        and all(map(POSITIVE.accepts, value))
    ),
)


def check_words(*, title: object, alt: object, ax_size: object) -> None:
    """Raise `InvalidOptionError` if title, alternative or size are wrong; None is accepted."""
    TEXT.or_none.check(title=title, alt=alt)
    if isinstance(alt, str) and not alt.strip():
        raise InvalidOptionError(f"alt={alt!r}; say in a sentence what the plot shows")
    _SIZE_IN.or_none.check(ax_size=ax_size)


def provenance(record: object, source: object = None) -> str:
    """Return the source of a record's numbers as text, e.g. ``"virtual NVIDIA H200"``.

    The record is a ``Measurement``, a ``Timeline``, several of them, or a frame with the columns
    ``source`` and ``device_name``. A ``source`` takes precedence: text such as ``"recorded on
    NVIDIA H200"``, or an object with ``source`` and ``name``, such as a ``Device``. If neither
    says it, this raises `InvalidOptionError`.
    """
    if isinstance(source, str) and source.strip():
        return one_line(source.strip())
    pairs = [_origin(source)] if source is not None else _origins(record)
    # Sorted, so that the same record has the same title every time.
    words = sorted({shortened(_words(*pair), _MOST_ORIGIN) for pair in pairs if pair is not None})
    if not _all_known(pairs):
        raise InvalidOptionError(
            f"{type(record).__name__} does not say where its numbers come from; pass "
            "source=gpulab.device.current() or text such as source='recorded on NVIDIA H200'"
        )
    return " and ".join(words)


def has_provenance(record: object) -> bool:
    """Return whether a record itself says where all of its numbers come from."""
    return _all_known(_origins(record))


def _all_known(pairs: list[tuple[str, str] | None]) -> bool:
    """Return whether every number has a source and a device, and there is one at least."""
    return bool(pairs) and None not in pairs


def _origins(record: object) -> list[tuple[str, str] | None]:
    if hasattr(record, "columns"):
        frame: Any = record
        if not {"source", "device_name"} <= set(frame.columns):
            return [None]
        pairs = frame[["source", "device_name"]].drop_duplicates()
        return [(str(kind), str(name)) for kind, name in pairs.to_numpy()]
    if isinstance(record, Sequence):
        return [_origin(item) for item in record]
    return [_origin(record)]


def _origin(item: object) -> tuple[str, str] | None:
    """Return source and device name of a Measurement, a Timeline or a Device; None without."""
    kind = getattr(item, "source", None)
    # A Measurement has the name of its device among its conditions, a Device has ``name``.
    holder = getattr(item, "conditions", item)
    name = getattr(holder, "device_name", None) or getattr(item, "name", None)
    return (kind, name) if isinstance(kind, str) and isinstance(name, str) else None


def _words(kind: str, device_name: str) -> str:
    if kind == "virtual":
        return virtual_label(device_name)
    # The figures of a data sheet are neither measured nor computed, so they have no source.
    return one_line(f"{kind} on {device_name}" if kind else f"data sheet of {device_name}")


def frame_of(record: object) -> "pd.DataFrame":
    """Return the numbers of a record as a frame, in the order in which they were taken.

    The record is a frame, a series, an object with ``to_frame``, several of them, or plain numbers
    in seconds; anything else raises `InvalidOptionError`.
    """
    import pandas as pd

    if isinstance(record, pd.DataFrame):
        return record
    if isinstance(record, pd.Series):
        return record.reset_index()
    if hasattr(record, "to_frame"):
        frame: pd.DataFrame = record.to_frame()
        return frame
    if not isinstance(record, Iterable):
        raise InvalidOptionError(
            f"record={shown(record)} cannot be drawn; give a Measurement, a Timeline, a frame, "
            "or a list of these"
        )
    items = list(record)
    if items and all(hasattr(item, "to_frame") for item in items):
        together: pd.DataFrame = pd.concat([item.to_frame() for item in items], ignore_index=True)
        return together
    for item in items:
        NUMBER.check(record=item)
    return pd.DataFrame({"duration_s": [float(item) for item in items]})
