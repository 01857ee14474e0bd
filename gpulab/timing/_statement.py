"""Work that is given as text: Python statements, or the name of a function in a script."""

import importlib.util
import inspect
import linecache
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from types import CodeType, ModuleType

from gpulab.core.errors import InvalidOptionError, NotReadError, UnknownNameError
from gpulab.core.foreign_text import one_line
from gpulab.core.requirements import NOT_NEGATIVE
from gpulab.device.work import Work
from gpulab.timing._options import AUTO, refuse_uncallable

__all__ = ["amounts_in", "run_setup", "work_of"]


_SETUP, _STATEMENT = "<setup>", "<statement>"
_FUNCTION = re.compile(r"(?P<script>.+\.py):(?P<function>[^\W\d]\w*)")


def run_setup(setup: str) -> dict[str, object]:
    """Run statements, and return the names that they define; ``torch`` is defined already.

    An exception of the statements reaches you unchanged.
    """
    import torch

    names: dict[str, object] = {"torch": torch, "__name__": _SETUP}
    exec(_compiled(setup, _SETUP), names)  # noqa: S102  # running the user's code is the purpose
    return names


def work_of(text: str, names: dict[str, object]) -> Work:
    """Return a function that runs statements, or the function that ``script.py:function`` names.

    Statements use ``names`` and store theirs there. The script is imported, so what stands below
    ``if __name__ == "__main__":`` does not run. Raises `NotReadError` if there is no such script,
    `UnknownNameError` if it has no such function, and `InvalidOptionError` if that needs
    arguments.
    """
    named = _FUNCTION.fullmatch(text.strip())
    if named is not None:
        return _function(_script(Path(named["script"]), names), named["function"])
    if text.endswith(".py") and Path(text).is_file():
        raise InvalidOptionError(f"{text} is a script; name a function in it: {text}:function")
    code = _compiled(text, _STATEMENT)
    # As in `timeit`, names are shared with the setup.
    return lambda: exec(code, names)  # noqa: S102  # as above


def amounts_in(
    names: Mapping[str, object], *, flops: str | None, size_bytes: str | None
) -> dict[str, float | str]:
    """Return the counts of a call from their expressions; `InvalidOptionError` if one has none."""
    options = {"flops": ("--flops", flops), "size_bytes": ("--bytes", size_bytes)}
    return {
        field: text if (field, text) == ("flops", AUTO) else _amount(option, text, names)
        for field, (option, text) in options.items()
        if text
    }


def _amount(option: str, text: str, names: Mapping[str, object]) -> float:
    try:
        value = eval(_compiled(text, f"<{option}>", "eval"), dict(names))  # noqa: S307  # as above
    except Exception as error:
        raise InvalidOptionError(
            f"{option} {text}: {type(error).__name__}: {error}; give a number, or an expression "
            "of variables that exist already"
        ) from error
    if not NOT_NEGATIVE.accepts(value):
        raise InvalidOptionError(f"{option} {text}; it must be {NOT_NEGATIVE.wanted}")
    return float(value)


def _compiled(text: str, filename: str, mode: str = "exec") -> CodeType:
    # Otherwise a traceback would have no source lines.
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    try:
        return compile(text, filename, mode)
    except SyntaxError as error:
        raise error.with_traceback(None) from None


def _script(path: Path, names: dict[str, object]) -> ModuleType:
    """Import a script into ``names``, unless it is there already, and return its module."""
    imported = names.get(path.stem)
    if isinstance(imported, ModuleType) and imported.__file__ == str(path):
        return imported
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise NotReadError(
            f"there is no script {one_line(str(path))}; name one as script.py:function, or "
            "write statements"
        )
    module = importlib.util.module_from_spec(spec)
    # As for `python script.py`, modules beside the script can be imported.
    sys.path.insert(0, str(path.parent.resolve()))
    sys.modules.setdefault(path.stem, module)
    names[path.stem] = module
    spec.loader.exec_module(module)
    return module


def _function(script: ModuleType, name: str) -> Work:
    function = getattr(script, name, None)
    if not callable(function):
        functions = [each for each, value in vars(script).items() if inspect.isfunction(value)]
        raise UnknownNameError(f"function of {script.__name__}.py", name, functions)
    refuse_uncallable(name, function)
    needed = [
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    if needed:
        raise InvalidOptionError(
            f"{name} needs the arguments {', '.join(needed)}; name a function without arguments, "
            "whose inputs the script makes before"
        )
    work: Work = function
    return work
