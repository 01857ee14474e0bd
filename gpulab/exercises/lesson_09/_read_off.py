"""The judge for sizes that the learner reads off the crossover explorer, by its recording."""

from dataclasses import dataclass
from functools import cache

from gpulab.exercises._fields import Fields
from gpulab.exercises.answers import AnswerJudge, Diagnosis, Quantities

RECORDED = "h200-sxm-2026-11"
LINKS = {"n_pcie3": "PCIe 3", "n_pcie5": "PCIe 5", "n_nvlink": "NVLink"}

_WHY = (
    "Between the slowest and the fastest of these links the rate differs by a factor of almost "
    "30, and n by less than 3. Small copies cost mostly their fixed cost, which no cable changes."
)
_BARE = Diagnosis(
    "without-transfers",
    "That is the crossing without copies. Press “both” at “Copies”: the question is about "
    "inputs that come from the host and a result that goes back.",
)
_LINES = Diagnosis(
    "from-the-lines",
    "That is where the two fitted lines cross. The title of the explorer names the crossing of "
    "the measured curves.",
)
_OTHER_LINK = Diagnosis(
    "another-link", "That is the crossing over another link. Look at “Link” once more."
)
_UNEXPLAINED = Diagnosis(
    "unexplained",
    "the explorer shows another n. Choose matmul, float32, both recorded machines, copies “both” "
    "and this link; the title names the crossing.",
)
# Any numbers will do here: only the names are shown, and asking must not compute the key.
_ASKED = Quantities(dict.fromkeys(LINKS, 1.0), "", (), _UNEXPLAINED)


@dataclass(frozen=True, slots=True)
class ReadOff(AnswerJudge):
    """A judge for the crossing over each link; the shipped recording is the key."""

    why: str = _WHY
    how: str = _ASKED.how
    fields: Fields = _ASKED.fields

    def judge(self, answer: object) -> Diagnosis | str:
        """Judge a dict of sizes."""
        return key().judge(answer)


@cache
def key() -> Quantities:
    """Return the judge with its key, from the recording that the explorer shows."""
    from gpulab.roofline.scaling import crossover

    records = {
        key: crossover("matmul", transfers="both", link=link, source=RECORDED)
        for key, link in LINKS.items()
    }
    sizes = {key: record.crossing.size or 0.0 for key, record in records.items()}
    wrong = []
    for key, record in records.items():
        # A size without a crossing becomes 0, which no learner gives.
        lines = None if record.predicted is None else record.predicted.size
        wrong += [(key, record.bare_crossing.size or 0.0, _BARE), (key, lines or 0.0, _LINES)]
        wrong += [(key, size, _OTHER_LINK) for other, size in sizes.items() if other != key]
    return Quantities(sizes, _WHY, tuple(wrong), _UNEXPLAINED)
