"""Every benchmark prints its help without a GPU, and the pages contain what they write."""

import importlib.util
import inspect
import json
import pkgutil
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

import benchmarks
from benchmarks.accuracy.examples import as_markdown
from benchmarks.accuracy.report import report as accuracy_report
from benchmarks.common.folders import RESULTS, ROOT


def commands() -> Iterator[str]:
    """Yield the modules to run by ``python -m``: single modules, and the main of each package."""
    for module in pkgutil.iter_modules(benchmarks.__path__, "benchmarks."):
        if not module.ispkg:
            yield module.name
        elif importlib.util.find_spec(f"{module.name}.__main__"):
            yield f"{module.name}.__main__"


def modules() -> Iterator[str]:
    """Yield every module of the benchmarks."""
    for module in pkgutil.walk_packages(benchmarks.__path__, "benchmarks."):
        yield module.name


@pytest.mark.parametrize("name", list(modules()))
def test_every_module_can_be_imported(name: str) -> None:
    """All names that a benchmark imports from the project still exist."""
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if str(missing.name).partition(".")[0] in {"benchmarks", "gpulab", "tests"}:
            raise
        pytest.skip(f"{missing.name} is not installed")


@pytest.fixture(params=sorted(commands()))
def command(request: pytest.FixtureRequest) -> ModuleType:
    """Return one module that has a command line."""
    return importlib.import_module(request.param)


def test_help_says_how_to_start_it(
    command: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--help`` exits with 0 and shows the command to type."""
    with pytest.raises(SystemExit) as stopped:
        command.main(["--help"])
    shown = f"python -m {command.__name__.removesuffix('.__main__')}"
    assert stopped.value.code == 0
    usage, _, about = capsys.readouterr().out.partition("\n\n")
    assert usage.startswith(f"usage: {shown}")
    assert shown in about


def test_each_command_calls_a_function_that_takes_its_options(
    command: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command of a benchmark names its function, which has a parameter for each option."""
    if not hasattr(command, "call_command"):
        pytest.skip("it has one command")
    parsers: list[Any] = []
    monkeypatch.setattr(command, "call_command", lambda parser, _: parsers.append(parser))
    command.main([])
    (subparsers,) = parsers[0]._subparsers._group_actions
    for parser in subparsers.choices.values():
        function = pkgutil.resolve_name(parser.get_default("command"))
        options = {action.dest for action in parser._actions} - {"help"}
        inspect.signature(function).bind(**dict.fromkeys(options))


def results_of(name: str) -> dict[str, object]:
    """Return a file of results."""
    return dict(json.loads((RESULTS / name).read_text("utf-8")))


def accuracy_part() -> str:
    """Return the text that the accuracy benchmark writes."""
    image = "images/accuracy-h200.png"
    return "\n".join(accuracy_report(results_of("accuracy-h200.json"), image))


PARTS: dict[tuple[str, str], Callable[[], str]] = {
    ("docs/accuracy.md", "accuracy"): accuracy_part,
    ("docs/measuring-anything.md", "anything"): lambda: as_markdown(
        results_of("accuracy-anything-h200.json")
    ),
}


@pytest.mark.parametrize(("page", "name"), PARTS)
def test_pages_show_the_results(page: str, name: str) -> None:
    """Each generated part of a page is what the benchmark would write now."""
    text = PARTS[page, name]()
    written = (ROOT / page).read_text("utf-8")
    assert f"<!-- {name}:begin -->\n{text}\n<!-- {name}:end -->" in written
