"""Drawing a curve before measuring it: messages of the page, saved curves, and the verdict."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from gpulab import exercises, virtual_gpu
from gpulab.core import palette
from gpulab.core.errors import InvalidOptionError
from gpulab.exercises import _saved_guesses, lesson_04, lesson_09, lesson_10
from gpulab.exercises._history import predictions_of
from gpulab.exercises._journal import LearnerJournal
from gpulab.figures import widgets
from gpulab.roofline import scaling
from tests.support.journals import forget_all
from tests.support.notebook_display import shown_in

CALLS_S = [2.3, *[1e-3] * 9]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return an empty folder that the process uses as the folder of its notebook."""
    forget_all()
    own = LearnerJournal(tmp_path)
    monkeypatch.setattr(_saved_guesses, "journal", lambda: own)
    yield tmp_path
    forget_all()


def ten_calls(guess: object = ...) -> exercises.DrawnPrediction:
    """Ask for the curve of lesson 04: the times of ten calls."""
    return exercises.draw("How long?", guess, name="04.first", axes=lesson_04.TEN_CALLS)


def matmuls(name: str = "09.near", **curves: object) -> exercises.DrawnPrediction:
    """Ask for the two curves of lesson 09: a matmul on the CPU and on the GPU."""
    return exercises.draw("Where?", curves, name=name, axes=lesson_09.MATMUL_TIMES)


def test_the_first_call_is_compared_with_the_last() -> None:
    """The review of lesson 04 compares how many times slower the first call is."""
    review = ten_calls([5e-3, *[1e-3] * 9]).compare(CALLS_S)
    assert str(review) == (
        "Far off. The first call over the last: you drew 5 times, it was 2,300 times: a factor of "
        "460. It works in another way than you thought. The last call: you drew 1.00 ms, it was "
        "1.00 ms: exactly."
    )
    assert review.is_right is False
    assert "Series: drawn, came out." in review.figure.description
    page = review._repr_html_()
    assert page.index("Far off.") < page.index("<figure")


def test_the_crossing_is_compared() -> None:
    """The review of lesson 09 compares from which size the GPU is faster, if from any."""
    sizes = lesson_09.MATMUL_TIMES.x
    truth = {"CPU": (sizes, [n * 1e-7 for n in sizes]), "GPU": (sizes, [2e-5] * len(sizes))}
    cpu = [n * 1e-8 for n in sizes]
    review = matmuls(CPU=cpu, GPU=[4e-5, *[1e-5] * 9]).compare(truth)
    assert str(review).startswith("Off. The GPU gets ahead at n: you drew 1,000, it was 200: ")
    assert "The GPU's smallest matmul: you drew 40.0 µs, it was 20.0 µs" in str(review)
    never = matmuls("09.never", CPU=cpu, GPU=[0.5] * 10).compare(truth)
    assert str(never).startswith(
        "Different. The GPU gets ahead at n: not in your drawing, it was 200."
    )
    values = "[...] with 10 values in seconds"
    assert f'three dots: {{"CPU": {values}, "GPU": {values}}}.' in str(matmuls("09.empty"))
    half = matmuls("09.half", CPU=cpu).compare(truth)
    assert half.is_right is False


def test_the_true_curve_has_the_signs_and_the_name_of_its_source() -> None:
    """Dashes mean virtual, outlines mean recorded, and the title says which GPU it was."""
    crossing = scaling.crossover("matmul", source="h200-sxm-2026-11")
    sides = (crossing.cpu, crossing.gpu)
    recorded = (
        matmuls()
        .compare(
            {
                "CPU": (crossing.cpu.sizes, crossing.cpu.median_s),
                "GPU": (crossing.gpu.sizes, crossing.gpu.median_s),
            },
            source=sides,
        )
        .figure
    )
    assert recorded.title.endswith("and recorded on NVIDIA H200)")
    assert "your drawing" not in recorded.title
    assert recorded.title.startswith("The GPU gets ahead at n: 178 (")
    (ax,) = recorded.canvas.axes
    assert [line.get_linestyle() for line in ax.lines] == ["-", "-"]
    assert {line.get_markerfacecolor() for line in ax.lines} == {palette.PAPER.light}
    # The GPU was measured at larger sizes than those to draw at.
    assert ax.get_xticklabels()[-1].get_text() == "4,096"
    with virtual_gpu("H200"):
        virtual = ten_calls([1e-3] * 10).compare(CALLS_S).figure
    assert virtual.title == (
        "The first call over the last: 2,300 times (your drawing; virtual NVIDIA H200)"
    )
    drawn, true = virtual.canvas.axes[0].lines
    assert (drawn.get_linestyle(), true.get_linestyle()) == ("-", "--")


def test_a_single_drawn_point_is_seen() -> None:
    """One point makes no line, so it has a marker, and the caption names it once per line."""
    review = matmuls(CPU=[1e-6, *[None] * 9], GPU=[1e-5] * 10).compare(
        {"CPU": ([4], [1e-6]), "GPU": ([4, 8], [1e-5, 1e-5])}
    )
    first, *_ = review.figure.canvas.axes[0].lines
    assert first.get_marker() == "o"
    assert review.figure.caption.splitlines()[:2] == [
        "Drawn CPU: 1.00 µs at n 4.",
        "Drawn GPU: 10.0 µs at n 4, 10.0 µs at 2,048.",
    ]


def test_the_floor_is_compared() -> None:
    """The review of lesson 10 compares the smallest time, and the size where times grow."""
    drawing = exercises.draw(
        "How long?", [1e-9 * 4**k for k in range(8)], name="10.growing", axes=lesson_10.ADDITIONS
    )
    review = drawing.compare([2e-6] * 5 + [4.1e-6, 16e-6, 64e-6])
    assert "The smallest addition: you drew 1.00 ns, it was 2.00 µs: a factor of 2,000." in str(
        review
    )
    assert "Twice as long from: you drew 2,070 elements on, it was " in str(review)


def test_without_a_drawing_the_notebook_goes_on(
    monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    """Without a front end the cell shows one line, the review the true curve; no file is made."""
    shown = shown_in(monkeypatch, watched=False)
    ten_calls()._ipython_display_()
    (((text,),),) = ([each] for each in shown.outputs)
    assert text["text/plain"] == (
        "How long? Draw it on the axes, or type it in place of the three dots: "
        "[...] with 10 values in seconds."
    )
    review = ten_calls().compare(CALLS_S)
    assert str(review).startswith("No drawing. The notebook goes on without one. Draw it")
    assert "came out" in review.figure.description
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("guess", [5, "fast", [1, 2], ["a"] * 10, {"other": [1] * 10}, [-1] * 10])
def test_an_unusable_curve_leaves_the_axes_empty(guess: object) -> None:
    """A guess that cannot be drawn raises nothing, and the text says so, and how to type one."""
    made = ten_calls(guess)
    assert made.is_empty
    assert str(made).startswith("How long? What you typed could not be read. Draw it on the axes")
    assert "[...] with 10 values in seconds" in str(made)
    assert made.note == "What you typed could not be read."
    with pytest.raises(InvalidOptionError, match="curves=5; it must be a dict of the names of"):
        made.give(5)  # type: ignore[arg-type]  # wrong on purpose


def test_a_drawing_is_saved_and_restored(folder: Path) -> None:
    """A drawing comes back after a restart, and a change after the reveal is marked as late."""
    drawn = [1.0, None, *[1e-3] * 8]
    ten_calls(drawn).compare(CALLS_S)
    again = ten_calls()
    assert again.curves["step"] == ([1, *range(3, 11)], [1.0, *[1e-3] * 8])
    again.compare(CALLS_S)
    kept = predictions_of(LearnerJournal(folder).entries)["04.first"]
    assert (len(kept.late), kept.is_scored) == (0, True)
    changed = ten_calls(CALLS_S).compare(CALLS_S)
    assert "this change is kept, and your first guess counts" in str(changed)
    assert "you drew 1,000 times" in str(changed)
    assert ten_calls().note == ""
    kept = predictions_of(LearnerJournal(folder).entries)["04.first"]
    assert kept.reveal is not None
    assert (len(kept.late), kept.reveal.is_right, kept.reveal.counts) == (1, True, "drawing")


@pytest.mark.slow
def test_the_page_draws_and_the_words_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values that the page sends are limited to the axes, and the words below say them."""
    shown = shown_in(monkeypatch, watched=True)
    monkeypatch.setattr(widgets, "widget_data", lambda widget: {"widget": widget})
    drawing = ten_calls()
    drawing._ipython_display_()
    (first,), still = shown.outputs
    page = first["widget"]
    assert page.view["still"] in still[0]["text/html"]
    assert page.view["axes"]["x_ticks"] == [(n, str(n)) for n in (1, 3, 5, 7, 9)]
    drawn = [["step", [1e9, None, *[1e-3] * 8]]]
    page._handle_custom_msg({"drawn": drawn, "number": 7}, [])
    assert page.view["answer"] == 7  # so the page knows that it was heard
    assert drawing.curves["step"][1][:2] == [lesson_04.TEN_CALLS.high, 1e-3]
    assert "Drawn step: 10.0 s at call 1, 1.00 ms at 10." in still[1]["text/html"]


def test_two_outputs_show_the_later_drawing_and_a_new_kernel_has_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cell has run twice: what is drawn in one output is in both, and is saved at once."""
    shown = shown_in(monkeypatch, watched=True)
    monkeypatch.setattr(widgets, "widget_data", lambda widget: {"widget": widget})
    for _ in range(2):
        ten_calls()._ipython_display_()
    first, second = (shown.outputs[place][0]["widget"] for place in (0, 2))
    for page, value in ((first, 1e-3), (second, 1e-4), (first, 1e-5)):
        page._handle_custom_msg({"drawn": [["step", [value] * 10]]}, [])
        for each in (first, second):
            assert each.view["curves"][0]["values"] == [value] * 10
        forget_all()
        assert ten_calls().curves["step"][1] == [value] * 10
    assert len(LearnerJournal(folder).entries) == 3


def test_a_drawing_sent_on_another_thread_counts_at_once_and_is_said_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A message on a thread other than the main one counts; the main thread says it later."""
    shown = shown_in(monkeypatch, watched=True)
    monkeypatch.setattr(widgets, "widget_data", lambda widget: {"widget": widget})
    drawn = {"drawn": [["step", [1e-3] * 10]]}

    async def session() -> None:
        drawing = ten_calls()
        drawing._ipython_display_()
        page = shown.outputs[0][0]["widget"]
        other = Thread(target=lambda: [page._handle_custom_msg(drawn, []) for _ in range(3)])
        other.start()
        other.join()
        assert drawing.curves["step"][1] == [1e-3] * 10
        assert len(shown.outputs[1]) == 1
        await asyncio.sleep(0)

    asyncio.run(session())
    assert "Drawn step: 1.00 ms" in shown.outputs[1][-1]["text/html"]
