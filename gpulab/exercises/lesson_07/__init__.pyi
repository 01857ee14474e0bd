from ._figures import largest_step as largest_step
from ._figures import plot_samples as plot_samples
from ._figures import repeat as repeat
from ._figures import try_to_capture as try_to_capture
from ._gap_programs import program as program
