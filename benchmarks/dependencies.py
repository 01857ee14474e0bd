"""Print what every dependency of gpulab takes on disk, and how long importing it takes.

    python -m benchmarks.dependencies

This is the table of docs/dependencies.md. A package that is not installed is left out.
"""

import argparse
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from benchmarks.common.command_line import parser_of
from benchmarks.common.folders import ROOT

# Packages whose import name is not their own name.
MODULES = {"ipython": "IPython", "nvidia-ml-py": "pynvml", "pytest-xdist": "xdist"}
HEADER = "| package | version | MB | MB with what it needs | ms to import |\n|---|---|--:|--:|--:|"


def requirements() -> Iterator[Requirement]:
    """Yield the requirements in pyproject.toml, without gpulab's own extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    for text in (text for each in lists for text in each):
        if (wanted := Requirement(text)).name != project["name"]:
            yield wanted


@cache
def installed(name: str) -> Distribution | None:
    """Return an installed package, or None if it is not installed."""
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def needs(name: str, extras: frozenset[str] = frozenset()) -> set[str]:
    """Return a package and everything that it needs here, as canonical names."""
    found: set[str] = set()
    waiting = [(canonicalize_name(name), extras)]
    while waiting:
        package, chosen = waiting.pop()
        if package in found or (files := installed(package)) is None:
            continue
        found.add(package)
        for text in files.requires or ():
            wanted = Requirement(text)
            markers = [{"extra": extra} for extra in (*chosen, "")]
            if wanted.marker is None or any(map(wanted.marker.evaluate, markers)):
                waiting.append((canonicalize_name(wanted.name), frozenset(wanted.extras)))
    return found


@cache
def size_mb(name: str) -> float:
    """Return the size of a package's files on disk, in megabytes."""
    package = installed(name)
    files = (package.files if package else None) or ()
    paths = [package.locate_file(file) for file in files if package]
    return sum(path.stat().st_size for path in paths if path.is_file()) / 1e6  # type: ignore[attr-defined] # a Path


def import_ms(module: str, n_processes: int) -> float:
    """Return the least CPU time that an import took, in milliseconds, over fresh processes."""
    code = f"import time; import {module}; print(time.process_time())"
    empty = "import time; print(time.process_time())"

    def least_s(program: str) -> float:
        # Isolated from the user's own packages and from the current folder.
        command = [sys.executable, "-I", "-c", program]
        # The least, because a busy machine can only make an import slower.
        return min(
            float(subprocess.check_output(command, stderr=subprocess.DEVNULL))  # noqa: S603 # this Python, and names from pyproject.toml
            for _ in range(n_processes)
        )

    return 1e3 * max(0.0, least_s(code) - least_s(empty))


def row(wanted: Requirement, n_processes: int) -> str | None:
    """Return the row of a package; None if it is not installed."""
    package = installed(wanted.name)
    if package is None:
        return None
    everything = sum(map(size_mb, needs(wanted.name, frozenset(wanted.extras))))
    module = MODULES.get(wanted.name, wanted.name.replace("-", "_"))
    try:
        cost = f"{import_ms(module, n_processes):.0f}"
    except subprocess.CalledProcessError:  # a program or stubs, which nobody imports
        cost = "-"
    alone = size_mb(wanted.name)
    return f"| {wanted.name} | {package.version} | {alone:.1f} | {everything:.1f} | {cost} |"


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = parser_of("benchmarks.dependencies", __doc__)
    made.add_argument(
        "--processes", type=int, default=5, help="processes for each package; the fastest counts"
    )
    return made


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    chosen = parser().parse_args(arguments)
    print(HEADER)
    for wanted in requirements():
        if line := row(wanted, chosen.processes):
            print(line)


if __name__ == "__main__":
    main()
