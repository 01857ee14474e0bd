"""The book: no warning, no dead link, no server, and accessible pages."""

from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import pytest

from tests.support.jupyterlab import needs_browser
from tests.support.lessons import SOURCES

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]
# One of each kind: first page, list, two lessons, guide, background, reference, search.
LOOKED_AT = (
    *("index", "learn", "lessons/06_cache_flush", "lessons/00_start_here"),
    *("howto/time-a-kernel", "floor", "reference/generated/gpulab.measure", "search"),
)

# A page that opens in the dark goes from light to dark in 0.15 s; contrasts count after that.
TRANSITIONS_ARE_OVER = """() => Promise.allSettled(document.getAnimations()
    .filter(each => each instanceof CSSTransition).map(each => each.finished))"""


class Links(HTMLParser):
    """The addresses that a page leads to, and the places in it that one can lead to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.places = {""}
        self.feed(text)

    def handle_starttag(self, _tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what the element leads to, and what it is called."""
        for name, value in attrs:
            if name in {"id", "name"} and value:
                self.places.add(value)
            elif name in {"href", "src"} and value:
                self.targets.append(value)


def pages_of(book: Path) -> list[Path]:
    """Return the files of all pages; the theme has templates beside its scripts."""
    return [path for path in book.rglob("*.html") if path.parent.name != "_static"]


def dead_links(book: Path) -> list[str]:
    """Return each link of the book that leads to no file, or to no place in its page."""
    pages = {path: Links(path.read_text("utf-8")) for path in pages_of(book)}
    dead = []
    for path, page in pages.items():
        for target in page.targets:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            known = pages.get(file)
            if not file.exists() or (known and unquote(parts.fragment) not in known.places):
                dead.append(f"{path.relative_to(book)}: {target}")
    return dead


def test_every_link_leads_somewhere(book: Path) -> None:
    """To a file of the book, and to a place that is in it."""
    assert dead_links(book) == []


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    """No such file, or no such place."""
    (tmp_path / "a.html").write_text(
        '<p id="x"><a href="#x">1</a><a href="#y">2</a><a href="b.html">3</a>'
    )
    assert dead_links(tmp_path) == ["a.html: #y", "a.html: b.html"]


def test_each_lesson_is_a_page_with_pictures_and_without_answers(book: Path) -> None:
    """What cells showed is there; what judged an answer is not."""
    for source in SOURCES:
        text = (book / "lessons" / f"{source.stem}.html").read_text("utf-8")
        assert '<figure class="gpulab-figure"' in text, source.stem
        assert "your answer goes above this line" in text or "SOLUTION" not in source.read_text()
        assert "exercises right" not in text, source.stem


def test_the_guide_is_in_the_book_without_the_key(book: Path) -> None:
    """Instructors find their pages, and nobody finds the answers."""
    guide = {path.stem for path in (book / "instructor").iterdir()}
    assert guide == {"index", "plans", "lessons", "labs", "slides", "setup"}
    assert "instructor/answers" not in (book / "searchindex.js").read_text("utf-8")


def test_each_page_says_what_it_was_made_with(book: Path) -> None:
    """The versions of gpulab, Python and torch."""
    import torch

    import gpulab

    silent = [
        path.name
        for path in pages_of(book)
        if f"Made with gpulab {gpulab.__version__}, Python" not in (text := path.read_text())
        or f"torch {torch.__version__}" not in text
    ]
    assert silent == []


@needs_browser[2]
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_accessible(book: Path, browser_page: "Page", scheme: str) -> None:
    """axe-core finds nothing, no page scrolls sideways on a phone, and none uses the network."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    asked: list[str] = []
    browser_page.on("request", lambda request: asked.append(request.url))
    browser_page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type] # one of its words
    # The dark page differs from the light one by its colours alone.
    rules = {"runOnly": ["color-contrast"]} if scheme == "dark" else {}
    found = []
    for name in LOOKED_AT:
        browser_page.set_viewport_size({"width": 1280, "height": 900})
        browser_page.goto((book / f"{name}.html").as_uri())
        browser_page.evaluate(TRANSITIONS_ARE_OVER)
        for violation in axe.run(browser_page, options=rules).response["violations"]:
            places = [node["html"][:100] for node in violation["nodes"][:3]]
            found.append(f"{name}: {violation['help']}: {places}")
        browser_page.set_viewport_size({"width": 390, "height": 844})
        if browser_page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            found.append(f"{name}: wider than a phone")
    assert found == []
    assert [url for url in asked if urlsplit(url).scheme not in {"file", "data", "blob"}] == []


@needs_browser[2]
def test_search_works_without_a_server(book: Path, browser_page: "Page") -> None:
    """A word of a lesson finds that lesson."""
    browser_page.goto((book / "search.html").as_uri() + "?q=staircase")
    found = browser_page.locator("#search-results li a", has_text="06 Cache flush")
    found.first.wait_for()
    found.first.click()
    assert urlsplit(browser_page.url).path.endswith("/lessons/06_cache_flush.html")
