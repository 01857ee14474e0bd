from ._figures import plot_counters as plot_counters
from ._figures import plot_speeds as plot_speeds
