"""Run one program in this process, on the virtual GPU or on the CPU, and record what it did.

The program is not changed, but its surroundings are: it gets synthetic data sets instead of
downloads, it ends after some optimizer steps, and the values that it calls ``backward()`` on are
recorded.
"""

import argparse
import json
import os
import random
import runpy
import sys
import traceback
from pathlib import Path

import numpy as np
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

import gpulab
from benchmarks.programs.catalogue import BY_NAME, N_COMPARED, Program
from benchmarks.programs.stand_ins import install, prepare
from gpulab.core.errors import GpulabError

# Any number will do, but both worlds need the same one, or their losses could not be compared.
_SEED = 1234
# What a repository ships under these names is left out: the synthetic data take its place.
_DATA = {"data", "results", "input.txt", "names.txt"}


class EnoughError(SystemExit):
    """Ends a program that has taken enough optimizer steps."""


def main() -> None:
    """Run the named program in the working directory, and write its outcome."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("folder", type=Path)
    parser.add_argument("world", choices=("virtual", "cpu"))
    parser.add_argument("outcome", type=Path)
    options = parser.parse_args()
    program = BY_NAME[options.name]
    # The CPU is slow and only the first losses are compared, so it takes no more steps than that.
    observed = _Observed(program.steps if options.world == "virtual" else N_COMPARED)
    where = options.folder / program.repository.replace("/", "+") / program.path
    _lay_out(where.parent)
    prepare(program.data)
    install()
    error = ""
    try:
        if options.world == "virtual":
            with gpulab.virtual_gpu("H200", **program.options):
                _run(program, where, observed)
        else:
            _run(program, where, observed)
    except EnoughError:
        pass
    except SystemExit as exit_:
        error = f"SystemExit: {exit_.code}" if exit_.code else ""
    except BaseException as raised:  # noqa: BLE001 # any error is an outcome
        traceback.print_exc()
        error = _described(raised)
    outcome = {"losses": observed.losses, "steps": observed.n_steps, "error": error}
    outcome["draws_on_device"] = observed.draws_on_device
    options.outcome.write_text(json.dumps(outcome), "utf-8")
    sys.stdout.flush()
    os._exit(0)  # do not wait for worker processes of data loaders


def _lay_out(folder: Path) -> None:
    """Link the program's files into the working directory, without its data."""
    for each in folder.iterdir():
        if each.name not in _DATA:
            Path(each.name).symlink_to(each)


def _described(error: BaseException) -> str:
    # A library may wrap our error in one of its own; ours says what is missing.
    cause = error
    while cause.__cause__ is not None and not isinstance(cause, GpulabError):
        cause = cause.__cause__
    return f"{type(cause).__name__}: {cause}"


class _Observed:
    """Records what a program does: its losses and optimizer steps."""

    def __init__(self, steps: int) -> None:
        self.losses: list[float] = []
        self.n_steps = 0
        self.draws_on_device = False
        self.scale = 1.0
        self._steps = steps

    def note_loss(self, loss: torch.Tensor) -> None:
        # Reading a value would end a capture with an error that the program alone does not have.
        is_captured = torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()
        if loss.numel() == 1 and not is_captured:
            value = float(loss.detach().float().reshape(()).cpu())
            self.losses.append(value / self.scale)

    def note_scale(self, scaler: torch.amp.GradScaler) -> None:
        # The loss is scaled on the virtual GPU, but not on the CPU.
        self.scale = scaler.get_scale()

    def note_step(self, *_: object) -> None:
        self.n_steps += 1
        if self.n_steps >= self._steps:
            raise EnoughError


def _run(program: Program, path: Path, observed: _Observed) -> None:
    _seed()
    backward = torch.Tensor.backward

    def noted(self: torch.Tensor, *args: object, **kwargs: object) -> None:
        observed.note_loss(self)
        backward(self, *args, **kwargs)  # type: ignore[arg-type] # passed on

    scale = torch.amp.GradScaler.scale

    def noted_scale(self: torch.amp.GradScaler, *args: object) -> object:
        observed.note_scale(self)
        return scale(self, *args)  # type: ignore[call-overload] # passed on

    torch.Tensor.backward = noted  # type: ignore[method-assign] # watched from outside
    torch.amp.GradScaler.scale = noted_scale  # type: ignore[method-assign,assignment] # as above
    hook = register_optimizer_step_post_hook(observed.note_step)
    here = Path.cwd() / path.name
    on_cpu = () if torch.cuda.is_available() else program.on_cpu
    sys.argv = [str(here), *program.arguments, *on_cpu]
    sys.path[:0] = [str(here.parent), *(str(path.parents[n]) for n in program.parents)]
    try:
        runpy.run_path(str(here), run_name="__main__")
    finally:
        hook.remove()
        torch.Tensor.backward = backward  # type: ignore[method-assign] # as above
        torch.amp.GradScaler.scale = scale  # type: ignore[method-assign] # as above
        observed.draws_on_device = _has_drawn()


def _seed() -> None:
    random.seed(_SEED)
    np.random.seed(_SEED)  # noqa: NPY002 # what the programs use
    torch.manual_seed(_SEED)


def _has_drawn() -> bool:
    if not torch.cuda.is_available():
        return False
    # The state of a CUDA generator is its seed and an offset, which grows with each draw.
    _seed, offset = torch.cuda.get_rng_state().view(torch.int64).tolist()
    return bool(offset)


if __name__ == "__main__":
    main()
