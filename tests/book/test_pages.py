"""The book has no dead link, needs no server, and its pages are accessible."""

from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import pytest

from gpulab.lessons import _build as build
from tests.support.jupyterlab import needs_browser
from tests.support.lessons import SOURCES

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]
# One of each kind: first page, list, lesson, text, reference, search.
LOOKED_AT = (
    *("index", "lessons", "lessons/06_cache_flush"),
    *("floor", "reference/generated/gpulab.measure", "search"),
)

# A page of the dark theme fades from light to dark for 0.15 s when it opens. axe would measure
# wrong contrasts before the end of that transition.
TRANSITIONS_ARE_OVER = """() => Promise.allSettled(document.getAnimations()
    .filter(each => each instanceof CSSTransition).map(each => each.finished))"""


class Links(HTMLParser):
    """The link targets of a page, and the anchors in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.places = {""}
        self.feed(text)

    def handle_starttag(self, _tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect the element's link target and its anchor."""
        for name, value in attrs:
            if name in {"id", "name"} and value:
                self.places.add(value)
            elif name in {"href", "src"} and value:
                self.targets.append(value)


def pages_of(book: Path) -> list[Path]:
    """Return all pages, without the templates that the theme keeps in ``_static``."""
    return [path for path in book.rglob("*.html") if path.parent.name != "_static"]


def dead_links(book: Path) -> list[str]:
    """Return each link of the book to a missing file or a missing anchor."""
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
    """Every internal link leads to an existing file and an existing anchor."""
    assert dead_links(book) == []


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    """A link to a missing anchor and a link to a missing file are both found."""
    (tmp_path / "a.html").write_text(
        '<p id="x"><a href="#x">1</a><a href="#y">2</a><a href="b.html">3</a>'
    )
    assert dead_links(tmp_path) == ["a.html: #y", "a.html: b.html"]


def test_each_lesson_is_a_page_with_pictures_and_without_answers(book: Path) -> None:
    """Each lesson's page has a figure and contains neither solutions nor verdicts."""
    for source in SOURCES:
        text = (book / "lessons" / f"{source.stem}.html").read_text("utf-8")
        assert '<figure class="gpulab-figure"' in text, source.stem
        shipped = build.clear_solutions(build.read_source(source)).cells
        is_open = any(build.CODE_STUB in cell.source for cell in shipped)
        assert ("your answer goes above this line" in text) == is_open, source.stem
        assert "exercises right" not in text, source.stem


def test_the_guide_is_in_the_book_without_the_key(book: Path) -> None:
    """The instructors' pages are in the book, but the answers are not."""
    guide = {path.stem for path in (book / "instructor").iterdir()}
    assert guide == {"index", "plans", "lessons", "labs", "slides", "setup"}
    assert "instructor/answers" not in (book / "searchindex.js").read_text("utf-8")


def test_each_page_names_the_versions(book: Path) -> None:
    """Every page has the versions of gpulab, Python and torch."""
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
    """No page breaks a rule of axe-core, scrolls sideways on a phone, or uses the network."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    asked: list[str] = []
    browser_page.on("request", lambda request: asked.append(request.url))
    browser_page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type] # one of its words
    # axe takes half the time if it need not describe what is right. The dark theme changes only
    # colours, so other rules need not run again.
    rules = {"resultTypes": ["violations"]}
    if scheme == "dark":
        rules["runOnly"] = ["color-contrast"]
    violations = []
    for name in LOOKED_AT:
        browser_page.set_viewport_size({"width": 1280, "height": 900})
        browser_page.goto((book / f"{name}.html").as_uri())
        browser_page.evaluate(TRANSITIONS_ARE_OVER)
        for violation in axe.run(browser_page, options=rules).response["violations"]:
            places = [node["html"][:100] for node in violation["nodes"][:3]]
            violations.append(f"{name}: {violation['help']}: {places}")
        browser_page.set_viewport_size({"width": 390, "height": 844})
        if browser_page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            violations.append(f"{name}: wider than a phone")
    assert violations == []
    assert [url for url in asked if urlsplit(url).scheme not in {"file", "data", "blob"}] == []


@needs_browser[2]
def test_search_works_without_a_server(book: Path, browser_page: "Page") -> None:
    """A search for a word of a lesson finds that lesson, in a page opened as a file."""
    browser_page.goto((book / "search.html").as_uri() + "?q=staircase")
    results = browser_page.locator("#search-results li a", has_text="06 Cache flush")
    results.first.wait_for()
    results.first.click()
    assert urlsplit(browser_page.url).path.endswith("/lessons/06_cache_flush.html")
