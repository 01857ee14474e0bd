"""The figure of lesson 00 says which method is far from a recording, and which is near it."""

from dataclasses import replace

import pandas as pd
import pytest

from gpulab.device.measurement import Measurement
from gpulab.exercises import lesson_00 as lab
from tests.support.conditions import HERE

pytestmark = pytest.mark.usefixtures("no_pixels")

RECORDED = pd.DataFrame(
    {
        "size": [64, 2048],
        "median_s": [4e-6, 3.4e-4],
        "source": "recorded",
        "device_name": "NVIDIA H200",
    }
)
EVENTS = Measurement((3.3e-4,) * 5, "events", "virtual", HERE)


@pytest.mark.parametrize(
    ("far_s", "finding"), [(1e-5, "3 % of that"), (6.8e-4, "2 times as much")]
)
def test_the_title_names_the_farthest_and_the_nearest_method(far_s: float, finding: str) -> None:
    """The farthest comes first, with its factor; the nearest is nearly the same."""
    far = replace(EVENTS, method="naive", samples_s=(far_s,) * 5)
    title = lab.beside_recorded([EVENTS, far], RECORDED, n=2048).title
    assert title.startswith(
        f"A recorded NVIDIA H200 took 340 µs: naive reads {finding}, events reads"
    )
    assert "events reads nearly the same" in title
