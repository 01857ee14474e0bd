"""All callers share one record of the options of a measurement."""

from inspect import signature
from typing import Any

import pytest

from gpulab.core.errors import InvalidOptionError
from gpulab.timing import MeasurementOptions, compare, ladder, measure


@pytest.mark.parametrize("function", [measure, compare, ladder])
def test_what_is_left_out_has_the_default_of_the_record(function: Any) -> None:  # noqa: ANN401  # three signatures
    """Defaults equal the record's; only `max_time_s` differs in compare and ladder."""
    parameters = signature(function).parameters
    shared = MeasurementOptions.names() & parameters.keys() - {"max_time_s"}
    assert shared >= {"setup", "precision"}
    for name in shared:
        assert parameters[name].default == getattr(MeasurementOptions(), name)


def test_arguments_are_those_of_measure_and_compare() -> None:
    """Every field of the record can be passed to `measure` and `compare`."""
    options = MeasurementOptions(method="graph", n_samples=7)
    assert options.arguments()["n_samples"] == 7
    for function in (measure, compare):
        assert options.arguments().keys() <= signature(function).parameters.keys()
    assert MeasurementOptions(**options.arguments()) == options


def test_what_is_wanted_completes_a_sentence() -> None:
    """Its words fit after "it must be", as the magic needs."""
    precision, floor = map(MeasurementOptions.requirement, ("precision", "floor"))
    assert precision.wanted == "between 0 and 1, such as 0.01 for 1 %"
    assert floor.wanted == "the name of a floor"


def test_arguments_beside_the_work_have_a_cure() -> None:
    """`measure(f, x)` says where the arguments of the work belong, and does not call it."""
    with pytest.raises(InvalidOptionError) as error:
        measure(print, 1, "a")  # type: ignore[arg-type]  # the mistake
    assert str(error.value) == (
        "measure got 2 arguments after the work (of type int, str); give the arguments of the "
        "work as inputs: measure(print, inputs=[(x,)]), or call it in a function: "
        "measure(lambda: print(x))"
    )
    with pytest.raises(InvalidOptionError, match=r"measure\(f, inputs="):
        measure(lambda: None, 1)  # type: ignore[arg-type]  # the mistake
