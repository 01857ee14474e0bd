"""The reference lists every public name, and each entry has an example."""

import importlib
import inspect
import re

import gpulab
from tests.support.lessons import ROOT

PAGE = (ROOT / "docs" / "reference" / "index.md").read_text("utf-8")
LISTED = re.findall(r"^   ([A-Za-z_][\w.]*)$", PAGE, re.MULTILINE)


def named(name: str) -> object:
    """Return the object with this dotted name."""
    value: object = gpulab
    path = "gpulab"
    for part in name.split("."):
        path = f"{path}.{part}"
        value = getattr(value, part) if hasattr(value, part) else importlib.import_module(path)
    return value


def test_every_entry_has_an_example() -> None:
    """Every listed name has a doctest or a literal block in its docstring."""
    texts = {name: inspect.getdoc(named(name)) or "" for name in LISTED}
    assert len(texts) > 60
    assert [name for name, text in texts.items() if not re.search(r">>> |::\n\n", text)] == []


def test_every_public_function_is_listed() -> None:
    """Every public name of ``gpulab`` but packages, version and IPython's hooks is listed."""
    others = {"__version__", "unload_ipython_extension", "load_ipython_extension"}
    offered = {
        name
        for name in gpulab.__all__
        if not inspect.ismodule(getattr(gpulab, name)) and name not in others
    }
    assert offered - set(LISTED) == set()
