"""A stand-in for a package of PyTorch gives way to the real package and its modules."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import gpulab
from gpulab.virtual._stand_ins import StandIn

PACKAGE = "torch.package_of_test"


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    """Replace a package, which imports one of its two modules, by a stand-in."""
    folder = tmp_path / "package_of_test"
    folder.mkdir()
    (folder / "__init__.py").write_text("from .imported import things")
    (folder / "imported.py").write_text("things = []")
    (folder / "other.py").write_text("from torch.package_of_test.imported import things")
    monkeypatch.setattr(torch, "__path__", [*torch.__path__, str(tmp_path)])
    made = sys.modules[PACKAGE] = StandIn(PACKAGE, {"known": 1})
    yield made
    for name in [name for name in sys.modules if name.startswith(PACKAGE)]:
        del sys.modules[name]
    vars(torch).pop("package_of_test", None)


@pytest.mark.parametrize("name", ["imported", "other"])
def test_a_module_of_the_package_is_imported_once(stand_in: StandIn, name: str) -> None:
    """A program may import a module of the package that a stand-in replaces."""
    with gpulab.virtual_gpu("H200"):
        module = importlib.import_module(f"{PACKAGE}.{name}")
    package = sys.modules[PACKAGE]
    assert package is not stand_in
    assert getattr(package, name) is sys.modules[f"{PACKAGE}.{name}"] is module
    assert package.things is module.things
    assert type(module.__spec__.loader).__name__ == "SourceFileLoader"


@pytest.mark.usefixtures("stand_in")
def test_an_unknown_module_is_refused_as_by_python() -> None:
    """A module that the package lacks raises Python's own error."""
    with gpulab.virtual_gpu("H200"), pytest.raises(ModuleNotFoundError, match="nothing"):
        importlib.import_module(f"{PACKAGE}.nothing")
