"""The catalogue of programs to run, read from ``catalogue.toml``."""

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# Number of losses to compare: later ones differ more, because training amplifies rounding errors.
N_COMPARED = 3


@dataclass(frozen=True)
class Program:
    """One program of somebody else.

    Attributes
    ----------
    name
        Its name in the table.
    repository, commit
        Where it is published, and the version to run.
    path
        Its file in the repository.
    arguments
        Its command line.
    data
        The synthetic files that it gets, by their name in :mod:`benchmarks.programs.stand_ins`.
    steps
        Number of optimizer steps after which it is ended.
    parents
        Folders above its own from which it imports: 1 for the one that contains its own.
    options
        Options of ``virtual_gpu``.
    on_cpu
        Further arguments on the CPU, to choose that device.
    """

    name: str
    repository: str
    commit: str
    path: str
    arguments: tuple[str, ...] = ()
    data: str = ""
    steps: int = 6
    parents: tuple[int, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    on_cpu: tuple[str, ...] = ()


def _program(commit: str, *, arguments: str = "", **fields: Any) -> Program:  # noqa: ANN401 # fields of several types
    for name in {"parents", "on_cpu"} & fields.keys():
        fields[name] = tuple(fields[name])
    return Program(commit=commit, arguments=tuple(arguments.split()), **fields)


_READ = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
PROGRAMS = tuple(
    _program(_READ["commits"][each["repository"]], **each) for each in _READ["programs"]
)
BY_NAME = {program.name: program for program in PROGRAMS}
