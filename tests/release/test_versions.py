"""Every file that contains versions agrees with pyproject.toml and the package."""

import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from gpulab.core import versions

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
(_, _FIRST), (_, _END) = versions.PYTHON_RANGE
PYTHONS = [f"3.{minor}" for minor in range(_FIRST, _END)]
# Debian has patch releases that are years old.
PATCH_RELEASES = [f"{version}.0" for version in PYTHONS]
MAX_BARE_PACKAGES = 52  # and with the CPU build of torch eight more, so at most 60


def read(name: str) -> str:
    """Return the text of a file of the project."""
    return (ROOT / name).read_text("utf-8")


def wanted() -> dict[str, Requirement]:
    """Return the requirements of pyproject.toml by name, without gpulab's own extras."""
    lists = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    found = [Requirement(text) for each in lists for text in each]
    return {each.name: each for each in found if each.name != PROJECT["name"]}


def pins(name: str, python: str) -> dict[str, str]:
    """Return the versions that a file of constraints pins for a version of Python."""
    lines = [line.partition("#")[0].strip() for line in read(name).splitlines()]
    environment = {**default_environment(), "python_version": python}
    found = {}
    for line in filter(None, lines):
        pin = Requirement(line)
        if pin.marker is None or pin.marker.evaluate(environment):
            (only,) = pin.specifier
            assert (only.operator, pin.name in found) == ("==", False), line
            found[pin.name] = only.version
    return found


def lower_bound(requirement: Requirement) -> str:
    """Return the oldest version that a requirement allows."""
    (bound,) = (each.version for each in requirement.specifier if each.operator == ">=")
    return bound


def test_every_requirement_has_a_lower_bound_that_the_oldest_versions_pin() -> None:
    """Each pinned version for the oldest Python, or for Colab, is the bound of its requirement."""
    oldest = pins("constraints-oldest.txt", PYTHONS[0])
    assert oldest.keys() == wanted().keys()
    _, _, colab = read("tox.ini").partition("[testenv:colab]")
    of_colab = re.findall(r"^ +([\w-]+)==(\S+)$", colab, re.MULTILINE)
    for name, version in (oldest | dict(of_colab)).items():
        bound = lower_bound(wanted()[name])
        if name == "torch":  # older ones than the oldest that is tried in full are judged in use
            bound = ".".join(map(str, versions.TORCH_RANGE[0]))
        assert version == bound or version.startswith(f"{bound}."), name
        assert wanted()[name].specifier.contains(version), name


@pytest.mark.parametrize("name", ["constraints.txt", "constraints-oldest.txt"])
@pytest.mark.parametrize("python", PYTHONS)
def test_pinned_versions_are_allowed(name: str, python: str) -> None:
    """Each package that pyproject.toml names is pinned once for each Python, within its range."""
    pinned = pins(name, python)
    for package, requirement in wanted().items():
        assert requirement.specifier.contains(pinned[package]), package


@pytest.mark.slow
@pytest.mark.parametrize("python", PATCH_RELEASES)
def test_pinned_versions_can_be_installed_on_each_python(python: str) -> None:
    """No pinned version that is installed here needs a newer patch release of Python."""
    refused = []
    for name, version in pins("constraints.txt", python.rpartition(".")[0]).items():
        try:
            here = distribution(name)
        except PackageNotFoundError:
            continue
        needs = here.metadata.get("Requires-Python") or ""
        if here.version.partition("+")[0] == version and not SpecifierSet(needs).contains(python):
            refused.append(f"{name} {version} needs Python {needs}")
    assert not refused, refused


def test_one_range_of_python_everywhere() -> None:
    """pip, gpulab, the Makefile, README and tox name the same versions of Python."""
    first, end = (".".join(map(str, bound)) for bound in versions.PYTHON_RANGE)
    assert PROJECT["requires-python"] == f">={first},<{end}"
    assert [
        each.rpartition(" ")[2] for each in PROJECT["classifiers"] if ":: Python :: 3." in each
    ] == PYTHONS
    assert f"{versions.PYTHON_RANGE[0]} <= sys.version_info[:2] < {versions.PYTHON_RANGE[1]}" in (
        read("Makefile")
    )
    assert f"is not Python {versions.span(versions.PYTHON_RANGE)}; name one" in read("Makefile")
    assert f"You need Python {versions.span(versions.PYTHON_RANGE)}" in read("README.md")
    (minors,) = re.findall(r"env_list = 3\.\{([\d,]+)\}", read("tox.ini"))
    assert [f"3.{minor}" for minor in minors.split(",")] == PYTHONS


def test_one_range_of_torch_everywhere() -> None:
    """The package and Binder name the same tried versions; pip takes older and newer ones, too."""
    first, end = (".".join(map(str, bound)) for bound in versions.TORCH_RANGE)
    # Others are judged when they are used; before 2.8, names that gpulab imports are missing.
    assert str(wanted()["torch"].specifier) == ">=2.8"
    assert first in wanted()["torch"].specifier
    assert f'pip install "torch>={first},<{end}"' == versions.INSTALL_TORCH
    assert f"pytorch-cpu>={first},<{end}" in read("binder/environment.yml")


def brought_by(requirements: list[str]) -> set[str]:
    """Return the packages that pip would install for these, by the metadata of the installed."""
    names: set[str] = set()
    pending = [Requirement(text) for text in requirements]
    while pending:
        requirement = pending.pop()
        name = canonicalize_name(requirement.name)
        if name in names or name == "torch":  # what torch needs depends on its build
            continue
        names.add(name)
        needed = [Requirement(text) for text in distribution(name).requires or []]
        pending += [
            each for each in needed if each.marker is None or each.marker.evaluate({"extra": ""})
        ]
    return names


@pytest.mark.skipif(sys.platform != "linux", reason="other systems need other packages")
def test_the_page_names_what_a_bare_install_brings() -> None:
    """Without extras there is no server, and the page has every package that is installed."""
    if distribution("ipywidgets").version != pins("constraints.txt", "3.11")["ipywidgets"]:
        pytest.skip("older versions need other packages")
    (count, names) = re.findall(
        r"brings these (\d+) packages besides torch and what torch needs:\s([^.]+)\.",
        read("docs/dependencies.md"),
    )[0]
    named = names.replace("\n", " ").split(", ")
    assert len(named) == int(count) <= MAX_BARE_PACKAGES
    assert brought_by(PROJECT["dependencies"]) <= set(named)
    assert not {"jupyterlab", "jupyter-server", "notebook"} & set(named)


def test_the_page_names_every_dependency() -> None:
    """The page on dependencies has one row for each package, and no other."""
    page = read("docs/dependencies.md")
    reasons, _, weights = page.partition("## How heavy")
    for part in (reasons, weights):
        rows = re.findall(r"^\| ([a-z][\w-]*) \|", part, re.MULTILINE)
        assert [row for row in rows if row != "package"] == list(wanted())
    extras = PROJECT["optional-dependencies"]
    for name, extra in re.findall(
        r"^\| ([\w-]+) \| (\w+) \| [^|]+ \| [^|]+ \| [^|]+ \| ", reasons, re.MULTILINE
    ):
        if name != "package":
            names = {canonicalize_name(Requirement(text).name) for text in extras[extra]}
            assert name in names, (name, extra)
