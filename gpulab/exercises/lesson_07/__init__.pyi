from ._gap_programs import program as program
from ._ladder import largest_step as largest_step
from ._trial_capture import try_to_capture as try_to_capture
