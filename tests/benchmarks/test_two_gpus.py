"""The virtual H100, which nothing was fitted to, beside the recording of a real one."""

from benchmarks import two_gpus


def test_the_ratio_of_two_data_sheets_predicts_the_ratio_of_two_gpus() -> None:
    """What an H200's fit says of an H100 is right, apart from the model's errors on the H200."""
    errors = two_gpus.compared()["ratio_error"].abs()
    assert len(errors) > 600
    assert errors.median() < 0.04
    assert errors.quantile(0.9) < 0.15


def test_the_tables_have_a_row_for_each_workload_and_family() -> None:
    """Both tables name what they compare, the slowest first."""
    side = two_gpus.side_by_side().splitlines()[2:]
    assert len(side) == 29
    ratios = [float(row.split(" | ")[4]) for row in side]
    assert ratios == sorted(ratios, reverse=True)
    times_s = [("matmul", 1.0, 2.0, 1.1, 2.2), ("sum", 1.0, 1.0, 1.0, 1.0)]
    rows = two_gpus.extrapolated(two_gpus.with_errors(times_s)).splitlines()[2:]
    assert rows == [
        "| all | 2 | 1.50 | 1.50 | 0.0 % | 0.0 % | 5.0 % | 10.0 % | 5.0 % | 10.0 % |",
        "| matrices | 1 | 2.00 | 2.00 | 0.0 % | 0.0 % | 10.0 % | 10.0 % | 10.0 % | 10.0 % |",
        "| reductions | 1 | 1.00 | 1.00 | 0.0 % | 0.0 % | 0.0 % | 0.0 % | 0.0 % | 0.0 % |",
    ]
