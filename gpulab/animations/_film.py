"""What a film shows, as values: lanes with strips and levels over time, and notes to read."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Strip:
    """Something that goes on from one moment to another.

    Attributes
    ----------
    lane
        Name of the lane.
    role
        One of :data:`gpulab.palette.ROLES`, which gives the colour, or ``"ink"`` or ``"muted"``.
    label
        What to write on it; empty for nothing.
    start_s, end_s
        Seconds since the beginning.
    is_wrong
        Whether it is marked, as a race is.
    """

    lane: str
    role: str
    label: str
    start_s: float
    end_s: float
    is_wrong: bool = False


@dataclass(frozen=True, slots=True)
class Level:
    """A quantity over time, drawn as an area; straight between its points.

    Attributes
    ----------
    lane
        Name of the lane, with the greatest value as text.
    role
        As of a strip.
    points
        Seconds and share of the greatest value, 0 to 1.
    """

    lane: str
    role: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence that is shown from a moment on, until the next one."""

    start_s: float
    text: str


@dataclass(frozen=True, slots=True)
class Film:
    """Everything that a film shows.

    Attributes
    ----------
    name
        Of the file.
    title
        What it is, with where it comes from.
    lanes
        Names from top to bottom.
    strips, levels
        What is on the lanes.
    notes
        What to read, in order; together they say what the film shows.
    length_s
        Seconds of the program.
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
