"""Every colour has one meaning and is distinct from the others, on light and on dark paper."""

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

from gpulab.core import palette
from gpulab.tracing._spans import SPAN_KINDS

# How readers see linear RGB: all colours, or no red, no green or no blue. The matrices are those
# of Machado, Oliveira and Fernandes (2009).
SIGHT = {
    "all": np.eye(3),
    "protan": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deutan": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "tritan": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}
TO_CONES = [[0.4122, 0.5363, 0.0514], [0.2119, 0.6807, 0.1074], [0.0883, 0.2817, 0.6300]]
TO_LAB = [[0.2105, 0.7936, -0.0041], [1.9780, -2.4286, 0.4506], [0.0259, 0.7828, -0.8087]]
TOGETHER = [SPAN_KINDS, ("cold", "hot"), ("CPU", "GPU")]  # roles that share a picture
# In OKLab a difference of 0.02 can just be seen; WCAG asks for a contrast of 3 for symbols.
LEAST_DISTANCE, LEAST_CONTRAST = 0.08, 3.0
SIDES = pytest.mark.parametrize("side", [0, 1], ids=["light", "dark"])

Numbers = NDArray[np.float64]


def linear(colour: str) -> Numbers:
    """Return red, green and blue as amounts of light."""
    parts = np.array([int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def distance(one: str, other: str, sight: str) -> float:
    """Return the distance of two colours in OKLab, as a reader with this sight sees them."""
    lights = (np.clip(np.asarray(SIGHT[sight]) @ linear(each), 0, 1) for each in (one, other))
    first, second = (
        np.asarray(TO_LAB) @ np.cbrt(np.asarray(TO_CONES) @ light) for light in lights
    )
    return float(np.linalg.norm(first - second))


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours by the formula of WCAG, from 1 to 21."""
    low, high = sorted(float(linear(each) @ [0.2126, 0.7152, 0.0722]) for each in (one, other))
    return (high + 0.05) / (low + 0.05)


@SIDES
@pytest.mark.parametrize("sight", SIGHT)
def test_roles_of_one_picture_can_be_told_apart(side: int, sight: str) -> None:
    """Readers who see no red, no green or no blue can tell the roles of a picture apart, too."""
    shades = {name: role.colour[side] for name, role in palette.ROLES.items()}
    groups = [[shades[name] for name in names] for names in TOGETHER]
    groups += [[colour[side] for colour in each] for each in (palette.SERIES, palette.FAMILIES)]
    groups.append([shades["CPU"], shades["GPU"], palette.SECOND_GPU[side]])
    pairs = [pair for group in groups for pair in itertools.combinations(group, 2)]
    near = [pair for pair in pairs if distance(*pair, sight) < LEAST_DISTANCE]
    assert not near


@SIDES
def test_everything_can_be_seen_on_its_paper(side: int) -> None:
    """The contrast to the paper is at least 3 for symbols and 4.5 for text."""
    paper = palette.PAPER[side]
    signs = [role.colour for role in palette.ROLES.values()] + list(palette.SERIES)
    signs += [*palette.FAMILIES, palette.SECOND_GPU]
    assert not [each for each in signs if contrast(each[side], paper) < LEAST_CONTRAST]
    texts = (palette.INK, palette.MUTED)
    assert not [each for each in texts if contrast(each[side], paper) < 1.5 * LEAST_CONTRAST]


def test_no_two_things_have_one_colour() -> None:
    """No colour is used twice, and no shade for light paper is also one for dark paper."""
    colours = [role.colour.light for role in palette.ROLES.values()]
    colours += [colour.light for colour in palette.SERIES]
    assert len(set(colours)) == len(colours)
    assert not set(palette.ON_DARK) & set(palette.ON_DARK.values())


def test_roles_differ_by_more_than_colour() -> None:
    """Roles in one picture also differ by their markers or hatches."""
    for names in TOGETHER:
        signs = [palette.ROLES[name][1:] for name in names]
        assert len(set(signs)) == len(signs)


def test_the_style_sheet_has_every_role_in_both_shades() -> None:
    """The style sheet for widgets has a variable for each role, with both shades."""
    sheet = palette.style_sheet()
    for name, role in palette.ROLES.items():
        light, dark = role.colour
        assert f"--gpulab-{name.lower()}: light-dark({light}, {dark});" in sheet
