"""The two explorers, ready to show: crossover of CPU and GPU, and roofline of a GPU."""

from collections.abc import Iterable
from pathlib import Path

from gpulab.explorers._crossover import CrossoverModel, CrossoverState
from gpulab.explorers._explorer import Explorer
from gpulab.explorers._roofline import RooflineModel, RooflineState
from gpulab.explorers._scene import Measured, Step
from gpulab.recordings import list as recorded
from gpulab.requirements import PATH, Requirement, instance_of, items_of
from gpulab.roofline import Ceilings, measure_ceilings
from gpulab.sweeps import Point, Task, take

__all__ = ["crossover_explorer", "roofline_explorer"]


_PRECISION = 0.02
_POINT_S, _CEILING_S = 0.15, 0.05  # of sampling, besides warming up; a GPU has nine ceilings


_RECORDING = Requirement(
    "the name of a shipped recording, or the path of a file that is there",
    lambda value: PATH.accepts(value) and (value in recorded() or Path(value).exists()),
)
_POINT = instance_of(Point, "a Point, such as sweep() measures")
_FOUND = instance_of((Point, Ceilings), "a Point, or Ceilings")


def crossover_explorer(
    workload: str = "matmul",
    *,
    recordings: str | Iterable[str] = (),
    points: Iterable[Point] = (),
    **chosen: object,
) -> Explorer[CrossoverState]:
    """Explore from which size on the GPU is worth it.

    Two curves over the size, and a slider to stand on them: what both sides take there, and how
    many times faster one is. "Measure here" times both sides on this machine, by steps between
    which the notebook stays usable; its points are drawn over the curves.

    Parameters
    ----------
    workload
        A name of :data:`gpulab.workloads.WORKLOADS`.
    recordings
        Files of recordings of your own, to choose from beside those that are shipped.
    points
        What was measured on this machine before, e.g. ``explorer.points`` or those of a sweep.
    **chosen
        What else is chosen at first: fields of the state, see
        :class:`gpulab.explorers._crossover.CrossoverState`.

    Returns
    -------
    Explorer
        Show it as the last line of a cell. ``figure()``, ``to_frame()`` and ``save(path)`` give
        what is seen.

    Raises
    ------
    UnknownNameError
        If there is no such choice.
    InvalidOptionError
        If a value is not among those offered.

    Examples
    --------
    In a notebook, where its sliders are to be seen:

    >>> import gpulab
    >>> gpulab.explorers.crossover_explorer("softmax")  # doctest: +SKIP
    """
    explorer = Explorer(
        CrossoverModel(_listed(recordings)),
        CrossoverState(),
        measure_step=measure_step,
        found=items_of("points", points, _POINT),
    )
    explorer.choose(workload=workload, **chosen)
    return explorer


def roofline_explorer(
    *,
    recordings: str | Iterable[str] = (),
    found: Iterable[Point | Ceilings] = (),
    **chosen: object,
) -> Explorer[RooflineState]:
    """Explore how close the catalogue comes to what the GPU allows.

    Measured against predicted times of every operation, or what they reach below the roofs of
    the GPU, with a hint at each point and the same data as a table. "Measure here" measures the
    roofs of the GPU in use, and then the operations that are shown.

    Parameters
    ----------
    recordings
        Files of recordings of your own, to choose from beside those that are shipped.
    found
        What was measured on this machine before, e.g. ``explorer.found``, the points of a sweep,
        or what :func:`gpulab.roofline.measure_ceilings` returned.
    **chosen
        What is chosen at first: fields of the state, see
        :class:`gpulab.explorers._roofline.RooflineState`.

    Returns
    -------
    Explorer
        Show it as the last line of a cell. ``figure()``, ``to_frame()`` and ``save(path)`` give
        what is seen.

    Raises
    ------
    UnknownNameError
        If there is no such choice.
    InvalidOptionError
        If a value is not among those offered.

    Examples
    --------
    In a notebook, where its sliders are to be seen:

    >>> import gpulab
    >>> gpulab.explorers.roofline_explorer()  # doctest: +SKIP
    """
    explorer = Explorer(
        RooflineModel(_listed(recordings)),
        RooflineState(),
        measure_step=measure_step,
        found=items_of("found", found, _FOUND),
    )
    explorer.choose(**chosen)
    return explorer


def measure_step(step: Step) -> Measured:
    """Measure a task, or the roofs of the GPU in use; quick, as the notebook waits for it."""
    if isinstance(step, Task):
        return take(step, precision=_PRECISION, max_time_s=_POINT_S)
    return measure_ceilings(max_time_s=_CEILING_S)


def _listed(recordings: str | Iterable[str]) -> tuple[str, ...]:
    given = (recordings,) if isinstance(recordings, str) else recordings
    return items_of("recordings", given, _RECORDING)
