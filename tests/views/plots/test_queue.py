"""Pictures of a short program: host and GPU side by side, and what lies between two events."""

from dataclasses import replace

import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure as Canvas

from gpulab import plots
from gpulab.core.errors import InvalidOptionError
from gpulab.core.units import counted
from gpulab.figures import MUTED
from gpulab.tracing import Span, Timeline
from tests.support.spans import host, mark, work

pytestmark = pytest.mark.usefixtures("no_pixels")


def program(*spans: Span) -> Timeline:
    """Return the timeline of a program on a virtual H200."""
    return Timeline(spans, "virtual", "NVIDIA H200")


def launches(n_calls: int, *, per_call: int = 1) -> list[Span]:
    """Return launches of 10 µs, each with a kernel of 40 µs, and the wait that ends a timeline."""
    n_all = n_calls * per_call
    calls = [host("launch", 10 * n, 10 * n + 10, n) for n in range(n_all)]
    works = [work(50 * n + 8, 50 * n + 48, 0, n, name="mm") for n in range(n_all)]
    return [*calls, *works, host("wait", 10 * n_all, 50 * n_all + 2, 99, waits_for=n_all - 1)]


def texts(ax: Axes) -> list[str]:
    """Return all texts in the picture."""
    return [text.get_text() for text in ax.texts if text.get_text()]


@pytest.mark.parametrize(
    ("n_calls", "per_call", "names", "title"),
    [
        (3, 1, "abc", "All three calls have returned. The GPU has finished none of them"),
        (3, 2, "abc", "All three calls have returned. The GPU has finished none of them"),
        (3, 2, "", "All six calls have returned. The GPU has finished one of them"),
        (2, 1, "", "Both calls have returned. The GPU has finished none of them"),
        (8, 1, "", "All 8 calls have returned. The GPU has finished one of them"),
        (1, 1, "a", "The call has returned. The GPU has not finished its work"),
    ],
)
def test_the_title_says_what_is_finished(
    n_calls: int, per_call: int, names: str, title: str
) -> None:
    """The title counts the calls that are finished when the last of them has returned."""
    figure = plots.host_and_gpu(program(*launches(n_calls, per_call=per_call)), names=names)
    assert figure.title == f"{title} (virtual NVIDIA H200)"
    # One call of the program may launch several kernels.
    n_called = n_calls if names else n_calls * per_call
    assert figure.caption.startswith(f"The host's {counted(n_called, 'call')} have returned")


def test_names_that_do_not_fit_are_left_out() -> None:
    """If the launches cannot be shared among the names, each kernel counts as a call."""
    figure = plots.host_and_gpu(program(*launches(4)), names="abc")
    assert figure.title.startswith("All four calls have returned.")
    assert "a" not in texts(figure.canvas.axes[0])


def test_a_call_is_finished_with_its_last_kernel() -> None:
    """A call of two kernels is not finished when the first of them is."""
    spans = [
        *(host("launch", 10 * n, 10 * n + 10, n) for n in range(2)),
        work(8, 12, 0, 0),
        work(13, 90, 0, 1),
        host("wait", 20, 92, 2),
    ]
    assert "has not finished" in plots.host_and_gpu(program(*spans), names="a").title
    assert "finished one" in plots.host_and_gpu(program(*spans), names="ab").title


def test_the_stopwatch_stops_with_the_program() -> None:
    """The wait that ends each timeline is left out, and a wait of the program is not."""
    ax = Canvas().add_subplot()
    plots.host_and_gpu(program(*launches(3)), ax, names="abc")
    assert "a stopwatch reads 30.0 µs" in texts(ax)
    assert "wait" not in texts(ax)
    assert texts(ax).count("a") == 2
    assert [label.get_text() for label in ax.get_yticklabels()] == ["host", "GPU"]
    ax.clear()
    waiting = program(*launches(3), host("wait", 152, 156, 100))
    plots.host_and_gpu(waiting, ax, names="abc")
    assert {"a stopwatch reads 152 µs", "wait"} <= {*texts(ax)}
    assert plots.host_and_gpu(waiting, names="abc").title.startswith(
        "All three calls have returned. The GPU has finished all of them"
    )


def test_a_stopwatch_that_starts_later() -> None:
    """Calls before the stopwatch are grey, and the title compares reading and work."""
    record = program(*launches(3), host("wait", 152, 156, 100))
    figure = plots.host_and_gpu(record, names="abc", n_before=2)
    assert figure.title == "A stopwatch reads 132 µs for 40.0 µs of work (virtual NVIDIA H200)"
    assert figure.caption.startswith("The host's 4 calls have returned after 152 µs.")
    bars = [bar for bars in figure.canvas.axes[0].containers for bar in bars]
    greys = [to_hex(bar.get_facecolor()) == MUTED for bar in bars]
    assert greys == [True, True, False, False, True, True, False]


def test_each_stream_has_its_row() -> None:
    """Work of two streams is drawn in two rows with their names."""
    spans = [*launches(2), host("launch", 20, 30, 5), work(30, 60, 7, 5)]
    ax = plots.host_and_gpu(program(*spans), Canvas().add_subplot())
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels == ["host", "GPU, stream 0", "GPU, stream 7"]


RECORD = "cudaEventRecordWithFlags"
IDLE = program(
    host("host", 0, 2, 1, name=RECORD),
    mark("event", 4, 4, 0, 1),
    host("launch", 2, 6, 2, name="cudaLaunchKernel"),
    work(9, 10, 0, 2, name="add"),
    host("host", 10, 12, 3, name=RECORD),
    mark("event", 14, 14, 0, 3),
    host("wait", 12, 17, 4, waits_for=3),
)
BUSY = program(
    host("launch", 0, 5, 1, name="cudaLaunchKernel"),
    work(8, 300, 0, 1, name="mm"),
    mark("event", 301, 301, 0, 2),
    work(302, 303, 0, 3, name="add"),
    mark("event", 304, 304, 0, 4),
)


def test_what_lies_between_two_events() -> None:
    """The bracket is the time between the events, and long pauses are named."""
    ax = Canvas().add_subplot()
    plots.between_two_events(IDLE, ax)
    assert texts(ax) == [
        *["record", "launch", "record", "add", "waits", "waits", "start", "end", "10.0 µs"]
    ]
    figure = plots.between_two_events({"idle GPU": IDLE, "busy GPU": BUSY})
    assert figure.title == (
        "The events are 10.0 µs (idle GPU) and 3.00 µs (busy GPU) apart (virtual NVIDIA H200)"
    )
    assert figure.caption == (
        "idle GPU: the events are 10.0 µs apart, and the GPU works for 1.00 µs of it.\n"
        "busy GPU: the events are 3.00 µs apart, and the GPU works for 1.00 µs of it."
    )
    (ax,) = figure.canvas.axes
    assert texts(ax).count("waits") == 2
    assert {"mm", " ← launched before"} <= {*texts(ax)}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: plots.host_and_gpu(replace(IDLE, spans=IDLE.spans[:1])),
            "the timeline has no launch with its kernel; record a program that uses the GPU",
        ),
        (
            lambda: plots.host_and_gpu(program(*launches(1)), n_before=1),
            "n_before=1, but the program makes 1 call; give a smaller number",
        ),
        (
            lambda: plots.between_two_events({"a": replace(IDLE, spans=IDLE.spans[:2])}),
            (
                "the timeline 'a' has 1 event; record a program with an event before its work "
                "and one after it"
            ),
        ),
        (
            lambda: plots.between_two_events({}),
            "record={} has no timelines; give them by name",
        ),
        (
            lambda: plots.between_two_events({"a": 3}),
            "record=3; it must be a timeline, such as gpulab.timeline() returns",
        ),
        (
            lambda: plots.host_and_gpu(3),
            "record=3; it must be a timeline, such as gpulab.timeline() returns",
        ),
        (
            lambda: plots.host_and_gpu(IDLE, names=3),
            "names=3; it must be a list, each item a text",
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused(call: object, message: str) -> None:
    """The message says what is missing, and what to record."""
    with pytest.raises(InvalidOptionError) as error:
        call()  # type: ignore[operator]  # a function
    assert str(error.value) == message
