"""Open the crossover explorer or the roofline explorer."""

from collections.abc import Iterable
from pathlib import Path

from gpulab.core.requirements import PATH, Requirement, instance_of, items_of
from gpulab.roofline import Ceilings, measure_ceilings
from gpulab.views.explorers._crossover import CrossoverModel, CrossoverState
from gpulab.views.explorers._explorer import Explorer
from gpulab.views.explorers._roofline import RooflineModel, RooflineState
from gpulab.views.explorers._scene import Measured, Step
from gpulab.workloads.recordings import list as recorded
from gpulab.workloads.sweeps import Point, Task, take

__all__ = ["crossover_explorer", "roofline_explorer"]


_PRECISION = 0.02
# Seconds of sampling after the warm-up, which block the notebook; a GPU has nine ceilings.
_POINT_S, _CEILING_S = 0.15, 0.05


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
    """Explore the size from which on the GPU is faster than the CPU.

    It shows the times of CPU and GPU over the size. Drag the handle to a size to see both times
    and their ratio. "Measure here" times both sides on this machine and adds the points. It
    measures step by step, so that the notebook stays usable.

    Parameters
    ----------
    workload
        A name of :data:`gpulab.workloads.WORKLOADS`.
    recordings
        Files of your own recordings, offered beside the shipped ones.
    points
        Points that were measured on this machine before, e.g. ``explorer.points`` or those of a
        sweep.
    **chosen
        Other choices at the start: fields of
        :class:`gpulab.views.explorers._crossover.CrossoverState`.

    Returns
    -------
    Explorer
        Show it as the last line of a cell. ``figure()``, ``to_frame()`` and ``save(path)`` return
        or write what it shows.

    Raises
    ------
    UnknownNameError
        If there is no choice of this name.
    InvalidOptionError
        If a value is not among those offered.

    Examples
    --------
    >>> import gpulab
    >>> explorer = gpulab.explorers.crossover_explorer("softmax", size=1024)
    >>> explorer.code
    "gpulab.explorers.crossover_explorer(workload='softmax', size=1024)"
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
    """Explore how close the operations of the catalogue come to the limits of the GPU.

    It shows measured over predicted times, of five operations at first, or a roofline, with a
    tooltip at each point and the same data as a table. "Measure here" measures the roofs of the
    GPU in use, and then the operations that are shown.

    Parameters
    ----------
    recordings
        Files of your own recordings, offered beside the shipped ones.
    found
        What was measured on this machine before, e.g. ``explorer.found``, the points of a sweep,
        or the result of :func:`gpulab.roofline.measure_ceilings`.
    **chosen
        Choices at the start: fields of :class:`gpulab.views.explorers._roofline.RooflineState`.

    Returns
    -------
    Explorer
        Show it as the last line of a cell. ``figure()``, ``to_frame()`` and ``save(path)`` return
        or write what it shows.

    Raises
    ------
    UnknownNameError
        If there is no choice of this name.
    InvalidOptionError
        If a value is not among those offered.

    Examples
    --------
    >>> import gpulab
    >>> gpulab.explorers.roofline_explorer().code
    'gpulab.explorers.roofline_explorer()'
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
    """Measure a task or the roofs of the GPU in use, quickly, because the notebook waits."""
    if isinstance(step, Task):
        return take(step, precision=_PRECISION, max_time_s=_POINT_S)
    return measure_ceilings(max_time_s=_CEILING_S)


def _listed(recordings: str | Iterable[str]) -> tuple[str, ...]:
    names = (recordings,) if isinstance(recordings, str) else recordings
    return items_of("recordings", names, _RECORDING)
