"""The choices of an explorer: what they offer, and what they take."""

import pytest

from gpulab.core.errors import InvalidOptionError
from gpulab.views.explorers._scene import Selector, nearest


@pytest.mark.parametrize(
    ("offered", "value", "expected"),
    [
        ((1, 2, 8), 8, 8),
        ((1, 2, 8), 6, 8),
        ((None, 2, 8), 3, 2),
        ((None, 2, 8), None, None),
        (("a", "b"), "c", "a"),
    ],
)
def test_nearest(offered: tuple[object, ...], value: object, expected: object) -> None:
    """``nearest`` returns the value if it is offered, else the nearest number or the first."""
    assert nearest(offered, value) == expected


def test_value_given_by_hand() -> None:
    """A slider takes the nearest number, several values may be one name; others are refused."""
    slider = Selector("size", "slider", (1, 4))
    size = Selector("size", "size", (1, 4))
    rate = Selector("link", "rate", (None, "PCIe 3"))
    assert (size.read(3), rate.read(2e10), rate.read(None)) == (3, 2e10, None)
    assert not any(map(size.fits, (5, 0, "3", None)))
    assert not any(map(rate.fits, (-1.0, True, "PCIe 9")))
    several = Selector("names", "several", ("a", "b"))
    assert (slider.read(3), several.read("b"), several.read(["a", "b"])) == (4, ("b",), ("a", "b"))
    with pytest.raises(InvalidOptionError) as refused:
        several.read(["a", "c"])
    assert str(refused.value) == "names='c'; choose one of 'a', 'b'"
