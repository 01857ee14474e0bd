"""The page of an explorer: its numbers, what its script says, and its messages with Python."""

import asyncio
import json
import math
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gpulab.core.units import (
    format_bytes,
    format_percent,
    format_rate,
    format_ratio,
    format_time,
)
from gpulab.figures import widgets
from gpulab.roofline.scaling._curve import amounts
from gpulab.views.explorers import Explorer, _open, crossover_explorer, roofline_explorer
from gpulab.views.explorers._explorer import merge
from tests.support.explored import formula, points, recording, take
from tests.support.notebook_display import shown_in

if TYPE_CHECKING:
    import pandas as pd

SCRIPT = Path(__file__).parents[2] / "javascript/explorers.js"
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")


def said_by_the_page(kind: str, data: Any, states: Sequence[Any]) -> Any:  # noqa: ANN401  # JSON
    """Return what the scripts say of each state."""
    given = json.dumps({"kind": kind, "data": data, "states": states})
    code = f"const GIVEN = {given};\n{widgets.script(SCRIPT)}"
    command = ["node", "--no-warnings", "--input-type=module", "-"]
    done = subprocess.run(command, input=code, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def numbers_of(explorer: Explorer[Any], states: Sequence[Any]) -> dict[str, Any]:
    """Return the numbers that a page has after it was in these states."""
    numbers = explorer._numbers()
    for state in states:
        merge(numbers, explorer._model.state_numbers(state))
    return numbers


@needs_node
def test_the_page_finds_the_crossings_that_python_finds() -> None:
    """Over every link and for each kind of copies, and with a virtual GPU, both agree."""
    explorer: Any = crossover_explorer("matmul")
    states = [
        replace(explorer.state, workload=name, size=64, **choices)
        for name in ("matmul", "add", "softmax", "fft", "sort")
        for choices in (
            {"transfers": "none"},
            {"transfers": "in"},
            {"transfers": "both", "link": "PCIe 3"},
            {"transfers": "out", "link": 10**11},
            {"transfers": "both", "n_threads": 1},
        )
    ]
    states.append(replace(explorer.state, gpu="computed:T4", transfers="both"))
    told = said_by_the_page(
        "crossover", numbers_of(explorer, states), [asdict(state) for state in states]
    )
    for state, page in zip(states, told, strict=True):
        record = explorer._model.record(replace(state, size=0), ())
        assert not page["lacks"]
        for crossing, ours in (
            (record.crossing, page["crossing"]),
            (record.bare_crossing, page["bare"]),
        ):
            if ours is None:
                assert state.transfers == "none"
                continue
            assert ours["kind"] == crossing.kind, state
            assert ours["sizes"] == pytest.approx(crossing.sizes, rel=1e-4)
            if crossing.kind == "once":
                high = math.inf if ours["high"] is None else ours["high"]
                assert (ours["low"], high) == pytest.approx(
                    (crossing.low, crossing.high), rel=1e-4
                )
        for curve in (record.cpu, record.gpu):
            line, fit = page["lines"][curve.on], curve.fit
            assert fit is not None
            assert line["unit"] == fit.unit
            at = [*amounts(state.workload, curve.sizes, state.dtype, fit.unit)]
            assert line["median_s"] == pytest.approx(list(fit.time_s(at)), rel=1e-3)
        explorer._state = state
        assert page["code"] == explorer.code


def finding_of(ratios: "pd.Series[float]", state: Any) -> str:  # noqa: ANN401  # a private type
    """Return by how much half of the points miss the prediction, as the page says it."""
    if ratios.empty:
        return "What the models predict for the H200; nothing is measured."
    factor, what = (
        math.exp(ratios.map(math.log).abs().median()),
        f"the {state.model} model predicts",
    )
    if factor < 1.25:
        return f"Half of the points are within {format_percent(factor - 1)} of what {what}."
    middle = ratios.median()
    times, side = format_ratio(max(middle, 1 / middle)), "slower" if middle > 1 else "faster"
    return f"Half of the points are more than {times} times {side} than {what}."


@needs_node
def test_the_page_says_of_the_roofline_what_python_says() -> None:
    """Both have the same points, the same finding and the same line of code."""
    explorer: Any = roofline_explorer()
    states = [
        replace(explorer.state, **choices)
        for choices in (
            {},
            {"model": "refined"},
            {"dtype": "float16", "cache": "hot", "operations": ("exp", "sort", "fft")},
            {"span": 1 << 20},
            {"beside": "computed:T4", "view": "roofline", "operations": ("add",)},
            {"beside": "recorded:h100-sxm-2026-11", "operations": ("add",)},
        )
    ]
    told = said_by_the_page(
        "roofline", numbers_of(explorer, states), [asdict(state) for state in states]
    )
    for state, page in zip(states, told, strict=True):
        explorer._state = state
        frame = explorer.to_frame()
        first = frame[frame["device_name"] == "NVIDIA H200"]
        assert page["n"] == len(first[first["source"] != ""])
        assert page["title"] == finding_of(first[f"{state.model}_ratio"].dropna(), state)
        assert page["code"] == explorer.code
        if page["beside"]:
            # Measured times if all points of both have them, otherwise the model's of both.
            column = "measured_s" if frame["measured_s"].notna().all() else f"{state.model}_s"
            times_s = frame.pivot_table(column, ["workload", "size"], "device_name", sort=False)
            one, other = (times_s[name] for name in dict.fromkeys(frame["device_name"]))
            ratio = (other / one if other.sum() > one.sum() else one / other).median()
            assert f" takes {format_ratio(ratio)} times " in page["beside"]


@needs_node
def test_quantities_read_as_in_python() -> None:
    """Times, bytes and rates have the same digits and units on the page."""
    times_s = [1e-9, 9.996e-7, 1.5e-5, 0.0123, 3.0]
    amounts = [512, 4096, 1048575, 3 << 30, 1.58e10, 4.8e12]
    ratios = [0.0566, 1.2, 9.996, 12, 3430.4]
    (texts,) = said_by_the_page("texts", {}, [[times_s, amounts, ratios]])
    ours = ([format_bytes(n), format_rate(n, "B")] for n in amounts)
    assert texts == [
        [format_time(time_s) for time_s in times_s],
        list(ours),
        [format_ratio(ratio) for ratio in ratios],
    ]


def test_a_page_contains_no_script_but_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name from a file cannot end the script that contains it."""
    explorer: Any = crossover_explorer("add")
    monkeypatch.setattr(explorer._model, "base_numbers", lambda: {"name": "</script><b>x"})
    shown_in(monkeypatch, watched=True)  # no figure
    html = explorer._shown()["text/html"]
    assert html.count("</script>") == 2
    assert len(widgets.page_html("crossover", "", {}, "")) < 200_000


@pytest.mark.slow
def test_a_front_end_gets_the_page_and_the_widget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a front end the page has a figure, for readers that run no script."""
    explorer = crossover_explorer("add")
    with monkeypatch.context() as patch:
        alone = shown_in(patch, watched=False)
        explorer._ipython_display_()
    ((page,),) = alone.outputs
    assert "<figure" in page["text/html"]
    with monkeypatch.context() as patch:
        watched = shown_in(patch, watched=True)
        explorer._ipython_display_()
    (page,), (widget,) = watched.outputs
    assert "<figure" not in page["text/html"]
    assert set(widget) == {"application/vnd.jupyter.widget-view+json"}
    explorer.close()


class Page:
    """A page of an explorer: what Python has sent, and messages to it."""

    def __init__(self, explorer: Explorer[Any], monkeypatch: pytest.MonkeyPatch) -> None:
        self.messages: list[dict[str, Any]] = []
        self.widget = explorer.widget
        monkeypatch.setattr(self.widget, "send", self.messages.append, raising=False)

    def send(self, **content: object) -> None:
        """Send a message as the browser does."""
        self.widget._handle_custom_msg(content, [])


@pytest.fixture(autouse=True)
def _formula_in_place_of_measuring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_open, "measure_step", take)


def test_choices_of_the_page_reach_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """A state of the page is taken over, and one that does not fit is settled, not raised."""
    explorer: Any = roofline_explorer()
    page = Page(explorer, monkeypatch)
    page.send(do="state", state={**asdict(explorer.state), "operations": ["exp"], "span": 4**9})
    assert (explorer.state.operations, explorer.state.span) == (("exp",), 4**9)
    page.send(do="state", state={**asdict(explorer.state), "gpu": "recorded:gone"})
    assert explorer.state.gpu == "recorded:h200-sxm-2026-11"
    assert page.messages == []


def test_numbers_of_a_virtual_gpu_travel_when_they_are_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They are not in the page at first, and one message brings them."""
    explorer: Any = crossover_explorer("add")
    gpus = explorer._numbers()["operations"]["add"]["types"]["float32"]["gpus"]
    assert "computed:T4" not in gpus
    page = Page(explorer, monkeypatch)
    page.send(do="numbers", state={**asdict(explorer.state), "gpu": "computed:T4"})
    (message,) = page.messages
    sent = message["numbers"]["operations"]["add"]["types"]["float32"]
    assert len(sent["gpus"]["computed:T4"]["none"]["median_s"]) >= 5
    assert explorer.state.gpu == "computed:T4"
    opened: Any = crossover_explorer("add", gpu="computed:T4", cpu="here", points=points("add"))
    numbers = opened._numbers()
    curves = numbers["operations"]["add"]["types"]["float32"]
    assert "computed:T4" in curves["gpus"]
    assert "here" in curves["cpus"]
    sources = [numbers["gpus"][f"computed:{name}"]["source"] for name in ("T4", "H200")]
    assert sources == ["computed from its data sheet", "computed"]


def test_code_moves_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that says hello, and one that is open, hear of the choices of code."""
    explorer: Any = crossover_explorer("add")
    page = Page(explorer, monkeypatch)
    page.send(do="hello")
    explorer.choose(size=4096)
    assert [message["state"]["size"] for message in page.messages] == [512, 4096]


async def until(is_done: Callable[[], bool]) -> None:
    """Run the event loop until a condition is true."""
    while not is_done():  # noqa: ASYNC110 # what it waits for sets no event
        await asyncio.sleep(0)


def test_measuring_from_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step reports progress, Stop keeps the points, and pressing again measures the rest."""
    monkeypatch.setattr("gpulab.views.explorers._scheduling._PAUSE_S", 0.0)

    async def session() -> None:
        explorer: Any = crossover_explorer("add", gpu="here", cpu="here", n_threads=1)
        page = Page(explorer, monkeypatch)
        page.send(do="measure")
        step = "1 of 20: add n=1,024 float32 on the CPU: 1 thread"
        assert page.messages[-1]["progress"] == {"text": step, "done": 0, "total": 20}
        await until(lambda: len(explorer.points) >= 3)
        page.send(do="stop")
        n_points = len(explorer.points)
        for _ in range(6):
            await asyncio.sleep(0)
        assert len(explorer.points) == n_points
        stopped = f"Stopped. {n_points} points measured; press again for the rest."
        assert page.messages[-1]["progress"]["text"] == stopped
        page.send(do="measure")
        await until(lambda: not explorer._job.is_running)
        last = page.messages[-1]
        assert last["progress"]["total"] == 0
        own = last["numbers"]["operations"]["add"]["types"]["float32"]
        assert own["cpus"]["here"]["1"]["sizes"] == [p.task.size for p in explorer.points[::2]]
        page.send(do="measure")
        running = explorer._job
        assert len(explorer.measure()) == 20  # a cell may measure, too, and ends what runs
        assert not running.is_running
        explorer.close()

    asyncio.run(session())


def test_own_recordings_are_on_the_page(tmp_path: Path) -> None:
    """Their curves have the threads that they were taken with."""
    path = recording(points("add", n_threads=(2, 8)), tmp_path)
    numbers = crossover_explorer("add", recordings=path)._numbers()
    source = f"recorded:{path}"
    assert numbers["cpus"][source]["threads"] == [8, 2]
    assert numbers["state"]["gpu"] == source
    curves = numbers["operations"]["add"]["types"]["float32"]["cpus"][source]
    assert set(curves) == {"2", "8"}


def test_failed_points_have_no_place_on_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """A size that could not be timed is left out of a curve."""
    explorer = crossover_explorer("add", gpu="here", cpu="here", n_threads=1)

    def fails_late(step: Any) -> Any:  # noqa: ANN401  # as take
        return replace(formula(step), error="no room") if step.size > 4096 else formula(step)

    monkeypatch.setattr(explorer, "_measure_step", fails_late)
    explorer.measure()
    own = explorer._model.own_numbers(explorer.found)
    sizes = own["operations"]["add"]["types"]["float32"]["gpus"]["here"]["none"]["sizes"]
    assert sizes == [1024, 4096]
