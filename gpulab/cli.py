"""The ``gpulab`` command: open the lessons, show progress, diagnose or record a machine.

Errors that gpulab raises on purpose are printed as one line, without a traceback. The heavy
imports are inside the commands, so that ``gpulab --help`` answers at once. One file, because a
command is little more than its options and its help.
"""

import difflib
import json
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import click

from gpulab import __version__
from gpulab.core.errors import GpulabError, NotebookError
from gpulab.core.foreign_text import visible
from gpulab.core.tracebacks import drop_our_frames
from gpulab.core.units import counted


def _echo(text: object) -> None:
    """Print a text with its control characters made visible: it may have names of files in it."""
    click.echo(visible(str(text)))


@click.command(epilog="Example: gpulab record --out my-gpu.jsonl --minutes 5")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="The file; if it has an unfinished recording, that is continued.",
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
    """Record how long this machine's GPU and CPU take for the workloads of the catalogue.

    Load the file with gpulab.recordings.load and compare it with the shipped recordings. This
    changes no setting of the GPU.
    """
    from gpulab import device
    from gpulab.roofline import survey

    device.use(gpu)
    names = None if sections is None else [name.strip() for name in sections.split(",")]
    if only_plan:
        _echo(survey.plan(out, minutes=minutes, sections=names, quick=quick))
        return
    recording = survey.record(out, minutes=minutes, sections=names, quick=quick)
    _echo(recording)
    missing = recording.section("left_out")
    if len(missing):
        reasons = missing["reason"].value_counts()
        _echo("left out: " + "; ".join(f"{n:,}: {why}" for why, n in reasons.items()))
        _echo(f"go on with the same command, or take it as it is: {out}")


class FriendlyGroup(click.Group):
    """A group of commands that suggests the nearest one for a typo, and shows errors as a line."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command, or raise a usage error with the nearest name."""
        name = args[0]
        # An unknown option is left to click, whose own message about options is good.
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            known = self.list_commands(ctx)
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}?" if near else f"the commands are {', '.join(known)}"
            raise click.UsageError(f"there is no command {name!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 # as click declares it
        """Run the command; one of gpulab's own errors ends it with exit code 1."""
        try:
            return super().invoke(ctx)
        except GpulabError as error:
            raise click.ClickException(str(error)) from error


@click.group(
    cls=FriendlyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: gpulab lab  (copies the lessons and opens JupyterLab)",
)
def main() -> None:
    """Time GPU work correctly in PyTorch, on a CUDA GPU or on a virtual one."""


main.add_command(record)


@main.command(epilog="Example: gpulab doctor --json > machine.json")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def doctor(*, as_json: bool) -> None:
    """Show what can be timed on this machine.

    The report says of everything that is missing why, and what is used instead.
    """
    from gpulab.device import doctor as examine

    report = examine()
    _echo(json.dumps(report.to_dict(), indent=2) if as_json else str(report))


@main.command("time", epilog="Example: gpulab time script.py:function --of base.json")
@click.argument("lines", metavar="STATEMENT|SCRIPT.py:FUNCTION", nargs=-1, required=True)
@click.option("-s", "--setup", multiple=True, help="Runs once before, and is not timed.")
@click.option("-n", "inner_loops", type=click.IntRange(1), help="Calls in each sample.")
@click.option("-r", "n_samples", type=click.IntRange(1), help="Samples; default: as needed.")
@click.option("--method", help="As in gpulab.measure; default: calibrated.")
@click.option("--cache", help="hot or cold; default: that of the method.")
@click.option("--precision", type=float, help="Half the interval, as a share; default: 0.01.")
@click.option("--max-time", "max_time_s", type=float, help="Seconds of sampling.")
@click.option("--flops", metavar="NUMBER|auto", help="Of one call, or an expression: 2*n**3.")
@click.option("--bytes", "size_bytes", metavar="NUMBER", help="Of one call; both print rates.")
@click.option("--gpu", default="auto", show_default=True, help="As for gpulab.use().")
@click.option("--vs", metavar="STATEMENT", help="Compare with this, in turns.")
@click.option("--of", type=click.Path(path_type=Path), help="Compare with a saved measurement.")
@click.option(
    "--at-most",
    type=click.FloatRange(0, min_open=True),
    help="Fail if the ratio to --vs or --of is larger.",
)
@click.option("--ladder", is_flag=True, help="Time by every method.")
@click.option("--save", type=click.Path(path_type=Path, dir_okay=False), help="Write a file.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def time_work(  # noqa: PLR0913 # one for each option
    *,
    lines: tuple[str, ...],
    setup: tuple[str, ...],
    gpu: str,
    vs: str | None,
    of: Path | None,
    at_most: float | None,
    ladder: bool,
    save: Path | None,
    as_json: bool,
    flops: str | None,
    size_bytes: str | None,
    **options: Any,  # noqa: ANN401 # those of `measure`
) -> None:
    """Time statements, or a function of a script, as python -m timeit does for the CPU.

    Several statements are lines, and so are several --setup; torch is imported. --at-most ends
    with exit code 1 if the work is slower, or may be. Without a CUDA GPU, a virtual one is timed.
    """
    if at_most is not None and vs is None and of is None:
        raise click.UsageError(
            "--at-most needs something to compare with: --vs STATEMENT or --of FILE"
        )
    if (vs is not None) + (of is not None) + ladder > 1:
        raise click.UsageError("--vs, --of and --ladder cannot be used together; use one of them")
    from gpulab import device, timing
    from gpulab.device.measurement import Measurement

    chosen = {name: value for name, value in options.items() if value is not None}
    if of is not None and not of.exists():
        raise click.UsageError(
            f"there is no file {of}; save one first: gpulab time ... --save {of}"
        )
    base = None if of is None else Measurement.load(of)
    text = "\n".join(lines)
    in_use = device.find(gpu)
    if in_use.stands_in:
        click.echo(visible(f"no CUDA GPU in use: {in_use}"), err=True)
    with _in_words(), in_use.virtual or nullcontext():
        names = timing.run_setup("\n".join(setup))
        chosen |= timing.amounts_in(names, flops=flops, size_bytes=size_bytes)
        work = timing.work_of(text, names)
        other = base if vs is None else timing.work_of(vs, names)
        if ladder:
            result: Any = timing.ladder(work, label=text, **chosen)
        elif other is None:
            result = timing.measure(work, label=text, **chosen)
        else:
            result = timing.compare(other, work, labels=(vs or str(of), text), **chosen)
    if save is not None:
        (result.second if isinstance(result, timing.Comparison) else result).save(save)
    _echo(result.to_json(indent=2) if as_json else result)
    if at_most is not None:
        result.check(at_most=at_most)


@contextmanager
def _in_words() -> Iterator[None]:
    """Show an error of the user's code with the traceback from their own line on."""
    try:
        yield
    except GpulabError:
        raise
    except Exception as error:  # noqa: BLE001 # the user's code may raise anything
        drop_our_frames(error)
        click.echo(visible("".join(traceback.format_exception(error)).rstrip()), err=True)
        if isinstance(error, NameError):
            click.echo('Make it before, untimed: --setup "a = torch.randn(64, 64)"', err=True)
        raise click.exceptions.Exit(1) from None


@main.command(epilog="Example: gpulab lab my-lessons --no-browser --port 9000")
@click.argument("folder", type=click.Path(path_type=Path), default=Path("gpulab-lessons"))
@click.option("--no-browser", is_flag=True, help="Only print the address, e.g. on a server.")
@click.option("--port", type=click.IntRange(1, 65535), help="Default: the first free from 8888.")
def lab(*, folder: Path, no_browser: bool, port: int | None) -> None:
    """Copy the lessons to FOLDER and open them in JupyterLab.

    FOLDER is yours (default: gpulab-lessons). What you changed in it is never overwritten: a newer
    version of such a lesson is put beside it, as NAME.new.ipynb.
    """
    from gpulab import lessons

    port = lessons.usable_port(port)
    _say_copies(folder, lessons.copy_lessons(folder))
    try:
        lessons.serve(folder, port=port, browser=not no_browser, say=_say_address)
    # Ctrl-C is how a user stops JupyterLab, so it is no error.
    except KeyboardInterrupt:
        _echo("JupyterLab has stopped.")


def _say_copies(folder: Path, copies: Any) -> None:  # noqa: ANN401 # CopiedLessons, loaded late
    _echo(f"Lessons: {folder.resolve()}")
    for verb, names in (
        ("copied", copies.written),
        ("kept as you changed them", copies.kept),
        ("newer versions put beside yours", copies.beside),
    ):
        if names:
            _echo(f"  {verb}: {', '.join(names)}")


def _say_address(url: str) -> None:
    _echo(f"JupyterLab: {url}\nStop it with Ctrl-C.")


@main.command(epilog="Example: gpulab progress my-lessons --html progress.html")
@click.argument("folder", type=click.Path(path_type=Path), required=False)
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), help="Write a page.")
@click.option("--reset", metavar="LESSON", help="Count it as new, such as 08b; all: course.")
@click.option(
    "--adopt", type=click.Path(path_type=Path), help="Add another file of yours to this one."
)
@click.option("--class", "is_class", is_flag=True, help="Join the files of all learners below.")
@click.option("--question", help="With --class: one prediction only, such as 01.naive.")
@click.option("--reveal", is_flag=True, help="With --class: show what came out, too.")
def progress(  # noqa: PLR0913 # one for each option
    *,
    folder: Path | None,
    html: Path | None,
    reset: str | None,
    adopt: Path | None,
    is_class: bool,
    question: str | None,
    reveal: bool,
) -> None:
    """Show predictions and exercises, and what to look at again.

    FOLDER has your lessons (default: this folder, or gpulab-lessons in it). With --class it has
    the folders of all learners: their guesses before the outcome are counted, without names.
    """
    from gpulab import exercises

    if is_class:
        review = exercises.class_progress(folder or Path(), question=question, is_revealed=reveal)
        for line in review.left_out:
            click.echo(visible(f"left out: {line}"), err=True)
        _show_or_write(review, review.page, html)
        return
    lessons = folder or _folder_with_progress()
    if adopt is not None:
        _echo(f"{counted(exercises.adopt(adopt, lessons), 'record')} added")
    if reset is not None:
        exercises.reset(reset, folder=lessons)
        _echo("it counts as new from here on; what was kept stays in the file")
        return
    points = exercises.progress_in(lessons)
    _show_or_write(points, lambda: exercises.page(points), html)


def _show_or_write(report: object, page: Callable[[], str], html: Path | None) -> None:
    if html is None:
        _echo(report)
        return
    from gpulab.core.disk import write_whole

    write_whole(html, page().encode())
    _echo(f"written: {html}")


def _folder_with_progress() -> Path:
    lessons = Path("gpulab-lessons")
    # The command may be called beside the folder of lessons or inside it.
    is_here = any(Path().glob("gpulab-progress*.jsonl")) or not lessons.is_dir()
    return Path() if is_here else lessons


@main.command(epilog="Example: gpulab version")
def version() -> None:
    """Print the version."""
    _echo(__version__)


@main.command("build-notebooks", epilog="Example: gpulab build-notebooks --check")
@click.option("--check", is_flag=True, help="Write nothing; fail if a notebook is out of date.")
def build_notebooks(*, check: bool) -> None:
    """Build the lessons from their sources.

    For authors, in a clone: notebooks/source/NN_name.py becomes notebooks/NN_name.ipynb.
    """
    from gpulab import lessons

    notebooks = Path(__file__).parents[1] / "notebooks"
    differing = lessons.build_all(notebooks, check=check)
    if check and differing:
        raise NotebookError(
            f"{', '.join(differing)}: not as built from source; run: gpulab build-notebooks"
        )
    _echo(f"{len(differing)} written" if differing else "all notebooks are up to date")


@main.group(cls=FriendlyGroup, epilog="Example: gpulab course export --nbgrader my-course")
def course() -> None:
    """Make a course of graded labs for nbgrader, and read its results.

    For instructors, in a clone; it needs the extra: pip install -e '.[course]'
    """


@course.command("export", epilog="Example: gpulab course export --nbgrader my-course --lab timing")
@click.option(
    "--nbgrader",
    "folder",
    type=click.Path(path_type=Path),
    required=True,
    help="A new folder for the course.",
)
@click.option("--lab", "labs", multiple=True, help="A lab by name, may be repeated; default: all.")
def export_course(*, folder: Path, labs: tuple[str, ...]) -> None:
    """Write a course that nbgrader takes as it is."""
    from gpulab import course as courses

    names = courses.export(folder, labs)
    _echo(f"Course: {folder.resolve()}\n  labs: {', '.join(names)}")
    _echo(
        "  grader/ has the keys and the secret: give it to nobody, and keep a copy.\n"
        f"Next, in this folder: nbgrader generate_assignment {names[0]}"
    )


@course.command("report", epilog="Example: gpulab course report my-course")
@click.argument("folder", type=click.Path(path_type=Path))
def report_course(*, folder: Path) -> None:
    """List marks, misuse and damaged notebooks of all submissions in FOLDER, by name."""
    from gpulab import course as courses

    _echo(courses.report(folder))


@course.command("key", epilog="Example: gpulab course key my-course timing ada")
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("lab_name", metavar="LAB")
@click.argument("learner")
def key_of_course(*, folder: Path, lab_name: str, learner: str) -> None:
    """Print the right answers of one LEARNER to a LAB; needs the grader's secret."""
    from gpulab import course as courses

    for question, answer in courses.solutions(folder, lab_name, learner).items():
        _echo(f"# {question}\n{answer}\n")


if __name__ == "__main__":
    main()
