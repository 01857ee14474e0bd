"""Run a learner's function on a virtual GPU and note what it returned; no key is needed here."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from math import isfinite
from numbers import Real

from gpulab.course._draw import SeededDraw

Work = Callable[[], object]
Facts = dict[str, object]
# Called around each call of the learner's function; it may note what the function changed.
Watch = Callable[[], AbstractContextManager[None]]

_CYCLES_PER_US = 1_980  # the virtual H200 spins at its boost clock


@contextmanager
def _gpu(name: str = "H200") -> Iterator[None]:
    from gpulab import virtual

    with virtual.virtual_gpu(name, first_use=False):
        yield


def _spin(duration_us: float) -> Work:
    from gpulab.torch_private import spin

    n_cycles = round(duration_us * _CYCLES_PER_US)
    return lambda: spin(n_cycles)


def _in_turn(durations_us: list[float], usual_us: float) -> Work:
    """Return work whose first calls take the times given, and each later one the usual time."""
    works = iter([*map(_spin, durations_us)])
    usual = _spin(usual_us)

    def work() -> None:
        next(works, usual)()

    return work


def numbers(value: object) -> list[float] | None:
    """Return what an answer returned as numbers, or None where it is something else."""
    parts = list(value) if isinstance(value, tuple | list) else [value]
    found = [float(part) for part in parts if isinstance(part, Real)]
    return found if found and len(found) == len(parts) and all(map(isfinite, found)) else None


def tail(function: Callable[..., object], draw: SeededDraw, watch: Watch) -> Facts:
    """Run ``tail(work, n_calls)`` in five situations."""
    usual = float(draw.number(300, 700, 20))
    every = draw.number(6, 8)
    rare = [3 * usual if i % every == every - 1 else usual for i in range(200)]
    situations = {
        "steady": _in_turn([], usual),
        "backlog": _in_turn([], usual),
        "first calls": _in_turn([20 * usual] * 6, usual),
        "largest": _in_turn(rare, usual),
        "short": _in_turn([], 20.0),
    }
    facts: Facts = {}
    for name, work in situations.items():
        with _gpu():
            if name == "backlog":
                _spin(50_000.0)()
            facts[name] = _returned(watch, function, work, 4 * every)
    return facts


def _returned(watch: Watch, function: Callable[..., object], *arguments: object) -> object:
    """Call a learner's function; return its numbers, or what it raised as a text."""
    try:
        with watch():
            found = function(*arguments)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001  # a learner's function may raise anything
        return f"{type(error).__name__}: {error}"
    read = numbers(found)
    return f"returned {type(found).__name__}" if read is None else read


TRIALS: dict[str, Callable[[Callable[..., object], SeededDraw, Watch], Facts]] = {"tail": tail}


def warm_up() -> None:
    """Use a virtual GPU once, so that what is loaded at the first use is loaded."""
    import torch

    with _gpu():
        _spin(1.0)()
        torch.ones(4, device="cuda").sum().item()
