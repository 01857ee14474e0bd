"""Grade a lab as an instructor does (export, release, collect, grade, report), and time it.

    python -m benchmarks.course --submissions 30
    python -m benchmarks.course --submissions 100 --lab streams

The submissions are synthetic: right ones, an untouched one, one of each typical mistake and one of
each cheat, in turn. The exit code is 1 if a submission gets other marks than it should.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path

from benchmarks.common.command_line import parser_of
from benchmarks.common.folders import ROOT
from gpulab import course
from tests.support.submissions import CHEATS, MISTAKES, filled_in, solved, submit


class Classroom:
    """A course in a folder, its submissions, and how long each step took."""

    def __init__(self, folder: Path, lab: str) -> None:
        self.folder, self.lab = folder, lab
        self.times_s: dict[str, float] = {}
        self.expected: dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time a step."""
        start_s = time.perf_counter()
        yield
        self.times_s[name] = time.perf_counter() - start_s

    def command(self, *arguments: str) -> str:
        """Run a command with this Python, and return its output."""
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        python_path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        done = subprocess.run(  # noqa: S603  # this Python, and arguments made here
            [sys.executable, "-m", *arguments],
            cwd=self.folder if self.folder.exists() else ROOT,
            env=os.environ | {"PATH": path, "PYTHONPATH": python_path},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout + done.stderr

    def collect(self, n_submissions: int) -> None:
        """Write the submissions, and note the points that each should get."""
        release = self.folder / "release" / self.lab / f"{self.lab}.ipynb"
        full = self._points()
        for number, (kind, question, source) in enumerate(
            islice(cycle(self._kinds()), n_submissions)
        ):
            student = f"{kind}-{number:03}"
            # Only one question is wrong in each submission, so its marks say whether that mistake
            # was found.
            changed = {question: source} if question else {}
            notebook = solved(self.folder, self.lab, student, **changed)
            if kind == "untouched":
                notebook = filled_in(release, self.lab, student, {})
            submit(self.folder, self.lab, student, notebook)
            lost = 0.0
            if question:
                lost = full[question] - MISTAKES.get(f"{self.lab}.{question}: {kind}", ("", 0))[1]
            self.expected[student] = 0.0 if kind == "untouched" else sum(full.values()) - lost

    def _points(self) -> dict[str, float]:
        from gpulab.course._labs import lab_named

        return {each.name: float(each.points) for each in lab_named(self.lab).questions}

    def _kinds(self) -> list[tuple[str, str, str]]:
        """Return kind, question and answer of each kind of submission, right ones in between."""
        right, untouched = ("right", "", ""), ("untouched", "", "")
        kinds = [right, untouched]
        for name, (source, _) in MISTAKES.items():
            where, _, mistake = name.partition(": ")
            lab, question = where.split(".")
            if lab == self.lab:
                kinds += [(mistake, question, source), right]
        if self.lab == "timing":
            for number, (source, flag) in enumerate(CHEATS.items()):
                kinds += [(f"{flag}-{number}", "tail", source), right]
        return kinds

    def wrong(self) -> list[str]:
        """Return the submissions whose marks are not those that they should get."""
        import json

        found = []
        for student, expected in self.expected.items():
            path = self.folder / "marks" / self.lab / f"{student}.json"
            marks = json.loads(path.read_text("utf-8"))["marks"] if path.is_file() else []
            points = sum(mark["points"] for mark in marks)
            # No marks at all are wrong, too, even if no points were due.
            if not marks or abs(points - expected) > 1e-6:  # noqa: PLR2004  # rounding
                found.append(f"{student}: {points:g} points and not {expected:g}")
        return found


def run(folder: Path, lab: str, n_submissions: int) -> Classroom:
    """Go all the way from the export to the report."""
    room = Classroom(folder, lab)
    with room.step("gpulab course export"):
        room.command("gpulab.cli", "course", "export", "--nbgrader", str(folder))
    with room.step(f"nbgrader generate_assignment {lab}"):
        room.command("nbgrader", "generate_assignment", lab)
    with room.step(f"write {n_submissions} submissions"):
        room.collect(n_submissions)
    with room.step(f"nbgrader autograde {lab}"):
        room.command("nbgrader", "autograde", lab)
    with room.step("gpulab course report"):
        print(course.report(folder))
    return room


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = parser_of("benchmarks.course", __doc__)
    made.add_argument("--submissions", type=int, default=30, help="number of submissions")
    made.add_argument("--lab", default="timing", help="timing, cache or streams")
    return made


def main(arguments: Sequence[str] | None = None) -> None:
    """Grade, then print the report, the time of each step, and submissions with wrong marks."""
    chosen = parser().parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="gpulab-course-") as place:
        room = run(Path(place) / "course", chosen.lab, chosen.submissions)
        wrong = room.wrong()
    print("\n| step | seconds |\n|---|--:|")
    for name, duration_s in room.times_s.items():
        print(f"| {name} | {duration_s:.1f} |")
    print(f"| together | {sum(room.times_s.values()):.1f} |")
    print(f"\n{chosen.submissions} submissions; with wrong marks: {len(wrong)}")
    print("\n".join(wrong))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
