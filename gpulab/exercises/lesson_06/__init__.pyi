from ._figures import in_words as in_words
from ._figures import live_staircase as live_staircase
from ._figures import meeting_point as meeting_point
from ._figures import per_megabyte as per_megabyte
from ._figures import plot_staircase as plot_staircase
