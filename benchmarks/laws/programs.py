"""Random programs as data: made from a seed, printed as Python, and shrunk if they break a law."""

import random
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from benchmarks.laws.statements import (
    FAMILIES,
    MAKING,
    OPTIMIZERS,
    SIZES,
    STATEMENTS,
    Statement,
)

# Runs once on a GPU, before the first program.
PRELUDE = """\
import copy, gc, io, signal, time
import torch
from torch import nn
from torch.nn import functional
side = [torch.cuda.Stream(), torch.cuda.Stream()]
event = torch.cuda.Event(enable_timing=True)
"""
_FAMILY_STATEMENTS = {
    family: [item for item in STATEMENTS if item.family == family] for family in FAMILIES
}
_EYE = '(2 * torch.eye({x}.shape[0], device="cuda"))'
_CAPTURE = "torch.cuda.graph("
_SAME_AGAIN = 0.5  # how often an operand of the same shape is another tensor, if there is one


@dataclass(frozen=True, slots=True)
class Step:
    """One part of a program, between two readings of the clocks.

    Attributes
    ----------
    text
        Its source.
    family
        Its family of operators, or of other calls.
    reads_values
        Whether it raises an error where values are switched off.
    """

    text: str
    family: str
    reads_values: bool = False


@dataclass(frozen=True, slots=True)
class Program:
    """A program for a GPU, virtual or not; equal seeds make equal programs.

    Attributes
    ----------
    name
        What it was made from, e.g. ``"program 17"``.
    steps
        Its parts, in their order.

    Examples
    --------
    >>> program_of(1) == program_of(1)
    True
    """

    name: str
    steps: tuple[Step, ...]

    def text(self, *, options: str = "") -> str:
        """Return the program as a file that runs on the virtual H200.

        Parameters
        ----------
        options
            Options of ``gpulab.virtual_gpu``, e.g. ``", max_value_elements=0"``.
        """
        body = f"{PRELUDE}{''.join(f'{step.text}{chr(10)}' for step in self.steps)}"
        return (
            f'import gpulab\n\nwith gpulab.virtual_gpu("H200"{options}):\n'
            f"{textwrap.indent(body, '    ')}"
        )

    def without_value_reads(self) -> "Program":
        """Return the program without steps that raise an error where values are switched off."""
        return replace(self, steps=tuple(step for step in self.steps if not step.reads_values))

    def without_failed_captures(self) -> "Program":
        """Return the program without steps in which the capture of a graph fails."""
        steps = (
            step for step in self.steps if step.family != "failure" or _CAPTURE not in step.text
        )
        return replace(self, steps=tuple(steps))


def program_of(seed: int, n_steps: int = 12) -> Program:
    """Return the random program with this seed.

    Parameters
    ----------
    seed
        Any whole number.
    n_steps
        How many statements it has, besides those that make its tensors.
    """
    return Program(f"program {seed}", tuple(_Maker(seed).steps(n_steps)))


@dataclass(frozen=True, slots=True)
class _Tensor:
    name: str
    kind: str
    shape: str  # tensors with the same text have the same shape


class _Maker:
    """Makes steps that use the tensors of earlier ones."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 # no secret
        self._tensors: list[_Tensor] = []
        self._n_names = 0
        self._made: list[Step] = []

    def steps(self, n_steps: int) -> Sequence[Step]:
        # One family after the other would need many statements until a rare one comes.
        self._make_tensor(self._random.choice([*SIZES]))
        for _ in range(n_steps):
            family = self._random.choice(FAMILIES)
            self._add(self._random.choice(_FAMILY_STATEMENTS[family]))
        return self._made

    def _add(self, statement: Statement) -> None:
        text = statement.text
        if statement.kind:
            x = self._tensor(statement.kind)
            alike = [item for item in self._tensors if item.shape == x.shape]
            same = self._random.choice(alike) if self._random.random() < _SAME_AGAIN else x
            text = text.replace("{eye}", _EYE).replace("{same}", same.name)
            text = text.replace("{x}", x.name)
            if text in {f"del {x.name}", f"{x.name}.set_()"}:
                self._tensors.remove(x)
            if "{new}" in text:
                text = self._named("{new}", text, x.kind, x.shape)
        if "{other}" in text:
            text = self._named("{other}", text, "other", "unknown")
        if "{own}" in text:
            text = text.replace("{optimizer}", self._random.choice(OPTIMIZERS))
            text = text.replace("{own}", self._new_name())
        text = text.replace("{few}", str(self._random.randint(1, 4)))
        text = text.replace("{many}", str(self._random.randint(5, 30)))
        self._made.append(Step(text, statement.family, statement.reads_values))

    def _named(self, placeholder: str, text: str, kind: str, shape: str) -> str:
        """Return a statement with a name for the tensor that it makes."""
        name = self._new_name()
        self._tensors.append(_Tensor(name, kind, name if shape == "unknown" else shape))
        return text.replace(placeholder, name)

    def _tensor(self, kind: str) -> _Tensor:
        fitting = [item for item in self._tensors if kind in ("any", item.kind)]
        if not fitting:
            return self._make_tensor(self._random.choice([*SIZES]) if kind == "any" else kind)
        return self._random.choice(fitting)

    def _make_tensor(self, kind: str) -> _Tensor:
        size = self._random.choice(SIZES[kind])
        tensor = _Tensor(self._new_name(), kind, size)
        making = self._random.choice(MAKING).replace("{size}", size)
        self._made.append(Step(f"{tensor.name} = {making}", "making"))
        self._tensors.append(tensor)
        return tensor

    def _new_name(self) -> str:
        self._n_names += 1
        return f"t{self._n_names}"


def shrunk(program: Program, is_broken: Callable[[Program], bool]) -> Program:
    """Return a smaller program that still breaks the law: no single step of it can be dropped."""
    n_dropped = max(1, len(program.steps) // 2)
    while n_dropped:
        # From the end, because later steps need earlier ones.
        for at in reversed(range(0, len(program.steps), n_dropped)):
            rest = program.steps[:at] + program.steps[at + n_dropped :]
            smaller = replace(program, steps=rest)
            if rest and is_broken(smaller):
                program = smaller
        n_dropped //= 2
    return program
