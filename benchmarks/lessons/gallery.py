"""Write the gallery of the lessons: each lesson's question, its picture, and its minutes."""

import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from benchmarks.common.folders import ROOT
from benchmarks.common.markdown import put_between_markers, table
from benchmarks.lessons.minutes import Core

PICTURES = ROOT / "docs" / "images" / "lessons"
# Pictures stay in every clone and in every version of the history, so they must be small.
MOST_BYTES = 140_000
# A part of the code whose cell shows the lesson's picture; of the others it is the first picture.
CHOSEN = {
    "02": "host_and_gpu",
    "03": "between_two_events",
    "04": "plots.scatter",
    "05": "draw_orders",
    "07": "readings_in_order",
    "09": "draw_sides",
    "10": "draw_gaps",
    "11": "plots.timeline(",
    "11b": "util_and_power",
    "12": "plots.bars",
    "13": "host_and_gpu",
}
_SOURCES = ROOT / "notebooks" / "source"
_PICTURE = re.compile(
    r'<figure class="gpulab-figure"[^>]*><img src="data:image/svg\+xml,([^"]*)" alt="([^"]*)"'
)
_TITLE = re.compile(r"<title>(.*?)</title>", re.DOTALL)


@dataclass(frozen=True)  # without slots, for the cached text
class Entry:
    """A lesson or case, with what the gallery says about it."""

    source: Path

    @cached_property
    def core(self) -> Core:
        """Its cells above the heading "Going further"."""
        return Core.of(self.source)

    @property
    def title(self) -> str:
        """Its title, such as "01 Naive timing"."""
        return str(self.core.cells[0].source.splitlines()[0].removeprefix("# "))

    @property
    def question(self) -> str:
        """The one question that it answers: what is below its title, up to the question mark."""
        paragraphs = " ".join(self.core.cells[0].source.split("\n\n")[1:])
        question, mark, _ = " ".join(paragraphs.split()).partition("?")
        return question + mark

    @property
    def number(self) -> str:
        """Its number with the letter, such as "08b"."""
        return self.source.stem.partition("_")[0]

    @property
    def picture(self) -> Path:
        """The file of its picture."""
        return PICTURES / f"{self.number}.svg"

    @property
    def alt(self) -> str:
        """What its picture shows; the picture itself says it, as its title."""
        match = _TITLE.search(self.picture.read_text("utf-8"))
        if match is None:
            raise SystemExit(f"{self.picture} has no title; make it anew: {_COMMAND}")
        return html.unescape(match[1])

    @property
    def finding(self) -> str:
        """The title of its picture, without the kind of picture and the source of the numbers."""
        return self.alt.partition(": ")[2].rpartition(" (")[0]


_COMMAND = "python -m benchmarks.lessons gallery"


def lessons() -> list[Entry]:
    """Return the lessons in their order."""
    return [Entry(source) for source in sorted(_SOURCES.glob("*.py"))]


def cases() -> list[Entry]:
    """Return the cases in their order."""
    return [Entry(source) for source in sorted((_SOURCES / "cases").glob("*.py"))]


def take_pictures(entries: Iterable[Entry]) -> Iterator[str]:
    """Run lessons unless they ran before, save a picture of each, and yield its size."""
    from docs.extensions import executed

    PICTURES.mkdir(parents=True, exist_ok=True)
    entries = list(entries)
    ran = executed.executed([entry.source for entry in entries])
    for entry, notebook in zip(entries, ran, strict=True):
        svg = picture_of(notebook, CHOSEN.get(entry.number, ""))
        if len(svg.encode()) > MOST_BYTES:
            raise SystemExit(
                f"the picture of {entry.title} has {len(svg):,} bytes; choose another"
            )
        entry.picture.write_text(svg, "utf-8")
        yield f"{entry.picture.relative_to(ROOT)}: {len(svg) / 1000:.0f} kB, {entry.alt}"


def picture_of(ran: Any, part: str) -> str:  # noqa: ANN401  # nbformat's notebooks are untyped
    """Return the first picture of a lesson that ran, whose cell contains a text, as SVG.

    The SVG has the kind and the title of the figure as its own title.
    """
    for cell in ran.cells:
        if cell.cell_type != "code" or part not in cell.source:
            continue
        for output in cell.outputs:
            match = _PICTURE.search(output.get("data", {}).get("text/html", ""))
            if match:
                alt = html.unescape(match[2]).partition(". The x axis")[0]
                return re.sub(
                    r"(<svg[^>]*>)",
                    rf"\1<title>{html.escape(alt)}.</title>",
                    unquote(match[1]),
                    count=1,
                )
    raise SystemExit(f"no cell with {part!r} shows a picture; name another one in {__name__}")


def gallery() -> Iterator[str]:
    """Yield the lines of the page: a card for each lesson, and a list of the cases."""
    yield from ("::::{grid} 1 1 1 2", ":gutter: 3", "")
    for entry in lessons():
        yield from (
            f":::{{grid-item-card}} {entry.title}",
            f":link: lessons/{entry.source.stem}",
            ":link-type: doc",
            entry.question,
            "",
            f"![{entry.alt}](images/lessons/{entry.picture.name})",
            "",
            f"*{entry.finding}*",
            ":::",
            "",
        )
    yield from ("::::", "", "## Cases", "")
    yield "A case is a published benchmark with a flaw. You find the flaw, and the right number."
    yield ""
    for entry in cases():
        yield f"- [{entry.title}](lessons/cases/{entry.source.stem}.ipynb): {entry.question}"


def readme_table() -> Iterator[str]:
    """Yield the lines of the README's table: lesson, question, and minutes of the core."""
    rows = [
        [
            f"[{entry.title}](notebooks/{entry.source.stem}.ipynb)",
            entry.question,
            f"{entry.core.minutes:.0f}",
        ]
        for entry in lessons()
    ]
    yield from table(["lesson", "its question", "minutes"], rows, n_names=2)


def plan_table() -> Iterator[str]:
    """Yield the lines of the instructor's table: minutes, guesses and exercises of each core."""
    rows = [
        [
            entry.title,
            f"{entry.core.minutes:.0f}",
            str(entry.core.n_predictions),
            str(len(entry.core.exercises)),
        ]
        for entry in lessons()
    ]
    yield from table(["lesson", "minutes", "guesses", "exercises"], rows)


def readme_picture(number: str) -> Iterator[str]:
    """Yield the line that shows the picture of a lesson in the README."""
    (entry,) = (each for each in lessons() if each.number == number)
    yield f"![{entry.title}: {entry.alt}]({entry.picture.relative_to(ROOT)})"


# Page and name of the part, and what writes it.
PARTS = {
    ("README.md", "picture"): partial(readme_picture, "01"),
    ("README.md", "clinic"): partial(readme_picture, "13b"),
    ("docs/lessons.md", "gallery"): gallery,
    ("README.md", "lessons"): readme_table,
    ("docs/instructor/plans.md", "minutes"): plan_table,
}


def write(*, pictures: bool) -> None:
    """Write the parts of all pages; before, if asked for, take the pictures."""
    if pictures:
        for line in take_pictures(lessons()):
            print(line, flush=True)
    for (page, name), lines in PARTS.items():
        put_between_markers(ROOT / page, name, "\n".join(lines()))
