"""Complete the options of ``%cudatime`` and their values with the Tab key."""

from typing import Any

from gpulab.magic._cell import Shell
from gpulab.magic._options import BACKENDS, option_names

_HOOK = "complete_command"
_KEYS = ("%cudatime", "%%cudatime")


def complete(_shell: object, event: Any) -> list[str]:  # noqa: ANN401  # IPython's event has no type
    """Return what can stand at the cursor of a magic's line: an option, or the value of one.

    Code is left to IPython, which completes it as elsewhere.
    """
    symbol: str = event.symbol
    words = event.text_until_cursor[: len(event.text_until_cursor) - len(symbol)].split()
    values = _values(words[-1] if words else "")
    known = option_names() if values is None and symbol.startswith("-") else values or ()
    return [name for name in known if name.startswith(symbol)]


def _values(option: str) -> tuple[str, ...] | None:
    """Return the names that an option takes, or None if its value is no such name."""
    if option == "--backend":
        return BACKENDS
    if option == "--flops":
        return ("auto",)
    if option not in {"--method", "--flush", "--floor"}:
        return None
    from gpulab.timing import MeasurementOptions

    requirement: Any = MeasurementOptions.requirement(option.removeprefix("--"))
    return tuple(requirement.names)


def start_completing(shell: Shell) -> None:
    """Register the completion in a shell."""
    for key in _KEYS:
        shell.set_hook(_HOOK, complete, str_key=key)


def stop_completing(shell: Shell) -> None:
    """Remove the completion from a shell, if it is there; that of others stays."""
    # IPython has no public way to take a hook back.
    table = shell.strdispatchers[_HOOK].strs
    for key in _KEYS:
        chain = table.get(key)
        if chain is not None:
            chain.chain[:] = [each for each in chain.chain if not _is_ours(each[1])]
            if not chain.chain:
                del table[key]


def _is_ours(hook: object) -> bool:
    # A function of an earlier import is ours, too: %reload_ext imports the module again.
    return getattr(getattr(hook, "__func__", hook), "__module__", "") == __name__
