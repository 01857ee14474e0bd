"""Write what the pages say of the lessons.

    python -m benchmarks.lessons minutes
    python -m benchmarks.lessons gallery --pictures

minutes prints how long the core of each lesson takes a learner, and what it consists of.
gallery writes the questions and minutes of the lessons into README, the page of lessons and the
        instructor's plans. With --pictures it first runs the lessons, for some minutes, and takes
        a picture of each.
"""

from collections.abc import Sequence

from benchmarks.common.command_line import call_command, parser_of


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one of the commands."""
    parser = parser_of("benchmarks.lessons", __doc__)
    commands = parser.add_subparsers(required=True)
    minutes = commands.add_parser("minutes", help="estimate how long each lesson takes")
    minutes.set_defaults(command="benchmarks.lessons.minutes:print_minutes")
    gallery = commands.add_parser("gallery", help="write what the pages say of the lessons")
    gallery.add_argument("--pictures", action="store_true", help="take the pictures anew")
    gallery.set_defaults(command="benchmarks.lessons.gallery:write")
    call_command(parser, arguments)


if __name__ == "__main__":
    main()
