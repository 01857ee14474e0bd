"""The films of the lessons: made from the virtual GPU's records, small, readable as text."""

import re
import xml.etree.ElementTree as ET  # it parses only pages that these tests make
from functools import cache

import pytest

from gpulab import animations
from gpulab.views.animations._film import Film
from gpulab.views.animations._page import page_of
from gpulab.views.animations._programs import FILMS

MOST_BYTES, MOST_S = 150_000, 60
each = pytest.mark.parametrize("name", FILMS)


@cache
def film_of(name: str) -> Film:
    """Return a film, which is made only once."""
    return FILMS[name]()


@pytest.mark.slow
@each
def test_a_film_can_be_paused_stopped_and_read(name: str) -> None:
    """A film has two check boxes, respects a wish for less motion, and has every note as text."""
    shown, film = animations.show(name), film_of(name)
    # The picture contains signs that XML would have to escape, and HTML does not.
    page = ET.fromstring(re.sub(r"src=\"[^\"]*\"", "", shown.page))  # our own page
    labels = ["".join(label.itertext()).strip() for label in page.iter("label")]
    assert labels == ["Pause", "Still picture"]
    assert "prefers-reduced-motion:reduce" in shown.page
    notes = [note.text for note in film.notes]
    assert [item.text for item in page.iter("li")] == notes
    assert str(shown) == " ".join([f"{film.title}.", *notes])
    assert shown._repr_mimebundle_()["text/plain"] == str(shown)
    assert "<script" not in shown.page


@each
def test_a_note_is_shown_at_its_moment(name: str) -> None:
    """It takes at most a minute and 150 kB; a note's rule begins at its share of the time."""
    film = film_of(name)
    page = page_of(film)
    assert (len(page.encode()) <= MOST_BYTES, film.shown_s <= MOST_S) == (True, True)
    for place, note in enumerate(film.notes):
        share = 100 * film.shown_s / (film.shown_s + 4) * note.start_s / film.lanes.length_s
        rule = re.search(rf"@keyframes {name}-note-{place}\{{(.*?)\}}\}}", page)
        assert rule is not None
        assert f"{share:.3f}%{{opacity:1}}" in rule[1]


def rows_of(name: str) -> dict[str, list[str]]:
    """Return the labels of a film's bars by the names of their rows."""
    lanes = film_of(name).lanes
    rows: dict[str, list[str]] = {name: [] for name in lanes.names.values()}
    for strip in lanes.strips:
        rows[lanes.names[strip.row]].append(strip.label)
    return rows


def test_each_work_has_its_bar() -> None:
    """The bars of a film are those of its program."""
    matmuls = [f"matmul {number}" for number in range(1, 6)]
    places = {f"queue, place {n}": [f"matmul {n + 1} waits"] for n in range(1, 5)}
    calls = ["", "", "", "", "", "the host waits"]
    assert rows_of("queue") == {"host": calls, **places, "GPU": matmuls}
    work, dirty, written = rows_of("dirty_lines").values()
    assert work == ["read flush", "layer", "write flush", "layer"]
    assert (dirty, [label[-12:] for label in written]) == ([], ["written back"] * 2)
    copies, kernels, *buffers = rows_of("double_buffer").values()
    assert copies == kernels == [f"batch {number}" for number in range(5)]
    for place, labels in enumerate(buffers):
        own = [label for label in labels if label != "both at once"]
        assert own == [f"{what}: {n}" for n in range(place, 5, 2) for what in ("written", "read")]


def test_the_queue_shows_launched_kernels_that_wait() -> None:
    """Each matmul but the first waits in the queue until the moment when it starts."""
    film = film_of("queue")
    names = film.lanes.names
    strips = film.lanes.strips
    waiting = [strip for strip in strips if names[strip.row].startswith("queue")]
    kernels = {strip.label: strip for strip in strips if names[strip.row] == "GPU"}
    assert len(waiting) == len(kernels) - 1
    for strip in waiting:
        assert strip.end_s == kernels[strip.label.removesuffix(" waits")].start_s


def test_a_flush_that_writes_leaves_dirty_lines() -> None:
    """The layer is slower after the writing flush, and part of the dirty lines goes to memory."""
    film = film_of("dirty_lines")
    layers = [strip for strip in film.lanes.strips if strip.label == "layer"]
    clean_s, written_s = (strip.end_s - strip.start_s for strip in layers)
    assert written_s > 1.1 * clean_s
    (level,) = film.lanes.levels
    shares = [share for _, share in level.points]
    assert max(shares) == 1.0
    assert shares[-1] < 1.0


@pytest.mark.slow
def test_races_are_marked_where_a_copy_and_a_kernel_overlap() -> None:
    """Each marked strip lies inside a copy and a kernel of the same buffer."""
    strips = film_of("double_buffer").lanes.strips
    races = [strip for strip in strips if strip.is_wrong]
    assert races
    for race in races:
        over = {
            strip.role
            for strip in strips
            if strip.row == race.row and not strip.is_wrong
            if strip.start_s <= race.start_s and strip.end_s >= race.end_s
        }
        assert over == {"copy", "kernel"}
