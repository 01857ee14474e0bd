"""The reference lists only names that exist, with an example for each."""

import importlib
import inspect
import re

import gpulab
from tests.support.lessons import ROOT

PAGE = (ROOT / "docs" / "reference" / "index.md").read_text("utf-8")
LISTED = re.findall(r"^   ([A-Za-z_][\w.]*)$", PAGE, re.MULTILINE)


def named(name: str) -> object:
    """Return the object that a name on the page stands for."""
    found: object = gpulab
    path = "gpulab"
    for part in name.split("."):
        path = f"{path}.{part}"
        found = getattr(found, part) if hasattr(found, part) else importlib.import_module(path)
    return found


def test_every_entry_has_an_example() -> None:
    """It can be run, or it is a cell of a notebook."""
    texts = {name: inspect.getdoc(named(name)) or "" for name in LISTED}
    assert len(texts) > 60
    assert [name for name, text in texts.items() if not re.search(r">>> |::\n\n", text)] == []


def test_every_public_function_is_listed() -> None:
    """What ``gpulab`` itself offers, but the packages, the version and the extension's end."""
    others = {"__version__", "unload_ipython_extension", "load_ipython_extension"}
    offered = {
        name
        for name in gpulab.__all__
        if not inspect.ismodule(getattr(gpulab, name)) and name not in others
    }
    assert offered - set(LISTED) == set()
