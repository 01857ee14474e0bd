"""Fitting host costs and comparing host times, on known numbers."""

import json
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.host_time import fitting, judging
from gpulab.virtual.simulator import fitted_costs


@pytest.mark.slow  # it imports scipy
def test_costs_are_found_again_from_programs_that_have_them() -> None:
    """The fit finds the costs and a slower host's pace; what no program has stays as expected."""
    rows = []
    for i_host, pace in ((0, 1.0), (1, 1.3)):
        for n_modules, n_views in ((10, 0), (0, 100), (300, 50), (40, 400)):
            counts = Counter({"module": n_modules, "view": n_views})
            host_us = 10 + n_modules * 2.1 + n_views * 1.45
            rows.append((pace * host_us, fitting.Counted(10.0, counts), i_host))
    found, paces = fitting.solve(rows)
    assert found["module"] == pytest.approx(2_100, rel=0.01)
    assert found["view"] == pytest.approx(1_450, rel=0.01)
    assert found["backward"] == fitting.EXPECTED["backward"][0]
    assert paces == pytest.approx([1.0, 1.3], rel=0.01)


def test_the_wall_time_counts_where_the_host_decides_it() -> None:
    """The wall time counts only if the device was idle for much of it."""
    launch_bound = {"host_us": 400.0, "wall_us": 100.0, "busy_us": 10.0}
    assert fitting.usual_us(launch_bound) == 200.0
    assert fitting.usual_us({**launch_bound, "busy_us": 99.0}) == 400.0


def test_every_cost_that_is_fitted_is_in_the_file() -> None:
    """The file of costs has exactly the costs that are fitted."""
    assert fitted_costs().keys() == fitting.EXPECTED.keys()


def test_a_judgement_lists_programs_and_sums_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that fails on either side is listed, and left out of the figures."""
    there = {"host_us": 100.0, "wall_us": 200.0, "busy_us": 50.0}
    here = {"host_us": 110.0, "wall_us": 150.0, "busy_us": 50.0}
    predicted = {"good": here, "bad": {"error": "TimeoutError: too long"}}
    monkeypatch.setattr(judging, "predict", lambda _titles: predicted)
    times = tmp_path / "times.json"
    times.write_text(json.dumps({"programs": {"good": there, "bad": there}}), "utf-8")
    lines = judging.judge(times).splitlines()
    assert [cell.strip() for cell in lines[2].strip("|").split("|")] == [
        "good",
        "100",
        "110",
        "+10%",
        "200",
        "150",
        "-25%",
        "50",
        "50",
        "+0%",
    ]
    assert "TimeoutError: too long" in lines[3]
    assert [line.split()[1:6:2] for line in lines[-3:]] == [
        ["host", "1", "10.0%"],
        ["wall", "1", "25.0%"],
        ["busy", "1", "0.0%"],
    ]


@pytest.mark.parametrize(("share", "wanted"), [(0.0, 1.0), (0.5, 2.0), (0.75, 3.0), (1.0, 4.0)])
def test_a_quantile_lies_between_its_neighbours(share: float, wanted: float) -> None:
    """A quantile between two numbers is interpolated; the median of three is the middle one."""
    assert judging.quantile([1.0, 2.0, 4.0], share) == wanted
