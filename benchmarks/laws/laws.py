"""The laws that the benchmark checks over random programs."""

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.laws.programs import Program
from benchmarks.laws.readings import Gpu
from benchmarks.laws.same_times import (
    a_fresh_process_takes_as_long,
    repetitions_take_as_long,
    values_cost_no_time,
    what_came_before_changes_nothing,
)
from benchmarks.laws.tables import tables_add_up
from benchmarks.laws.waits import (
    a_wait_ends_with_the_work,
    readings_have_an_order,
    who_waits_waits_everywhere,
)

# Returns None if a program obeys the law on a GPU, and otherwise what breaks it.
Check = Callable[[Program, Gpu], str | None]


@dataclass(frozen=True, slots=True)
class Law:
    """A law of the virtual GPU.

    Attributes
    ----------
    number, text
        Its number and what it says.
    checks
        Each with how many programs there are for one that it tries; some take long.
    is_hardware_s
        Whether hardware obeys it, too.
    """

    number: int
    text: str
    checks: tuple[tuple[Check, int], ...]
    is_hardware_s: bool = True


LAWS: dict[int, Law] = {
    law.number: law
    for law in (
        Law(
            1,
            "Values cost no time.",
            (
                (values_cost_no_time, 1),
                (repetitions_take_as_long, 25),
                (a_fresh_process_takes_as_long, 100),
            ),
            is_hardware_s=False,
        ),
        Law(2, "A wait ends with the work.", ((a_wait_ends_with_the_work, 1),)),
        Law(3, "The readings have an order.", ((readings_have_an_order, 1),)),
        Law(
            4,
            "The same program takes the same time.",
            ((what_came_before_changes_nothing, 5),),
            is_hardware_s=False,
        ),
        Law(5, "A call waits everywhere or nowhere.", ((who_waits_waits_everywhere, 2),)),
        Law(7, "The profiler's tables add up.", ((tables_add_up, 2),)),
    )
}
