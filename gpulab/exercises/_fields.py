"""The fields of a form for an answer that is data, and the answer that they give."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gpulab.exercises._typed import read_typed

# What a page sends: for each row that is marked or filled in, the texts of its parts.
Given = Mapping[str, list[str]]
_MARKS = {"one", "some"}
NUMBER: tuple[str, ...] = ()  # the words of a part that is a number


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields in which an answer is given: "one" of the keys, "some", a "table" or a "number".

    A table has a row for each key, and for each part of a row its words; a part without words is a
    number. With several parts, ``headings`` say what each is, such as ``("why", "what helps")``.
    """

    kind: str
    keys: tuple[str, ...]
    parts: tuple[tuple[str, ...], ...] = ()
    unit: str = ""
    headings: tuple[str, ...] = ()

    def read(self, sent: object) -> Given | None:
        """Return what a page sent, or None if a page of this form cannot send it."""
        if not isinstance(sent, Mapping) or not sent.keys() <= set(self.keys):
            return None
        fits = all(
            isinstance(texts, list) and self._fit(key, texts) for key, texts in sent.items()
        )
        return sent if fits and not (self.kind == "one" and len(sent) > 1) else None

    def _fit(self, key: str, texts: list[object]) -> bool:
        if self.kind in _MARKS:
            return texts == [key]
        return len(texts) == len(self.parts) and all(
            isinstance(text, str) and (not words or text in {"", *words})
            for text, words in zip(texts, self.parts, strict=True)
        )

    def problem(self, entered: Given) -> str:
        """Return what is missing, or which text is no number; empty if the answer is complete."""
        if self.kind in _MARKS:
            return "" if entered else "Nothing is marked yet."
        texts = {key: entered.get(key, [""]) for key in self.keys}
        missing = [key for key in self.keys if not all(map(str.strip, texts[key]))]
        if missing:
            return f"There is no answer yet for {', '.join(missing)}."
        parts = (part for key in self.keys for part in self._parts_of(texts[key]))
        bad = [text for text, words in parts if not words and self._number(text) is None]
        return f"{bad[0]!r} isn't a number." if bad else ""

    def answer(self, entered: Given) -> object:
        """Return a complete answer in the form that the judge takes."""
        if self.kind == "one":
            return next(iter(entered))
        if self.kind == "some":
            return set(entered)
        values = {key: self._value(entered[key]) for key in self.keys}
        return values[self.keys[0]] if self.kind == "number" else values

    def _value(self, texts: list[str]) -> object:
        values = [text if words else self._number(text) for text, words in self._parts_of(texts)]
        return values[0] if len(values) == 1 else tuple(values)

    def _number(self, text: str) -> float | str | None:
        return read_typed(text, self.unit)

    def _parts_of(self, texts: list[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
        return zip(texts, self.parts, strict=True)


SECONDS = Fields("number", ("answer",), (NUMBER,), "s")
