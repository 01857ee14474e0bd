"""FLOPs and bytes, given or counted by PyTorch, become rates beside the limits of the GPU."""

from dataclasses import replace

import pytest
import torch

from gpulab.core.errors import InvalidOptionError
from gpulab.device.measurement import Counts, Measurement
from gpulab.gpus import Roof, gpu
from gpulab.timing import compare, measure
from tests.support.conditions import HERE

pytestmark = pytest.mark.usefixtures("gpu")


H200 = gpu("H200")
TAKEN = Measurement(
    (1e-3,) * 6 + (1.25e-3,) * 5,
    "events",
    "measured",
    replace(HERE, device_name=H200.driver_name),
    counts=Counts(1e9, 2e9),
)


def test_a_rate_is_the_count_over_the_time() -> None:
    """The median and both ends of the interval turn into rates, and the limit into a share."""
    flops, size = TAKEN.rates
    assert (flops.low_per_s, flops.per_s, flops.high_per_s) == (8e11, 1e12, 1e12)
    assert (size.unit, size.per_s) == ("B", 2e12)
    assert size.share == 2e12 / H200.bandwidth_bytes_per_s
    # The type of the arithmetic is not known, so the highest peak is named.
    assert flops.limit_per_s == max(H200.peak_flops_per_s.values())
    assert str(TAKEN).splitlines()[1] == (
        "  1.00 TFLOP/s [800 GFLOP/s, 1.00 TFLOP/s], 0.101 % of the float16 peak, the highest "
        "(data sheet); FLOPs as given"
    )
    assert "memory bandwidth (data sheet); bytes as given" in str(TAKEN)
    assert "1.00 TFLOP/s [800" in TAKEN._repr_html_()


def test_the_binding_limit_is_the_one_with_the_largest_share() -> None:
    """With two rates a line names the nearest limit, which binds from half of it on."""
    assert TAKEN.binding == TAKEN.rates[1]
    far = "  no limit is near: the memory bandwidth alone does not explain the time"
    assert far in str(TAKEN).splitlines()
    assert "no limit is near" not in str(replace(TAKEN, counts=Counts(None, 2e9)))
    near = replace(TAKEN, counts=Counts(1e9, H200.bandwidth_bytes_per_s * 1e-3 * 0.51))
    assert "  the memory bandwidth binds: no other limit is so near" in str(near).splitlines()
    busy = replace(TAKEN, counts=Counts(1e12, 2e9))
    assert busy.binding == busy.rates[0]
    assert replace(TAKEN, counts=Counts()).binding is None


@pytest.mark.parametrize("method", ["calibrated", "naive", "graph"])
def test_the_memory_of_a_call_is_its_peak(method: str) -> None:
    """It counts what one call has in use at once, without its inputs and without the flush."""
    x = torch.ones(1 << 20, device="cuda")
    _ = torch.empty(1 << 28, device="cuda") is None  # a larger peak before
    taken = measure(lambda: (x + x) * x, method=method, flops=2**21)
    assert taken.peak_bytes == 2 * 4 * 2**20
    assert "  8.00 MiB of memory at most" in str(taken).splitlines()
    assert "8.00 MiB at most" in taken._repr_html_()


@pytest.mark.parametrize(
    ("clock_mhz", "told"),
    [
        (1980, ", 0.0934 % at 1980 MHz; FLOPs"),  # the sheet's peak is stated at 1830 MHz
        (915, ", 0.202 % at 915 MHz; FLOPs"),
        (1830, "(data sheet); FLOPs"),
        (None, "(data sheet); FLOPs"),
    ],
)
def test_the_share_at_the_clock_stands_beside_that_of_the_sheet(
    clock_mhz: int | None, told: str
) -> None:
    """The peak is proportional to the clock; at the sheet's clock it is said once."""
    taken = replace(TAKEN, conditions=replace(TAKEN.conditions, clock_after_mhz=clock_mhz))
    assert told in str(taken.rates[0])
    assert " MHz" not in str(taken.rates[1])


def test_the_share_of_a_measured_roof() -> None:
    """The limits are those of the roof that is given, and the line says that it was measured."""
    flops, size = TAKEN.rates
    assert flops.limit_per_s is not None
    assert size.limit_per_s is not None
    reached = {flops.limit_name.split()[0]: flops.limit_per_s / 2}
    below = TAKEN.rates_under(Roof("measured", reached, size.limit_per_s / 4))
    assert [rate.share for rate in below] == [2 * (flops.share or 0), 4 * (size.share or 0)]
    assert ["(measured)" in str(rate) for rate in below] == [True, True]
    with pytest.raises(InvalidOptionError, match="it must be a roof, such as"):
        TAKEN.rates_under("measured")  # type: ignore[arg-type]  # the mistake


def test_what_has_no_rate() -> None:
    """Without counts, or for a reading of zero, there is none; an unknown GPU has no limit."""
    assert replace(TAKEN, counts=Counts()).rates == ()
    assert replace(TAKEN, samples_s=(0.0,) * 9).rates == ()
    unknown = replace(TAKEN, conditions=replace(HERE, device_name="GPU of 2040"))
    assert [rate.share for rate in unknown.rates] == [None, None]
    assert "1.00 TFLOP/s [800 GFLOP/s, 1.00 TFLOP/s], no data sheet of this GPU" in str(unknown)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtype", "allows_tf32", "peak"),
    [
        (torch.float32, False, "float32"),
        (torch.float32, True, "tf32"),
        (torch.float16, False, "float16"),
        (torch.float64, True, "float64"),
    ],
)
def test_pytorch_counts_and_the_peak_is_that_of_the_type(
    dtype: torch.dtype, *, allows_tf32: bool, peak: str
) -> None:
    """A matmul has 2 n³ operations, and its limit is the peak of its type."""
    a = torch.ones(128, 128, dtype=dtype, device="cuda")
    torch.backends.cuda.matmul.allow_tf32 = allows_tf32
    try:
        # The ones are made with an argument by name, as most tensors are.
        work = lambda: a @ a + torch.ones(128, device="cuda")  # noqa: E731  # as short as it is
        taken = measure(work, flops="auto", n_samples=6)
    finally:
        torch.backends.cuda.matmul.allow_tf32 = False
    assert taken.counts == Counts(2 * 128**3, None, peak, is_counted=True)
    (rate,) = taken.rates
    assert rate.limit_per_s == H200.peak_flops_per_s[peak]
    assert rate.per_s == taken.counts.flops / taken.median_s
    assert str(rate).endswith("FLOPs counted by PyTorch")


def test_work_without_counted_operators_is_refused() -> None:
    """PyTorch counts no addition: the error says what it counts, and no sample is taken."""
    n_calls = 0
    a = torch.ones(64, device="cuda")

    def work() -> None:
        nonlocal n_calls
        n_calls += 1
        a.add_(1)

    with pytest.raises(InvalidOptionError, match="counts nothing in this work: it knows matmuls"):
        measure(work, flops="auto")
    assert n_calls == 1


def test_functions_of_the_inputs_give_the_counts() -> None:
    """Each tuple of inputs is asked; sizes that differ, errors and texts are one sentence."""
    x, y = (torch.ones(n, 64, device="cuda") for n in (64, 128))
    taken = measure(
        torch.mm,
        inputs=[(x, x), (x + 1, x)],
        size_bytes=lambda a, b: 2 * a.nbytes + b.nbytes,
        flops=lambda a, b: 2 * a.shape[0] * b.numel(),
        n_samples=6,
    )
    assert (taken.counts.flops, taken.counts.size_bytes) == (2 * 64**3, 3 * 4 * 64**2)
    found = compare(lambda: x + x, lambda: x * 2, size_bytes=lambda: 2 * x.nbytes, n_samples=6)
    assert found.first.counts.size_bytes == 2 * x.nbytes
    mistakes = {
        lambda a: a.nbytes: "size_bytes is 16384 for one of the inputs and 32768 for another",
        lambda: 1: "size_bytes(tensor([[1., 1., 1., ",
        lambda _: "many": "returned 'many'; it must be a finite number, 0 or more",
    }
    for size_bytes, message in mistakes.items():
        with pytest.raises(InvalidOptionError) as error:
            measure(torch.relu, inputs=[(x,), (y,)], size_bytes=size_bytes)
        assert message in str(error.value)
