"""The record of a film: bars and levels on lanes over time, and notes to read."""

from dataclasses import dataclass

from gpulab.figures import Lanes


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence that is shown from ``start_s`` until the next note begins."""

    start_s: float
    text: str


@dataclass(frozen=True, slots=True)
class Film:
    """Everything that a film shows; a curtain uncovers the picture from left to right.

    The title has the source of the times. The notes in order describe the film, which takes
    ``shown_s``.
    """

    name: str
    title: str
    lanes: Lanes
    notes: tuple[Note, ...]
    shown_s: float

    @property
    def words(self) -> str:
        """A description of the film, in sentences."""
        return " ".join([f"{self.title}.", *(note.text for note in self.notes)])
