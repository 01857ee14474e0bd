"""The statements of random programs, read from ``statements.toml``, which explains them."""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_READ: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
SIZES: dict[str, tuple[str, ...]] = {kind: tuple(each) for kind, each in _READ["sizes"].items()}
MAKING, OPTIMIZERS = tuple(_READ["making"]), tuple(_READ["optimizers"])
# For each wait the streams that it waits for: 0 is the default stream, 1 and 2 are ``side``.
AWAITED: dict[str, tuple[int, ...]] = {
    text: tuple(streams) for text, streams in _READ["awaited"].items()
}


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement with names to fill in.

    Attributes
    ----------
    text
        Its source, of one line or more.
    family
        Its family of operators, or of other calls.
    kind
        The kind of tensor that it takes, a key of :data:`SIZES`; ``"any"`` takes all kinds, and an
        empty text none.
    reads_values
        Whether it raises an error where values are switched off.
    """

    text: str
    family: str
    kind: str
    reads_values: bool = False


def _statements() -> Iterator[Statement]:
    families = {**_READ["operators"], **_READ["calls"], **_READ["value_reads"]}
    texts = {family: block.strip().split("\n\n") for family, block in families.items()}
    for family, each in {**texts, "wait": [*AWAITED]}.items():
        for text in each:
            takes = "{x}" in text or "{eye}" in text
            kind = _READ["kinds"].get(family, "any") if takes else ""
            yield Statement(text, family, kind, reads_values=family in _READ["value_reads"])


OPERATOR_FAMILIES = tuple(_READ["operators"])
STATEMENTS: tuple[Statement, ...] = tuple(_statements())
FAMILIES = tuple(dict.fromkeys(item.family for item in STATEMENTS))
