"""The Tab key on a magic's line offers its options and the names that they take."""

from types import SimpleNamespace

import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell

from gpulab.magic import load_ipython_extension, unload_ipython_extension
from gpulab.magic._completion import complete
from gpulab.magic._options import option_names
from gpulab.timing import METHODS


def offered(line: str) -> list[str]:
    """Return what is offered at the end of a line."""
    symbol = "" if line.endswith(" ") else line.rsplit(maxsplit=1)[-1]
    return complete(None, SimpleNamespace(symbol=symbol, text_until_cursor=line))


def completed(shell: InteractiveShell, line: str) -> list[str]:
    """Return what a shell offers at the end of a line."""
    with provisionalcompleter():
        return [each.text for each in shell.Completer.completions(line, len(line))]


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("%cudatime --me", ["--method"]),
        ("%%cudatime --fl", ["--flush", "--floor", "--flops"]),
        ("%cudatime -q --la", ["--ladder"]),
        ("%cudatime --method sat", ["saturated"]),
        ("%cudatime --backend v", ["virtual"]),
        ("%cudatime --flops ", ["auto"]),
        ("%cudatime --flush ", ["read", "write"]),
        ("%cudatime --floor w", ["work"]),
        ("%cudatime torch.", []),
        ("%cudatime ", []),
        ("%cudatime -n ", []),
    ],
)
def test_options_and_their_names_are_offered(line: str, names: list[str]) -> None:
    """An option where one begins, its values after it, and nothing for code."""
    assert offered(line) == names


def test_every_option_and_every_method_is_offered() -> None:
    """The lists are those that the magic reads."""
    assert offered("%cudatime -") == list(option_names())
    assert offered("%cudatime --method ") == list(METHODS)


@pytest.mark.slow
def test_a_shell_completes_until_the_extension_is_unloaded() -> None:
    """IPython asks for both magics; loading twice offers each once, and unloading nothing."""
    shell = InteractiveShell()
    for _ in range(2):
        load_ipython_extension(shell)
    for line in ("%cudatime --me", "%%cudatime --me"):
        assert "--method" in completed(shell, line)
    assert len(shell.strdispatchers["complete_command"].strs["%cudatime"].chain) == 1
    unload_ipython_extension(shell)
    assert "--method" not in completed(shell, "%cudatime --me")
    assert "%cudatime" not in shell.strdispatchers["complete_command"].strs


@pytest.mark.slow
def test_the_completion_of_others_stays() -> None:
    """Another package's hook on the same name is asked after ours is gone."""
    shell = InteractiveShell()
    shell.set_hook("complete_command", lambda _shell, _event: ["--mine"], str_key="%cudatime")
    load_ipython_extension(shell)
    unload_ipython_extension(shell)
    found = completed(shell, "%cudatime --m")
    assert ("--mine" in found, "--method" in found) == (True, False)
