"""List gpulab's public functions, classes and methods, from ``gpulab.__all__`` and the pages.

Public are the names of ``gpulab.__all__``, all of the modules among them, and what README, docs
and lessons import. A class is listed if users get its objects, and its constructor if a public
function takes such an object.
"""

import collections.abc
import contextlib
import importlib
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass, is_dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import gpulab

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Callee:
    """A function, a class or a method that a user may call."""

    name: str
    function: Callable[..., Any]
    owner: type | None = None

    @cached_property
    def signature(self) -> inspect.Signature:
        """Its parameters, with annotations as objects."""
        hints = hints_of(self.function)
        signature = inspect.signature(self.function)
        parameters = [
            part
            for name, parameter in signature.parameters.items()
            if name != "self" or self.owner is None
            for part in _unpacked(parameter.replace(annotation=hints.get(name, Any)))
        ]
        return signature.replace(parameters=parameters)


def _unpacked(parameter: inspect.Parameter) -> Iterator[inspect.Parameter]:
    """Yield a parameter; in place of options from a typed dict, one parameter for each."""
    if typing.get_origin(parameter.annotation) is not typing.Unpack:
        yield parameter
        return
    (options,) = typing.get_args(parameter.annotation)
    for name, hint in typing.get_type_hints(options).items():
        yield inspect.Parameter(name, parameter.KEYWORD_ONLY, default=None, annotation=hint)


@cache
def callees() -> dict[str, Callee]:
    """Return the public callables by their names."""
    return {callee.name: callee for callee in _public_callables()}


@cache
def public_names() -> dict[str, frozenset[str] | None]:
    """Return the public names of each package; None stands for all of its names."""
    found: dict[str, set[str] | None] = {
        name: None for name in gpulab.__all__ if inspect.ismodule(getattr(gpulab, name))
    }
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    pages += (ROOT / "notebooks" / "source").rglob("*.py")
    text = "\n".join(page.read_text("utf-8") for page in pages if page.exists())
    for names in re.findall(r"from gpulab import ([\w, ]+)", text):
        found |= dict.fromkeys((name.strip() for name in names.split(",")), None)
    pairs = [_module_and_name(path) for path in re.findall(r"\bgpulab\.([a-z_.]+\.\w+)", text)]
    for path, names in re.findall(r"from gpulab\.([\w.]+) import ([\w, ]+)", text):
        pairs += [_module_and_name(f"{path}.{name.strip()}") for name in names.split(",")]
    for module, name in pairs:
        names_of_module = found.setdefault(module, set())
        if names_of_module is not None:
            names_of_module.add(name)
    return {
        module: None if names is None else frozenset(names)
        for module, names in found.items()
        if inspect.ismodule(_attribute(module))
    }


def _module_and_name(path: str) -> tuple[str, str]:
    """Return the module that a path such as ``plots.draw`` begins with, and the name in it."""
    module, _, name = path.rpartition(".")
    while "." in module and not inspect.ismodule(_attribute(module)):
        module, _, name = module.rpartition(".")
    return module, name


def _attribute(path: str) -> object:
    """Return what a path below ``gpulab`` names, or None."""
    found: object = gpulab
    for name in path.split("."):
        if inspect.ismodule(found) and not hasattr(found, name):
            # A package is an attribute only once it is imported.
            with contextlib.suppress(ImportError):
                importlib.import_module(f"{found.__name__}.{name}")
        found = getattr(found, name, None)
    return found


def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotations as objects, also of names imported only for type checkers."""
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from gpulab.virtual import VirtualGpu

    class Series(pd.Series):
        """pandas' own at run time, with the subscript that only its stubs have."""

        def __class_getitem__(cls, _: object) -> type:
            return pd.Series

    names = {
        "pd": types.SimpleNamespace(DataFrame=pd.DataFrame, Series=Series),
        "Axes": Axes,
        "Canvas": Figure,
        "VirtualGpu": VirtualGpu,
        "Timeline": gpulab.Timeline,
        "Measurement": gpulab.Measurement,
        "Callable": collections.abc.Callable,
        "DataclassInstance": object,
    }
    if not inspect.isclass(function):
        target = inspect.unwrap(function)
        return typing.get_type_hints(target, {**vars(inspect.getmodule(target)), **names})
    spaces = {**names, **vars(inspect.getmodule(function))}
    return {
        name: typing.get_type_hints(
            types.SimpleNamespace(__annotations__={name: parameter.annotation}), spaces
        )[name]
        for name, parameter in inspect.signature(function).parameters.items()
    }


def _public_callables() -> Iterator[Callee]:
    seen: set[int] = set()
    for prefix, name, found in _public_objects():
        if id(found) in seen or not _is_ours(found):
            continue
        seen.add(id(found))
        if not inspect.isclass(found):
            yield Callee(f"{prefix}{name}", found)
        elif found in _met() and not getattr(found, "_is_protocol", False):
            if _is_made_by_users(found):
                yield Callee(f"{prefix}{name}", found)
            for method, function in inspect.getmembers(found, inspect.isroutine):
                if not method.startswith("_") and _is_ours(function):
                    yield Callee(f"{prefix}{name}.{method}", function, found)


def _public_objects() -> Iterator[tuple[str, str, Any]]:
    """Yield the prefix, the name and the object of everything public."""
    for name in gpulab.__all__:
        found = getattr(gpulab, name)
        if not inspect.ismodule(found):
            yield "", name, found
    for room, names in sorted(public_names().items()):
        module = _attribute(room)
        assert inspect.ismodule(module)
        own = [
            name for name, found in vars(module).items() if _module_of(found) == module.__name__
        ]
        for name in getattr(module, "__all__", own):
            if not name.startswith("_") and (names is None or name in names):
                yield f"{room}.", name, getattr(module, name)


def _module_of(found: object) -> str:
    return str(getattr(found, "__module__", "") or "")


def _is_ours(found: object) -> bool:
    is_callable = inspect.isroutine(found) or inspect.isclass(found)
    is_plain = not isinstance(found, types.GenericAlias)
    return is_callable and is_plain and _module_of(found).startswith("gpulab")


def _is_made_by_users(found: type) -> bool:
    """Return whether users create objects of a class: a public function takes them."""
    at_the_door = _module_of(found).startswith("gpulab.device.measurement")
    return at_the_door or (is_dataclass(found) and found in _taken_back())


@cache
def _taken_back() -> frozenset[type]:
    return frozenset(_classes_of_hints(lambda name: name != "return"))


@cache
def _met() -> frozenset[type]:
    """Return the classes of all arguments and results of public functions, and of their parts."""
    pending, met = list(_classes_of_hints(lambda _: True)), set()
    while pending:
        kind = pending.pop()
        if kind not in met:
            met.add(kind)
            if is_dataclass(kind):
                pending += [part for hint in hints_of(kind).values() for part in _classes_in(hint)]
    return frozenset(met)


def _classes_of_hints(which: Callable[[str], bool]) -> set[type]:
    classes: set[type] = set()
    for prefix, _, found in _public_objects():
        if inspect.isclass(found) and not prefix:
            classes.add(found)
        if inspect.isfunction(found):
            for name, hint in hints_of(found).items():
                classes |= set(_classes_in(hint)) if which(name) else set()
    return classes


def _classes_in(hint: object) -> Iterator[type]:
    if inspect.isclass(hint) and not isinstance(hint, types.GenericAlias):
        yield hint
    # Arguments and results of a callable argument do not count.
    if typing.get_origin(hint) is not collections.abc.Callable:
        for part in typing.get_args(hint):
            yield from _classes_in(part)
