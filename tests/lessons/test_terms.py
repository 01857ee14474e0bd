"""The glossary explains what the lessons use, and shows one term or all of them."""

import json
import re
from functools import cache

import pytest

import gpulab
from gpulab import gpus
from gpulab.core.errors import UnknownNameError
from gpulab.lessons import terms
from tests.support.lessons import ROOT

LEAST_ENTRIES, MOST_WORDS = 80, 60
LINK = re.compile(r"\[([^\]]*)\]\((?:\.\./)?glossary\.md#[^)]*\)")
CODE = re.compile(r"```.*?```|`[^`]*`|\$\$.*?\$\$|https?:\S+", re.DOTALL)
# A word in bold inside a sentence is a term that the lesson introduces; at the start of a line it
# is the label of a step. A name in italics after "called" is a term, too.
IN_BOLD = re.compile(r"(?<!\n- )(?<!\n)\*\*([a-zA-Z-]+(?:\s[a-z-]+)?)\*\*(?![.?])")
CALLED = re.compile(r"called \*([a-z -]+)\*")
ACRONYM = re.compile(r"(?<![\w<])[A-Z][A-Z0-9]+(?![\w/])")
UNITS = {"MB", "GB", "TB"}
CHIP = re.compile(r"G[A-Z]\d{3}")


@cache
def prose() -> dict[str, str]:
    """Return the text of each lesson, without its links to the glossary."""
    text_by_lesson = {}
    for path in sorted((ROOT / "notebooks").rglob("*.ipynb")):
        cells = json.loads(path.read_text("utf-8"))["cells"]
        texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
        text_by_lesson[path.stem] = LINK.sub(r"\1", "\n\n".join(texts))
    return text_by_lesson


def names_used_in(markdown: str) -> set[str]:
    """Return the entries that a text uses."""
    return {entry.name for _, entry in terms.uses_in(markdown)}


def is_explained(word: str) -> bool:
    """Return whether the glossary explains a word, in any of its forms."""
    try:
        return bool(gpulab.glossary(word).entries)
    except UnknownNameError:
        return False


def is_name_of_a_gpu(word: str) -> bool:
    """Return whether a word is the name of a GPU, the beginning of one, or the name of a chip."""
    names = (name.upper() for name in gpus.names())
    return any(name.startswith(word) for name in names) or bool(CHIP.fullmatch(word))


def test_every_term_of_the_lessons_is_explained() -> None:
    """The glossary has each term that a lesson introduces, and each acronym but units and GPUs."""
    text = CODE.sub("CODE", "\n\n".join(prose().values()))
    introduced = {" ".join(word.split()) for word in IN_BOLD.findall(text) + CALLED.findall(text)}
    acronyms = set(ACRONYM.findall(text)) - UNITS - {"CODE"}
    assert len(introduced) > 10
    assert {"NVML", "ECC", "FFT"} <= acronyms
    unknown = {word for word in introduced | acronyms if not is_explained(word)}
    assert {word for word in unknown if not is_name_of_a_gpu(word)} == set()


def test_every_entry_is_used() -> None:
    """Every entry is used by a lesson, or by the meaning of another entry."""
    used = set().union(*map(names_used_in, prose().values()))
    for entry in terms.entries():
        used |= names_used_in(entry.meaning) - {entry.name}
    assert {entry.name for entry in terms.entries()} - used == set()


def test_entries_are_brief_ordered_and_distinct() -> None:
    """Entries are short and sorted, name a lesson that exists, and share no form."""
    entries = terms.entries()
    names = [entry.name for entry in entries]
    forms = [form for entry in entries for form in entry.forms]
    assert len(names) >= LEAST_ENTRIES
    assert names == sorted(names, key=str.lower)
    assert len({entry.anchor for entry in entries}) == len(entries)
    assert len(set(forms)) == len(forms)
    assert {entry.lesson for entry in entries} <= set(prose())
    assert [entry.name for entry in entries if len(entry.meaning.split()) > MOST_WORDS] == []


@pytest.mark.parametrize(
    ("term", "name"),
    [("occupancy", "occupancy"), ("SMs", "multiprocessor"), ("Launch  Latency", "launch latency")],
)
def test_a_term_is_found_in_any_form(term: str, name: str) -> None:
    """A term is found whatever its capitals and spaces, and in its plural."""
    assert [entry.name for entry in gpulab.glossary(term).entries] == [name]


@pytest.mark.parametrize(
    ("term", "hint"), [("ocupancy", "did you mean 'occupancy'? "), ("zzz", "")]
)
def test_an_unknown_term_names_the_nearest(term: str, hint: str) -> None:
    """The message suggests the nearest term, and says how to list all of them."""
    with pytest.raises(UnknownNameError) as error:
        gpulab.glossary(term)
    assert str(error.value) == f"unknown term {term!r}; {hint}gpulab.glossary() lists all"


def test_one_term_is_a_paragraph() -> None:
    """One term is shown as a paragraph; in a notebook, code is marked up and the lesson linked."""
    entry = gpulab.glossary("sleep")
    assert str(entry).startswith("sleep: `torch.cuda._sleep(n)`: a kernel that counts n clock")
    assert str(entry).endswith("(Lesson 07)")
    page = entry._repr_html_()
    assert page.startswith("<p><strong>sleep</strong>: <code>torch.cuda._sleep(n)</code>: a ker")
    assert page.endswith('(<a href="07_sleep.ipynb">Lesson 07</a>)</p>')


def test_all_terms_are_a_table_with_a_search() -> None:
    """The table has a caption, headings and a labelled field; quotes in it are escaped."""
    page = gpulab.glossary()._repr_html_()
    n_entries = len(terms.entries())
    assert page.count('<th scope="row"') == n_entries
    assert f"<caption>{n_entries} terms</caption>" in page
    assert '<label>Search <input type="search" oninput="const wanted' in page
    assert "device=&quot;cuda&quot;" in page


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("A warp and two warps.", ["warp", "warps"]),
        ("Warps: the CUDA\ngraph, launch-bound.", ["Warps", "CUDA\ngraph", "launch-bound"]),
        ("`warp` and [a warp](x.md) and $warp$", []),
        ("# Warp\n\n```\nwarp\n```\n\n$$warp$$ and a wave", ["wave"]),
        ("two humps, sorted into waves", ["two humps"]),
        ("rewarped, warp-wide", []),
    ],
)
def test_uses_of_terms_in_a_text(markdown: str, expected: list[str]) -> None:
    """Terms are found as whole words in their longest form, but not in code, links or headings."""
    assert [match[0] for match, _ in terms.uses_in(markdown)] == expected
