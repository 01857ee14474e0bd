"""The verb ``record`` of the ``gpulab`` command."""

from pathlib import Path

import click


@click.command(epilog="Example: gpulab record --out my-gpu.jsonl --minutes 5")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="The file; a recording that was stopped is gone on with.",
)
@click.option("--minutes", type=float, default=10.0, show_default=True, help="At most.")
@click.option("--sections", help="Names with commas in between; default: all.")
@click.option("--quick", is_flag=True, help="A small recording, for a try.")
@click.option("--gpu", default="auto", show_default=True, help="As for gpulab.use().")
@click.option("--plan", "only_plan", is_flag=True, help="Only say what would be done.")
def record(  # noqa: PLR0913 # one for each option
    *,
    out: Path,
    minutes: float,
    sections: str | None,
    quick: bool,
    gpu: str,
    only_plan: bool,
) -> None:
    """Record what this machine's GPU and CPU take for the catalogue.

    The file can be loaded with gpulab.recordings.load and compared with the shipped ones. No
    setting of the GPU is changed.
    """
    from gpulab import device, surveying

    device.use(gpu)
    names = None if sections is None else [name.strip() for name in sections.split(",")]
    if only_plan:
        click.echo(surveying.plan(out, minutes=minutes, sections=names, quick=quick))
        return
    recording = surveying.record(out, minutes=minutes, sections=names, quick=quick)
    click.echo(recording)
    missing = recording.section("left_out")
    if len(missing):
        counted = missing["reason"].value_counts()
        click.echo("left out: " + "; ".join(f"{n:,}: {why}" for why, n in counted.items()))
        click.echo(f"go on with the same command, or take it as it is: {out}")
