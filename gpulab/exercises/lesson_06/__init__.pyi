from ._figures import draw_shares as draw_shares
from ._figures import plot_speeds as plot_speeds
