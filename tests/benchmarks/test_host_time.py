"""Fitting host costs, on known numbers."""

import json
from collections import Counter

import pytest

from benchmarks.host_time import fitting
from benchmarks.host_time.__main__ import _H100, _H200
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


def test_each_recorded_program_can_be_run() -> None:
    """The programs of both files of times are those that the fit knows, and no others."""
    titles = [
        title
        for path in (_H200, _H100)
        for title in json.loads(path.read_text("utf-8"))["programs"]
    ]
    assert sorted(titles) == sorted(fitting.PROGRAMS)
