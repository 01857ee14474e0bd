"""The records of a film: lanes with strips and levels over time, and notes to read."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Strip:
    """A bar on a lane: something that lasts from one time to another.

    Attributes
    ----------
    lane
        Name of the lane.
    role
        One of :data:`gpulab.core.palette.ROLES`, which gives the colour, or ``"ink"`` or ``"muted"``.
    label
        The text on it; empty for none.
    start_s, end_s
        Seconds since the beginning.
    is_wrong
        Whether it is marked as an error, such as a race.
    """

    lane: str
    role: str
    label: str
    start_s: float
    end_s: float
    is_wrong: bool = False


@dataclass(frozen=True, slots=True)
class Level:
    """A quantity over time, drawn as an area with straight lines between its points.

    Attributes
    ----------
    lane
        Name of the lane, which states the largest value.
    role
        As in a :class:`Strip`.
    points
        Pairs of seconds and the share of the largest value, 0 to 1.
    """

    lane: str
    role: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence that is shown from ``start_s`` until the next note begins."""

    start_s: float
    text: str


@dataclass(frozen=True, slots=True)
class Film:
    """Everything that a film shows.

    Attributes
    ----------
    name
        Name of the file, without its suffix.
    title
        The title, with the source of the times.
    lanes
        Names from top to bottom.
    strips, levels
        What is drawn on the lanes.
    notes
        The notes in order; together they describe the film.
    length_s
        Seconds that the program takes.
    shown_s
        Seconds that the film takes.
    """

    name: str
    title: str
    lanes: tuple[str, ...]
    strips: tuple[Strip, ...]
    levels: tuple[Level, ...]
    notes: tuple[Note, ...]
    length_s: float
    shown_s: float
