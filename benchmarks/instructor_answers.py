"""Write the instructor's page of answers: solutions, outcomes of predictions, and claims.

    python -m benchmarks.instructor_answers run 03 08b   run lessons, and save their outcomes
    python -m benchmarks.instructor_answers write        write docs/instructor/answers.md

"run" runs the solved lessons on the virtual H200, all of them if you name none, and saves the
outcome of each prediction in a file; that takes about three minutes. "write" makes the page from
that file and from the sources of the lessons; do it after `gpulab build-notebooks`.
"""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.common.command_line import call_command, parser_of
from benchmarks.common.folders import RESULTS, ROOT
from benchmarks.common.markdown import table
from benchmarks.common.notebooks import SOURCES, chosen, run_solved
from gpulab.exercises._claims import _claims_of, _saved, _write
from gpulab.exercises._guess_question import question_of
from gpulab.exercises._lesson_index import unit_of
from gpulab.lessons._build import SOLUTION, read_source

OUTCOMES = RESULTS / "predictions-virtual-h200.json"
PAGE = ROOT / "docs" / "instructor" / "answers.md"
_OPENING = """\
# Answers

For instructors. `python -m benchmarks.instructor_answers write` makes this page from the sources
of the lessons; it is in the repository and not in the wheel. Some exercises accept many answers:
what is here is one that the checks accept. `exercises.check` explains it in the lesson, and each
typical mistake.

The predictions are listed with what came out on the virtual H200, where a second run gives the
same unless the CPU is timed. The claims are listed with what came out there and on a real H200."""
_CHECK = re.compile(r'exercises\.check\(\s*"([^"]+)"')
_ASKED = re.compile(r'exercises\.predict\(\s*"([^"]+)"')
_COMPARED = re.compile(r'exercises\.compare\(\s*"([^"]+)"')
_OUTCOME = re.compile(r"No guess\. (?:It was|The outcome:) (.+?)\. Give your guess", re.DOTALL)
_CLAIM = re.compile(r'exercises\.claim\(\s*"([^"]+)"')


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one of the commands."""
    parser = parser_of("benchmarks.instructor_answers", __doc__)
    commands = parser.add_subparsers(required=True)
    run = commands.add_parser("run", help="run lessons and save the outcomes of predictions")
    run.add_argument("lessons", nargs="*", help="such as 03 08b case-01 (default: all)")
    run.set_defaults(command="benchmarks.instructor_answers:run_lessons")
    write = commands.add_parser("write", help="write the page")
    write.set_defaults(command="benchmarks.instructor_answers:write_page")
    call_command(parser, arguments)


def kept() -> dict[str, list[list[str]]]:
    """Return the questions of each lesson with their saved outcomes."""
    outcomes: dict[str, list[list[str]]] = json.loads(OUTCOMES.read_text("utf-8"))
    return outcomes


def write_page() -> None:
    """Write the page from the sources of the lessons and the saved outcomes."""
    PAGE.write_text(page(), "utf-8")


def run_lessons(lessons: Sequence[str]) -> None:
    """Run lessons, and save the outcome of each prediction."""
    outcomes = kept() if OUTCOMES.exists() else {}
    for source in chosen(lessons):
        name = unit_of(source)
        outcomes[name] = outcomes_of(run_solved(source).cells)
        print(name, len(outcomes[name]), "predictions", flush=True)
        # Written after each lesson, so that an interrupt loses one lesson only.
        text = json.dumps(dict(sorted(outcomes.items())), indent=1, ensure_ascii=False)
        OUTCOMES.write_text(f"{text}\n", "utf-8")


def outcomes_of(cells: Sequence[Any]) -> list[list[str]]:
    """Return each question of an unanswered notebook with its outcome, in the lesson's order."""
    outcomes = []
    for cell in cells:
        names = _COMPARED.findall(cell.source) if cell.cell_type == "code" else []
        if names:
            texts = (str(output.get("data", {}).get("text/plain", "")) for output in cell.outputs)
            cell_outcomes = _OUTCOME.findall("\n".join(texts))
            # A cell that compares two guesses shows the outcomes in the order of its lines.
            outcomes += [
                [question_of(name).question, " ".join(outcome.split())]
                for name, outcome in zip(names, cell_outcomes, strict=False)
            ]
    return outcomes


def page() -> str:
    """Return the page in Markdown."""
    outcomes = kept()
    parts = [
        part for source in SOURCES for part in _parts(source, outcomes.get(unit_of(source), []))
    ]
    return "\n\n".join([_OPENING, *parts]) + "\n"


def _parts(source: Path, outcomes: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the title of a lesson, its predictions, its solutions, and its claims."""
    cells = read_source(source).cells
    codes = [cell.source for cell in cells if cell.cell_type == "code"]
    yield "#" + cells[0].source.split("\n")[0]
    asked = {question_of(name).question for code in codes for name in _ASKED.findall(code)}
    # A question that was changed has no outcome until the lesson runs again.
    if known := [row for row in outcomes if row[0] in asked]:
        yield "\n".join(table(["prediction", "virtual H200"], known))
    for exercise, code in _solutions(codes):
        yield f"### {exercise}\n\n```python\n{code}\n```"
    if claims := [name for code in codes for name in _CLAIM.findall(code)]:
        head = ["claim", "what it says", "virtual H200", *_gpus()]
        yield "\n".join(table(head, list(_rows(claims)), n_names=2))


def _solutions(codes: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each solution with the exercise that checks it, in the same cell or a later one."""
    for number, code in enumerate(codes):
        blocks = [match[0] for match in SOLUTION.finditer(code)]
        if blocks:
            after = (name for later in codes[number:] for name in _CHECK.findall(later))
            lines = "\n".join(blocks).split("\n")
            solution_lines = [line for line in lines if not line.strip().startswith("### ")]
            yield next(after), "\n".join(solution_lines).strip("\n")


def _gpus() -> list[str]:
    """Return the names of the GPUs on which claims were recorded."""
    worlds = (world for saved in _saved().values() for world in saved)
    return sorted({world.gpu for world in worlds if world.source == "recorded"}, reverse=True)


def _rows(claims: Sequence[str]) -> Iterator[list[str]]:
    for name in claims:
        fact = _claims_of(name.partition(".")[0])[name]
        values = {str(world): _write(fact, world.value) for world in _saved().get(name, ())}
        worlds = ["virtual", *(f"recorded ({gpu})" for gpu in _gpus())]
        yield [name, fact.text, *(values.get(world, "not recorded") for world in worlds)]


if __name__ == "__main__":
    main()
