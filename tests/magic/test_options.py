"""Options are parsed like those of %timeit, and the code after them is not changed."""

from typing import Any

import pytest
from IPython.core.error import UsageError

from gpulab.magic._options import CellOptions, parse_options
from gpulab.timing import METHODS, MeasurementOptions

KNOWN = (
    "Known: -n, -r, -p, -q, -o, -v, --save, --method, --hot, --cold, --flush, --floor, --ladder, "
    "--timeline, --vs, --backend, --warmup, --precision, --max-time, --flops, --bytes, --each, "
    "--seed, --stream, --run; write -- before code that begins with a minus"
)


def asked(**options: Any) -> CellOptions:  # noqa: ANN401  # fields of two records
    """Return the options of a cell; those of ``measure`` go to the inner record."""
    shared = {name: options.pop(name) for name in MeasurementOptions.names() & options.keys()}
    return CellOptions(measurement=MeasurementOptions(**shared), **options)


def test_defaults_are_those_of_the_plain_function() -> None:
    """A line without options is only code and has the default options."""
    assert parse_options("a @ b", is_cell=False) == (asked(), "a @ b")


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ("-n 10 x", asked(inner_loops=10)),
        ("-n10 x", asked(inner_loops=10)),
        ("-r 7 x", asked(n_samples=7)),
        ("-p 5 x", asked(n_digits=5)),
        ("-q x", asked(quiet=True)),
        ("-o x", asked(returns_result=True)),
        ("-v name x", asked(save_as="name")),
        ("-qon10 -r 3 x", asked(quiet=True, returns_result=True, inner_loops=10, n_samples=3)),
        ("-n 1 -n 2 x", asked(inner_loops=2)),
        ("--save name x", asked(save_as="name")),
        ("-v a --save b -v name x", asked(save_as="name")),
        ("--method naive x", asked(method="naive")),
        ("--method=naive x", asked(method="naive")),
        ("--backend virtual x", asked(backend="virtual")),
        ("--warmup 0 x", asked(n_warmup=0)),
        ("--precision 0.05 x", asked(precision=0.05)),
        ("--max-time 0.5 x", asked(max_time_s=0.5)),
        ("--seed 0 x", asked(seed=0)),
        ("--stream s x", asked(stream="s")),
        ("--run x", asked(runs_after=True)),
        ("  -q   x  ", asked(quiet=True)),
    ],
)
def test_options_before_the_code_are_read(line: str, options: CellOptions) -> None:
    """Each option sets its field; short ones may stand together; the last one wins."""
    assert parse_options(line, is_cell=False) == (options, "x")


@pytest.mark.parametrize(
    "code",
    [
        "-a",
        "-a + 2",
        "-qz * 2",
        "-norm(a)",
        "-n + 2",
        'print("a  b")',
        'f("-n 5")',
        "x -n 5",
        "a  if  b  else  -q",
    ],
)
def test_code_is_not_changed(code: str) -> None:
    """Text that is not an option is code with all its spaces, even after a minus sign."""
    assert parse_options(code, is_cell=False) == (asked(), code)
    assert parse_options(f"-r 3 {code}", is_cell=False) == (asked(n_samples=3), code)


@pytest.mark.parametrize("code", ["-q", "--run", "--a", "-n 3"])
def test_two_minus_signs_end_the_options(code: str) -> None:
    """All text after ``--`` is code, even if it looks like an option."""
    assert parse_options(f"-q -- {code}", is_cell=False) == (asked(quiet=True), code)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--methd events x", f"unknown option --methd; did you mean --method? {KNOWN}"),
        ("--runn", f"unknown option --runn; did you mean --run? {KNOWN}"),
        ("-method naive x", f"unknown option -method; did you mean --method? {KNOWN}"),
        ("-N 5 x", f"unknown option -N; did you mean -n? {KNOWN}"),
        ("-z x", f"unknown option -z; {KNOWN}"),
        ("-n", "-n has no value; it must be a whole number, at least 1"),
        ("-n 0 x", "-n 0; it must be a whole number, at least 1"),
        ("-r 2.5 x", "-r 2.5; it must be a whole number, at least 1"),
        ("-p 16 x", "-p 16; it must be a whole number from 1 to 15"),
        (
            "-r 1000000000 x",
            (
                "n_samples=1000000000 calls the work 1000000000 times, which even at 5 µs each "
                "takes 1.4 hours; more than an hour is refused: ask for fewer, or leave "
                "n_samples out to stop when the answer is precise"
            ),
        ),
        ("-v 2x y", "-v 2x; it must be the name of a variable"),
        ("--save for y", "--save for; it must be the name of a variable"),
        ("--stream a.b y", "--stream a.b; it must be the name of a variable"),
        ("--method", "--method has no value; it must be the name of a timing method"),
        ("--backend cpu x", "--backend cpu; it must be auto, cuda or virtual"),
        ("--warmup -1 x", "--warmup -1; it must be a whole number, 0 or more"),
        ("--precision 1 x", "--precision 1; it must be between 0 and 1, such as 0.01 for 1 %"),
        ("--max-time inf x", "--max-time inf; it must be a number of seconds above 0"),
        ("--max-time 0 x", "--max-time 0; it must be a number of seconds above 0"),
        ("--seed -1 x", "--seed -1; it must be a whole number, 0 or more"),
        ("--each", '--each has no value; it must be code, in quotes: --each "w.grad = None"'),
        (
            "--timeline --each a x",
            "--timeline and --each cannot be used together; use one of them",
        ),
        ("--run=yes x", "--run=yes; --run takes no value; write --run alone"),
        (
            "--cold -n 3 x",
            (
                "cache='cold' with inner_loops=3; only the first of the calls in a sample would "
                "be cold; use inner_loops=1, or cache='hot'"
            ),
        ),
        (
            "--method nive x",
            (
                "--method nive: unknown timing method 'nive'; did you mean 'naive'? Known: "
                f"{', '.join(sorted(METHODS))}"
            ),
        ),
        (
            "-o --run x",
            "-o and --run both set the cell's result; use -v NAME with --run",
        ),
    ],
)
def test_bad_options_are_refused(line: str, message: str) -> None:
    """The message names the value and what is allowed, or suggests the nearest option."""
    with pytest.raises(UsageError) as error:
        parse_options(line, is_cell=False)
    assert str(error.value) == message


@pytest.mark.parametrize("quoted", ['"w.grad = None"', "'w.grad = None'"])
def test_a_value_in_quotes_has_blanks(quoted: str) -> None:
    """What stands after the closing quote is code, also if it has quotes."""
    options, code = parse_options(f'--each {quoted} f("a b")', is_cell=False)
    assert (options.each, code) == ("w.grad = None", 'f("a b")')
    options, code = parse_options("--each x.zero_() y", is_cell=False)
    assert (options.each, code) == ("x.zero_()", "y")
    assert parse_options('--each "a b', is_cell=False)[0].each == '"a'


@pytest.mark.parametrize(
    "line", ["--hot --cold", "--ladder --timeline", "--ladder --vs a", "--timeline --vs a"]
)
def test_options_that_exclude_each_other(line: str) -> None:
    """The message names both options."""
    first, second = (word for word in line.split() if word.startswith("--"))
    with pytest.raises(UsageError) as error:
        parse_options(line, is_cell=True)
    assert str(error.value) == f"{first} and {second} cannot be used together; use one of them"
