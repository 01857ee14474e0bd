from ._clock_facts import cause_of as cause_of
from ._clock_facts import lock_virtual_gpu as lock_virtual_gpu
from ._figures import asked_for as asked_for
from ._figures import draw_orders as draw_orders
from ._figures import plot_over_time as plot_over_time
